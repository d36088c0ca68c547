"""Some settings of a job, trained side by side, from the first step to the stored results."""

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from xling_jax import devices, processes
from xling_jax.batches.labelled import Encoded, Examples
from xling_jax.batches.tasks import TaskSampler
from xling_jax.experiments.zero_shot.fields import DEV
from xling_jax.experiments.zero_shot.jobs import Choice, Job, sharing_of
from xling_jax.experiments.zero_shot.pretrained import Pretrained
from xling_jax.experiments.zero_shot.texts import Labelled
from xling_jax.files import plain_name, short_name
from xling_jax.models import partition
from xling_jax.models.hugging_face import fine_tuned
from xling_jax.models.task_heads import HeadConfig
from xling_jax.models.text_model import TextModel
from xling_jax.runs import best, group
from xling_jax.runs.group import Evaluate, Result, optimizer
from xling_jax.runs.run import Run
from xling_jax.runs.store import models_of
from xling_jax.runs.texts import MOST_UNKNOWN
from xling_jax.tasks.finetune import (
    ADDED,
    ENCODER,
    HEAD,
    Predictor,
    TaskProgram,
    TaskSetting,
    TaskStore,
    divide,
)
from xling_jax.tasks.task import Task, WordTask
from xling_jax.training import sharding
from xling_jax.training.input_pipeline import TaskPipeline
from xling_jax.training.loop import Schedule, Training
from xling_jax.training.metrics import say
from xling_jax.training.step import RUNNING, State


class Group(group.Group[TaskProgram]):
    """Fine-tunes some settings, and tests them on all languages."""

    def __init__(
        self,
        config: ConfigDict,
        run: Run,
        job: Job,
        seed: int,
        chosen: Sequence[Choice],
        task: Task,
        texts: Labelled,
        pretrained: Pretrained,
        known: Mapping[str, float],
    ):
        """Encodes the examples for some settings of a job, which have one batch size. A batch that
        not all devices can share is divided among fewer. `known` metrics of the job are stored with
        its results."""
        self._job, self._task = job, task
        self._section = section = config.settings[job.task]
        if not section.embeddings:
            pretrained = pretrained.with_frozen_embeddings()
        self._texts, self._pretrained, self._known = texts, pretrained, known
        sizes, batch = config.models, chosen[0].batch
        # W&C freeze what a language has for itself; D&S train that of the first language.
        self._keeps_own = not sizes.train_own
        self._longest = min(sizes.length, pretrained.config.positions)
        self._labels = task.labels(texts.train)
        self._unknown = {
            name: [label for label in task.labels(items) if label not in self._labels]
            for name, items in {DEV: texts.dev, **texts.test}.items()
        }
        replicas = [
            run.replica(
                job.setting(choice),
                job.row.description,
                seed,
                TaskSetting.of(seed, choice.encoder, choice.head),
            )
            for choice in chosen
        ]
        among = sharing_of(job.task, batch, len(chosen), config.devices.replica_axis_at_most)
        folder = checkpoints_of(run.workdir, [(replica.row, seed) for replica in replicas])
        super().__init__(config, run, replicas, folder, among)
        # Where the models of each replica are kept.
        self._kept_in = [models_of(run.workdir, each.row, each.seed) for each in replicas]
        if config.keep_models:
            for kept in self._kept_in:
                best.read(kept, replicas[0].identity)  # raises early if it is another experiment's
        encoded = task.encode(texts.train, pretrained.first, self._longest)
        self._cut = {"train": sum(each.cut for each in encoded)}
        self._unwritten = {"train": _unwritten(encoded, pretrained.first)}
        examples = Examples.of(encoded, task.targets(texts.train, self._labels))
        shards = self._mesh.shape[devices.DATA]
        self._sampler = TaskSampler(examples, batch, shards, seed, section.epochs, section.examples)
        self._pipeline = TaskPipeline(self._sampler, len(replicas))
        per_epoch = self._sampler.steps_per_epoch
        total = section.epochs * per_epoch
        self._schedule = Schedule(
            total=total,
            epoch=per_epoch,
            evaluations=tuple(range(per_epoch, total + 1, per_epoch)),
            save_every=per_epoch,
            call=min(config.training.steps_per_call, per_epoch),
        )
        warmup = round(section.warmup * total)
        self._program = TaskProgram(
            dataclasses.replace(pretrained.config, dropout=sizes.dropout, remat=sizes.remat),
            HeadConfig(
                task.head,
                len(self._labels),
                dropout=sizes.dropout,
                arcs=sizes.arcs,
                relations=sizes.relations,
                parser_dropout=sizes.parser_dropout,
            ),
            optimizer(config.training, total, warmup_steps=warmup, decay=section.decay),
            pretrained.frozen if self._keeps_own else frozenset(),
            base=job.row.base or 0,
            added=0 if job.row.base is None else sizes.added,
            shards=sharding.shards_of(config.devices, self._mesh),
        )

    def _text(self) -> TaskStore:
        own = self._own(self._job.languages[0])
        return TaskStore(self._sampler.examples, own)

    def _initial_state(self, seed: int) -> State:
        return self._program.state_of(self._pretrained.first.params, seed)

    def _is_shown(self, name: str) -> bool:
        return name.startswith(f"{self._task.metric}_")

    def _own(self, language: str) -> Any:
        """A language's leaves that are not trained; empty for the first language if all of its
        leaves are."""
        is_trained = language == self._job.languages[0] and not self._keeps_own
        return {} if is_trained else self._pretrained.own(language)

    def _predictor(self, name: str, language: str, items: list[Any]) -> Callable[[Any], list]:
        """The predictor of a set of examples in a language, with that language's own leaves."""
        encoded = self._task.encode(items, self._pretrained.models[language], self._longest)
        self._cut[name] = sum(each.cut for each in encoded)
        self._unwritten[name] = _unwritten(encoded, self._pretrained.models[language])
        own = self._own(language)
        frozen = self._pretrained.frozen if own else frozenset()
        program = dataclasses.replace(self._program, frozen=frozen)
        predict = Predictor(program, self._mesh, encoded, own)
        if self._keeps_own or not own:
            return predict
        return lambda params: predict(params | {ENCODER: divide(params[ENCODER], frozen)[0]})

    def _describe(self) -> None:
        texts, batch = self._texts, self._sampler.batch
        frozen = ", ".join(sorted({"/".join(x.split("/")[:2]) for x in self._program.frozen}))
        tested = ", ".join(f"{len(items):,} of {name}" for name, items in texts.test.items())
        say(
            f"{len(texts.train):,} examples to learn from, {len(texts.dev):,} to choose by, to "
            f"test on {tested}; {len(self._labels)} labels; batches of {batch} on "
            f"{dict(self._mesh.shape)} devices ({devices.shares(batch, self._mesh)}), rows of "
            f"{self._sampler.examples.tokens.shape[1]} tokens; "
            + (f"not trained: {frozen}" if frozen else "all is trained")
        )
        if self._config.keep_models:
            if self._job.row.is_mapped:
                say(f"of models with maps only that of {self._job.languages[0]} is kept")
            for language, model in self._pretrained.models.items():
                if why := fine_tuned.why_without_tokenizer(model):
                    say(f"{language}: fine-tuned models are kept without their tokenizer: {why}")
        if cut := [f"{number:,} of {name}" for name, number in self._cut.items() if number]:
            say(f"rows have {self._longest} places: pieces cut off: {', '.join(cut)}")
        for name, share in self._unwritten.items():
            if share > MOST_UNKNOWN:
                say(f"{name}: {100 * share:.0f} % of the pieces are unknown to the model: is the "
                    "text of its language, and in its script?")  # fmt: skip
        for name, own in self._unknown.items():
            if own:
                say(f"labels of {name} that are not learned, and always wrong: {', '.join(own)}")

    def _evaluator(self) -> Evaluate:
        task, texts = self._task, self._texts
        sets = {DEV: (self._job.languages[0], texts.dev)}
        sets |= {language: (language, items) for language, items in texts.test.items()}
        predictors = {name: self._predictor(name, *own) for name, own in sets.items()}

        def evaluate(step: int, state: State, settings: Any) -> list[dict[str, float]]:
            found: list[dict[str, float]] = [{} for _ in self._replicas]
            running = np.flatnonzero(devices.fetch(state.stopped_at) == RUNNING)
            for name, predictor in predictors.items():
                items, predictions = sets[name][1], predictor(state.params)
                for number in running:
                    scores = task.scores(items, predictions[number], self._labels)
                    found[number] |= {f"{x}_{name}": value for x, value in scores.items()}
            if self._config.keep_models:
                self._keep(step, state, {int(n): found[n][f"{task.metric}_{DEV}"] for n in running})
            return found

        return evaluate

    def _keep(self, step: int, state: State, scores: Mapping[int, float]) -> None:
        """Writes the models of those replicas whose state is, so far, the one to be tested."""
        folders = [self._kept_in[number] for number in scores]
        values, identity = [-score for score in scores.values()], self._replicas[0].identity
        are_kept = [step == self._schedule.total] * len(folders)
        if self._section.select == "best":
            are_kept = best.are_better(folders, values, step, identity)
        if not any(are_kept):
            return
        params = devices.fetch(state.params)
        for number, folder, value in compress(zip(scores, folders, values, strict=True), are_kept):
            if processes.is_first():
                best.discard(folder)
                self._write(folder, jax.tree.map(lambda x, n=number: x[n], params))
                best.Record(step, value, fingerprint=identity.fingerprint).write(folder)

    def _write(self, folder: Path, params: Any) -> None:
        """Writes a fine-tuned model for each language; for the first alone if the others' states
        are mapped, since no model of `transformers` maps states."""
        row, languages = self._job.row, self._job.languages
        for language in languages[:1] if row.is_mapped else languages:
            model = self._pretrained.models[language]
            is_first = language == languages[0]
            own, encoder = self._own(language), params[ENCODER]
            if own and not self._keeps_own:
                encoder, _ = divide(encoder, self._pretrained.frozen)
            encoder = partition.merge(own, encoder)
            parts = [(encoder["layers"], row.base), (encoder.get(ADDED, {}), None)]
            every = [part[key] for part, base in parts for key in sorted(part, key=int)[:base]]
            layers = {str(number): layer for number, layer in enumerate(every)}
            dropout = self._program.model.dropout
            size = dataclasses.replace(model.config, layers=len(layers), dropout=dropout)
            fine_tuned.save(
                folder / language,
                dataclasses.replace(model, config=size),
                {"embeddings": encoder["embeddings"], "layers": layers},
                self._program.head,
                params[HEAD],
                self._labels,
                isinstance(self._task, WordTask),
                like=None
                if is_first or self._pretrained.is_own(language)
                else folder / languages[0],
            )

    def _results(self, training: Training, running: Sequence[int]) -> list[Result]:
        """The metrics of the last epoch, or of the one that is best on the first language's
        examples to choose by."""
        task, texts, schedule = self._task, self._texts, self._schedule
        fixed = {f"examples_{name}": float(len(items)) for name, items in texts.test.items()}
        for language, items in texts.test.items():
            told = task.baselines(texts.train, items) | task.counted(items)
            fixed |= {f"{name}_{language}": value for name, value in told.items()}
        fixed |= {f"cut_{name}": float(number) for name, number in self._cut.items()}
        fixed |= {f"unwritten_{name}": share for name, share in self._unwritten.items() if share}
        fixed |= {f"unknown_{name}": float(len(own)) for name, own in self._unknown.items() if own}
        is_last, dev = self._section.select == "last", f"{task.metric}_{DEV}"
        found: list[Result] = []
        tested: dict[int, int] = {}
        for number in running:
            own = {each.step: each.metrics[number] for each in training.evaluations}
            needed = {schedule.total} if is_last else {*schedule.evaluations}
            if lost := needed - own.keys():
                raise ValueError(
                    f"the checkpoints in {self._folder} lack the evaluation of "
                    f"{self._replicas[number].name} at step {min(lost)}, which its result needs: "
                    "remove them to train again"
                )
            step = max(own) if is_last else max(own, key=lambda step: own[step][dev])
            epoch = {} if is_last else {"best_epoch": step / schedule.epoch}
            found.append(({**own[step], **fixed, **self._known, **epoch}, step))
            tested[number] = step
        if self._config.keep_models and processes.is_first():
            self._drop_others(tested)
        return found

    def _drop_others(self, tested: Mapping[int, int]) -> None:
        """Removes kept models that are not of the step that was tested, given by replica: the
        replica diverged, or nothing was kept at its best epoch."""
        for number, (replica, folder) in enumerate(zip(self._replicas, self._kept_in, strict=True)):
            known = best.read(folder)
            if known is None or known.step != tested.get(number):
                shutil.rmtree(folder, ignore_errors=True)
                say(f"{replica.name}: the model that was tested is not kept: it diverged, or "
                    "nothing was kept at its best epoch")  # fmt: skip


def _unwritten(encoded: Sequence[Encoded], model: TextModel) -> float:
    """The share of unknown pieces in examples."""
    ids = np.concatenate([row for each in encoded for row in each.rows])
    pieces = ids[~np.isin(ids, model.special_ids)]
    return float(np.isin(pieces, [*model.textless]).mean()) if pieces.size else 0.0


def checkpoints_of(workdir: Path, members: Sequence[tuple[str, int]]) -> Path:
    """The folder of the checkpoints of settings that train side by side."""
    first, seed = members[0]
    job = first.rsplit("/", 3)[0]
    name = "_".join(row.split("/", 3)[3].replace("/", "-") for row, _ in members)
    return workdir / "checkpoints" / short_name(plain_name(f"{job}_{name}_seed{seed}"))
