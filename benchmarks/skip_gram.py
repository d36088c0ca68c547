"""How fast are skip-gram vectors trained, and in how much memory?

python benchmarks/skip_gram.py --text FILE --megabytes 100 --threads 2

The words of a text, repeated until it has that size, with the settings of row 30 of
configs/fake_english.py at scale=paper but for a single epoch. Beside that epoch the text is read
once to count words. This process's peak memory holds the text once, as ids.
"""

import argparse
import itertools
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xling_jax.runs import config_files
from xling_jax.vocabulary import static_vectors

CONFIG = Path(__file__).parent.parent / "configs" / "fake_english.py"


class Repeated:
    """The first sentences of a text that is read again and again, made anew in every pass."""

    def __init__(self, sentences: list[np.ndarray], number: int):
        self._sentences, self._number = sentences, number

    def __iter__(self) -> Iterator[np.ndarray]:
        return itertools.islice(itertools.cycle(self._sentences), self._number)


def main() -> None:
    """Trains, and prints what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", required=True, type=Path, help="a sentence a line")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    lines = arguments.text.read_text(encoding="utf-8").splitlines()
    size = arguments.text.stat().st_size
    counts = Counter(word for line in lines for word in line.split())
    ids = {word: number for number, word in enumerate(counts)}
    sentences = [np.array([ids[word] for word in line.split()], np.int32) for line in lines]
    number = max(1, round(arguments.megabytes * 1e6 / size * len(lines)))
    words = sum(counts.values()) * number / len(lines)
    settings = config_files.load_config(str(CONFIG), "scale=paper").vocabulary.neighbours.skip_gram
    settings.update(epochs=1, threads=arguments.threads)
    began = time.perf_counter()
    names = {number: word for word, number in ids.items()}
    vectors = static_vectors.train(settings.to_dict(), Repeated(sentences, number), names, seed=1)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{words / 1e6:,.1f} million words, {len(vectors):,} kinds, {arguments.threads} threads: "
        f"{seconds:,.0f} s, {words / seconds:,.0f} words/s, {peak:.2f} GiB at the peak"
    )


if __name__ == "__main__":
    main()
