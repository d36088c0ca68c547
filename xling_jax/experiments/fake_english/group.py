"""The replicas of one program, from the first step to the stored result."""

from collections.abc import Sequence
from pathlib import Path

import jax
import ml_collections
import numpy as np

from xling_jax import devices
from xling_jax.batches.setting import Setting
from xling_jax.experiments.fake_english.data import Data
from xling_jax.experiments.fake_english.programs import Programs
from xling_jax.experiments.fake_english.replicas import ReplicaSpec
from xling_jax.models import partition
from xling_jax.records import Identity
from xling_jax.runs import store
from xling_jax.runs.run import store_result
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.input_pipeline import SentencePipeline
from xling_jax.training.interruption import Interruption
from xling_jax.training.loop import Diverged, Replica, Schedule, Training
from xling_jax.training.metrics import MetricsFile, say
from xling_jax.training.step import RUNNING, State


def checkpoints_of(workdir: Path, number: int) -> Path:
    """The folder of a group's checkpoints."""
    return workdir / "checkpoints" / f"group{number}"


class Group:
    """Trains and evaluates some replicas side by side, and stores what comes out."""

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        workdir: Path,
        data: Data,
        programs: Programs,
        members: Sequence[ReplicaSpec],
        number: int,
        identity: Identity,
    ):
        """Lays out the batches; compiles nothing yet.

        Raises:
          ValueError: fields that do not go together, each named with the way out.
        """
        self._config, self._workdir, self._data = config, workdir, data
        self._programs, self.members, self._number = programs, list(members), number
        self._kind = programs.kind(members[0])
        self._mesh = devices.make_mesh(len(members), at_most=config.devices.replica_axis_at_most)
        self._replicas = [
            Replica(
                row=spec.row,
                description=spec.description,
                seed=spec.seed,
                setting=programs.setting(spec),
                identity=identity,
            )
            for spec in members
        ]
        self._samplers = [programs.sampler(spec, self._mesh) for spec in members]
        total, self._epoch = programs.steps(self._kind, self._mesh)
        curve = {round(total * percent / 100) for percent in config.evaluators.curve}
        self._schedule = Schedule(
            total=total,
            epoch=self._epoch,
            evaluations=tuple(sorted(curve | {total})),
            save_every=config.training.save_every or self._epoch,
            call=programs.steps_per_call(self._epoch),
        )
        self._vectors: np.ndarray | None = None  # of the last evaluation, [R, …]

    @property
    def steps(self) -> int:
        """The updates that every replica makes."""
        return self._schedule.total

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        """Trains, evaluates and stores the replicas' results.

        Raises:
          Diverged: none of them has a finite loss any more; that is stored as their result.
          Interrupted: the run was asked to end.
        """
        self._describe()
        evaluation = self._programs.evaluator(self._kind.model, self._mesh)

        def evaluate(_: int, state: State, settings: Setting) -> list[dict[str, float]]:
            found, self._vectors = evaluation(state.params, settings)
            return found

        checkpoints = Checkpoints(
            checkpoints_of(self._workdir, self._number),
            identity=self._replicas[0].identity,
            replicas=[(spec.row, spec.seed) for spec in self.members],
        )
        training = Training(
            self._programs.program(self._kind, self._mesh),
            self._mesh,
            self._replicas,
            self._data.train,
            SentencePipeline(self._samplers),
            self._schedule,
            checkpoints,
            metrics,
            evaluate,
            interruption,
            self._programs.compiler,
            profile=store.profile_folder(self._config, self._workdir),
            is_shown=lambda name: not name.endswith("mean"),
        )
        try:
            training.run()
        except Diverged:
            self._store_results(training)
            raise
        finally:
            checkpoints.close()
        if self._vectors is None:  # it had ended before, and was not stored
            training.evaluate()
        self._store_results(training)

    def _describe(self) -> None:
        """Says what is about to happen."""
        fill, number = self._samplers[0].plan(0).fill(), self._config.batches.sentences
        say(
            f"{len(self.members)} replicas on {dict(self._mesh.shape)} "
            f"{jax.devices()[0].platform} devices; {self._schedule.total} steps of "
            f"{number} sentences ({devices.shares(number, self._mesh)})"
            + (f" ({self._kind.epochs} epochs)" if self._schedule.total else " (untrained)")
            + f", rows {self._programs.layout(self._mesh).rows}, {100 * fill:.0f} % full"
        )

    def _store_results(self, training: Training) -> None:
        """Adds the replicas to `results.json`, after what is kept of them."""
        state = training.state
        stopped_at = devices.fetch(state.stopped_at).tolist()
        plain = partition.select(devices.fetch(state.params)) if RUNNING in stopped_at else {}
        for number, (spec, replica, at) in enumerate(
            zip(self.members, self._replicas, stopped_at, strict=True)
        ):
            values: dict[str, float] = {}
            if at == RUNNING:
                assert self._vectors is not None
                neighbours = self._programs.neighbours.quality(spec.modifications)
                values = {**training.evaluations[-1].metrics[number], **neighbours}
                params = jax.tree.map(lambda x, n=number: x[n], plain)
                vectors = self._vectors[number]
                self._data.keep(self._workdir, replica, self._kind.model, params, vectors)
            store_result(self._workdir, replica, self._schedule.total, at, values)
