"""The life of a run: replicas are dealt into groups, and each group is trained, stored and, after
an interruption, resumed."""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ml_collections import ConfigDict

from xling_jax import devices, processes
from xling_jax.corpora import sources
from xling_jax.records import Identity
from xling_jax.runs import results, store, workdirs
from xling_jax.training.interruption import Interrupted, Interruption
from xling_jax.training.loop import Diverged, Replica
from xling_jax.training.metrics import MetricsFile, say
from xling_jax.training.step import RUNNING

Member = tuple[str, int]  # a replica's row and seed


class Runs(Protocol):
    """A group of replicas that is ready to run."""

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        """Trains, evaluates and stores them; raises Diverged or Interrupted."""


@dataclasses.dataclass(frozen=True)
class Planned:
    """A group of a run: its name for messages, its replicas, and a function that reads and plans
    what it needs."""

    name: str
    members: Sequence[Member]
    make: Callable[[], Runs]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A measurement of stored models, stored like a trained replica: its row and seed, and a
    function that reads what is needed and returns the function that measures."""

    row: str
    description: str
    seed: int
    make: Callable[[], Callable[[], Mapping[str, float]]]


class Run:
    """An experiment in a workdir, from its stored config to its report."""

    def __init__(self, workdir: Path, report: Callable[[Path], str]):
        """Makes the workdir and locks it, see `workdirs.lock`; `report` writes the report of a
        workdir and returns its tables."""
        self.workdir, self._report = workdir, report
        self._path = workdir / results.RESULTS
        self._lock = workdirs.lock(workdir)
        self.stored: dict[str, Any] = {}
        self._versions: Mapping[str, str | None] = {}  # of the libraries, now
        self._files: set[tuple[str, str]] = set()  # paths of texts and models, with their hashes
        self._scalars: Path | None = None  # for TensorBoard
        self.was_interrupted = False  # in the last group, after which nothing is left to do

    def open(
        self,
        config: ConfigDict,
        texts: Sequence[Mapping[str, Any]],
        rows: Mapping[str, str],
        needed: Sequence[str] = (),
    ) -> bool:
        """Whether the experiment has begun in this workdir. `stored` becomes what it stored then,
        or else its description. See `store.describe`, `store.begun`, `store.require_apart` and
        `store.require_same_in_all` for arguments and errors."""
        if "log" in config and config.log.tensorboard:
            self._scalars = self.workdir / "tensorboard"
        description = store.describe(config, texts, rows)
        store.require_same_in_all(description)
        store.require_apart(texts)
        self._files = {(each["path"], each["sha256"]) for each in texts if "path" in each}
        begun = store.begun(self.workdir, description, needed)
        self.stored, self._versions = begun or description, description["versions"]
        return begun is not None

    def require_unchanged(self) -> None:
        """Raises ValueError in all processes if a text or a model has changed since it was hashed:
        what was read may be another than `config.json` says. To be called when files have been
        read."""

        def compare() -> None:
            for path, digest in self._files:
                if sources.fingerprint(path) != digest:
                    raise ValueError(
                        f"{path} is not what it was when this run began: put the old file back, or "
                        "start in another --workdir, with a copy of what still changes"
                    )

        processes.by_all(compare)

    @property
    def identity(self) -> Identity:
        return Identity.of(self.stored)

    def replica(self, row: str, description: str, seed: int, setting: Any) -> Replica:
        return Replica(row, description, seed, setting, identity=self.identity)

    def done(self) -> set[Member]:
        """The rows and seeds that have results, those that diverged included."""
        found = processes.of_first(
            lambda: [[each.row, each.seed] for each in results.read_results(self._path)]
        )
        return {(row, seed) for row, seed in found}

    def deal(
        self,
        wanted: Sequence[Member],
        kind: Callable[[Member], Hashable],
        folder: Callable[[int, list[Member]], Path],
        side_by_side: int,
        at_most: Callable[[list[Member]], int] = len,
    ) -> list[list[Member]]:
        """The stored groups, followed by new groups of the wanted replicas that are in none.

        If `side_by_side` is neither 0 nor the size of the largest stored group, wanted replicas of
        groups without a checkpoint or a result are dealt anew. Each such group stays, with its
        other replicas or empty, so that all keep their numbers.

        Args:
          wanted: the replicas to deal.
          kind: replicas of one group have the same kind.
          folder: the folder of a group's checkpoints, from the group's number and members.
          side_by_side: replicas of a group, at most; 0: see `devices.side_by_side`.
          at_most: how many of some replicas fit in memory; used if `side_by_side` is 0.
        """
        found = [[(row, seed) for row, seed in group] for group in self.stored.get("groups", [])]
        if found and side_by_side and side_by_side != max(map(len, found)):
            done = self.done()
            for number, group in enumerate(found):
                others = [member for member in group if member not in wanted]
                if others == group or not done.isdisjoint(group):
                    continue
                checkpoints = folder(number, group)
                if not _has_checkpoint(checkpoints):
                    found[number] = others
                elif len(group) > side_by_side:
                    say(
                        f"{len(group)} replicas go on side by side from their checkpoint, whatever "
                        f"devices.side_by_side says; to begin them anew remove {checkpoints}"
                    )
            while found and not found[-1]:
                found.pop()
        dealt = {member for group in found for member in group}
        kinds: dict[Hashable, list[Member]] = {}
        for member in wanted:
            if member not in dealt:
                kinds.setdefault(kind(member), []).append(member)
        for alike in kinds.values():
            limit = side_by_side or at_most(alike)
            while alike:
                number = len(alike)
                taken = min(number, limit) if side_by_side else devices.side_by_side(number, limit)
                found.append(alike[:taken])
                alike = alike[taken:]
        self.stored["groups"] = [[list(member) for member in group] for group in found]
        return found

    def waiting(self, planned: Sequence[Planned]) -> list[tuple[int, Planned]]:
        """The groups that lack results, each with its number, from 1."""
        done = self.done()
        return [(n, each) for n, each in enumerate(planned, 1) if not set(each.members) <= done]

    def store(self) -> None:
        """Writes `config.json`: from then on the workdir belongs to this experiment."""
        store.write(self.workdir, self.stored)

    def store_result(
        self,
        replica: Replica,
        total: int,
        stopped_at: int,
        metrics: Mapping[str, float],
        scored_at: int | None = None,
    ) -> None:
        """Adds a replica to `results.json`.

        Args:
          total: updates of the whole training.
          stopped_at: the step at which the replica diverged, or RUNNING if it did not.
          metrics, scored_at: metrics, and the step that was evaluated, by default the last.
        """
        has_ended = stopped_at == RUNNING
        entry = results.Replica(
            experiment=replica.identity.experiment,
            fingerprint=replica.identity.fingerprint,
            row=replica.row,
            description=replica.description,
            seed=replica.seed,
            step=total if has_ended else stopped_at,
            metrics=metrics,
            diverged_at=None if has_ended else stopped_at,
            scored_at=(total if scored_at is None else scored_at) if has_ended else None,
        )
        processes.by_first(lambda: str(results.add_result(self._path, entry)))

    def train(self, planned: Sequence[Planned], less_memory: str = "", advice: str = "") -> str:
        """Trains and stores the groups that lack results; writes the report, returns its tables.

        Raises:
          Diverged: every replica diverged; `advice` says what to do.
          Interrupted: the run was asked to end before its last group was trained.
          ValueError: memory does not suffice, `less_memory` says what to do; or no replica has a
            metric, though not all diverged.
        """
        waiting = self.waiting(planned)
        metrics = MetricsFile(self.workdir / results.METRICS, self.identity, self._scalars)
        if not waiting:
            say("all results are there already: only the report is written")
            self.store()
        else:
            store.go_on(self.stored, self._versions)
        for number, each in waiting:
            say(f"{number} of {len(planned)}: {each.name}")
            is_last = number == waiting[-1][0]
            group = each.make()
            self.store()
            with Interruption() as interruption:  # only noted, so that results are stored
                try:
                    with devices.memory_explained(len(each.members), less_memory):
                        group.run(metrics, interruption)
                except Diverged as error:
                    say(str(error))
                if not is_last:
                    self.report()
                self.was_interrupted = interruption.was_asked()
                if self.was_interrupted and not is_last:
                    raise Interrupted(
                        f"interrupted after {number} of {len(planned)}; the same command goes on "
                        "from there"
                    )
        table = self.report()
        found = processes.of_first(
            lambda: [[bool(x.metrics), x.diverged_at] for x in results.read_results(self._path)]
        )
        if not any(has_metrics for has_metrics, _ in found):
            if any(diverged_at is None for _, diverged_at in found):
                raise ValueError(
                    "no row has anything that can be measured: give the texts and dictionaries "
                    "that its measures need, and another --workdir"
                )
            raise Diverged(f"every replica diverged: {advice}")
        return table

    def measure(self, wanted: Sequence[Measurement]) -> str:
        """Measures and stores what is missing; returns the report's tables. Errors as of `train`.

        All measurements are prepared before the first one writes `config.json`, so that what is
        wrong with any of them is found while the workdir can still be used for another config.
        """
        members = [(each.row, each.seed) for each in wanted]
        self.deal(members, lambda member: member, lambda *_: self.workdir / "checkpoints", 1)
        planned = [
            Planned(
                f"{each.row} ({each.description}), seed {each.seed}",
                [(each.row, each.seed)],
                functools.partial(_Measured, self, each),
            )
            for each in wanted
        ]
        for _, each in self.waiting(planned)[1:]:
            each.make()
        return self.train(planned)

    def report(self) -> str:
        return processes.by_first(lambda: self._report(self.workdir))


def _has_checkpoint(folder: Path) -> bool:
    """Whether a folder has a complete checkpoint: only the names of complete ones are numbers."""
    return processes.of_first(lambda: any(path.name.isdigit() for path in folder.glob("*")))


class _Measured:
    """A prepared measurement, as a group of one replica."""

    def __init__(self, run: Run, of: Measurement):
        self._run, self._of, self._measure = run, of, of.make()

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        of = self._of
        replica = self._run.replica(of.row, of.description, of.seed, None)
        found = self._measure()
        self._run.require_unchanged()
        self._run.store_result(replica, 0, RUNNING, found)
