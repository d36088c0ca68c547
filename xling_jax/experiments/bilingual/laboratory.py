"""Runs the rows and seeds of one experiment on several languages."""

from pathlib import Path
from typing import Any

import ml_collections

from xling_jax import devices, processes
from xling_jax.evaluators.multilinguality import require_layers
from xling_jax.experiments.bilingual import report
from xling_jax.experiments.bilingual.data import Data, Preparer
from xling_jax.experiments.bilingual.export import group_name
from xling_jax.experiments.bilingual.group import CHECKPOINTS, Group
from xling_jax.experiments.bilingual.rows import Row, parse
from xling_jax.experiments.bilingual.selection import RECORD, best_folder
from xling_jax.experiments.bilingual.texts import Reader
from xling_jax.models import heads, partition
from xling_jax.models.bert import BertConfig
from xling_jax.records import Identity
from xling_jax.runs import config_files, experiment, fields, outcomes, results
from xling_jax.training.interruption import Interrupted, Interruption
from xling_jax.training.loop import Diverged
from xling_jax.training.metrics import MetricsFile, say

LESS_MEMORY = devices.less_memory(
    "raise batches.accumulate, lower batches.sequences or the model's size, choose "
    "models.dtype=bfloat16"
)


class Laboratory:
    """Runs the rows and seeds of one experiment, and stores what comes out."""

    def __init__(self, config: ml_collections.ConfigDict, workdir: Path):
        """Reads what describes the texts, and opens the workdir or refuses it.

        Raises:
          ValueError, FileNotFoundError: the config or a text cannot be used, or the workdir holds
            another experiment.
        """
        check(config)
        self._config, self._workdir, self._rows = config, workdir, rows(config)
        # Sizes of vocabularies do not matter here: no path names a row of a table.
        plain = heads.param_shapes(BertConfig(vocabulary_size=1, **config.models))
        for row in self._rows:
            with experiment.named(f"row={row.name!r}"):
                partition.own_paths(plain, row.partition)
        start = config.training.start_from
        start_record = best_folder(start) / RECORD if start else None
        self._lock = experiment.take(workdir)
        self._reader = Reader(config)
        manifest = self._reader.manifest(self._rows)
        if start_record:  # names the step, which changes if that run goes on
            where = "training.start_from"
            manifest.append(experiment.hashed(str(start_record), "", "start_from", where))
        description = experiment.describe(
            config,
            manifest,
            {row.name: row.description for row in self._rows},
        )
        self._stored = experiment.stored(workdir, description) or dict(description)
        self._identity = Identity.of(self._stored)
        self._metrics = MetricsFile(workdir / experiment.METRICS, self._identity)

    def _deal(self) -> list[list[list[Any]]]:
        """The stored groups [[row, seed], …], and behind them groups of what is not in them.

        Where the config asks for another number side by side than the stored run's, the groups
        that have not begun are dealt anew.
        """
        groups, told = list(self._stored.get("groups", [])), self._config.devices.side_by_side
        if groups and told and told != max(map(len, groups)):
            asked = {(row.name, seed) for row in self._rows for seed in self._config.seeds}
            groups = [
                group
                for group in groups
                if self._has_begun(group) or not {(row, seed) for row, seed in group} <= asked
            ]
        dealt = {(row, seed) for group in groups for row, seed in group}
        for row in self._rows:
            left = [seed for seed in self._config.seeds if (row.name, seed) not in dealt]
            while left:
                number = len(left)
                taken = min(number, told) if told else devices.side_by_side(number, number)
                groups.append([[row.name, seed] for seed in left[:taken]])
                left = left[taken:]
        return groups

    def _has_begun(self, group: list[list[Any]]) -> bool:
        """Whether a group has a checkpoint or a result."""
        name = group_name(group[0][0], [seed for _, seed in group])
        return outcomes.has_begun(self._workdir, group, self._workdir / CHECKPOINTS / name)

    def _require_same_text(self, row: Row, data: Data) -> None:
        """Raises ValueError if the text of a row is not what it was when the run began."""
        texts = self._stored.setdefault("prepared", {})
        found = texts.setdefault(row.name, data.description())
        if found != data.description():
            raise ValueError(
                f"row {row.name}: the text prepared now is not the one that this run began with. "
                "Install the versions of sentencepiece, sacremoses and jieba that config.json "
                "names, or choose another --workdir"
            )

    def prepare(self) -> str:
        """Makes the vocabularies and the token files of all rows; returns where they are."""
        prepare = Preparer(self._config, self._reader, self._workdir)
        for row in self._rows:
            say(f"row {row.name} ({row.description})")
            self._require_same_text(row, prepare(row))
        experiment.store(self._workdir, self._stored)
        return f"Prepared: {self._workdir / 'tokens'}"

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report, returns the table.

        Raises:
          Diverged: no replica has a result.
          Interrupted: the run was asked to end.
        """
        path = self._workdir / experiment.RESULTS
        prepare = Preparer(self._config, self._reader, self._workdir)
        self._stored["groups"] = self._deal()
        done = outcomes.done(path)
        steps = self._config.training.epochs * self._config.training.steps_per_epoch
        self._stored["steps"] = {name: steps for name in self._stored["rows"]}
        rows, seeds = {row.name: row for row in self._rows}, set(self._config.seeds)
        groups = [
            (rows[names[0][0]], [seed for _, seed in names])
            for names in self._stored["groups"]
            if names[0][0] in rows and not seeds.isdisjoint(seed for _, seed in names)
        ]

        def made(row: Row, members: list[int]) -> Group:
            with processes.first_before_others():
                data = prepare(row)
            self._require_same_text(row, data)
            group = Group(self._config, self._workdir, row, members, data, self._identity)
            group.check()
            return group

        waiting = [
            (number, row, members)
            for number, (row, members) in enumerate(groups, 1)
            if not {(row.name, seed) for seed in members} <= done
        ]
        # All rows are tried before the first one, which is made below, binds the workdir.
        others = {row.name: (row, members) for _, row, members in waiting}
        for row, members in list(others.values())[1:]:
            made(row, members)
        if not waiting:
            experiment.store(self._workdir, self._stored)
        for number, row, members in waiting:
            listed = ", ".join(map(str, members))
            say(f"{number} of {len(groups)}: row {row.name} ({row.description}), seeds {listed}")
            group = made(row, members)
            experiment.store(self._workdir, self._stored)
            with Interruption() as interruption:  # what is prepared is kept, whenever it ends
                try:
                    with devices.memory_explained(len(members), LESS_MEMORY):
                        group.run(self._metrics, interruption)
                except Diverged as error:
                    say(str(error))
                processes.by_first(lambda: report.write(self._workdir))
                if interruption.was_asked() and number < len(groups):
                    raise Interrupted(
                        f"interrupted after {number} of {len(groups)}; the same command goes on"
                    )
        table = processes.by_first(lambda: report.write(self._workdir))
        if not any(result.metrics for result in results.read_results(path)):
            raise Diverged(
                "every replica diverged: lower training.learning_rate or raise "
                f"training.warmup_steps; their last good parameters are in {self._workdir}"
            )
        return table


def check(config: ml_collections.ConfigDict) -> None:
    """Raises ValueError for a field that means nothing, before anything is read."""
    fields.check(config)
    batches = config.batches
    if not 2 <= batches.length <= config.models.positions:
        raise ValueError(
            f"batches.length={batches.length}: choose 2 to models.positions="
            f"{config.models.positions}, or more positions"
        )
    if config.evaluators.layers:
        require_layers(config.evaluators.layers, config.models.layers)


def rows(config: ml_collections.ConfigDict) -> list[Row]:
    """The rows that the config asks for.

    Raises:
      ValueError: an unknown row or modification, or something named twice.
    """

    def read(name: str, description: str) -> Row:
        return parse(name, description, config.corpora.languages)

    return config_files.chosen_rows(config, read)
