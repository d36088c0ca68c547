"""Text of any size through a stored model: vectors of sentences, and of words in context."""

import functools
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.batches.labelled import power_of_two
from xling_jax.evaluators import registry
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.models.heads import cross_entropy, is_candidate
from xling_jax.models.text_model import NO_WORD, TextModel

SHORTEST = 16  # places of the shortest rows; the next ones are twice as long, and so on
PLACES = 8192  # of a batch, unless a single row takes more
SPECIAL = 2  # tokens around a sentence, one before and one behind it


def _states(config: BertConfig, layers: tuple[int, ...], params, tokens_RxT, lengths_R):
    """Hidden states [L, R, T, D] in float32; a sentence does not attend to places behind it."""
    rows, length = tokens_RxT.shape
    place_RxT = jnp.broadcast_to(jnp.arange(length), (rows, length))
    states = Bert(config).apply(
        {"params": params},
        tokens_RxT,
        place_RxT,
        (place_RxT >= lengths_R[:, None]).astype(jnp.int32),
        jnp.zeros_like(tokens_RxT),
        layers=layers,
    )
    return jnp.stack(states).astype(jnp.float32)  # type: ignore[arg-type]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _sentence_means(config, layers, params, tokens_RxT, lengths_R):
    """Means over the pieces of each row, [L, R, D]."""
    states = _states(config, layers, params, tokens_RxT, lengths_R)
    place_T = jnp.arange(tokens_RxT.shape[1])
    is_piece = (place_T > 0) & (place_T < lengths_R[:, None] - 1)
    total = jnp.where(is_piece[..., None], states, 0.0).sum(axis=2)
    return total / jnp.maximum(is_piece.sum(axis=1), 1)[:, None]


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=(5,))
def _add_words(config, layers, params, tokens_RxT, lengths_R, sums_LxWxD, slot_RxT, share_RxT):
    """Adds the states of words to their sums: a piece, times its `share`, to the sum of its `slot`,
    if there is one."""
    states = _states(config, layers, params, tokens_RxT, lengths_R)
    weighted = states * share_RxT[..., None]
    flat = weighted.reshape(len(layers), -1, states.shape[-1])
    return sums_LxWxD.at[:, slot_RxT.reshape(-1)].add(flat, mode="drop")


@functools.partial(jax.jit, static_argnums=(0, 1))
def _masked_losses(config, every: int, params, tokens_RxT, lengths_R, first_R, mask_id, is_text_V):
    """One pass of `TextEncoder.masked_losses`, each row masked from piece `first_R` on: the sums of
    losses and the numbers of masked pieces, [R]."""
    most = -(-(tokens_RxT.shape[1] - SPECIAL) // every)
    place_RxM = 1 + first_R[:, None] + every * jnp.arange(most)
    is_there = place_RxM < lengths_R[:, None] - 1
    place_RxM = jnp.where(is_there, place_RxM, 0)
    row_Rx1 = jnp.arange(len(tokens_RxT))[:, None]
    is_there &= is_text_V[tokens_RxT[row_Rx1, place_RxM]]
    masked = tokens_RxT.at[row_Rx1, jnp.where(is_there, place_RxM, tokens_RxT.shape[1])].set(
        mask_id, mode="drop"
    )
    last = _states(config, (config.layers,), params, masked, lengths_R)[0]
    hidden_PxD = last[row_Rx1, place_RxM].reshape(-1, config.hidden)
    loss_P = cross_entropy(config, params, hidden_PxD, tokens_RxT[row_Rx1, place_RxM].reshape(-1))
    return jnp.where(is_there, loss_P.reshape(is_there.shape), 0.0).sum(1), is_there.sum(1)


def _room(model: TextModel) -> int:
    """How many pieces of a sentence a model has places for."""
    return model.config.positions - SPECIAL


def _require_list(name: str, given: Sequence[str]) -> None:
    """ValueError for a string, which is a sequence of its letters."""
    if isinstance(given, str):
        raise ValueError(f"{name}={given!r}: give a list")


def number_cut(model: TextModel, texts: Sequence[str]) -> int:
    """How many texts have more pieces than a model has places for."""
    return sum(len(pieces) > _room(model) for pieces in model.encode(texts))


def said_cut(model: TextModel, number: int, of: int) -> str:
    """A message that so many of some sentences are cut."""
    places = f"the {model.config.positions} places of the model of {model.language}"
    return f"cut to {places}: {number:,} of {of:,} sentences"


class TextEncoder:
    """Runs sentences through a model, in batches of rows of about equal length."""

    def __init__(self, model: TextModel, layers: Sequence[int] | None = None):
        """Takes a model, and the layers whose states are wanted, by default all; ValueError for one
        that the model does not have."""
        depth = model.config.layers
        self.layers = tuple(range(depth + 1)) if layers is None else tuple(layers)
        registry.require_layers(self.layers, depth, "layers")
        self.model, self._config = model, model.config
        self._room = _room(model)
        self._params = jax.device_put(dict(model.params))

    def _batches(
        self, ids: Sequence[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(sentences' numbers, tokens [R, T], lengths [R]); rows beyond the numbers have no
        pieces."""
        longest, (first_id, last_id) = self._config.positions, self.model.special_ids
        lengths = np.array([min(len(x) + SPECIAL, longest) for x in ids], np.int32)
        order, length = np.argsort(lengths, kind="stable"), SHORTEST
        while len(order):
            length = min(length, longest)
            here, order = order[lengths[order] <= length], order[lengths[order] > length]
            rows = max(1, PLACES // length)
            for first in range(0, len(here), rows):
                some = here[first : first + rows]
                tokens = np.zeros((rows, length), np.int32)
                tokens[:, 0], tokens[:, 1] = first_id, last_id
                sizes = np.full(rows, SPECIAL, np.int32)
                for row, number in enumerate(some.tolist()):
                    size = lengths[number]
                    tokens[row, 1 : size - 1] = self._kept(ids[number])
                    tokens[row, size - 1], sizes[row] = last_id, size
                yield some, tokens, sizes
            length *= 2

    def _kept(self, of_pieces: np.ndarray) -> np.ndarray:
        """The pieces that the model has places for: a sentence's beginning, which comes last where
        the model's language is inverted."""
        return of_pieces[-self._room :] if self.model.inverted else of_pieces[: self._room]

    def sentences(self, texts: Sequence[str]) -> np.ndarray:
        """The mean of each sentence's pieces at each layer, float32 [L, n, D].

        Special tokens do not count (W&C §5.1.3). A sentence without a piece is zero; what is longer
        than the model is cut.
        """
        _require_list("texts", texts)
        return self.means(self.model.encode(texts))

    def means(self, ids: Sequence[np.ndarray]) -> np.ndarray:
        """`sentences` of sentences that are given as ids."""
        found = np.zeros((len(self.layers), len(ids), self._config.hidden), np.float32)
        for numbers, tokens, lengths in self._batches(ids):
            means = _sentence_means(self._config, self.layers, self._params, tokens, lengths)
            found[:, numbers] = np.asarray(means)[:, : len(numbers)]
        return found

    @property
    def has_head(self) -> bool:
        """Whether the model can predict masked pieces."""
        return "mlm" in self._params and self.model.mask_id is not None

    def masked_losses(
        self, texts: Sequence[str], every: int, passes: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The losses of masked pieces, for pseudo-perplexity.

        In a pass, every `every`-th piece of a sentence is masked, beginning with one that differs
        from sentence to sentence and from pass to pass; with `every` passes each piece is masked
        once. Where `every` is at least a sentence's length, its pieces are masked one at a time, as
        in Salazar et al. 2020. Pieces that stand for no text, such as [UNK], are not masked, nor
        are those that were never candidates of the model's predictions.

        Returns:
          The sum of negative log-probabilities (nats) of the masked pieces of each sentence,
          float64 [n], and their number, int64 [n].

        Raises:
          ValueError: the model has no head, or no piece to mask with.
        """
        if not self.has_head:
            raise ValueError("the model cannot tell what is masked: it has no head, or no [MASK]")
        _require_list("texts", texts)
        losses, counts = np.zeros(len(texts)), np.zeros(len(texts), np.int64)
        ids, is_text = self.model.encode(texts), is_candidate(np.array(self._params["mlm"]["bias"]))
        is_text[list(self.model.textless)] = False
        for numbers, tokens, lengths in self._batches(ids):
            first = np.zeros(len(tokens), np.int32)
            for number in range(min(passes, every)):
                first[: len(numbers)] = (numbers + number) % every
                if (first >= lengths - SPECIAL).all():
                    continue
                loss, count = _masked_losses(
                    self._config, every, self._params, tokens, lengths, first,
                    self.model.mask_id, is_text,
                )  # fmt: skip
                losses[numbers] += np.asarray(loss)[: len(numbers)]
                counts[numbers] += np.asarray(count)[: len(numbers)]
        return losses, counts

    def _slots(
        self, word_of: np.ndarray, numbers: Sequence[int], none: int
    ) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """Which sum each piece of a sentence is added to, the share that it counts, and the sums
        that some word is added to. Words that are cut off at the model's length are added to none.

        Args:
          word_of: the word of each piece, or NO_WORD.
          numbers: the sum of each word, or `none`.
        """
        slots = np.array([*numbers, none], np.int32)[word_of]  # NO_WORD is the last
        pieces = np.bincount(word_of[word_of != NO_WORD], minlength=len(numbers))
        left_out = word_of[: -self._room] if self.model.inverted else word_of[self._room :]
        cut = set(left_out.tolist()) - {NO_WORD}
        slots[np.isin(word_of, list(cut))] = none
        shares = np.where(slots == none, 0, 1 / np.maximum(np.append(pieces, 1)[word_of], 1))
        there = [
            number
            for word, number in enumerate(numbers)
            if number != none and pieces[word] and word not in cut
        ]
        return slots, shares.astype(np.float32), there

    def words(self, written: Sequence[str], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The mean over all occurrences of words, an occurrence being the mean of its pieces (W&C
        §5.1.1).

        A word that is not itself among `words` counts as its lower-case form; one that is not whole
        within the model's length does not count.

        Args:
          written: sentences as the model writes them.

        Returns:
          float32 [L, W, D], zero for a word that does not occur, and int64 [W], the numbers of
          occurrences.
        """
        _require_list("written", written)
        _require_list("words", words)
        encoded = self.model.encode_words(written)
        every = [ids for ids, _ in encoded]
        known, number = {word: n for n, word in enumerate(words)}, len(words)
        found = []
        for text, (_, word_of) in zip(written, encoded, strict=True):
            numbers = [known.get(word, known.get(word.lower(), number)) for word in text.split()]
            found.append(self._slots(word_of, numbers, number))
        counts = np.zeros(number, np.int64)
        for _, _, there in found:
            np.add.at(counts, there, 1)
        sums = self._sums(every, [(slots, shares) for slots, shares, _ in found], number)
        return sums / np.maximum(counts, 1)[:, None], counts

    def occurrences(
        self, sentences: Sequence[Sequence[str]], wanted: Sequence[Sequence[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Words in context, each the mean of its pieces (W&C §5.1.2).

        Args:
          sentences: their words, each as the model writes it: there may be blanks in it.
          wanted: of each sentence, the numbers (from 0) of some of its words; each once.

        Returns:
          float32 [L, n, D], in the order of `wanted`, and bool [n], whether a word has pieces that
          are all within the model's length; other words are zero.
        """
        encoded = self.model.encode_words([" ".join(filter(None, words)) for words in sentences])
        number, first = sum(map(len, wanted)), 0
        found, is_there = [], np.zeros(number, bool)
        for every, words, (_, word_of) in zip(sentences, wanted, encoded, strict=True):
            own = dict(zip(words, range(first, first + len(words)), strict=True))
            numbers = [own.get(word, number) for word in range(len(every))]
            whole = [word for word, text in enumerate(every) for _ in text.split()]
            word_of = np.array([*whole, NO_WORD], np.int32)[word_of]  # NO_WORD is the last
            slots, shares, there = self._slots(word_of, numbers, number)
            found.append((slots, shares))
            is_there[there] = True
            first += len(words)
        return self._sums([ids for ids, _ in encoded], found, number), is_there

    def _sums(
        self,
        every: Sequence[np.ndarray],
        found: Sequence[tuple[np.ndarray, np.ndarray]],
        number: int,
    ) -> np.ndarray:
        """Sums of states, float32 [L, number, D], from the ids of each sentence (`every`) and, of
        each of its pieces, the sum that it is added to (`number`: none) and the share that it
        counts (`found`)."""
        room = power_of_two(number)  # so that programs are compiled for few different numbers
        sums = jnp.zeros((len(self.layers), room, self._config.hidden))
        for numbers, tokens, lengths in self._batches(every):
            slots = np.full(tokens.shape, number, np.int32)
            shares = np.zeros(tokens.shape, np.float32)
            for row, sentence in enumerate(numbers.tolist()):
                size = lengths[row] - SPECIAL
                slots[row, 1 : 1 + size] = self._kept(found[sentence][0])
                shares[row, 1 : 1 + size] = self._kept(found[sentence][1])
            sums = _add_words(
                self._config, self.layers, self._params, tokens, lengths, sums, slots, shares
            )
        return np.asarray(sums[:, :number])
