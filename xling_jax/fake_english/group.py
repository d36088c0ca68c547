"""The replicas of one program, from the first step to the stored result."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import ml_collections
import numpy as np

from xling_jax import devices
from xling_jax.batches import packing, setting
from xling_jax.batches.sampling import Sampler
from xling_jax.evaluators.multilinguality import (
    Multilinguality,
    paper_layers,
    require_layers,
)
from xling_jax.fake_english.data import Data
from xling_jax.fake_english.replicas import Cell
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig
from xling_jax.reports import results
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.loop import (
    Diverged,
    Interruption,
    Replica,
    Schedule,
    Training,
    is_about,
)
from xling_jax.training.metrics import MetricsFile, say
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import RUNNING, Program, State


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """The metrics of each replica at a step, and all pieces' layer-0 vectors [R, 2, V, D]."""

    step: int
    metrics: list[dict[str, float]]
    vectors: np.ndarray


class Group:
    """Trains and evaluates some replicas side by side, and stores what comes out."""

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        workdir: Path,
        data: Data,
        members: Sequence[Cell],
        number: int,
    ):
        """Lays out the batches; compiles nothing yet.

        Raises:
          ValueError: fields that do not go together, each named with the way out.
        """
        self._config, self._workdir, self._data = config, workdir, data
        self.members, self._number = list(members), number
        first = members[0].modifications
        sizes: dict[str, Any] = config.models.to_dict()
        learning_rate = config.training.learning_rate
        if "overparam" in first:
            large = config.overparam.to_dict()
            learning_rate = large.pop("learning_rate")
            sizes |= large
        self._model = BertConfig(vocabulary_size=data.vocabulary.size, **sizes)
        self._layers = tuple(config.evaluators.layers) or paper_layers(self._model.layers)
        require_layers(self._layers, self._model.layers)
        for cell in members:
            self._require_positions(cell)
        self._mesh = devices.make_mesh(len(members))
        self._layout, samplers = self._plan_batches()
        self._replicas = [
            Replica(
                row=cell.row,
                description=cell.description,
                seed=cell.seed,
                setting=setting.make(
                    cell.modifications,
                    data.vocabulary.languages,
                    seed=cell.seed,
                    learning_rate=learning_rate,
                    max_length=config.batches.max_length,
                    shift=data.vocabulary.shift,
                ),
                sampler=sampler,
            )
            for cell, sampler in zip(members, samplers, strict=True)
        ]
        self._epoch = samplers[0].steps_per_epoch
        section = config.training
        total = 0 if "untrained" in first else section.epochs * self._epoch
        curve = {round(total * percent / 100) for percent in config.evaluators.curve}
        self._schedule = Schedule(
            total=total,
            evaluations=tuple(sorted(curve | {total})),
            save_every=section.save_every or self._epoch,
            call=math.ceil(self._epoch / math.ceil(self._epoch / section.steps_per_call)),
        )
        self._program = Program(
            model=self._model,
            optimizer=OptimizerConfig(
                total_steps=max(1, total),
                warmup_steps=section.warmup_steps,
                weight_decay=section.weight_decay,
                epsilon=section.epsilon,
                clip=section.clip,
            ),
            pieces=data.piece_range,
            rows=self._layout.shard_rows,
        )
        self._evaluated: Evaluated | None = None

    def _require_positions(self, cell: Cell) -> None:
        """Refuses sentences or languages that the model's tables have no rows for."""
        model, length = self._model, self._config.batches.max_length
        kinds = len(self._data.vocabulary.languages) if "lang-pos" in cell.modifications else 1
        if model.positions < kinds * length:
            raise ValueError(
                f"models.positions={model.positions}, but row {cell.row} ({cell.description}) "
                f"needs {kinds} x batches.max_length={length}: raise the one or lower the other"
            )
        if model.token_types < kinds:
            raise ValueError(
                f"models.token_types={model.token_types}, but row {cell.row} ({cell.description}) "
                f"needs one for each of {kinds} languages: raise it"
            )

    def _plan_batches(self) -> tuple[packing.Layout, list[Sampler]]:
        """One layout, for rows that are trained in parallel or not, and each replica's sampler.

        The layout does not depend on the other rows of the group, so neither do their numbers.
        """
        section, store = self._config.batches, self._data.texts.train

        def sampler(is_parallel: bool, layout: packing.Layout, seed: int = 0) -> Sampler:
            languages = len(self._data.vocabulary.languages)
            return Sampler(store.lengths, languages, layout, seed, is_parallel)

        empty = packing.Layout((), section.sentences)
        layout = packing.choose_layout(
            store.lengths,
            [sampler(is_parallel, empty).sentences for is_parallel in (True, False)],
            section.sentences,
            section.row_lengths,
            self._mesh.shape[devices.DATA],
            section.attend_padding,
        )
        return layout, [
            sampler("no-parallel" not in cell.modifications, layout, cell.seed)
            for cell in self.members
        ]

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        """Trains, evaluates and stores the replicas' results.

        Raises:
          Diverged: none of them has a finite loss any more; that is stored as their result.
          Interrupted: the run was asked to end.
        """
        self._describe()
        evaluation = self._evaluation()

        def evaluate(step: int, state: State, settings: setting.Setting) -> None:
            found, vectors = evaluation(state.params, settings)
            if self._evaluated is None:  # a killed run may have written these lines already
                metrics.keep(lambda entry: not self._is_evaluation(entry, step))
            self._evaluated = Evaluated(step, found, vectors)
            for replica, values in zip(self._replicas, found, strict=True):
                metrics.write(
                    kind="evaluation",
                    step=step,
                    epoch=step / self._epoch,
                    row=replica.row,
                    seed=replica.seed,
                    metrics=values,
                )
                say(f"{replica.name}, step {step}: " + ", ".join(_summary(values)))

        checkpoints = Checkpoints(self._workdir / "checkpoints" / f"group{self._number}")
        training = Training(
            self._program,
            self._mesh,
            self._replicas,
            self._data.texts.train,
            self._schedule,
            checkpoints,
            metrics,
            evaluate,
            interruption,
        )
        try:
            state = training.run()
        except Diverged:
            self._store_results(training.state)
            raise
        finally:
            checkpoints.close()
        if self._evaluated is None or self._evaluated.step != self._schedule.total:
            evaluate(self._schedule.total, state, training.settings)
        self._store_results(state)

    def _is_evaluation(self, entry: Mapping[str, Any], step: int) -> bool:
        is_of_step = entry["kind"] == "evaluation" and entry["step"] == step
        return is_of_step and is_about(self._replicas, entry)

    def _describe(self) -> None:
        """Says what is about to happen."""
        epochs = self._config.training.epochs
        fill = self._replicas[0].sampler.plan(0).fill()
        say(
            f"{len(self.members)} replicas on {dict(self._mesh.shape)} "
            f"{jax.devices()[0].platform} devices; {self._schedule.total} steps of "
            f"{self._config.batches.sentences} sentences"
            + (f" ({epochs} epochs)" if self._schedule.total else " (untrained)")
            + f", rows {self._layout.rows}, {100 * fill:.0f} % full"
        )

    def _evaluation(self) -> Multilinguality:
        batches = self._config.batches
        return Multilinguality(
            self._model,
            self._data.texts,
            self._data.piece_range,
            self._mesh,
            layers=self._layers,
            sentences=batches.sentences,
            row_lengths=batches.row_lengths,
            attend_padding=batches.attend_padding,
        )

    def _store_results(self, state: State) -> None:
        """Adds the replicas to `results.json`, after the arrays that the figures need."""
        for number, (replica, at) in enumerate(
            zip(self._replicas, np.asarray(state.stopped_at).tolist(), strict=True)
        ):
            values: dict[str, float] = {}
            if at == RUNNING:
                assert self._evaluated is not None
                values = self._evaluated.metrics[number]
                positions = partition.select(state.params)["embeddings"]["positions"][number]
                self._store_arrays(replica, self._evaluated.vectors[number], np.asarray(positions))
            results.add_result(
                self._workdir / "results.json",
                results.Replica(
                    experiment=self._config.name,
                    row=replica.row,
                    description=replica.description,
                    seed=replica.seed,
                    step=self._schedule.total if at == RUNNING else at,
                    metrics=values,
                    diverged_at=None if at == RUNNING else at,
                ),
            )

    def _store_arrays(
        self, replica: Replica, vectors_KxVxD: np.ndarray, positions_PxD: np.ndarray
    ) -> None:
        """The layer-0 vectors of all pieces and the position table, for Figures 4 and 8."""
        vocabulary = self._data.vocabulary
        languages = vocabulary.languages
        results.write_arrays(
            self._workdir / "arrays" / f"row{replica.row}_seed{replica.seed}.npz",
            results.Arrays(
                token_embeddings=np.concatenate(vectors_KxVxD),
                token_languages=np.repeat(np.arange(len(languages)), vocabulary.shift),
                token_names=np.array(vocabulary.names()),
                token_counts=np.bincount(self._data.texts.train.tokens, minlength=vocabulary.size),
                position_embeddings=positions_PxD,
                position_offset=int(replica.setting.position_offset),
                language_names=languages,
            ),
        )


def _summary(values: Mapping[str, float]) -> Iterator[str]:
    """The metrics of an evaluation that fit a line."""
    for name, value in values.items():
        if name == "mu" or name.startswith("perplexity") and not name.endswith("mean"):
            yield f"{name} {value:.3g}"
    for name, value in values.items():
        if name.rsplit("_", 1)[-1].isdigit():
            yield f"{name} {value:.2f}"
