"""Labelled examples of all languages of an experiment, from files or of the embedded languages."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.corpora import text as corpora
from xling_jax.corpora import word_links
from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.experiments.zero_shot import fields, pretrained
from xling_jax.experiments.zero_shot.jobs import Job, choices
from xling_jax.experiments.zero_shot.pretrained import Parallel
from xling_jax.linalg.word_aligner import Links
from xling_jax.runs import config_files, store
from xling_jax.runs.texts import Embedded, of_run
from xling_jax.tasks import TASKS
from xling_jax.tasks.task import Task
from xling_jax.training.metrics import say

PARALLEL_SEED = 104  # of the embedded languages' sentences that maps are learned from


@dataclasses.dataclass(frozen=True)
class Labelled:
    """Examples of a task: the first language's to learn from and to choose by, and every language's
    to be tested on."""

    train: list[Any]
    dev: list[Any]
    test: Mapping[str, list[Any]]


def task(name: str, config: ConfigDict) -> Task:
    """The task of a name, with its options."""
    found = config_files.choose("task", name, TASKS)
    return found(**(config[name] if found.options else {}))


class LabelledReader:
    """Reads the examples of tasks, each once.

    Its methods raise ValueError or FileNotFoundError, naming the field of a file that is not given
    or cannot be read.
    """

    def __init__(self, config: ConfigDict, section: str = ""):
        """Reads nothing yet. `section` is the name of the config in a larger one that contains it;
        names of fields in errors begin with it."""
        self._config, self.section = config, f"{section}." * bool(section)
        self._read: dict[tuple[str, ...], list[Any]] = {}

    def _entry(self, field: str, path: str, language: str) -> dict[str, Any]:
        return store.hashed(path, language, field, self.section + field)

    def manifest(self, name: str, languages: tuple[str, ...]) -> list[dict[str, Any]]:
        """The files of a task, with hashes; reads their examples too, so that errors come early."""
        found, every = [], dict[tuple[str, str], list[Any]]()
        digests = dict[str, str]()  # by the first language's parts
        for language, part in fields.parts(languages):
            field, path = self._file(name, languages, language, part)
            if not path:
                way_out = "choose another task"
                if field.startswith("texts_of_pair."):
                    way_out = f"leave all of {field.removesuffix(f'.{part}')} empty"
                raise ValueError(
                    f"{self.section}{field} is empty: give a file with --config.{self.section}"
                    f"{field}=FILE, or {way_out}"
                )
            if path != SYNTHETIC:
                found.append(self._entry(field, path, language))
                every[language, part] = self._part(name, "-".join(languages), language, part)
                if language == languages[0]:
                    digests[part] = found[-1]["sha256"]
        has_choice = self._config.settings[name].select == "best"
        has_choice = has_choice or len(choices(self._config, name)) > 1
        if has_choice and digests.get(fields.DEV, "") == digests.get("test"):
            field, path = self._file(name, languages, languages[0], "test")
            raise ValueError(
                f"{self.section}{field}: {path} is also the text that epochs or settings are "
                f"chosen by ({fields.DEV}): give another"
            )
        self._require_apart(name, languages, every)
        self._require_labels(name, languages, every)
        return found

    def _require_apart(
        self, name: str, languages: tuple[str, ...], every: Mapping[tuple[str, str], list[Any]]
    ) -> None:
        """Raises ValueError if a language is tested on what is learned from or chosen by in
        another; says if two are tested on the same examples, as only Fake-English may be."""
        for (language, part), (other, also) in itertools.combinations(every, 2):
            if language != other and every[language, part] == every[other, also]:
                field, path = self._file(name, languages, other, also)
                same, _ = self._file(name, languages, language, part)
                message = f"{self.section}{field}: {path} has the examples of {self.section}{same}"
                if part != also:
                    raise ValueError(f"{message}: give examples in {other}")
                say(f"{message}: is it text in {other}?")

    def _file(
        self, name: str, languages: tuple[str, ...], language: str, part: str
    ) -> tuple[str, str]:
        """The field that names the examples of a part, and its value: that of the pair, if it has
        examples of the language of its own."""
        pair, rest = "_".join(languages), f"{name}.{language}.{part}"
        own = self._config.texts_of_pair.get(pair)
        if own and any(own[name][language].values()):
            return f"texts_of_pair.{pair}.{rest}", own[name][language][part]
        return f"texts.{rest}", self._config.texts[name][language][part]

    def read(self, name: str, pair: str) -> Labelled:
        """The examples of a task for a pair."""
        languages = tuple(pair.split("-"))
        every = {
            (language, part): self._part(name, pair, language, part)
            for language, part in fields.parts(languages)
        }
        self._require_labels(name, languages, every)
        train, dev = (every[languages[0], part] for part in ("train", fields.DEV))
        return Labelled(train, dev, {language: every[language, "test"] for language in languages})

    def _require_labels(
        self, name: str, languages: tuple[str, ...], every: Mapping[tuple[str, str], list[Any]]
    ) -> None:
        """Raises ValueError if the examples of a language and part have fewer than two of the
        labels that are learned, like text without entities, or with other names for them."""
        if (languages[0], "train") not in every:  # not made yet
            return
        of = task(name, self._config)
        learned = of.labels(every[languages[0], "train"])
        for (language, part), items in every.items():
            own = of.labels(items)
            if len(set(own).intersection(learned)) > 1:
                continue
            field, path = self._file(name, languages, language, part)
            said = f"it has {', '.join(own)}"
            if set(own) <= set(learned):
                advice = f"raise sentences.{part}" if path == SYNTHETIC else "give a text with more"
            else:
                said += f", and learned are {', '.join(learned)}"
                advice = "give texts with labels of one set"
            raise ValueError(
                f"{self.section}{field}: {path} has fewer than two labels that are learned: "
                f"{said}: {advice}"
            )

    @functools.cache  # noqa: B019 - readers are few
    def _embedded(self, pair: str) -> Embedded:
        """The embedded languages that a pair's models were trained on."""
        return of_run(self._config.runs[pair], pair.split("-"))

    def _part(self, name: str, pair: str, language: str, part: str) -> list[Any]:
        field, path = self._file(name, tuple(pair.split("-")), language, part)
        run = self._config.runs[pair]
        key = (name, language, part, run if path == SYNTHETIC else path)
        if key not in self._read:
            with errors.in_field(f"{self.section}{field}"):
                of = task(name, self._config)
                if path == SYNTHETIC:
                    first, *others = pair.split("-")
                    side = int(language != first)
                    both = self._embedded(pair).pair(language if side else others[-1])
                    made = of.make(both, self._config.sentences[part], part)
                    self._read[key] = made[side]
                else:
                    self._read[key] = of.read(path, language)
        return self._read[key]

    def parallel_manifest(self, job: Job) -> list[dict[str, Any]]:
        """The parallel text of a job, with hashes; reads what is in files too, so that errors come
        early."""
        found = []
        for language in job.languages[1:]:
            own = self._config.parallel[language]
            named = [own.first, own.second, *filter(None, [own.links])]
            if len({source == SYNTHETIC for source in named}) > 1:
                raise ValueError(
                    f"{self.section}parallel.{language}: give files for both sides, and for links "
                    f"if there are any, or {SYNTHETIC} instead of each of them"
                )
            every = [pair.split("-") for pair in self._config.runs]
            firsts = {names[0]: "-".join(names) for names in every if language in names[1:]}
            if len(firsts) > 1 and own.first not in ("", SYNTHETIC):
                raise ValueError(
                    f"{self.section}parallel.{language}.first is text of one language, and "
                    f"{' and '.join(firsts.values())} begin with different ones: run them apart"
                )
            for part in ("first", "second", "links"):
                field, path = f"parallel.{language}.{part}", own[part]
                if not path and part != "links":
                    raise ValueError(
                        f"{self.section}{field} is empty: maps, as those of row {job.row.name}, "
                        "and word_order need parallel text; give both sides, line by line "
                        "translations"
                    )
                if path and path != SYNTHETIC:
                    found.append(self._entry(field, path, language))
            if own.first != SYNTHETIC:
                self.parallel(job.pair, language)
        return found

    @functools.cache  # noqa: B019
    def parallel(self, pair: str, language: str) -> tuple[Parallel, list[Links] | None]:
        """Sentences of a pair's first language and their translations, and the links that the
        config gives or None."""
        own, number = self._config.parallel[language], self._config.sentences.parallel
        languages = pair.split("-")
        if own.second == SYNTHETIC:
            made = self._embedded(pair).pair(language)
            sides = made.parallel(number, PARALLEL_SEED)
            return sides, made.links(number, PARALLEL_SEED) if own.links else None
        with errors.in_field(f"{self.section}parallel.{language}"):
            first, second = corpora.read_parallel(own.first, own.second, (languages[0], language))
            sides = first.sentences, second.sentences
            for source in (own.first, own.second) if own.links else ():
                word_links.require_lines(source)
            links = pretrained.read_links(own.links, sides)[:number] if own.links else None
        return (sides[0][:number], sides[1][:number]), links
