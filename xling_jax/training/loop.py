"""The order of step, evaluation and checkpoint for a group of replicas."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.records import UNKNOWN, Identity
from xling_jax.training import sharding
from xling_jax.training.checkpoints import Checkpoints, Evaluation
from xling_jax.training.input_pipeline import InputPipeline
from xling_jax.training.interruption import Interrupted, Interruption
from xling_jax.training.metrics import MetricsFile, Progress, duration, say
from xling_jax.training.sharding import AnyProgram
from xling_jax.training.step import RUNNING, State, StepCompiler, StepMetrics
from xling_jax.training.utilisation import matrix_rate, needed_flops

TRACED_CALL = 2  # the first call after the step has been compiled and run once
EVALUATION = "evaluation"  # the kind of a line of the metrics file


class Diverged(Exception):
    """The loss or gradient of every replica became infinite or NaN."""


@dataclasses.dataclass(frozen=True)
class Replica:
    """One of the models that are trained side by side; `setting` is a tree of arrays."""

    row: str
    description: str
    seed: int
    setting: Any
    identity: Identity = dataclasses.field(default=UNKNOWN, kw_only=True)

    @property
    def name(self) -> str:
        return f"row {self.row}, seed {self.seed}"


def is_about(replicas: Sequence[Replica], entry: Mapping[str, Any]) -> bool:
    """Whether a line of the metrics file is about one of these replicas."""
    return (entry.get("row"), entry.get("seed")) in {(r.row, r.seed) for r in replicas}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """When things happen, in updates.

    Attributes:
      total: of the whole training.
      epoch: in an epoch.
      evaluations: the steps after which replicas are evaluated.
      save_every: between checkpoints; others follow each evaluation and the last update.
      call: in one compiled call at most.
    """

    total: int
    epoch: int
    evaluations: tuple[int, ...]
    save_every: int
    call: int

    def next_stop(self, step: int) -> int:
        """The step at which the call that starts at `step` ends: at the latest with its epoch."""
        marks = [self.total, step + self.call, (step // self.epoch + 1) * self.epoch]
        marks.append((step // self.save_every + 1) * self.save_every)
        marks += [mark for mark in self.evaluations if mark > step]
        return min(marks)

    def saves(self, step: int) -> bool:
        return step == self.total or step % self.save_every == 0 or step in self.evaluations


def stack(trees: Sequence):
    """Stacks trees of equal structure along a new leading axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *trees)


class Training:
    """Trains a group of replicas in one compiled program for each shape of steps."""

    def __init__(
        self,
        program: AnyProgram,
        mesh: Mesh,
        replicas: Sequence[Replica],
        store: Any,
        pipeline: InputPipeline,
        schedule: Schedule,
        checkpoints: Checkpoints,
        metrics: MetricsFile,
        evaluate: Callable[[int, State, Any], Sequence[Mapping[str, float]]],
        interruption: Interruption | None = None,
        compiler: StepCompiler | None = None,
        initial_state: Callable[[int], State] | None = None,
        profile: Path | None = None,
        is_shown: Callable[[str], bool] = lambda _: True,
    ):
        """Places everything on the devices; resumes from the newest checkpoint if there is one.

        Args:
          program: the model, the optimiser and the shape of a batch.
          store: the training text.
          pipeline: of the replicas, closed when training ends.
          checkpoints, metrics: where states are saved and training is logged.
          evaluate: called at the schedule's evaluations with (step, state, settings); returns the
            metrics of each replica, or an empty sequence.
          interruption: asked after every call whether to end.
          compiler: one for this text, if it is shared with other groups of replicas.
          initial_state: of a seed; the program's by default.
          profile: the folder for a trace of the second call, for Perfetto or TensorBoard.
          is_shown: whether a metric, by its name, is printed when it is measured.
        """
        self._mesh, self._replicas = mesh, list(replicas)
        self._program, self._pipeline = program, pipeline
        self._schedule, self._checkpoints, self._metrics = schedule, checkpoints, metrics
        self._measure, self._is_shown = evaluate, is_shown
        self._profile, self._calls = profile, 0
        self.evaluations: list[Evaluation] = []
        self._has_evaluated = False
        self._interruption = interruption or Interruption()
        self._compiler = compiler or StepCompiler(store)
        self._stopped: set[int] = set()
        self._memory_limit = devices.memory_limit()
        self.settings = devices.place(stack([r.setting for r in replicas]), mesh, devices.A_REPLICA)
        self._store = devices.place(store, mesh, devices.SHARED)
        self._step = 0
        specs, draw = sharding.state_specs(program), initial_state or program.initial_state
        if checkpoints.latest() is None:
            states = stack([draw(replica.seed) for replica in replicas])
            self.state: State = devices.place(states, mesh, specs)
        else:
            shapes = sharding.state_shapes(program)
            self.state = checkpoints.restore(devices.abstract(shapes, mesh, specs, [len(replicas)]))
            self._step = int(devices.fetch(self.state.step).max())
            self.evaluations = checkpoints.evaluations()
            say(f"resuming from the checkpoint of step {self._step}")
        if program.shards > 1:
            held = sharding.bytes_of(self.state) / 2**20
            say(
                f"parameters and moments are divided among {program.shards} devices: "
                f"{held:,.1f} MiB on each"
            )
        metrics.keep(
            lambda entry: not is_about(replicas, entry) or entry.get("step", 0) <= self._step
        )
        self._plan_steps = min(schedule.call, schedule.epoch)

    def run(self) -> State:
        """Trains to the end of the schedule and returns the final state.

        Raises:
          Interrupted: the run was asked to end earlier; a checkpoint is saved.
          Diverged: every replica has had a loss or gradient that was not finite.
        """
        try:
            self._run()
        finally:
            self._pipeline.close()
            self._checkpoints.wait()
        return self.state

    def _run(self) -> None:
        schedule = self._schedule
        if self._step == 0 and 0 in schedule.evaluations:
            self.evaluate()
        if self._step >= schedule.total:
            return
        to_come = sum(mark > self._step for mark in schedule.evaluations)
        progress = Progress(self._step, schedule.total, to_come)
        rate = matrix_rate(self._mesh, self._program.model)
        kind, number = self._program.model.factors_dtype, self._mesh.size
        say(f"large matrix products ({kind}): {rate / 1e9:,.0f} GFLOP/s on {number} devices")
        while self._step < schedule.total:
            self._call(progress)
            self._require_alive()
            if self._step in schedule.evaluations:
                began = time.perf_counter()
                self.evaluate()
                progress.evaluating += time.perf_counter() - began
                progress.evaluated += 1
            is_asked = self._interruption.was_asked()
            if schedule.saves(self._step) or is_asked:
                self._checkpoints.save(self._step, self.state, self.evaluations)
            if is_asked and self._step < schedule.total:
                raise Interrupted(
                    f"interrupted at step {self._step} of {schedule.total}; a checkpoint is saved, "
                    "and the same command goes on from there"
                )
        if self._profile is not None and self._calls < TRACED_CALL:
            say("no trace was written, since all was one call: lower training.steps_per_call")
        share = progress.evaluating / max(1e-9, progress.training + progress.evaluating)
        say(f"trained; evaluation took {100 * share:.0f} % of the time")

    def evaluate(self) -> list[dict[str, float]]:
        """Evaluates the replicas as they are, keeps and returns the metrics of each, and logs those
        of replicas that have not diverged."""
        step = self._step
        found = [dict(each) for each in self._measure(step, self.state, self.settings)]
        self.evaluations = [each for each in self.evaluations if each.step != step]
        self.evaluations.append(Evaluation(step, found))
        if not self._has_evaluated:  # a run that was killed may have logged the same step
            self._metrics.keep(
                lambda entry: (
                    (entry.get("kind"), entry.get("step")) != (EVALUATION, step)
                    or not is_about(self._replicas, entry)
                )
            )
        self._has_evaluated = True
        stopped = devices.fetch(self.state.stopped_at)
        for replica, values, at in zip(self._replicas, found, stopped, strict=bool(found)):
            self._metrics.write(
                kind=EVALUATION,
                step=step,
                epoch=step / self._schedule.epoch,
                row=replica.row,
                seed=replica.seed,
                metrics=values if at == RUNNING else {},
            )
            shown = [f"{name} {x:.3g}" for name, x in values.items() if self._is_shown(name)]
            say(f"{replica.name}, step {step}: {', '.join(shown)}")
        return found

    def final_metrics(self) -> list[dict[str, float]]:
        """The metrics of each replica after the last step, evaluated now if they are not stored."""
        if not self.evaluations or self.evaluations[-1].step != self._schedule.total:
            self.evaluate()
        return self.evaluations[-1].metrics

    @functools.cached_property
    def _compiled(self) -> dict[Any, Callable]:
        """The compiled call for each shape of steps, the largest first."""
        every = {
            layout: self._compiler(
                self._program,
                self._mesh,
                layout,
                self._plan_steps,
                len(self._replicas),
                self._replicas[0].setting,
            )
            for layout in self._pipeline.layouts[::-1]
        }
        limit, needed = self._memory_limit, max(each.bytes_needed for each in every.values())
        if limit is not None and needed > limit:
            say(
                f"a step needs {needed / 2**20:,.0f} MiB a device, and "
                f"{limit / 2**20:,.0f} are there: this may run out of memory. "
                + devices.less_memory(
                    "take smaller batches (batches.accumulate does that where the config has it)"
                )
            )
        return {layout: each.function for layout, each in every.items()}

    def _arguments(self, start: int, stop: int) -> list:
        """The plan of updates start..stop-1, which have one shape, padded to a call's length."""
        empty = self._plan_steps - (stop - start)

        def padded(x, spec):
            x = np.pad(x, [(0, 0), (0, empty)] + [(0, 0)] * (x.ndim - 2))
            return devices.place(x.astype(np.int32), self._mesh, spec)

        fields = self._pipeline.steps(start, stop)
        return [padded(x, spec) for x, spec in zip(fields, self._program.plan_specs, strict=True)]

    def _update(self, stop: int) -> StepMetrics:
        """Makes updates until `stop`; returns the metrics of each, [R, updates]."""
        found, start, pipeline = [], self._step, self._pipeline
        shapes = groupby(range(start, stop), key=pipeline.layout_of)
        for layout, steps in shapes:
            end = start + len(list(steps))
            self.state, metrics = self._compiled[layout](
                self.state,
                self.settings,
                self._store,
                jnp.int32(end - start),
                *self._arguments(start, end),
            )
            found.append((metrics, end - start))
            start = end
        every = [jax.tree.map(lambda x, n=n: x[:, :n], devices.fetch(own)) for own, n in found]
        return jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *every)

    def _call(self, progress: Progress) -> None:
        _ = self._compiled  # takes no part of the time
        began = time.perf_counter()
        stop = self._schedule.next_stop(self._step)
        self._calls += 1
        is_traced = self._profile is not None and self._calls == TRACED_CALL
        with jax.profiler.trace(str(self._profile)) if is_traced else contextlib.nullcontext():
            metrics = self._update(stop)
        if is_traced:
            say(f"a trace of this call is in {self._profile}")
        seconds = time.perf_counter() - began
        progress.training += seconds
        self._step = stop
        speed = float(metrics.tokens.sum()) / seconds
        model = self._program.model
        # Attention is left out: in short sentences it is little.
        needed = needed_flops(model, speed, 0.0, speed * self._program.masking_rate)
        share = needed / matrix_rate(self._mesh, model)
        for number, replica in enumerate(self._replicas):
            self._metrics.write(
                kind="train",
                step=stop,
                epoch=stop / self._schedule.epoch,
                row=replica.row,
                seed=replica.seed,
                loss=float(metrics.loss[number].mean()),
                learning_rate=float(metrics.learning_rate[number, -1]),
                gradient_norm=float(metrics.gradient_norm[number].mean()),
                tokens_per_second=speed / len(self._replicas),
                utilisation=share,
            )
        losses = " ".join(f"{loss:.3f}" for loss in metrics.loss.mean(axis=1)[:8])
        say(
            f"step {stop} of {self._schedule.total}, loss {losses}, {speed:,.0f} tokens/s "
            f"({100 * share:.0f} % of the matrix rate), {duration(progress.left(stop))} left"
        )

    def _require_alive(self) -> None:
        stopped = devices.fetch(self.state.stopped_at)
        for number in set(np.flatnonzero(stopped != RUNNING).tolist()) - self._stopped:
            self._stopped.add(number)
            say(f"{self._replicas[number].name} diverged at step {stopped[number]}: it is frozen")
        if (stopped != RUNNING).all():
            listed = "; ".join(
                f"{replica.name} at step {at}"
                for replica, at in zip(self._replicas, stopped, strict=True)
            )
            raise Diverged(
                f"the loss or gradient is not finite any more ({listed}). Lower "
                "the learning rate or lengthen the warm-up. The last good parameters: "
                f"{self._checkpoints.describe()}"
            )
