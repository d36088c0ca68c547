"""The texts of a bilingual experiment: from files, TFDS or the embedded languages."""

import dataclasses
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from xling_jax import errors
from xling_jax.corpora import dictionaries, sources, splitting, tfds
from xling_jax.corpora import text as corpora
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.corpora.embedded.pair import Pair, pair_of
from xling_jax.experiments.bilingual.rows import Row
from xling_jax.runs import results, store
from xling_jax.runs.results import read_config

TRAIN_SEED, DEV_SEED, TEST_SEED = 1, 2, 3  # seeds of an embedded language's texts
APART = 1000  # between the seeds of the texts of two embedded languages
TESTED = 4  # every fourth pair of an embedded dictionary is kept for testing


@dataclasses.dataclass(frozen=True)
class Texts:
    """What is read for one language.

    train, dev: sources. test: sentences of the first language and their translations, none for
    the first language itself. dictionary, test_dictionary: from the first language to this one,
    to switch words and to test with.
    """

    train: tuple[sources.Source, ...]
    dev: tuple[sources.Source, ...]
    test: tuple[list[str], list[str]] | None
    dictionary: Dictionary | None
    test_dictionary: Dictionary | None


def _files(field: str) -> tuple[str, ...]:
    """The sources that a field names, joined by +; a file or a TFDS name may have a + in it."""
    is_one = not field or Path(field).is_file() or field.startswith(tfds.PREFIX)
    return (field,) if is_one else tuple(field.split("+"))


class Reader:
    """Reads the texts of the languages of an experiment."""

    def __init__(self, config: ml_collections.ConfigDict):
        """Checks that every language has what it needs.

        Raises:
          ValueError: half of a parallel text, or embedded languages and others.
        """
        self._section, self.languages = config.corpora, tuple(config.corpora.languages)
        self._read: dict[tuple[str, bool], Texts] = {}
        for name in self.languages:
            own = self._section[name]
            if bool(own.get("test")) != bool(own.get("test_first")):
                raise ValueError(
                    f"corpora.{name}.test and corpora.{name}.test_first: give both, line by line "
                    "translations of each other, or none"
                )
        kinds = {name: self._section[name].train == sources.SYNTHETIC for name in self.languages}
        if len(set(kinds.values())) > 1:
            raise ValueError(
                "corpora: some languages are embedded ones and some are not "
                f"({', '.join(f'{n}: {self._section[n].train}' for n in self.languages)})"
            )
        self.is_synthetic = kinds[self.languages[0]]

    @property
    def fingerprint(self) -> str:
        """A hash of what the config says of the texts."""
        return store.fingerprint({"corpora": self._section.to_dict()}, (), {})

    def manifest(self, rows: Sequence[Row]) -> list[dict[str, str]]:
        """Every source that the rows read, with a hash of its content, and what cuts sentences.

        Raises:
          ValueError, FileNotFoundError: one of them cannot be read; its field is named.
        """
        found = []
        for name in self.languages:
            own = [row for row in rows if name in row.languages]
            domains = {row.is_other_domain and name != self.languages[0] for row in own}
            fields = ["dev", "test", "test_first", "test_dictionary"] if own else []
            fields += ["other"] * (True in domains) + ["train"] * (False in domains)
            fields += ["dictionary"] * any(row.code_switch for row in own)
            for field in fields:
                for source in _files(self._section[name].get(field, "")):
                    if not source or source == sources.SYNTHETIC:
                        continue
                    where = f"corpora.{name}.{field}"
                    found.append(store.hashed(source, name, field, where))
            split = splitting.of_config(self._section, name)
            if split and own and not self.is_synthetic:
                digest = hashlib.sha256(split.identity.encode()).hexdigest()
                rules = "the rules that cut sentences"
                found.append(
                    {"source": rules, "language": name, "field": "split", "sha256": digest}
                )
        return found

    def read(self, name: str, is_other_domain: bool) -> Texts:
        """The texts of a language; of the other domain, if it is not the first.

        Raises:
          ValueError, FileNotFoundError: one of them cannot be read.
        """
        is_other = is_other_domain and name != self.languages[0]
        if (name, is_other) not in self._read:
            self._read[name, is_other] = self._made(name, is_other)
        return self._read[name, is_other]

    def _made(self, name: str, is_other: bool) -> Texts:
        own = self._section[name]
        if is_other and not own.other:
            raise ValueError(f"corpora.{name}.other is empty: give its text of another domain")
        if self.is_synthetic:
            return self._synthetic(name, is_other)
        with errors.in_field(f"corpora.{name}"):
            return Texts(
                train=_files(own.other if is_other else own.train),
                dev=_files(own.dev),
                test=self._parallel(name, own),
                dictionary=self._dictionary(name, own.get("dictionary", "")),
                test_dictionary=self._dictionary(name, own.get("test_dictionary", "")),
            )

    def _parallel(self, name: str, own: Mapping[str, Any]) -> tuple[list[str], list[str]] | None:
        if not own.get("test"):
            return None
        first, second = corpora.read_parallel(
            own["test_first"], own["test"], (self.languages[0], name)
        )
        return first.sentences, second.sentences

    def _dictionary(self, name: str, path: str) -> Dictionary | None:
        if not path:
            return None
        return dictionaries.read(path, self.languages[0], name, lowercase=True)

    def other_limit(self, name: str) -> int:
        """How many sentences of the other domain to take: as many as the usual text has."""
        train = self.read(name, is_other_domain=False).train
        return sum(1 for _ in corpora.stream(train, splitting.of_config(self._section, name)))

    @functools.cached_property
    def _knobs(self) -> LanguageConfig:
        return LanguageConfig(**self._section.synthetic)

    def pair(self, name: str, is_other: bool = False) -> Pair:
        """The first embedded language and this one, which may be the same."""
        knobs = dict(self._section[name].second)
        if is_other:
            knobs["domain"] = self._section[name].other_domain
        return pair_of(self._knobs, SecondConfig(**knobs))

    def parallel(self, name: str, sentences: int, seed: int) -> tuple[list[str], list[str]]:
        """Sentences of the first embedded language and their translations into this one."""
        return self.pair(name).parallel(sentences, seed)

    def _synthetic(self, name: str, is_other: bool) -> Texts:
        section, pair = self._section, self.pair(name, is_other)
        train, dev = section.train_sentences, section.dev_sentences
        if not train or not dev:
            raise ValueError(
                "corpora.train_sentences and corpora.dev_sentences: say how many sentences of the "
                "embedded languages to make"
            )
        side = 0 if name == self.languages[0] else 1
        own = APART * self.languages.index(name)  # so that no text translates another
        numbers = [(train, 1), (1, train)][side], [(dev, 1), (1, dev)][side]
        made = [
            (
                sources.Lines(
                    f"{sources.SYNTHETIC} {name} {what}",
                    tuple(pair.texts(*number, seed + own)[side]),
                ),
            )
            for what, number, seed in [
                ("train", numbers[0], TRAIN_SEED),
                ("dev", numbers[1], DEV_SEED),
            ]
        ]
        if not side:
            return Texts(made[0], made[1], None, None, None)
        entries = pair.dictionary()
        tested = section.get("test_sentences", 0)
        test = [pair for number, pair in enumerate(entries) if number % TESTED == 0]
        rest = [pair for number, pair in enumerate(entries) if number % TESTED]
        return Texts(
            train=made[0],
            dev=made[1],
            test=self.parallel(name, tested, TEST_SEED) if tested else None,
            dictionary=dictionaries.from_pairs(rest, self.languages[0], name),
            test_dictionary=dictionaries.from_pairs(test, self.languages[0], name),
        )


def of_run(run: str, languages: Sequence[str]) -> Reader:
    """The reader of the embedded languages that a run was trained on.

    Raises:
      ValueError: there is no run on them; how to make one is said.
    """
    path = Path(run).expanduser() / results.CONFIG
    found = read_config(path)
    if found.get("experiment") not in ("bilingual", "real_xnli", "natural"):
        raise ValueError(
            f"run={run}: there is no {path} of a bilingual run. The embedded languages are those "
            "of a run of configs/bilingual.py: name its workdir, or train its models first with "
            "python -m xling_jax.main --config=configs/bilingual.py:"
            f"row=all+pairs+alone,pair={'-'.join(languages)}"
        )
    reader = Reader(ml_collections.ConfigDict(found["config"]))
    if not set(languages) <= set(reader.languages) or not reader.is_synthetic:
        raise ValueError(
            f"run={run} was trained on {', '.join(reader.languages)}, not on the embedded "
            f"languages {', '.join(languages)}"
        )
    return reader
