"""What replicas that train side by side leave behind: lines of evaluations, and results."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from xling_jax import processes
from xling_jax.runs import results
from xling_jax.training.loop import Replica, is_about
from xling_jax.training.metrics import MetricsFile
from xling_jax.training.step import RUNNING


class Evaluations:
    """Writes the evaluations of some replicas into the metrics file."""

    def __init__(self, metrics: MetricsFile, replicas: Sequence[Replica], epoch: int):
        """Takes the file, the replicas, and the updates of an epoch."""
        self._metrics, self._replicas, self._epoch = metrics, replicas, epoch
        self._is_first = True

    def write(self, step: int, found: Sequence[Mapping[str, float]]) -> None:
        """Writes the metrics of each replica at a step.

        The first time, lines of the same step go: a run that was killed may have written them.
        """
        if self._is_first:
            self._metrics.keep(
                lambda entry: (
                    not (
                        entry.get("kind") == "evaluation"
                        and entry.get("step") == step
                        and is_about(self._replicas, entry)
                    )
                )
            )
        self._is_first = False
        for replica, values in zip(self._replicas, found, strict=True):
            self._metrics.write(
                kind="evaluation",
                step=step,
                epoch=step / self._epoch,
                row=replica.row,
                seed=replica.seed,
                metrics=values,
            )


def done(path: Path) -> set[tuple[str, int]]:
    """The rows and seeds that `results.json` has."""
    found = processes.of_first(lambda: [[r.row, r.seed] for r in results.read_results(path)])
    return {(row, seed) for row, seed in found}


def store(
    path: Path,
    replica: Replica,
    total: int,
    stopped_at: int,
    metrics: Mapping[str, float],
    scored_at: int | None = None,
) -> None:
    """Adds a replica to `results.json`.

    Args:
      path: of the file.
      replica: which one.
      total: the updates of its schedule.
      stopped_at: the step at which it diverged, or RUNNING.
      metrics: of its last evaluation, or of the one selected; none of one that diverged.
      scored_at: the step of that evaluation, by default the last.
    """
    has_ended = stopped_at == RUNNING
    results.add_result(
        path,
        results.Replica(
            experiment=replica.identity.experiment,
            fingerprint=replica.identity.fingerprint,
            row=replica.row,
            description=replica.description,
            seed=replica.seed,
            step=total if has_ended else stopped_at,
            metrics=metrics,
            diverged_at=None if has_ended else stopped_at,
            scored_at=(total if scored_at is None else scored_at) if has_ended else None,
        ),
    )
    processes.wait("a stored result")
