"""How fast are skip-gram vectors trained, and in how much memory?

python benchmarks/skip_gram.py --text FILE --megabytes 100 --threads 2

Trains vectors of the words of a text, repeated until it has that size, with the settings of row 30
of configs/fake_english.py at scale=paper, but for a single epoch. Before it the text is read once
to count words. The peak memory includes the text, not repeated, as ids. Repetition makes rare words
frequent, so more different words have vectors than in as much text without repetition.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from turns import peak_memory

from xling_jax.runs import config_files
from xling_jax.vocabulary import static_vectors

CONFIG = Path(__file__).parent.parent / "configs" / "fake_english.py"


class Repeated:
    """The first `number` sentences of a text that is repeated, the same in every pass."""

    def __init__(self, sentences: list[np.ndarray], number: int):
        self._sentences, self._number = sentences, number

    def __iter__(self) -> Iterator[np.ndarray]:
        return itertools.islice(itertools.cycle(self._sentences), self._number)


def main() -> None:
    """Trains, and prints the time and memory that it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", required=True, type=Path, help="a sentence a line")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    ids: dict[str, int] = {}
    with open(arguments.text, encoding="utf-8") as lines:
        sentences = [
            np.array([ids.setdefault(word, len(ids)) for word in line.split()], np.int32)
            for line in lines
        ]
    if not ids:
        parser.error(f"--text={arguments.text} has no words")
    repeats = arguments.megabytes * 1e6 / arguments.text.stat().st_size
    text = Repeated(sentences, max(1, round(repeats * len(sentences))))
    words = repeats * sum(map(len, sentences))
    settings = config_files.load_config(str(CONFIG), "scale=paper").vocabulary.neighbours.skip_gram
    settings.update(epochs=1, threads=arguments.threads)
    began = time.perf_counter()
    names = {number: word for word, number in ids.items()}
    vectors = static_vectors.train(settings.to_dict(), text, names, seed=1)
    seconds = time.perf_counter() - began
    print(
        f"{words / 1e6:,.1f} million words, {len(vectors):,} kinds, {arguments.threads} threads: "
        f"{seconds:,.0f} s, {words / seconds:,.0f} words/s, {peak_memory():.2f} GiB at the peak"
    )


if __name__ == "__main__":
    main()
