"""Sentences drawn from a text of any size, to train a vocabulary on."""

import dataclasses
import itertools
import json
import math
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from xling_jax import processes
from xling_jax.corpora import sources, text
from xling_jax.corpora.normalize import Normalizer
from xling_jax.corpora.splitting import Splitter
from xling_jax.files import kept, short_hash

FORMAT = 1  # of the files and of how sentences are read; if it changes, all are drawn anew


@dataclasses.dataclass(frozen=True)
class Sample:
    """Some sentences of a text, normalised, in their order. total: how many the text has."""

    sentences: list[str]
    total: int


def of_text(
    given: Sequence[sources.Source],
    split: Splitter | None,
    normalizer: Normalizer,
    limit: int | None,
    number: int,
    folder: Path,
) -> Sample:
    """Draws from a text, of which all has to be read, or takes what an earlier run drew and kept.

    Args:
      given: the text, one source after the other.
      split: cuts lines into sentences; None if each line is a sentence.
      normalizer: normalises the sentences that are drawn; empty ones are left out.
      limit: draw from the first `limit` sentences, None from all.
      number: how many to draw at most.
      folder: where samples are kept, by all that decides them.

    Raises:
      FileNotFoundError, ValueError: as `sources.lines`; or a source changes meanwhile.
    """
    known = [(source, sources.state(source), sources.fingerprint(source)) for source in given]

    def drawn() -> bytes:
        total = itertools.count()
        lines = itertools.islice(text.stream(given, split), limit)
        found = draw((line for line, _ in zip(lines, total, strict=False)), number)
        for each in known:
            sources.require_unchanged(*each)
        written = filter(None, map(normalizer, found))
        return "\n".join([str(next(total)), *written]).encode()

    digests = [digest for _, _, digest in known]
    decides = [FORMAT, digests, split and split.identity, normalizer.identity, limit, number]
    with processes.first_before_others():
        content = kept(folder, short_hash(json.dumps(decides).encode()), ".txt", drawn)
    total, *lines = content.decode().split("\n")
    return Sample(lines, int(total))


def draw(lines: Iterable[str], number: int, seed: int = 0) -> list[str]:
    """Draws `number` lines, or all if there are fewer, each with the same chance, in their order.

    One pass, which holds only the lines drawn so far: algorithm L of Li 1994 (Reservoir-Sampling
    Algorithms of Time Complexity O(n(1 + log(N/n))), §4). The seed decides the draw.
    """
    # Only of random() does Python promise that it gives the same numbers in every version.
    draw = random.Random(seed).random
    numbered = enumerate(lines)
    drawn = list(itertools.islice(numbered, number))
    largest = math.nextafter(1, 0)
    while True:
        largest *= math.exp(math.log(1 - draw()) / number)
        skipped = math.floor(math.log(1 - draw()) / math.log1p(-largest))
        line = next(itertools.islice(numbered, min(skipped, 2**62), None), None)
        if line is None:
            return [line for _, line in sorted(drawn)]
        drawn[math.floor(draw() * number)] = line
