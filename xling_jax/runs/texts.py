"""Text by language and purpose: from files, from TFDS, or of the embedded languages.

An experiment says which purposes its texts have and which section of its config names them. This
module decides what is read from where, what the manifest says of it, and which field an error
names.
"""

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.batches.prepare import Encoding, prepare
from xling_jax.batches.token_files import TokenFiles
from xling_jax.corpora import dictionaries, sources, splitting, tfds
from xling_jax.corpora import text as corpora
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.corpora.embedded.language import Pair, generate, pair_of
from xling_jax.corpora.normalize import Normalization, Normalizer, code_of
from xling_jax.corpora.sources import SYNTHETIC, Lines, Source
from xling_jax.runs import results, store
from xling_jax.training.metrics import say
from xling_jax.vocabulary import samples
from xling_jax.vocabulary.pieces import Pieces
from xling_jax.vocabulary.samples import Sample

Manifest = list[dict[str, str]]

# Seeds of the embedded languages' texts, by purpose; purposes with the same seed share a text.
SEEDS = {"train": 1, "contexts": 1, "dev": 2, "test": 3, "tested": 3, "learned": 4}
APART = 1000  # distance of two languages' seeds, so that their texts are no translations
TESTED = 4  # every fourth pair of a dictionary is kept for testing
HASHED = 100  # sentences of an embedded language, by which others of the same fields are told apart
# The share of [UNK] above which a text is refused. Text in another script has about half, since the
# marks where words begin are known.
MOST_UNKNOWN = 0.2


def require_known(field: str, unknown: float) -> None:
    """Raises ValueError, naming a text's field, if too large a share of its pieces is [UNK]."""
    if unknown > MOST_UNKNOWN:
        raise ValueError(
            f"{field}: {100 * unknown:.0f} % of its pieces are [UNK], since the vocabulary, which "
            "is trained on the training text, lacks their characters: give text in the same "
            "script, or more training text"
        )


class Embedded:
    """The embedded languages that a section `corpora` describes."""

    def __init__(self, section: ConfigDict):
        self.section, self.languages = section, tuple(section.languages)
        self._first = LanguageConfig(**section.synthetic)

    @property
    def fingerprint(self) -> str:
        return store.fingerprint({"corpora": self.section.to_dict()}, (), {})

    def pair(self, language: str, is_other_domain: bool = False) -> Pair:
        """The first language and this one, which may be the same."""
        knobs = dict(self.section[language].second)
        if is_other_domain:
            knobs["domain"] = self.section[language].other_domain
        return pair_of(self._first, SecondConfig(**knobs))

    @functools.cache  # noqa: B019 - there are few
    def text(
        self, language: str, purpose: str, number: int, is_other_domain: bool = False
    ) -> Lines:
        """`number` sentences of a language, not translations of another language's."""
        place = self.languages.index(language)
        seed, name = SEEDS[purpose] + APART * place, f"{SYNTHETIC} {language} {purpose}"
        if not place:
            return Lines(name, tuple(generate(self._first, number, seed)))
        return Lines(name, tuple(self.pair(language, is_other_domain).texts(1, number, seed)[1]))

    def dictionary(self, language: str, purpose: str) -> Dictionary:
        """The dictionary from the first language to this one: "words" has all pairs of words,
        "test_dictionary" every fourth, and "dictionary" the others."""
        entries = [
            entry
            for number, entry in enumerate(self.pair(language).dictionary())
            if purpose == "words" or (number % TESTED == 0) == (purpose == "test_dictionary")
        ]
        return dictionaries.from_pairs(entries, self.languages[0], language)

    def manifest(self, language: str) -> dict[str, str]:
        """A hash of a language as it is made now: other versions of this package or of NumPy may
        make another one of the same fields."""
        words = list(self.dictionary(language, "words").entries.items())
        made = json.dumps([self.text(language, "train", HASHED).lines, words])
        digest = hashlib.sha256(made.encode()).hexdigest()
        return {"source": SYNTHETIC, "language": language, "field": store.MADE, "sha256": digest}


def _are_made(section: ConfigDict) -> bool:
    """Whether the languages of a section `corpora` are embedded ones; ValueError if only some
    are."""
    given = {name: section[name].train for name in section.languages}
    is_made, *mixed = {train == SYNTHETIC for train in given.values()}
    if mixed:
        raise ValueError(
            "corpora: some languages are embedded ones and some are not "
            f"({', '.join(f'{name}: {train}' for name, train in given.items())})"
        )
    return is_made


def _of_domain(purpose: str, is_other: bool) -> str:
    """The field of a text; training text of another domain has a field of its own."""
    return "other" if is_other and purpose == "train" else purpose


class Texts:
    """The texts that a section of a config gives, by language and purpose.

    A field is empty or holds a file, several joined by +, a TFDS name, or "synthetic" for a text of
    the embedded languages. Parallel text takes two fields, one of which ends in `_first`. Methods
    that read raise ValueError or FileNotFoundError, naming the field.
    """

    def __init__(
        self,
        section: ConfigDict,
        name: str,
        languages: Sequence[str],
        embedded: Embedded | None = None,
    ):
        """Takes the section and its name in the config; a section that has no parts for languages
        is itself the part of the only one."""
        self._section, self._name, self.languages = section, name, tuple(languages)
        self.embedded = embedded

    @classmethod
    def of_corpora(cls, section: ConfigDict) -> "Texts":
        """The texts of a section `corpora`; ValueError if only some are of embedded languages, or
        if a file is given that would not be read."""
        if not _are_made(section):
            return cls(section, "corpora", section.languages)
        first, usual = section.languages[0], SecondConfig()
        for field, value in section[first].get("second", {}).items():
            if value != getattr(usual, field):
                raise ValueError(
                    f"corpora.{first}.second.{field}={value}: {first} is no second language; "
                    "corpora.synthetic describes it"
                )
        for name in section.languages:
            for field, source in section[name].items():
                if isinstance(source, str) and source not in ("", SYNTHETIC):
                    raise ValueError(
                        f"corpora.{name}.{field}={source}: all text of embedded languages is made: "
                        "leave it out, or give files for all of corpora.LANGUAGE.train as well"
                    )
        return cls(section, "corpora", section.languages, Embedded(section))

    def field(self, language: str, purpose: str, is_other_domain: bool = False) -> str:
        """The whole name of a field; see `sources` for another domain."""
        own = f"{language}." if language in self._section else ""
        return f"{self._name}.{own}{_of_domain(purpose, is_other_domain)}"

    def given(self, language: str, purpose: str) -> str:
        return self._section.get(language, self._section).get(purpose, "")

    @property
    def normalization(self) -> Normalization:
        """How the section wants text to be normalised."""
        return Normalization(self._section.punctuation, self._section.tokenize)

    @functools.cache  # noqa: B019
    def normalizer(self, language: str) -> Normalizer:
        return Normalizer(language, self.normalization)

    def _made(self, language: str, purpose: str) -> Embedded | None:
        """The embedded languages if a text is theirs, else None; of a section `corpora` either all
        texts are theirs or none."""
        given = self.given(language, purpose), self.given(language, "train")
        return self.embedded if SYNTHETIC in given else None

    def require_both_sides(self, *purposes: str) -> None:
        """Raises ValueError if only one side of a parallel text is given."""
        for language in self.languages:
            for purpose in purposes:
                first = f"{purpose}_first"
                if bool(self.given(language, purpose)) != bool(self.given(language, first)):
                    raise ValueError(
                        f"{self.field(language, purpose)} and {self.field(language, first)}: give "
                        "both, line by line translations of each other, or none"
                    )

    def _files(self, language: str, purpose: str) -> list[str]:
        """The sources that a field names; a file or a TFDS name may have a + in it."""
        given = self.given(language, purpose)
        is_one = given.startswith(tfds.PREFIX) or os.path.isfile(os.path.expanduser(given))
        return [given] if is_one else given.split("+") if given else []

    def split(self, language: str) -> splitting.Splitter | None:
        """The function that cuts lines of a language into sentences; see `splitting.of_config`."""
        self._say_rules(language)
        return splitting.of_config(self._section, language)

    @functools.cache  # noqa: B019
    def _say_rules(self, language: str) -> None:
        """Says, once, if a language has no rules of its own."""
        if not self.embedded and not code_of(language):
            say(
                f"{language} is no code of two letters, such as fr: English rules apply to its text"
            )

    def manifest(self, language: str, purposes: Iterable[str], has_rules: bool = True) -> Manifest:
        """The sources of a language with hashes of their content. If `has_rules` is True, also one
        of the rules that cut its sentences, if any do, or of an embedded language
        (`Embedded.manifest`)."""
        found = [
            store.hashed(source, language, purpose, self.field(language, purpose))
            for purpose in purposes
            for source in self._files(language, purpose)
            if source != SYNTHETIC
        ]
        if has_rules and self.embedded:
            found.append(self.embedded.manifest(language))
        elif has_rules and (split := self.split(language)):
            digest = hashlib.sha256(split.identity.encode()).hexdigest()
            rules = {"source": "the rules that cut sentences", "language": language}
            found.append({**rules, "field": "split", "sha256": digest})
        return found

    def read(self, language: str, purpose: str, usual: int) -> corpora.Text:
        """A text in memory: as many sentences as the section says or, if that is 0, all of a file
        or `usual` of an embedded language; ValueError also if the text has fewer."""
        name = f"{purpose}_sentences"
        number = self._section[name]
        if made := self._made(language, purpose):
            lines = made.text(language, purpose, number or usual).lines
            return corpora.from_sentences(lines, language, f"{SYNTHETIC} {purpose}")
        with errors.in_field(f"{self.field(language, purpose)}, {self._name}.{name}"):
            given, split = self.given(language, purpose), self.split(language)
            return corpora.read(given, language, split=split, limit=number or None)

    def sources(
        self, language: str, purpose: str, is_other_domain: bool = False
    ) -> tuple[Source, ...]:
        """The sources of a text. Training text of another domain is what the field `other` names;
        held-out text is the same for all domains. ValueError if the field is empty, or if the
        section does not say how many sentences of an embedded language to make."""
        field = _of_domain(purpose, is_other_domain)
        if made := self._made(language, purpose):
            name = "dev_sentences" if purpose == "dev" else "train_sentences"
            if not (number := made.section[name]):
                raise ValueError(
                    f"corpora.{name}=0: say how many sentences of the embedded languages to make"
                )
            return (made.text(language, purpose, number, field != purpose),)
        if not (found := self._files(language, field)):
            raise ValueError(f"{self.field(language, field)} is empty: give a file or a TFDS name")
        return tuple(found)

    def limit(self, purpose: str) -> int | None:
        """How many sentences of a text to take; None for all, as of embedded languages, whose texts
        are made of the right size."""
        return None if self.embedded else self._section[f"{purpose}_sentences"] or None

    def sample(
        self,
        language: str,
        number: int,
        workdir: Path,
        *,
        limit: int | None,
        is_other_domain: bool = False,
    ) -> Sample:
        """At most `number` of the first `limit` sentences of a training text (see `sources`), cut
        as the section says, then normalised, and kept below `samples/` of the workdir."""
        given = self.sources(language, "train", is_other_domain)
        split, normalizer = self.split(language), self.normalizer(language)
        with errors.in_field(self.field(language, "train", is_other_domain)):
            found = samples.of_text(given, split, normalizer, limit, number, workdir / "samples")
            if not found.sentences:
                raise corpora.no_text(" + ".join(map(sources.name, given)))
        return found

    def token_files(
        self,
        language: str,
        purpose: str,
        pieces: Pieces,
        ids: np.ndarray,
        workdir: Path,
        *,
        limit: int | None,
        is_other_domain: bool = False,
    ) -> TokenFiles:
        """The first `limit` sentences of a text (see `sources`), cut and normalised as the section
        says, as the ids of their pieces, below `tokens/` of the workdir. ValueError also if the
        vocabulary does not suit the text."""
        field = self.field(language, purpose, is_other_domain)
        with errors.in_field(field):
            made = prepare(
                self.sources(language, purpose, is_other_domain),
                Encoding(language, self.normalization, pieces, self.split(language), ids),
                workdir / "tokens",
                limit=limit,
                processes=self._section.processes,
                say=say,
            )
        require_known(field, made.manifest["unknown"])
        return made

    def parallel(
        self, language: str, purpose: str, number: int
    ) -> tuple[list[str], list[str]] | None:
        """The first `number` sentences of a parallel text in the first language, and their
        translations; None if it is not given, `number` is 0, or the language is itself the first
        embedded one."""
        fields = f"{purpose}_first", purpose
        one, other = (self.given(language, field) for field in fields)
        if SYNTHETIC in (one, other) and one != other:
            names = " and ".join(self.field(language, field) for field in fields)
            raise ValueError(f"{names}: give files for both, or for none")
        if made := self._made(language, purpose):
            is_empty = not number or language == self.languages[0]
            return None if is_empty else made.pair(language).parallel(number, SEEDS[purpose])
        if not number or not one or not other:
            return None
        with errors.in_field(", ".join(self.field(language, field) for field in fields)):
            first, second = corpora.read_parallel(one, other, (self.languages[0], language))
        return first.sentences[:number], second.sentences[:number]

    def _all_have(self, languages: Sequence[str], purpose: str) -> bool:
        """Whether the field is given for all of these languages; ValueError if only for some."""
        lacking = [name for name in languages if not self.given(name, purpose)]
        if 0 < len(lacking) < len(languages):
            raise ValueError(
                f"{self.field(lacking[0], purpose)} is empty: give it for {', '.join(languages)}, "
                "or for none"
            )
        return not lacking

    def translations(self, purpose: str, number: int) -> list[list[str]] | None:
        """The first `number` sentences, in each language, of a text whose lines say the same in
        every language; None if it is not given, or `number` is 0."""
        first, *others = self.languages
        if made := self._made(first, purpose):
            pairs = [made.pair(x).parallel(number, SEEDS[purpose]) for x in others if number]
        else:
            pairs = []
            for name in others if self._all_have(self.languages, purpose) and number else ():
                with errors.in_field(", ".join(self.field(x, purpose) for x in (first, name))):
                    one, other = corpora.read_parallel(
                        self.given(first, purpose), self.given(name, purpose), (first, name)
                    )
                pairs.append((one.sentences[:number], other.sentences[:number]))
        return [pairs[0][0], *(other for _, other in pairs)] if pairs else None

    @functools.cache  # noqa: B019
    def dictionaries(self, purpose: str) -> list[Dictionary] | None:
        """The dictionaries from the first language to each other one, their words normalised as the
        text is; None if they are not given."""
        first, *others = self.languages
        self.dictionary(first, purpose)  # ValueError if given
        if not self._made(first, purpose) and not self._all_have(others, purpose):
            return None
        found = []
        for name in others:
            given = self.dictionary(name, purpose)
            assert given is not None
            found.append(given.map(self.normalizer(first), self.normalizer(name)))
        return found

    @functools.cache  # noqa: B019
    def dictionary(self, language: str, purpose: str) -> Dictionary | None:
        """A dictionary from the first language to another one; None if it is not given, or for the
        first language, for which it is a ValueError to give a file."""
        first, *others = self.languages
        made, path = self._made(language, purpose), self.given(language, purpose)
        if language == first:
            if path and not made:
                raise ValueError(
                    f"{self.field(first, purpose)}: a dictionary is from {first} to another "
                    f"language: give it for {', '.join(others)}"
                )
            return None
        if made:
            return made.dictionary(language, purpose)
        if not path:
            return None
        with errors.in_field(self.field(language, purpose)):
            # Words to replace are looked up in lower case.
            return dictionaries.read(path, first, language, lowercase=purpose == "dictionary")


def of_run(run: str, languages: Sequence[str], rows: str = "all") -> Embedded:
    """The embedded languages that a run was trained on; ValueError if it is no run on these
    languages, with the command that trains `rows` on them, or they would be others now."""
    path = Path(run).expanduser() / results.CONFIG
    found = results.read_config(path)
    if found.get("experiment") not in ("bilingual", "real_xnli"):
        raise ValueError(
            f"run={run}: there is no {path} of a bilingual run. The embedded languages are those "
            "of a run of configs/bilingual.py: name its workdir, or train its models first with "
            "python -m xling_jax.main --config=configs/bilingual.py:"
            f"row={rows},pair={'-'.join(languages)} --workdir={run}"
        )
    section = ConfigDict(found["config"]).corpora
    are_made = _are_made(section)
    if not are_made or not set(languages) <= set(section.languages):
        raise ValueError(
            f"run={run} was trained on {'' if are_made else 'text of '}"
            f"{', '.join(section.languages)}, not on the embedded languages "
            f"{', '.join(languages)}: name a run on them, or give files of text"
        )
    embedded = Embedded(section)
    for entry in found.get("texts", ()):
        if entry.get("field") == store.MADE and entry != embedded.manifest(entry["language"]):
            raise ValueError(
                f"run={run} was trained on another language {entry['language']} than is made now: "
                f"install numpy=={found['versions']['numpy']} and the version of this program with "
                "which it began, or train it anew in another folder"
            )
    return embedded
