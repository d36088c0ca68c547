"""Runs the groups of replicas of one experiment."""

from pathlib import Path

import ml_collections

from xling_jax import experiment
from xling_jax.corpora import text as corpora
from xling_jax.fake_english.data import Data, read_texts
from xling_jax.fake_english.group import Group
from xling_jax.fake_english.neighbours import Neighbours
from xling_jax.fake_english.programs import Programs
from xling_jax.fake_english.replicas import cells, deal
from xling_jax.reports import page, results, tables
from xling_jax.training.loop import Diverged, Interrupted, Interruption
from xling_jax.training.metrics import MetricsFile, say

POSITIVE = (
    "batches.sentences",
    "batches.max_length",
    "models.layers",
    "models.hidden",
    "models.heads",
    "models.intermediate",
    "training.epochs",
    "training.steps_per_call",
    "vocabulary.size",
)
NOT_NEGATIVE = (
    "corpora.dev_sentences",
    "corpora.train_sentences",
    "devices.cpu",
    "devices.side_by_side",
    "training.save_every",
    "training.warmup_steps",
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
        experiment.require_not_negative(config, *NOT_NEGATIVE)
        wanted = cells(config)
        experiment.require_writable(workdir)
        train, dev = read_texts(config)
        description = experiment.describe(
            config,
            corpora.manifest([train, dev]),
            {cell.row: cell.description for cell in wanted},
        )
        stored = experiment.stored(workdir, description)
        data = Data.prepare(config, train, dev, workdir / "vocabulary")
        vocabulary = {
            "size": data.vocabulary.size,
            "languages": list(data.vocabulary.languages),
            "sha256": data.vocabulary.pieces.sha256,
        }
        experiment.require_same_vocabulary(stored, vocabulary)
        neighbours = Neighbours.prepare(config, data, wanted, workdir / "vocabulary")
        found = neighbours.described()
        experiment.require_same_neighbours(stored, found)
        programs = Programs(config, data, neighbours)
        groups = stored["groups"] if stored else deal(wanted, programs.kind, programs.side_by_side)
        by_name = {(cell.row, cell.seed): cell for cell in wanted}
        self._groups = [
            Group(config, workdir, data, programs, [by_name[r, seed] for r, seed in names], number)
            for number, names in enumerate(groups)
        ]
        if not stored:
            more = {"vocabulary": vocabulary, "neighbours": found, "groups": groups}
            experiment.store(workdir, {**description, **more})
        self._metrics = MetricsFile(workdir / "metrics.jsonl")
        for name, text, store in [
            ("train", train, data.texts.train),
            ("dev", dev, data.texts.dev),
        ]:
            say(
                f"{name} text: {text.source}, {len(text.sentences):,} sentences, "
                f"{store.lengths.mean():.1f} places each, {store.truncated // 2} cut"
            )

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report, returns the table.

        Raises:
          Diverged: no replica has a result.
          Interrupted: the run was asked to end.
        """
        path = self._workdir / "results.json"
        with Interruption() as interruption:
            for number, group in enumerate(self._groups):
                done = {(result.row, result.seed) for result in results.read_results(path)}
                if {(cell.row, cell.seed) for cell in group.members} <= done:
                    continue
                names = ", ".join(
                    f"row {cell.row} ({cell.description}) seed {cell.seed}"
                    for cell in group.members
                )
                say(f"group {number + 1} of {len(self._groups)}: {names}")
                try:
                    group.run(self._metrics, interruption)
                except Diverged as error:
                    say(str(error))
                if group is not self._groups[-1]:
                    page.write(self._workdir)
                if interruption.is_noted and number + 1 < len(self._groups):
                    raise Interrupted(
                        f"interrupted after group {number + 1}; the same command goes on from there"
                    )
        page.write(self._workdir)
        if not any(result.metrics for result in results.read_results(path)):
            raise Diverged(
                "every replica diverged: lower training.learning_rate or raise "
                f"training.warmup_steps; their last good parameters are in {self._workdir}"
            )
        return tables.terminal(self._workdir)
