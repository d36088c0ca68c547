"""Bibles with verse ids, divided into training, held-out and test text.

python benchmarks/verses.py --bibles FOLDER --parallel FOLDER --languages en+fr --to FOLDER \\
    --dictionaries FOLDER

Of every eight chapters of the parallel New Testament, the first is for testing and the fifth is
held out. Both are left out of the training text of every translation, by their ids there, even if a
translation numbers verses in another way, such as Romans 16:25-27 at 14:24-26.

Writes LANGUAGE.train.txt and LANGUAGE.dev.txt from all translations, and LANGUAGE.test.txt from the
parallel one. LANGUAGE.parallel.txt has its verses that are neither for testing nor held out, which
are in the training text too. Of the pairs of words that both occur at least ten times in the
training text as models read it, LANGUAGE.dictionary.txt has those of MUSE's test dictionary, and
LANGUAGE.words.txt those of its training dictionary too. Prints the hash of each file.
"""

import argparse
import collections
import hashlib
from pathlib import Path

from xling_jax.corpora.normalize import Normalizer

FOLDERS = {
    "bibles": "of translations, LANGUAGE.NAME.txt, with each line's id, such as GEN 1:1 or, of "
    "several verses, GEN 2:16-17, in LANGUAGE.NAME.ids.txt",
    "parallel": "of the same verses of the New Testament in every language, line by line, "
    "LANGUAGE.nt.txt, with their ids in ids.nt.txt",
    "dictionaries": "of MUSE's, FIRST-LANGUAGE.0-5000.txt and FIRST-LANGUAGE.5000-6500.txt",
    "to": "to write into",
}


def chapter(verse_id: str) -> str:
    """The book and chapter of a verse."""
    return verse_id.partition(":")[0]


def verses(text: Path, ids: Path) -> list[tuple[str, str]]:
    """The chapter and the text of each verse of a file."""
    lines, names = (path.read_text("utf-8").rstrip("\n").split("\n") for path in (text, ids))
    if len(lines) != len(names):
        raise SystemExit(f"{text} has {len(lines):,} lines and {ids} {len(names):,}")
    return list(zip(map(chapter, names), lines, strict=True))


def frequent(lines: list[str], language: str) -> set[str]:
    """The words that occur at least ten times, in lower case."""
    written = Normalizer(language)
    counts = collections.Counter(word for line in lines for word in written(line).lower().split())
    return {word for word, count in counts.items() if count >= 10}


def pairs_of(dictionary: Path, known: list[set[str]]) -> list[str]:
    """The lines of a dictionary whose words are both known, each in its language."""
    lines = dictionary.read_text("utf-8").splitlines()
    return [line for line in lines if all(map(set.__contains__, known, line.split()))]


def main() -> None:
    """Writes the texts of each language, and its dictionary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, meaning in FOLDERS.items():
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER", help=meaning)
    parser.add_argument("--languages", default="en+fr", help="the first one, and others with it")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    ids = arguments.parallel / "ids.nt.txt"
    chapters = list(dict.fromkeys(name for name, _ in verses(ids, ids)))
    tested, held_out = set(chapters[::8]), set(chapters[4::8])
    first, *_ = languages = arguments.languages.split("+")
    words: dict[str, set[str]] = {}
    for language in languages:
        pairs = verses(arguments.parallel / f"{language}.nt.txt", ids)
        texts: dict[str, list[str]] = {"train": [], "dev": [], "test": [], "parallel": []}
        for name, text in pairs:
            if name not in held_out:
                texts["test" if name in tested else "parallel"].append(text)
        for path in sorted(arguments.bibles.glob(f"{language}.*.ids.txt")):
            for name, text in verses(path.with_name(path.name.replace(".ids", "")), path):
                if name not in tested:
                    texts["dev" if name in held_out else "train"].append(text)
        if not texts["train"]:
            raise SystemExit(f"{arguments.bibles} has no {language}.NAME.ids.txt")
        words[language] = frequent(texts["train"], language)
        if language != first:
            known = [words[first], words[language]]
            learned, tested_words = (
                pairs_of(arguments.dictionaries / f"{first}-{language}.{part}.txt", known)
                for part in ("0-5000", "5000-6500")
            )
            texts |= {"dictionary": tested_words, "words": learned + tested_words}
        for part, lines in texts.items():
            path = arguments.to / f"{language}.{part}.txt"
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            count = sum(len(line.split()) for line in lines)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f"{path.name} {len(lines):,} lines, {count:,} words, sha256 {digest[:16]}")


if __name__ == "__main__":
    main()
