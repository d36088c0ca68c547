"""Runs the groups of replicas of one experiment."""

from pathlib import Path

import ml_collections

from xling_jax import devices, experiment
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import text as corpora
from xling_jax.fake_english.data import Data, read_texts
from xling_jax.fake_english.group import Group
from xling_jax.fake_english.replicas import cells, deal
from xling_jax.reports import page, results, tables
from xling_jax.training.loop import Diverged
from xling_jax.training.metrics import MetricsFile, say

POSITIVE = (
    "batches.sentences",
    "batches.max_length",
    "corpora.dev_sentences",
    "models.layers",
    "models.hidden",
    "models.heads",
    "models.intermediate",
    "training.epochs",
    "training.steps_per_call",
    "vocabulary.size",
)


class Laboratory:
    """Runs the groups of replicas of one experiment, and stores what comes out."""

    def __init__(self, config: ml_collections.ConfigDict, workdir: Path):
        """Reads the texts, and opens the workdir or refuses it; stores nothing unless all is well.

        Raises:
          ValueError, FileNotFoundError: the config or a text cannot be used, or the workdir holds
            another experiment.
        """
        self._workdir = workdir
        experiment.require_positive(config, *POSITIVE)
        wanted = cells(config)
        experiment.require_writable(workdir)
        train, dev = read_texts(config)
        self._data = Data.prepare(config, train, dev, workdir / "vocabulary")
        side_by_side = config.devices.side_by_side or devices.side_by_side()
        description = experiment.describe(
            config,
            corpora.manifest([train, dev]),
            rows={cell.row: cell.description for cell in wanted},
            vocabulary={
                "size": self._data.vocabulary.size,
                "languages": list(self._data.vocabulary.languages),
                "sha256": self._data.vocabulary.pieces.sha256,
            },
            groups=deal(wanted, side_by_side),
        )
        stored = experiment.stored(workdir, description)
        by_name = {(cell.row, cell.seed): cell for cell in wanted}
        self._groups = [
            Group(config, workdir, self._data, [by_name[row, seed] for row, seed in names], number)
            for number, names in enumerate((stored or description)["groups"])
        ]
        if not stored:
            experiment.store(workdir, description)
        self._metrics = MetricsFile(workdir / "metrics.jsonl")
        for name, one in [("train", train), ("dev", dev)]:
            store: TokenStore = getattr(self._data.texts, name)
            say(
                f"{name} text: {one.source}, {len(one.sentences):,} sentences, "
                f"{store.lengths.mean():.1f} places each, {store.truncated // 2} cut"
            )

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report, returns the table.

        Raises:
          Diverged: no replica has a result.
          Interrupted: the run was asked to end.
        """
        path = self._workdir / "results.json"
        problem = None
        for number, group in enumerate(self._groups):
            done = {(result.row, result.seed) for result in results.read_results(path)}
            if {(cell.row, cell.seed) for cell in group.members} <= done:
                continue
            names = ", ".join(
                f"row {cell.row} ({cell.description}) seed {cell.seed}" for cell in group.members
            )
            say(f"group {number + 1} of {len(self._groups)}: {names}")
            try:
                group.run(self._metrics)
            except Diverged as error:
                problem = error
                say(str(error))
            page.write(self._workdir)
        if problem and not any(result.metrics for result in results.read_results(path)):
            raise problem
        return tables.terminal(self._workdir)
