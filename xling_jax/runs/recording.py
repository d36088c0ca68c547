"""What a replica leaves behind: its result."""

from collections.abc import Mapping
from pathlib import Path

from xling_jax import processes
from xling_jax.runs import results
from xling_jax.training.loop import Replica
from xling_jax.training.step import RUNNING


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
