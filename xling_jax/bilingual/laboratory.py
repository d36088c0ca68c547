"""Runs the rows and seeds of one experiment on several languages."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import ml_collections

from xling_jax import devices, experiment
from xling_jax.bilingual.data import Preparer
from xling_jax.bilingual.group import Group
from xling_jax.bilingual.rows import Row, parse
from xling_jax.bilingual.texts import Reader
from xling_jax.reports import bilingual, results
from xling_jax.training.loop import Diverged, Interrupted, Interruption
from xling_jax.training.metrics import MetricsFile, say

POSITIVE = (
    "batches.length",
    "batches.parts",
    "batches.sequences",
    "corpora.processes",
    "corpora.test_sentences",
    "models.heads",
    "models.hidden",
    "models.intermediate",
    "models.layers",
    "training.epochs",
    "training.steps_per_call",
    "training.steps_per_epoch",
    "vocabulary.joint_size",
    "vocabulary.own_size",
    "vocabulary.sentences",
)
NOT_NEGATIVE = (
    "batches.alpha",
    "batches.resident_tokens",
    "corpora.dev_sentences",
    "corpora.train_sentences",
    "devices.cpu",
    "devices.side_by_side",
    "training.save_every",
    "training.warmup_steps",
)


class Laboratory:
    """Runs the rows and seeds of one experiment, and stores what comes out."""

    def __init__(self, config: ml_collections.ConfigDict, workdir: Path):
        """Reads what describes the texts, and opens the workdir or refuses it.

        Raises:
          ValueError, FileNotFoundError: the config or a text cannot be used, or the workdir holds
            another experiment.
        """
        experiment.require_positive(config, *POSITIVE)
        experiment.require_not_negative(config, *NOT_NEGATIVE)
        self._config, self._workdir, self._rows = config, workdir, rows(config)
        if config.batches.length > config.models.positions:
            raise ValueError(
                f"batches.length={config.batches.length}: the model has "
                f"models.positions={config.models.positions}; raise them or shorten the sequences"
            )
        experiment.require_writable(workdir)
        self._reader = Reader(config)
        description = experiment.describe(
            config,
            self._reader.manifest(self._rows),
            {row.name: row.description for row in self._rows},
        )
        stored = experiment.stored(workdir, description)
        self._groups = (stored or {}).get("groups") or self._deal(config.seeds)
        if not stored:
            experiment.store(workdir, {**description, "groups": self._groups})
        self._metrics = MetricsFile(workdir / "metrics.jsonl")

    def _deal(self, seeds: Sequence[int]) -> list[list[int]]:
        """The seeds that are trained side by side."""
        left, groups = list(seeds), []
        while left:
            told = self._config.devices.side_by_side
            taken = min(len(left), told) if told else devices.side_by_side(len(left), len(left))
            groups.append(left[:taken])
            left = left[taken:]
        return groups

    def prepare(self) -> str:
        """Makes the vocabularies and the token files of all rows; returns where they are."""
        prepare = Preparer(self._config, self._reader, self._workdir)
        for row in self._rows:
            say(f"row {row.name} ({row.description})")
            prepare(row, self._groups[0][0])
        return f"Prepared: {self._workdir / 'tokens'}"

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report, returns the table.

        Raises:
          Diverged: no replica has a result.
          Interrupted: the run was asked to end.
        """
        path = self._workdir / "results.json"
        prepare = Preparer(self._config, self._reader, self._workdir)
        pairs = list(itertools.product(self._rows, self._groups))
        with Interruption() as interruption:
            for number, (row, seeds) in enumerate(pairs, 1):
                done = {(result.row, result.seed) for result in results.read_results(path)}
                if {(row.name, seed) for seed in seeds} <= done:
                    continue
                listed = ", ".join(map(str, seeds))
                say(f"{number} of {len(pairs)}: row {row.name} ({row.description}), seeds {listed}")
                data = prepare(row, seeds[0])
                try:
                    Group(self._config, self._workdir, row, seeds, data).run(
                        self._metrics, interruption
                    )
                except Diverged as error:
                    say(str(error))
                bilingual.write(self._workdir)
                if interruption.is_noted and number < len(pairs):
                    raise Interrupted(
                        f"interrupted after {number} of {len(pairs)}; the same command goes on"
                    )
        table = bilingual.write(self._workdir)
        if not any(result.metrics for result in results.read_results(path)):
            raise Diverged(
                "every replica diverged: lower training.learning_rate or raise "
                f"training.warmup_steps; their last good parameters are in {self._workdir}"
            )
        return table


def rows(config: ml_collections.ConfigDict) -> list[Row]:
    """The rows that the config asks for: names of `rows` or `sets` joined by +, or a description.

    Raises:
      ValueError: an unknown row or modification, a row named twice, or seeds that are none.
    """
    if not config.seeds or any(not 0 <= seed < 2**32 for seed in config.seeds):
        raise ValueError(f"seeds={tuple(config.seeds)}: choose numbers from 0 to 2^32 - 1")
    named = itertools.chain(*(config.sets.get(name, (name,)) for name in config.row.split("+")))
    found = []
    for name in named:
        try:
            found.append(parse(name, config.rows.get(name, name), config.corpora.languages))
        except ValueError as error:
            raise ValueError(
                f"{error}; or a row: {', '.join(config.rows)}; or a set of rows: "
                f"{', '.join(config.sets)}"
            ) from error
    names = [row.name for row in found]
    if len(set(names)) < len(names) or len(set(config.seeds)) < len(config.seeds):
        raise ValueError(f"row={config.row}, seeds={tuple(config.seeds)}: something is named twice")
    return found
