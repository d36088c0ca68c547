"""The sentences, dictionaries and word links that encoders are evaluated on."""

import collections
import dataclasses
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.corpora import dictionaries, sources, text, word_links
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.embedded.config import EMBEDDED
from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.corpora.word_links import GoldLinks
from xling_jax.runs import results, store
from xling_jax.runs.texts import SEEDS, Embedded, Manifest, Texts, of_run

FAKE_ENGLISH = "fake_english"
MOST_WORDS = 2000  # of Fake-English's dictionary: the most frequent ones
Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class EvaluationTexts:
    """What is read.

    Attributes:
      sentences: of each language; those with the same number translate each other.
      dictionaries, links: of the pairs that have any.
      manifest: the files, with their hashes.
    """

    sentences: dict[str, list[str]]
    dictionaries: dict[Pair, Dictionary]
    links: dict[Pair, list[GoldLinks]]
    manifest: Manifest


def read(config: ConfigDict) -> EvaluationTexts:
    """Reads what a config names.

    Raises:
      ValueError, FileNotFoundError: a file cannot be read, or texts do not belong together; the
        field is named.
    """
    languages = tuple(config.languages)
    given = {language: config.texts[language] for language in languages}
    if lacking := [language for language, source in given.items() if not source]:
        raise ValueError(
            f"texts.{lacking[0]} is empty: give a file of sentences with "
            f"--config.texts.{lacking[0]}=FILE, of which those with the same number translate each "
            "other, or name a run= on the embedded languages"
        )
    is_made = {source == SYNTHETIC for source in given.values()}
    if len(is_made) > 1:
        raise ValueError(f"texts: some are {SYNTHETIC} and some are not ({given})")
    found = _of_run(config, languages) if True in is_made else _of_files(given, config.sentences)
    for pair in itertools.combinations(languages, 2):
        name = "_".join(pair)
        if path := config.dictionaries[name]:
            field = f"dictionaries.{name}"
            found.manifest.append(store.hashed(path, "-".join(pair), "dictionaries", field))
            with errors.in_field(field):
                own = dictionaries.read(path, *pair)
                own.require_direction(*map(found.sentences.__getitem__, pair))
                found.dictionaries[pair] = own
        if path := config.links[name]:
            field, most = f"links.{name}", len(found.sentences[pair[0]])
            found.manifest.append(store.hashed(path, "-".join(pair), "links", field))
            with errors.in_field(field):
                links = word_links.read(path)
                for language in pair:
                    lines = _number_of_lines(given[language], language)
                    if lines and len(links) > lines:
                        raise ValueError(
                            f"{path} has links of {len(links)} sentences, and {given[language]} "
                            f"has {lines}: give those that belong together"
                        )
                    if lines:
                        word_links.require_lines(given[language], len(links))
                found.links[pair] = links[:most]
    return found


def _number_of_lines(source: str, language: str) -> int:
    """How many lines a text with links has, without blank ones at its end; 0 if it is synthetic.
    ValueError if text follows a blank line: links belong to lines."""
    if source == SYNTHETIC:
        return 0
    lines = 0
    for number, line in enumerate(sources.lines(sources.Chunk(source)), 1):
        if text.clean(line):
            lines += 1
            if lines < number:
                raise ValueError(
                    f"texts.{language}: line {lines} of {source} is blank, and links belong to "
                    "lines: remove it, and its translations and links"
                )
    return lines


def _of_files(given: dict[str, str], number: int) -> EvaluationTexts:
    first, *others = given
    manifest = [
        store.hashed(source, language, "texts", f"texts.{language}")
        for language, source in given.items()
    ]
    sentences: dict[str, list[str]] = {}
    for other in others:
        with errors.in_field(f"texts.{first}, texts.{other}"):
            both = text.read_parallel(given[first], given[other], (first, other))
        sentences |= {own.language: list(own.sentences[:number]) for own in both}
    return EvaluationTexts(sentences, {}, {}, manifest)


def _of_run(config: ConfigDict, languages: tuple[str, ...]) -> EvaluationTexts:
    """The held-out text of a run: for Fake-English its own, the same in every language, and
    otherwise translations in the embedded languages, with the words that bilingual runs test."""
    run = Path(config.run).expanduser()
    with errors.in_field("run"):
        stored = results.read_config(run / results.CONFIG)
    if not stored:
        usual = "fake_english.py:epochs=40"
        if EMBEDDED.keys() & set(languages[1:]):
            usual = f"bilingual.py:row=default,pair={'-'.join(languages)}"
        raise ValueError(
            f"run={config.run}: there is no run. Train one first with python -m xling_jax.main "
            f"--config=configs/{usual} --workdir={run}, name another one, or give files with "
            "--config.texts"
        )
    if stored.get("experiment") == FAKE_ENGLISH:
        return _of_fake_english(stored, languages, config.sentences)
    embedded = of_run(config.run, languages, "default")
    first = embedded.languages[0]
    sentences, known = {}, {}
    for name in languages:
        sides = embedded.pair(name).parallel(config.sentences, SEEDS["tested"])
        sentences[name] = sides[name != first]
        if first in languages and name != first:
            known[first, name] = embedded.dictionary(name, "test_dictionary")
    return EvaluationTexts(sentences, known, {}, _manifest(sentences, known))


def _of_fake_english(
    stored: dict[str, Any], languages: tuple[str, ...], number: int
) -> EvaluationTexts:
    section = ConfigDict(stored["config"]).corpora
    if not set(languages) <= set(section.languages):
        raise ValueError(
            f"languages: the run is of {', '.join(section.languages)}, not of "
            f"{', '.join(languages)}"
        )
    embedded = Embedded(section) if section.dev == SYNTHETIC else None
    of = Texts(section, "corpora", section.languages[:1], embedded)
    sentences = list(of.read(section.languages[0], "dev", number).sentences[:number])
    counts = collections.Counter(word for line in sentences for word in line.split())
    words = [(word, word) for word, _ in counts.most_common(MOST_WORDS)]
    known = {
        pair: dictionaries.from_pairs(words, *pair) for pair in itertools.combinations(languages, 2)
    }
    every = dict.fromkeys(languages, sentences)
    return EvaluationTexts(every, known, {}, _manifest(every, known))


def _manifest(
    sentences: dict[str, list[str]], known: dict[Pair, Dictionary]
) -> list[dict[str, str]]:
    """A hash of each language's text, with the dictionaries from it."""
    found = []
    for language, lines in sentences.items():
        own = [
            list(dictionary.triples) for pair, dictionary in known.items() if pair[0] == language
        ]
        digest = hashlib.sha256(json.dumps([lines, own]).encode()).hexdigest()
        found.append({"source": "run", "language": language, "field": "run", "sha256": digest})
    return found
