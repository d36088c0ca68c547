"""A group of replicas that are trained side by side, from the first step to the stored results."""

import abc
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax
from ml_collections import ConfigDict

from xling_jax import devices
from xling_jax.runs.run import Run
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.input_pipeline import InputPipeline
from xling_jax.training.interruption import Interruption
from xling_jax.training.loop import Diverged, Replica, Schedule, Training
from xling_jax.training.metrics import MetricsFile
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import RUNNING, AnyProgram, State, StepCompiler

P = TypeVar("P", bound=AnyProgram)
Evaluate = Callable[[int, State, Any], Sequence[Mapping[str, float]]]
Result = tuple[Mapping[str, float], int | None]  # metrics, and the step that was evaluated


def curve_of(config: ConfigDict, total: int) -> set[int]:
    """The updates after which a config asks for evaluations, the last one included."""
    return {round(total * percent / 100) for percent in config.evaluators.curve} | {total}


def optimizer(training: ConfigDict, total: int, **others: Any) -> OptimizerConfig:
    """The optimiser that a section `training` describes."""
    names = ("warmup_steps", "weight_decay", "epsilon", "clip", "decay")
    given = {name: training[name] for name in names if name in training}
    return OptimizerConfig(total_steps=total, **given, **others)


class Group(abc.ABC, Generic[P]):
    """Trains and evaluates replicas side by side, and stores their results.

    A subclass plans its batches when it is made; nothing is compiled before `run`.
    """

    _program: P
    _pipeline: InputPipeline
    _schedule: Schedule
    _compiler: StepCompiler | None = None  # shared with other groups

    def __init__(
        self,
        config: ConfigDict,
        run: Run,
        replicas: Sequence[Replica],
        folder: Path,
        among: Sequence[jax.Device] | None = None,
    ):
        """Takes the experiment, the folder for the group's checkpoints, and the devices to train
        on, by default all."""
        self._config, self._run, self._folder = config, run, folder
        self._replicas = list(replicas)
        self._members = [(replica.row, replica.seed) for replica in replicas]
        at_most = config.devices.replica_axis_at_most
        self._mesh = devices.make_mesh(len(replicas), among, at_most)

    @abc.abstractmethod
    def _text(self) -> Any:
        """The text that the steps read."""

    @abc.abstractmethod
    def _describe(self) -> None:
        """Says what is about to happen."""

    @abc.abstractmethod
    def _evaluator(self) -> Evaluate:
        """The function that the loop calls with (step, state, settings)."""

    @abc.abstractmethod
    def _results(self, training: Training, running: Sequence[int]) -> Sequence[Result]:
        """The results of the replicas with the numbers `running`, which have not diverged."""

    def _is_shown(self, name: str) -> bool:
        """Whether progress lines show a metric when it is measured."""
        return True

    def _initial_state(self, seed: int) -> State:
        return self._program.initial_state(seed)

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        """Trains, evaluates and stores the replicas' results.

        Raises:
          Diverged: all of them have diverged; that is stored as their result.
          Interrupted: the run was asked to end.
        """
        evaluate = self._evaluator()
        self._describe()
        identity = self._replicas[0].identity
        checkpoints = Checkpoints(self._folder, identity=identity, replicas=self._members)
        training = Training(
            self._program,
            self._mesh,
            self._replicas,
            self._text(),
            self._pipeline,
            self._schedule,
            checkpoints,
            metrics,
            evaluate,
            interruption,
            self._compiler,
            self._initial_state,
            self._run.workdir / "profile" if self._config.profile else None,
            self._is_shown,
        )
        with contextlib.closing(checkpoints):
            try:
                training.run()
            except Diverged:
                self._store(training)
                raise
            self._store(training)

    def _store(self, training: Training) -> None:
        stopped_at = devices.fetch(training.state.stopped_at).tolist()
        running = [number for number, at in enumerate(stopped_at) if at == RUNNING]
        found = dict(zip(running, self._results(training, running), strict=True))
        for number, (replica, at) in enumerate(zip(self._replicas, stopped_at, strict=True)):
            values, step = found.get(number, ({}, None))
            self._run.store_result(replica, self._schedule.total, at, values, step)
