"""A row's seeds, from the first step to the stored result."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
from ml_collections import ConfigDict

from xling_jax import devices
from xling_jax.batches.streams import SENTENCE
from xling_jax.batches.windows import StreamStore
from xling_jax.corpora.normalize import Normalization
from xling_jax.evaluators.perplexity import StreamPerplexity
from xling_jax.evaluators.translations import Translations
from xling_jax.experiments.bilingual.data import Data
from xling_jax.experiments.bilingual.rows import TWIN, Row
from xling_jax.experiments.bilingual.selection import Best, start_from
from xling_jax.files import plain_name, short_name
from xling_jax.models import partition, stored
from xling_jax.models.bert import BertConfig
from xling_jax.models.heads import UNCHOSEN
from xling_jax.runs import group
from xling_jax.runs.group import Evaluate, Result, curve_of, optimizer
from xling_jax.runs.run import Member, Run
from xling_jax.runs.store import models_of
from xling_jax.training import sharding
from xling_jax.training.interruption import Interruption
from xling_jax.training.loop import Schedule, Training, stack
from xling_jax.training.metrics import MetricsFile, say
from xling_jax.training.step import State
from xling_jax.training.stream_step import (
    LANGUAGE_SOFTMAX,
    StreamProgram,
    StreamSetting,
    Vocabularies,
)
from xling_jax.vocabulary.sharing import LanguageVocabulary


def checkpoints_of(workdir: Path, members: Sequence[Member]) -> Path:
    """The folder of the checkpoints of a row's seeds that train side by side."""
    seeds = "-".join(str(seed) for _, seed in members)
    return workdir / "checkpoints" / short_name(f"row{plain_name(members[0][0])}_seeds{seeds}")


class Group(group.Group[StreamProgram]):
    """Trains and evaluates the seeds of one row side by side, and stores what comes out."""

    _best: Best

    def __init__(self, config: ConfigDict, run: Run, row: Row, seeds: Sequence[int], data: Data):
        training, self._row, self._data = config.training, row, data
        replicas = [
            run.replica(
                row.name, row.description, seed, StreamSetting.of(seed, training.learning_rate)
            )
            for seed in seeds
        ]
        folder = checkpoints_of(run.workdir, [(row.name, seed) for seed in seeds])
        super().__init__(config, run, replicas, folder)
        self._samplers = data.samplers(config, seeds, self._mesh.shape[devices.DATA])
        epoch = training.steps_per_epoch
        total = training.epochs * epoch
        self._curve = curve_of(config, total)  # where translations are looked for too
        self._schedule = Schedule(
            total=total,
            epoch=epoch,
            evaluations=tuple(sorted(self._curve.union(range(epoch, total, epoch)))),
            save_every=training.save_every or epoch,
            call=min(training.steps_per_call, epoch),
        )
        self._pipeline = data.pipeline(config, self._samplers, total, self._mesh)
        self._layers = tuple(config.evaluators.layers) or tuple(range(config.models.layers + 1))
        self._program = StreamProgram(
            BertConfig(vocabulary_size=data.vocabulary.size, **config.models),
            optimizer(training, total),
            self._pipeline.layouts[0],
            Vocabularies(len(row.languages), data.vocabulary.way == "separate", row.softmax),
            row.partition,
            shards=sharding.shards_of(config.devices, self._mesh),
            masking_rate=training.masking_rate,
            start_alike=training.start_alike,
        )

    def _initial_state(self, seed: int) -> State:
        # Numbers among all languages, so that monolingual models do not begin alike.
        every = [*self._config.corpora.languages, TWIN]
        numbers = [every.index(language) for language in self._row.languages]
        state = self._program.initial_state(seed, numbers)
        if not (folder := self._config.training.start_from):
            return state
        own = self._data.vocabulary.sha256, self._row.partition, len(self._row.languages)
        return self._program.state_of(
            start_from(folder, *own, self._program.model.heads, state.params)
        )

    def _stream_perplexity(self) -> StreamPerplexity:
        begins_with_sentence = self._config.batches.begin == SENTENCE
        text, languages = self._data.dev, self._row.languages
        return StreamPerplexity(self._program, self._mesh, text, languages, begins_with_sentence)

    def check(self) -> None:
        """Tries what training begins with; ValueError or FileNotFoundError names a field that
        cannot be used, with the way out."""
        if self._config.training.start_from:
            self._initial_state(self._replicas[0].seed)

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        identity = self._replicas[0].identity
        vocabulary = self._data.vocabulary.sha256
        heads = self._program.model.heads
        self._best = Best(self._folder / "best", self._members, vocabulary, heads, identity)
        try:
            super().run(metrics, interruption)
        finally:
            self._best.close()

    def _text(self) -> StreamStore:
        text = self._data.train
        if text is None or self._program.layout.is_fed:
            nothing = [np.zeros(1, np.int32)] * len(self._row.languages)
            return StreamStore.of(nothing, self._data.tables)
        return text

    def _is_shown(self, name: str) -> bool:
        return name.startswith("perplexity") or name in ("retrieval", "words")

    def _results(self, training: Training, running: Sequence[int]) -> list[Result]:
        """The metrics of the selected parameters (W&C §3.1). Their models are written first, since
        a stored result says that nothing is missing; a replica that diverged leaves none."""
        if not running:
            return []
        last, best = training.final_metrics(), self._best.read()
        parameters = self._best.parameters()
        candidates = None
        if self._row.softmax == LANGUAGE_SOFTMAX:
            candidates = list(map(self._data.tables.predicted, range(len(self._row.languages))))
        for number, (replica, params) in enumerate(zip(self._replicas, parameters, strict=True)):
            if params and number in running:
                folder = models_of(self._run.workdir, replica.row, replica.seed)
                vocabulary, written = self._data.vocabulary, self._data.normalization
                # Positions that no window reaches were never trained.
                model = dataclasses.replace(
                    self._program.model, positions=self._config.batches.length
                )
                export(folder, self._row, model, params, vocabulary, written, candidates)
            elif number in running:
                say(f"row {replica.row}, seed {replica.seed}: no perplexity on held-out text was "
                    "finite, so no model is selected and none is written; lower "
                    "training.learning_rate")  # fmt: skip
        steps = [each and each[0] for each in best]
        scores = last
        if any(step not in (None, self._schedule.total) for step in steps):
            scores = self._scores(training, parameters)
        found: list[Result] = []
        for number in running:
            selected = dict(zip(("best_step", "best_perplexity"), best[number] or (), strict=False))
            values = {**scores[number], **self._data.found, **selected}
            found.append((values, steps[number]))
        return found

    def _scores(self, training: Training, parameters: Sequence) -> list[dict[str, float]]:
        """The metrics of each replica's selected parameters, or of its final ones if none were
        selected."""
        final = devices.fetch(training.state.params) if None in parameters else None
        chosen = [
            jax.tree.map(lambda x, n=number: x[n], final) if params is None else params
            for number, params in enumerate(parameters)
        ]
        specs = sharding.state_specs(self._program).params
        selected = devices.place(stack(chosen), self._mesh, specs)
        return self._measure(selected, True)

    def _describe(self) -> None:
        layout, found = self._samplers[0].layout, self._data.found
        shares = ", ".join(
            f"{name} {size:,} tokens ({100 * draw:.0f} % of the parts)"
            for name, size, draw in zip(
                self._row.languages, self._data.sizes, self._samplers[0].draws, strict=True
            )
        )
        cut = [f"{found[f'fertility_{name}']:.2f} ({name})" for name in self._row.languages]
        say(
            f"{shares}; {self._data.vocabulary.size:,} pieces ({self._row.sharing}), of which "
            f"{found['anchors']:.0f} are anchors, {100 * found['anchor_tokens']:.0f} % of tokens; "
            f"pieces a word: {', '.join(cut)}"
        )
        total = self._schedule.total
        say(
            f"{len(self._replicas)} replicas on {dict(self._mesh.shape)} "
            f"{jax.devices()[0].platform} devices; {total} steps of {layout.parts} x "
            f"{layout.sequences} sequences of {layout.length} ("
            f"{devices.shares(layout.parts * layout.sequences, self._mesh)}, {layout.microbatch} "
            f"at once); {self._samplers[0].passes(total)[0]:.1f} passes over "
            f"{self._row.languages[0]}"
        )

    def _evaluator(self) -> Evaluate:
        section, items = self._config.evaluators, self._data.items
        self._perplexity = self._stream_perplexity()
        self._translations: Translations | None = None
        if items:
            self._translations = Translations(
                self._program.model,
                self._mesh,
                items,
                names=section.names,
                layers=self._layers,
                max_length=self._config.batches.length,
                sentences=section.sentences,
                row_lengths=tuple(section.row_lengths),
            )
            cut = [
                f"{100 * share:.3g} % ({name.removeprefix('retrieval_cut_')})"
                for name, share in self._translations.counts.items()
                if name.startswith("retrieval_cut_") and share
            ]
            if cut:
                length = self._config.batches.length
                say(f"test sentences are cut to {length} places (batches.length): {', '.join(cut)}")
        first = f"perplexity_dev_{self._row.languages[0]}"

        def evaluate(step: int, state: State, settings: StreamSetting) -> list[dict[str, float]]:
            found = self._measure(state.params, step in self._curve)
            if step:
                self._best.offer(step, state, [values[first] for values in found])
            return found

        return evaluate

    def _measure(self, params, has_translations: bool) -> list[dict[str, float]]:
        """The metrics of each replica, from parameters with a replica axis."""
        found = self._perplexity(params)
        if self._translations is None or not has_translations:
            return found
        return [
            own | others | self._means(others)
            for own, others in zip(found, self._translations(params), strict=True)
        ]

    def _means(self, values: Mapping[str, float]) -> dict[str, float]:
        """The means over languages and layers of what is measured at each, such as `retrieval`."""
        found = {}
        for name in self._config.evaluators.names:
            parts = (f"{name}_{x}_{layer}" for x in self._row.languages for layer in self._layers)
            if every := [values[part] for part in parts if part in values]:
                found[name] = float(np.mean(every))
        return found


def export(
    folder: Path,
    row: Row,
    model: BertConfig,
    params,
    vocabulary: LanguageVocabulary,
    normalization: Normalization,
    candidates: Sequence[np.ndarray] | None,
) -> None:
    """Writes each language's model, from partitioned parameters, with its vocabulary and
    normalization, into a folder of the language's name.

    Only `model.positions` positions are kept, which may be fewer than the parameters have.
    `candidates` holds the ids that predictions in each language chose among, if not among all; the
    bias of all others becomes `UNCHOSEN`.
    """
    for number, name in enumerate(vocabulary.languages):
        own = partition.languages(params) and vocabulary.way == "separate"
        rows = vocabulary.sizes[number] if own else vocabulary.size
        plain = partition.export(params, number, rows)
        embeddings = plain["embeddings"]
        embeddings["positions"] = embeddings["positions"][: model.positions]
        if candidates is not None:
            is_candidate = np.isin(np.arange(rows), candidates[number])
            bias = np.where(is_candidate, plain["mlm"]["bias"], np.float32(UNCHOSEN))
            plain["mlm"] = {**plain["mlm"], "bias": bias}
        is_same = number and candidates is None and partition.languages(params) is None
        stored.save(
            folder / name,
            stored.StoredModel(
                config=dataclasses.replace(model, vocabulary_size=rows),
                params=plain,
                language=row.text_of(name),
                pieces=vocabulary.pieces[number],
                ids=vocabulary.ids[number],
                normalization=normalization,
                own=partition.paths(params),
            ),
            like=folder / vocabulary.languages[0] if is_same else None,
        )
