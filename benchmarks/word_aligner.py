"""How well does the word aligner find the links that people drew?

python benchmarks/word_aligner.py --languages en fr --gold EN FR LINKS --text EN FR --xnli EN FR
python benchmarks/word_aligner.py --languages en fr --text EN FR --megabytes 1000

The gold sentences, in which words stand between blanks, and all other parallel text, normalised as
in the project, are aligned together. `linalg.word_aligner` is compared with IBM model 1 (Brown et
al. 1993), which takes no account of places. The links of both directions are combined by
grow-diag-final-and, or only the common ones are kept. The scores are those of Och & Ney 2003:
precision by the possible links, recall by the sure ones, and the alignment error rate (AER).

With --megabytes, the text, which is held as words, is repeated until both languages together have
that size, and the time and this process's peak memory are printed. Give more text than a block of
the aligner takes, since repeated sentences have no new pairs of words.
"""

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from turns import peak_memory

from xling_jax.corpora.normalize import Normalizer
from xling_jax.linalg import word_aligner
from xling_jax.linalg.word_aligner import Links

Gold = list[tuple[set[tuple[int, int]], set[tuple[int, int]]]]  # sure, and sure or possible


def ibm1(sources: list[np.ndarray], targets: list[np.ndarray], iterations: int) -> list[np.ndarray]:
    """For each target word the place of its source word, or NO_WORD, by IBM model 1.

    Args:
      sources, targets: the words of each sentence, as numbers from 1.
      iterations: of expectation maximisation, from equal probabilities.
    """
    keys = [
        (np.append(0, source)[None, :] << 32 | target[:, None]).ravel()
        for source, target in zip(sources, targets, strict=True)
    ]
    known, pair_C = np.unique(np.concatenate(keys), return_inverse=True)
    source_P = known >> 32
    # The candidates of each target word are the source words of its sentence, and no word.
    sizes = np.concatenate(
        [np.full(len(t), len(s) + 1) for s, t in zip(sources, targets, strict=True)]
    )
    starts = np.cumsum(sizes) - sizes
    probability_P = np.ones(len(known))
    for _ in range(iterations):
        weight_C = probability_P[pair_C]
        weight_C /= np.repeat(np.add.reduceat(weight_C, starts), sizes)
        count_P = np.bincount(pair_C, weight_C)
        probability_P = count_P / np.bincount(source_P, count_P)[source_P]
    best, weight_C = [], probability_P[pair_C]
    start = 0
    for source, target in zip(sources, targets, strict=True):
        end = start + len(target) * (len(source) + 1)
        best.append(weight_C[start:end].reshape(len(target), -1).argmax(axis=1) - 1)
        start = end
    return best


def scores(found: Sequence[Links], gold: Gold) -> tuple[float, float, float]:
    """Alignment error rate, precision and recall of Och & Ney 2003."""
    links = wanted = in_sure = in_possible = 0
    for own, (sure, possible) in zip(found, gold, strict=True):
        links, wanted = links + len(set(own)), wanted + len(sure)
        in_sure, in_possible = (
            in_sure + len(sure & set(own)),
            in_possible + len(possible & set(own)),
        )
    error = 1 - (in_sure + in_possible) / (links + wanted)
    return error, in_possible / max(links, 1), in_sure / max(wanted, 1)


def read_gold(path: str) -> Gold:
    """Reads the links of a sentence from each line: `0-0` is sure, `0p0` possible, from place 0."""
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        sure, possible = set(), set()
        for part in line.split():
            mark = "p" if "p" in part else "-"
            first, second = part.split(mark)
            possible.add((int(first), int(second)))
            if mark == "-":
                sure.add((int(first), int(second)))
        found.append((sure, possible))
    return found


def read_lines(path: str, columns: int = 1) -> list[str]:
    """The first `columns` columns of each line of a file, in one list."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [text for line in lines for text in line.split("\t")[:columns]]


def read_pairs(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """The parallel text that is not gold, normalised; repeated pairs, such as the premises of XNLI,
    are taken once."""
    files = [(pair, 1) for pair in arguments.text] + [(pair, 2) for pair in arguments.xnli]
    sides: tuple[list[str], list[str]] = ([], [])
    for pair, columns in files:
        for side, path in zip(sides, pair, strict=True):
            side.extend(read_lines(path, columns))
        if len(sides[0]) != len(sides[1]):
            raise ValueError(f"{' and '.join(pair)} have different numbers of lines")
    written = [
        list(map(Normalizer(language), side))
        for language, side in zip(arguments.languages, sides, strict=True)
    ]
    return [(a, b) for a, b in dict.fromkeys(zip(*written, strict=True)) if a and b]


def measure(pairs: Sequence[tuple[str, str]], megabytes: int, iterations: int) -> None:
    """Aligns the pairs, repeated to that much text, and prints the time and memory that it took."""
    size = sum(len(text.encode()) + 1 for pair in pairs for text in pair)
    number = max(1, round(megabytes * 1e6 / size * len(pairs)))
    words = ([text.split() for text in side] for side in zip(*pairs, strict=True))
    sides = [itertools.islice(itertools.cycle(side), number) for side in words]
    began = time.perf_counter()
    links = sum(map(len, word_aligner.align(*sides, iterations)))
    seconds = time.perf_counter() - began
    rate = number / len(pairs) * size / 1e6 / seconds
    print(
        f"{number:,} pairs, {links:,} links: {seconds:,.0f} s, {rate:.2f} MB/s, "
        f"{peak_memory():.2f} GiB at the peak"
    )


def main() -> None:
    """Aligns the text with each model, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    pair = {"nargs": 2, "action": "append", "default": [], "metavar": ("FIRST", "SECOND")}
    parser.add_argument("--languages", nargs=2, required=True, metavar=("FIRST", "SECOND"))
    parser.add_argument("--gold", nargs=3, metavar=("FIRST", "SECOND", "LINKS"))
    parser.add_argument("--text", **pair, help="a sentence a line; can be given again")
    parser.add_argument("--xnli", **pair, help="premises and hypotheses; can be given again")
    parser.add_argument("--iterations", type=int, default=word_aligner.ITERATIONS)
    parser.add_argument("--megabytes", type=int, help="of text, for the time and memory it takes")
    arguments = parser.parse_args()
    if (arguments.gold is None) == (arguments.megabytes is None):
        parser.error("give either --gold or --megabytes")
    other = read_pairs(arguments)
    if arguments.megabytes is not None:
        if not other:
            parser.error("--megabytes needs --text or --xnli")
        measure(other, arguments.megabytes, arguments.iterations)
        return
    asked = [[line.split() for line in read_lines(path)] for path in arguments.gold[:2]]
    gold = read_gold(arguments.gold[2])
    first, second = (asked[side] + [pair[side].split() for pair in other] for side in (0, 1))
    words = [sum(map(len, side)) for side in (first, second)]
    print(f"{len(gold)} gold pairs, {len(other):,} others; {words[0]:,} and {words[1]:,} words")
    print(
        "\n| | links of both directions | AER | precision | recall | s |\n|---|---|---|---|---|---|"
    )
    for name, directed in [("xling_jax", word_aligner.directed), ("IBM model 1", ibm1)]:
        began = time.perf_counter()
        pairs = zip(first, second, strict=True)
        found = list(word_aligner.directions(pairs, arguments.iterations, directed))
        seconds = time.perf_counter() - began
        for way, links in [
            ("grow-diag-final-and", [word_aligner.symmetrize(*x) for x in found[: len(gold)]]),
            ("common", [sorted(set(a) & set(b)) for a, b in found[: len(gold)]]),
        ]:
            values = " | ".join(f"{x:.3f}" for x in scores(links, gold))
            print(f"| {name} | {way} | {values} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
