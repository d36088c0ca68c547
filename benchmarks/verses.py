"""Bibles with verse ids, divided into training, held-out and test text.

python benchmarks/verses.py --bibles FOLDER --parallel FOLDER --languages en+fr --to FOLDER \\
    --dictionaries FOLDER

`--bibles` holds translations, LANGUAGE.NAME.txt, with the id of each line (`GEN 1:1`, or of several
verses, `GEN 2:16-17`) in LANGUAGE.NAME.ids.txt; `--parallel` the same verses of the New Testament
in every language, line by line, LANGUAGE.nt.txt, with their ids in ids.nt.txt. Of each eight
chapters of these the first is tested on and the fifth is held out. Both are left out of the
training text, in every translation.
Writes LANGUAGE.train.txt and LANGUAGE.dev.txt, of all translations, and LANGUAGE.test.txt, of the
parallel ones. `--dictionaries` holds MUSE's, FIRST-LANGUAGE.5000-6500.txt; the pairs of whose words
each occurs ten times in the training text are written as LANGUAGE.dictionary.txt. Prints the hash
of each file.
"""

import argparse
import collections
import hashlib
import re
from pathlib import Path


def chapter(verse_id: str) -> str:
    """The book and chapter of a verse."""
    return verse_id.partition(":")[0]


def verses(text: Path, ids: Path) -> list[tuple[str, str]]:
    """The chapter and the text of each verse of a file."""
    lines, names = (path.read_text("utf-8").splitlines() for path in (text, ids))
    return list(zip(map(chapter, names), lines, strict=True))


def frequent(lines: list[str]) -> set[str]:
    """The words that occur ten times, in lower case."""
    counts = collections.Counter(
        word for line in lines for word in re.findall(r"\w+", line.lower())
    )
    return {word for word, count in counts.items() if count >= 10}


def main() -> None:
    """Writes the texts of each language, and its dictionary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("bibles", "parallel", "dictionaries", "to"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--languages", default="en+fr")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    ids = arguments.parallel / "ids.nt.txt"
    chapters = list(dict.fromkeys(map(chapter, ids.read_text("utf-8").split("\n")[:-1])))
    tested, held_out = set(chapters[::8]), set(chapters[4::8])
    first, *_ = languages = arguments.languages.split("+")
    words: dict[str, set[str]] = {}
    for language in languages:
        pairs = verses(arguments.parallel / f"{language}.nt.txt", ids)
        texts = {"train": [], "dev": [], "test": [text for name, text in pairs if name in tested]}
        for path in sorted(arguments.bibles.glob(f"{language}.*.ids.txt")):
            for name, text in verses(path.with_name(path.name.replace(".ids", "")), path):
                if name not in tested:
                    texts["dev" if name in held_out else "train"].append(text)
        words[language] = frequent(texts["train"])
        if language != first:
            dictionary = arguments.dictionaries / f"{first}-{language}.5000-6500.txt"
            lines = dictionary.read_text("utf-8").splitlines()
            known = [words[first], words[language]]
            texts["dictionary"] = [
                line for line in lines if all(map(set.__contains__, known, line.split()))
            ]
        for part, lines in texts.items():
            path = arguments.to / f"{language}.{part}.txt"
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            count = sum(len(line.split()) for line in lines)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f"{path.name} {len(lines):,} lines, {count:,} words, sha256 {digest[:16]}")


if __name__ == "__main__":
    main()
