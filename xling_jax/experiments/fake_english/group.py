"""The replicas of one program, from the first step to the stored result."""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from ml_collections import ConfigDict

from xling_jax import devices
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import TokenStore
from xling_jax.experiments.fake_english.data import Data
from xling_jax.experiments.fake_english.programs import Programs, ReplicaSpec
from xling_jax.models import partition
from xling_jax.runs import group
from xling_jax.runs.group import Evaluate, Result
from xling_jax.runs.run import Run
from xling_jax.training.input_pipeline import SentencePipeline
from xling_jax.training.loop import Schedule, Training
from xling_jax.training.metrics import say
from xling_jax.training.step import Program, State


class Group(group.Group[Program]):
    """Trains and evaluates some replicas side by side, and stores what comes out."""

    def __init__(
        self,
        config: ConfigDict,
        run: Run,
        data: Data,
        programs: Programs,
        members: Sequence[ReplicaSpec],
        folder: Path,
    ):
        self.members, self._data, self._programs = list(members), data, programs
        replicas = [
            run.replica(spec.row, spec.description, spec.seed, programs.setting(spec))
            for spec in members
        ]
        super().__init__(config, run, replicas, folder)
        self._kind, self._compiler = programs.kind(members[0]), programs.compiler
        self._program = programs.program(self._kind, self._mesh)
        self._samplers = [programs.sampler(spec, self._mesh) for spec in members]
        total, epoch, call = programs.steps(self._kind, self._mesh)
        self._pipeline = SentencePipeline(self._samplers, total)
        self._schedule = Schedule(
            total=total,
            epoch=epoch,
            evaluations=tuple(sorted(group.curve_of(config, total))),
            save_every=config.training.save_every or epoch,
            call=call,
        )
        self._vectors: np.ndarray | None = None  # of the last evaluation, [R, …]

    @property
    def steps(self) -> int:
        return self._schedule.total

    def _text(self) -> TokenStore:
        return self._data.train

    def _is_shown(self, name: str) -> bool:
        return "-" not in name and not name.endswith("mean")  # "-" names a pair of languages

    def _evaluator(self) -> Evaluate:
        evaluation = self._programs.evaluator(self._kind.model, self._mesh)

        def evaluate(_: int, state: State, settings: Setting) -> list[dict[str, float]]:
            found, self._vectors = evaluation(state.params, settings)
            return found

        return evaluate

    def _describe(self) -> None:
        fill, number = self._samplers[0].fill, self._config.batches.sentences
        say(
            f"{len(self.members)} replicas on {dict(self._mesh.shape)} "
            f"{jax.devices()[0].platform} devices; {self.steps} steps of "
            f"{number} sentences ({devices.shares(number, self._mesh)})"
            + (f" ({self._kind.epochs} epochs)" if self.steps else " (untrained)")
            + f", rows {self._programs.layout(self._mesh).rows}, {100 * fill:.0f} % full"
        )

    def _results(self, training: Training, running: Sequence[int]) -> list[Result]:
        """The metrics of the last evaluation; first writes what is kept of the replicas."""
        if not running:
            return []
        if self._vectors is None:  # resumed after the last evaluation
            training.evaluate()
        assert self._vectors is not None
        plain = partition.select(devices.fetch(training.state.params))
        found: list[Result] = []
        for number in running:
            params = jax.tree.map(lambda x, n=number: x[n], plain)
            vectors, replica = self._vectors[number], self._replicas[number]
            self._data.keep(self._run.workdir, replica, self._kind.model, params, vectors)
            quality = self._programs.neighbours.quality(self.members[number].modifications)
            found.append(({**training.evaluations[-1].metrics[number], **quality}, None))
        return found
