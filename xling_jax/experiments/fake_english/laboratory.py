"""Runs the groups of replicas of one experiment."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from xling_jax import devices, processes
from xling_jax.experiments.fake_english import neighbours, report
from xling_jax.experiments.fake_english.data import FakeEnglish
from xling_jax.experiments.fake_english.group import CHECKPOINTS, Group
from xling_jax.experiments.fake_english.programs import LESS_MEMORY, Programs
from xling_jax.experiments.fake_english.replicas import Cell, Groups, cells, deal, with_their_groups
from xling_jax.experiments.fake_english.texts import Source
from xling_jax.records import Identity
from xling_jax.runs import experiment, fields, outcomes, results
from xling_jax.training.interruption import Interrupted, Interruption
from xling_jax.training.loop import Diverged
from xling_jax.training.metrics import MetricsFile, say


class Laboratory:
    """Runs the groups of replicas of one experiment, and stores what comes out."""

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        workdir: Path,
        source: Callable[[ml_collections.ConfigDict], Source] = FakeEnglish,
        report: Callable[[Path], str] = report.report,
    ):
        """Reads the texts, and opens the workdir or refuses it; stores nothing unless all is well.

        Args:
          config: the experiment.
          workdir: where it is stored.
          source: its texts.
          report: writes the report of a workdir, and returns the table.

        Raises:
          ValueError, FileNotFoundError: the config or a text cannot be used, or the workdir holds
            another experiment.
        """
        self._workdir, self._report = workdir, report
        self.was_interrupted = False  # after the last group, when nothing is left to do here
        fields.check(config)
        wanted = cells(config)
        self._lock = experiment.take(workdir)
        texts = source(config)
        description = experiment.describe(
            config,
            texts.manifest() + neighbours.manifest(config),
            {cell.row: cell.description for cell in wanted},
        )
        stored = experiment.stored(
            workdir, description, ("vocabulary", "neighbours", "groups", "steps")
        )
        identity = Identity.of(stored or description)
        data = texts.prepare(workdir / "vocabulary")
        vocabulary = {
            "size": data.vocabulary.size,
            "languages": list(data.vocabulary.languages),
            "sha256": data.vocabulary.sha256,
        }
        experiment.require_same_vocabulary(stored, vocabulary)
        if stored:
            wanted = with_their_groups(wanted, stored, tuple(config.corpora.languages))
        hashes = stored["neighbours"] if stored else {}
        programs = Programs(config, data, wanted, workdir / "vocabulary", hashes)
        groups = self._deal(config, wanted, programs, stored)
        by_name = {(cell.row, cell.seed): cell for cell in wanted}
        self._groups = [
            Group(
                config,
                workdir,
                data,
                programs,
                [by_name[r, seed] for r, seed in names],
                number,
                identity,
            )
            for number, names in enumerate(groups)
            if names and (names[0][0], names[0][1]) in by_name
        ]
        steps = {cell.row: group.steps for group in self._groups for cell in group.members}
        more = {
            "vocabulary": vocabulary,
            "neighbours": hashes | programs.neighbours.hashes(),
            "groups": groups,
            "steps": (stored["steps"] if stored else {}) | steps,
        }
        experiment.store(workdir, {**(stored or description), **more})
        self._metrics = MetricsFile(workdir / experiment.METRICS, identity)
        for line in data.described():
            say(line)

    def _deal(
        self,
        config: ml_collections.ConfigDict,
        wanted: Sequence[Cell],
        programs: Programs,
        stored: Mapping[str, Any] | None,
    ) -> Groups:
        """The stored groups, and behind them groups of what is not in them.

        Where the config asks for another number side by side than the stored run's, the groups
        that have not begun are dealt anew.
        """
        number, groups = config.devices.side_by_side, list(stored["groups"]) if stored else []
        asked = {(cell.row, cell.seed) for cell in wanted}
        if groups and number and number != max(map(len, groups)):
            for place, group in enumerate(groups):
                is_asked = {(row, seed) for row, seed in group} <= asked
                folder = self._workdir / CHECKPOINTS / f"group{place}"
                if is_asked and not outcomes.has_begun(self._workdir, group, folder):
                    groups[place] = []  # the others keep their numbers
            while groups and not groups[-1]:
                groups.pop()
        dealt = {(row, seed) for group in groups for row, seed in group}
        rest = [cell for cell in wanted if (cell.row, cell.seed) not in dealt]
        return groups + deal(rest, programs.kind, programs.at_most, self._side_by_side(config))

    @staticmethod
    def _side_by_side(config: ml_collections.ConfigDict) -> Callable[[int, int], int]:
        """How many of (so many, so many at most) go together; as told, where the config tells."""
        return min if config.devices.side_by_side else devices.side_by_side

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report, returns the table.

        Raises:
          Diverged: no replica has a result.
          Interrupted: the run was asked to end.
        """
        path = self._workdir / "results.json"
        with Interruption() as interruption:
            for number, group in enumerate(self._groups):
                done = outcomes.done(path)
                if {(cell.row, cell.seed) for cell in group.members} <= done:
                    continue
                names = ", ".join(
                    f"row {cell.row} ({cell.description}) seed {cell.seed}"
                    for cell in group.members
                )
                say(f"group {number + 1} of {len(self._groups)}: {names}")
                try:
                    with devices.memory_explained(len(group.members), LESS_MEMORY):
                        group.run(self._metrics, interruption)
                except Diverged as error:
                    say(str(error))
                if group is not self._groups[-1]:
                    processes.by_first(lambda: self._report(self._workdir))
                if interruption.was_asked() and number + 1 < len(self._groups):
                    raise Interrupted(
                        f"interrupted after group {number + 1}; the same command goes on from there"
                    )
            self.was_interrupted = interruption.was_asked()
        table = processes.by_first(lambda: self._report(self._workdir))
        if not any(result.metrics for result in results.read_results(path)):
            raise Diverged(
                "every replica diverged: lower training.learning_rate (overparam.learning_rate, "
                "or the row's own) or raise training.warmup_steps; their last good parameters are "
                f"in {self._workdir}"
            )
        return table
