"""Fine-tunes the pretrained rows of an experiment, and tests them across languages."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from xling_jax import devices, errors
from xling_jax.evaluators import text_encoder, word_order
from xling_jax.evaluators.registry import paper_layers
from xling_jax.experiments.zero_shot import pretrained, report, texts
from xling_jax.experiments.zero_shot.group import Group, checkpoints_of
from xling_jax.experiments.zero_shot.jobs import Choice, Job, choices, jobs
from xling_jax.experiments.zero_shot.pretrained import Pretrained, Words
from xling_jax.linalg import word_aligner
from xling_jax.linalg.procrustes import AffineMap
from xling_jax.linalg.word_aligner import Links
from xling_jax.models import folders, stored
from xling_jax.runs import results, store
from xling_jax.runs.run import Member, Planned, Run
from xling_jax.runs.store import models_of
from xling_jax.training.metrics import say


def less_memory(section: str) -> str:
    """What to do if memory does not suffice, see `devices.less_memory`."""
    smaller = f"lower {section}settings.TASK.batches or {section}models.length"
    return devices.less_memory(smaller, section)


def _manifest(folder: Path, row: str) -> list[dict[str, Any]]:
    """A model's files with their hashes; ValueError if it is of a run's `row` (empty for a model
    given by its folder), and an earlier version of the program wrote it."""
    found = folders.manifest(folder)
    if row and (types := stored.config_of(folder).token_types) > 1:
        raise ValueError(
            f"{folder} has {types} token types, of which one was trained: an earlier version wrote "
            "it, and its scores cannot be compared with those of models that this version writes: "
            f"pretrain row {row} anew, in another folder"
        )
    return found


class Experiment:
    """Fine-tunes and tests what an experiment asks for, and stores what comes out."""

    def __init__(self, config: ConfigDict, workdir: Path, section: str = ""):
        """Makes the manifest of texts and models, and opens the workdir; `section` is the name of
        this config in a larger one that contains it. ValueError or FileNotFoundError if the
        workdir, the config, a text or a model cannot be used."""
        self._config, self._jobs = config, jobs(config)
        self._hashed = cache(_manifest)
        self._texts = texts.LabelledReader(config, section)
        self._run = Run(workdir, report.write)
        manifest: list[dict[str, Any]] = list(self._pretrainings())
        for job in self._jobs:
            read = self._texts.manifest(job.task, job.languages)
            if job.row.is_mapped or config.word_order:
                read += self._texts.parallel_manifest(job)
            for entry in [*read, *self._models(job)]:
                if entry not in manifest:
                    manifest.append(entry)
        self._run.open(config, manifest, {job.name: job.row.description for job in self._jobs})
        self._kept: tuple[Any, Any] = None, None  # the key of the models read last, and these
        self._links: dict[tuple[str, str, str], list[Links]] = {}
        self._orders: dict[tuple[str, str, int], dict[str, float]] = {}

    def _pretrainings(self) -> Iterator[dict[str, Any]]:
        """Fingerprints of the configs of the pretraining runs, wherever these lie, without what
        only some rows use, since models are hashed; and training and held-out texts."""
        for pair, run in self._config.runs.items():
            where = Path(run).expanduser() / results.CONFIG
            found = results.read_config(where) if run else {}
            if isinstance(config := found.get("config"), dict):
                digest = store.fingerprint_of_every_row(found["experiment"], config)
                yield {"source": pair, "language": "", "field": "runs", "sha256": digest}
                for text in found.get("texts", ()):
                    if text.get("field") in ("train", "dev", "split", store.MADE):
                        yield {**text, "source": f"{pair}/{text['source']}", "field": "runs"}

    def _models(self, job: Job) -> Iterator[dict[str, Any]]:
        """The files of a job's models, with their hashes; named by pair, row, seed and language,
        since a run may be moved. FileNotFoundError, naming the field, also if a run has models but
        no `config.json`, since it could be any other."""
        for seed in self._config.seeds:
            for language, folder in job.folders(seed).items():
                try:
                    with errors.in_field(job.field):
                        found = self._hashed(folder, "" if job.given else job.row.models)
                    for entry in found:
                        field, _, _ = job.field.partition(".")
                        where = folder.parent.name, folder.name
                        if job.given:  # wherever it lies
                            where = f"{job.row.models}_seed{seed}", language
                        parts = [job.pair, *where, Path(entry["source"]).name]
                        yield {**entry, "source": "/".join(parts), "field": field}
                except FileNotFoundError as error:
                    if job.given:
                        raise
                    raise FileNotFoundError(
                        f"runs.{job.pair}: {folder} holds no model. Train it with python -m "
                        f"xling_jax.main --config=configs/bilingual.py:row={job.row.models},"
                        f"pair={job.pair},seeds={seed} --workdir={job.run} and the fields of its "
                        "text (in another folder, if that one has the row's results alone; a row "
                        "that has no name needs its modifications), or name another run"
                    ) from error
        described = Path(job.run).expanduser() / results.CONFIG
        if not job.given and not described.exists():
            raise FileNotFoundError(
                f"{job.field}: {described} is not there, which says how the models beside it were "
                "trained: copy it from where they are from"
            )

    @property
    def was_interrupted(self) -> bool:
        """Whether the run was asked to end during the last group, after which nothing is left to do
        here."""
        return self._run.was_interrupted

    @staticmethod
    def _read(job: Job, seed: int) -> Pretrained:
        """The models of a job's row and seed, without maps."""
        with errors.in_field(job.field):
            found = pretrained.of_folders(job.folders(seed))
        base, depth = job.row.base, found.config.layers
        if base is None and not found.is_shared:
            raise ValueError(
                f"row={job.row.name}: the models of {', '.join(job.languages)} share nothing to "
                "transfer: put new layers on them, as first[N] does, or name models of one run"
            )
        if base is not None and base > depth:
            raise ValueError(f"row={job.row.name}: first[{base}] of a model of {depth} layers")
        return found

    def _pretrained(self, job: Job, seed: int) -> Pretrained:
        """The models of a job's row and seed; if new layers are put on their first ones, all frozen
        and with the maps that the row asks for. The last ones read stay in memory."""
        key = (job.pair, job.row, seed)
        if key == self._kept[0]:
            return self._kept[1]
        found, base = self._read(job, seed), job.row.base
        if base is not None:
            maps = {}
            if job.row.is_mapped:
                first, *others = job.languages
                maps[first] = AffineMap.identity(found.config.hidden)
                for language in others:
                    say(f"learning the map of layer {base} of {language}")
                    parallel = self._parallel(job, found, language)
                    model = found.models[language]
                    maps[language] = pretrained.learn(model, found.first, base, *parallel)
            found = found.all_frozen(maps)
        self._kept = key, found
        return found

    def _parallel(self, job: Job, found: Pretrained, language: str) -> tuple[Words, list[Links]]:
        """The words of parallel sentences of a language, and the links between them."""
        sentences, given = self._texts.parallel(job.pair, language)
        words = pretrained.words(found.first, found.models[language], sentences, bool(given))
        key = job.pair, job.given, language  # models of one run write a language's text alike
        if key not in self._links:
            self._links[key] = given or list(word_aligner.align(*words))
        return words, self._links[key]

    def _word_order(self, job: Job, seed: int, found: Pretrained) -> dict[str, float]:
        """`order_LANGUAGE`, how alike its word order and the first language's are (D&S B.2).

        An inverted model reads a sentence from its end, so its order is that of the text, inverted.
        Unless links are given, words are linked by the states of the row's models at the layer at
        which D&S evaluate (8 of 12), as D&S link them by mBERT's. States of models that share
        nothing cannot be compared, so `word_aligner` links their words.
        """
        key = (job.pair, job.row.models, seed)
        if self._config.word_order and key not in self._orders:
            _, layer = paper_layers(found.config.layers)
            own = self._orders[key] = {}
            for language in job.languages[1:]:
                say(f"comparing the word order of {language}")
                both = found.first, found.models[language]
                if not found.is_shared:
                    _, links = self._parallel(job, found, language)
                else:
                    sentences, given = self._texts.parallel(job.pair, language)
                    for model, side in zip(both, sentences, strict=True):
                        if not given and (cut := text_encoder.number_cut(model, side)):
                            say(text_encoder.said_cut(model, cut, len(side)))
                    links = given or word_order.contextual_links(*both, layer, sentences)
                is_inverted = both[0].inverted != both[1].inverted
                own[f"order_{language}"] = word_order.similarity(links, is_inverted)
        return self._orders.get(key, {})

    def _make(self, job: Job, seed: int, chosen: Sequence[Choice], is_tried: bool = False) -> Group:
        """The group that trains some settings side by side; one that is only tried gets no maps."""
        models = self._read(job, seed) if is_tried else self._pretrained(job, seed)
        known = {} if is_tried else self._word_order(job, seed, models)
        task, read = texts.task(job.task, self._config), self._texts.read(job.task, job.pair)
        self._run.require_unchanged()
        return Group(self._config, self._run, job, seed, chosen, task, read, models, known)

    def run(self) -> str:
        """Trains and tests what is missing, writes the report and returns its tables; raises what
        `Run.train` raises."""
        config, run = self._config, self._run
        of = {
            (job.setting(choice), seed): (job, choice)
            for job in self._jobs
            for seed in config.seeds
            for choice in choices(config, job.task)
        }
        groups = run.deal(
            list(of),
            lambda member: (of[member][0], member[1], of[member][1].batch),
            lambda _, members: checkpoints_of(run.workdir, members),
            config.devices.side_by_side,
        )

        def settings(members: Sequence[Member]) -> tuple[Job, int, list[Choice]]:
            return of[members[0]][0], members[0][1], [of[member][1] for member in members]

        if config.keep_models:
            ended = sorted(run.done() & of.keys())
            if lost := [each for each in ended if not models_of(run.workdir, *each).exists()]:
                say(f"{len(lost)} of {len(ended)} results are there without their models, such as "
                    f"{lost[0][0]}, seed {lost[0][1]}; to keep models of these, choose another "
                    "--workdir")  # fmt: skip
        planned = []
        for members in groups:
            if members and members[0] in of:
                job, seed, chosen = settings(members)
                make = partial(self._make, job, seed, chosen)
                planned.append(Planned(f"{job.name}, seed {seed}", members, make))
        # Jobs are tried, with one seed, before the first one binds the workdir: of those that
        # differ only in the layers that their rows keep, the one that keeps most.
        waiting = [settings(each.members) for _, each in run.waiting(planned)[1:]]
        waiting.sort(key=lambda own: own[0].row.base or 0)
        others = {
            (x.pair, x.row.models, x.task, own[0].batch): (x, n, own) for x, n, own in waiting
        }
        for own in others.values():
            self._make(*own, is_tried=True)
        section = self._texts.section
        return run.train(planned, less_memory(section), f"lower {section}settings.TASK.rates")
