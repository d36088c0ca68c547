"""Windows of continuous streams, and which language each part of a batch is of (W&C §3.1).

A language's text is one stream of pieces in which every sentence ends with [SEP]. A sequence is
[CLS] and a window of the stream, which runs across sentences; it begins anywhere, as published, or
with a sentence. A step has `parts` parts of `sequences` sequences each; a part is of one language,
drawn in proportion to (share of sentences)^alpha.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from xling_jax.vocabulary.pieces import SEP

SENTENCE = "sentence"  # the value of `batches.begin` for windows that begin with a sentence
LANGUAGES, WINDOWS = 11, 12  # tell these random numbers from others of the same seed


@dataclasses.dataclass(frozen=True)
class StreamLayout:
    """The shape of a step.

    Attributes:
      parts: how many there are, each of one language.
      sequences: per part.
      length: places of a sequence, [CLS] included.
      shards: how many devices share a step.
      microbatch: sequences that go through the model at once, all of one language. Only the order
        of sums depends on this and on the shards.
      is_fed: whether a step's plan holds its tokens, instead of their places in the store.
    """

    parts: int
    sequences: int
    length: int
    shards: int = 1
    microbatch: int = 1
    is_fed: bool = False

    @classmethod
    def choose(
        cls,
        parts: int,
        sequences: int,
        length: int,
        shards: int,
        accumulate: int,
        is_fed: bool = False,
    ) -> "StreamLayout":
        """Divides every part into at least `accumulate` microbatches, which the shards share.
        ValueError: `accumulate` is out of range, or the shards cannot share a step evenly."""
        if not 1 <= accumulate <= sequences:
            raise ValueError(
                f"batches.accumulate={accumulate}: choose 1 to batches.sequences={sequences}"
            )
        unit = shards // math.gcd(parts, shards)  # `pieces` is a multiple of this
        numbers = range(accumulate, sequences + 1)
        pieces = next((n for n in numbers if sequences % n == 0 and n % unit == 0), None)
        if pieces is None:
            below = sequences - sequences % unit
            above = below + unit
            nearest = f"{below} or {above}" if below >= accumulate else f"{above}"
            raise ValueError(
                f"batches.sequences={sequences} in batches.parts={parts} cannot be divided among "
                f"{shards} devices: choose {nearest} sequences, or fewer devices"
            )
        return cls(parts, sequences, length, shards, sequences // pieces, is_fed)

    @property
    def window(self) -> int:
        """Places of a sequence that hold the stream."""
        return self.length - 1

    @property
    def microbatches(self) -> int:
        return self.parts * self.sequences // (self.shards * self.microbatch)

    def step_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of a `StreamPlan`'s fields for one step; all are int32 on the device."""
        work = (self.shards, self.microbatches)
        starts = (*work, self.microbatch)
        return [work, (*starts, self.window) if self.is_fed else starts, starts]

    def divide(self, x: np.ndarray) -> np.ndarray:
        """[steps, parts, sequences, …] as [steps, shards, microbatches, microbatch, …]."""
        return x.reshape(len(x), self.shards, self.microbatches, self.microbatch, *x.shape[3:])


@dataclasses.dataclass(frozen=True)
class StreamPlan:
    """Which windows stand where, in K steps: all [K, shards, microbatches, …].

    language: int32 […]. windows: int64 […, microbatch], the place of a window's first token in its
    stream; or int32 […, microbatch, window], its tokens. slot: int32 […, microbatch], the
    sequence's number in the step.
    """

    language: np.ndarray
    windows: np.ndarray
    slot: np.ndarray

    def __len__(self) -> int:
        return len(self.language)


def probabilities(sentences: Sequence[int], alpha: float) -> np.ndarray:
    """How often each language is drawn: (share of sentences)^alpha, normalised (W&C §3.1)."""
    weights = (np.asarray(sentences) / np.sum(sentences)) ** alpha
    return weights / weights.sum()


def sentence_starts(parts: Iterable[np.ndarray]) -> np.ndarray:
    """The place of each sentence's first token, int64 [sentences], in a stream given in parts."""
    found, before = [np.zeros(1, np.int64)], 0
    for part in parts:
        found.append(before + 1 + np.flatnonzero(part == SEP))
        before += len(part)
    starts = np.concatenate(found)
    return starts[starts < before]


def beginnings(sentences: np.ndarray, size: int, window: int) -> np.ndarray:
    """Where windows that begin with a sentence may start, int64, followed by the stream's end.

    A sentence longer than a window is cut into parts of that size, the same in every pass; windows
    may start with these too. sentences: see `sentence_starts`. size, window: in tokens.
    """
    pieces = -(-np.diff(sentences, append=size) // window)
    number = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.append(np.repeat(sentences, pieces) + number * window, size)


def nearest_beginning(starts: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """The beginning (see `beginnings`) nearest to each place; after the last comes the first again.

    Neighbouring beginnings are at most a window apart. If `starts` are uniformly distributed, a
    token is therefore expected in at least half a window and at most two windows per pass.
    """
    number = np.searchsorted(begin, starts, side="right")
    before, after = begin[number - 1], begin[number]
    return np.where(starts - before <= after - starts, before, after) % begin[-1]


@dataclasses.dataclass(frozen=True, eq=False)  # arrays cannot be compared as a whole
class StreamSampler:
    """Plans the steps of training; a plan depends only on the seed and the steps' numbers.

    A language is read pass after pass. Each pass cuts the stream into adjoining windows, from
    another place on, and takes them in random order; the last window runs on at the stream's
    beginning. So no token is left out, and none is always at the border of a window. If windows
    begin with a sentence, each of these is moved to the nearest beginning: which tokens a pass
    leaves out, and which it reads twice, then changes from pass to pass.

    sizes: tokens of each stream. draws: probability of each language. layout: of a step. seed: of
    the order. steps_per_epoch: updates that count as an epoch. beginnings: where each stream's
    windows may begin (see `beginnings`); None for anywhere.
    """

    sizes: tuple[int, ...]
    draws: tuple[float, ...]
    layout: StreamLayout
    seed: int
    steps_per_epoch: int
    beginnings: Sequence[np.ndarray] | None = None
    _counts: dict[int, np.ndarray] = dataclasses.field(init=False, default_factory=dict)

    def windows(self, language: int) -> int:
        """Windows per pass over a language."""
        return -(-self.sizes[language] // self.layout.window)

    # The cached functions do not refer to the sampler, so that it is freed as soon as it is unused.

    @functools.cached_property
    def _drawn(self) -> Callable[[int], np.ndarray]:
        """A function from an epoch to the language of each part of its steps, [steps, parts]."""
        seed, shape, draws = self.seed, (self.steps_per_epoch, self.layout.parts), self.draws

        @functools.lru_cache(maxsize=2)
        def drawn(epoch: int) -> np.ndarray:
            uniform = np.random.default_rng([LANGUAGES, seed, epoch]).random(shape)
            found = np.searchsorted(np.cumsum(draws), uniform, side="right")
            return np.minimum(found, len(draws) - 1).astype(np.int32)

        return drawn

    def _parts_before(self, epoch: int) -> np.ndarray:
        """How many parts each language had before an epoch, [languages]."""
        known = epoch
        while known and known not in self._counts:
            known -= 1
        total = self._counts[known] if known else np.zeros(len(self.sizes), np.int64)
        for each in range(known, epoch):
            total = total + np.bincount(self._drawn(each).ravel(), minlength=len(total))
            self._counts[each + 1] = total
        return total

    @functools.cached_property
    def _passes(self) -> list[Callable[[int], np.ndarray]]:
        """For each language, a function from the number of a pass to the place of each window's
        first token, in the order of training."""
        return [self._passes_of(language) for language in range(len(self.sizes))]

    def _passes_of(self, language: int) -> Callable[[int], np.ndarray]:
        seed, size, window = self.seed, self.sizes[language], self.layout.window
        begin = None if self.beginnings is None else self.beginnings[language]
        windows = self.windows(language)

        @functools.lru_cache(maxsize=2)
        def first_tokens(number: int) -> np.ndarray:
            random = np.random.default_rng([WINDOWS, seed, language, number])
            shift = int(random.integers(window))
            starts = (shift + random.permutation(windows) * window) % size
            return starts if begin is None else nearest_beginning(starts, begin)

        return first_tokens

    def starts(self, language: int, sequences: np.ndarray) -> np.ndarray:
        """The places of the first tokens of a language's sequences with these numbers: int64, in
        the shape of `sequences`."""
        passes, places = np.divmod(sequences, self.windows(language))
        found = np.empty(sequences.shape, np.int64)
        for number in np.unique(passes):
            chosen = passes == number
            found[chosen] = self._passes[language](int(number))[places[chosen]]
        return found

    def passes(self, step: int) -> list[float]:
        """How often each stream has been read after `step` updates."""
        epoch, rest = divmod(step, self.steps_per_epoch)
        parts = self._parts_before(epoch).copy()
        if rest:
            parts += np.bincount(self._drawn(epoch)[:rest].ravel(), minlength=len(parts))
        return [float(n * self.layout.sequences / self.windows(k)) for k, n in enumerate(parts)]

    def plan(self, first: int, stop: int) -> StreamPlan:
        """The plan of updates first..stop-1, which lie in one epoch."""
        layout = self.layout
        epoch, start = divmod(first, self.steps_per_epoch)
        drawn = self._drawn(epoch)
        language = drawn[start : start + stop - first]
        starts = np.empty((*language.shape, layout.sequences), np.int64)
        for k in range(len(self.sizes)):
            chosen = np.argwhere(language == k)
            before = self._parts_before(epoch)[k] + np.count_nonzero(drawn[:start] == k)
            parts = before + np.arange(len(chosen))
            numbers = parts[:, None] * layout.sequences + np.arange(layout.sequences)
            starts[chosen[:, 0], chosen[:, 1]] = self.starts(k, numbers)
        slots = np.arange(layout.parts * layout.sequences, dtype=np.int32)
        slots = np.broadcast_to(slots.reshape(layout.parts, -1), starts.shape)
        languages = np.broadcast_to(language[:, :, None], starts.shape)
        return StreamPlan(
            layout.divide(languages)[..., 0], layout.divide(starts), layout.divide(slots)
        )
