"""Compares the pairs of models of one experiment."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import ml_collections

from xling_jax import errors, processes
from xling_jax.experiments.similarity import measures, pairs, report
from xling_jax.experiments.similarity.pairs import ModelPair
from xling_jax.experiments.similarity.texts import TextReader
from xling_jax.models import folders as model_folders
from xling_jax.runs import config_files, fields
from xling_jax.runs.run import Planned, Run
from xling_jax.training.interruption import Interruption
from xling_jax.training.metrics import MetricsFile
from xling_jax.training.step import RUNNING


class Experiment:
    """Compares pairs of models, and stores what comes out."""

    def __init__(self, config: ml_collections.ConfigDict, workdir: Path):
        """Reads what describes texts and models, and opens the workdir or refuses it.

        Raises:
          ValueError, FileNotFoundError: the config, a text or a model cannot be used, or the
            workdir holds another experiment.
        """
        fields.check(config)
        if processes.are_several():
            raise ValueError("--processes: one process compares models; start it without")
        self._config, models = config, config.models
        parse = partial(pairs.parse, models=models, languages=config.languages)
        self._pairs = config_files.chosen_rows(config, parse)
        self._folders = pairs.folders(models, config.seeds)
        self._run = Run(workdir, report.write)
        self._texts = TextReader(config)
        described = {pair.name: pair.description for pair in self._pairs}
        self._run.open(config, self._texts.manifest() + self._manifest(), described)

    def _manifest(self) -> list[dict[str, Any]]:
        found = []
        for name in dict.fromkeys(side.model for pair in self._pairs for side in pair.sides):
            with errors.in_field(f"models.{name}"):
                for path in dict.fromkeys(own[name] for own in self._folders.values()):
                    found += model_folders.manifest(Path(path).expanduser())
        return found

    def _comparison(self, pair: ModelPair, seed: int) -> "Comparison":
        """A pair with its models, which have the layers that are compared, and its texts."""
        languages = self._config.languages[0], pair.language
        models = [
            pairs.load(side, place, self._folders[seed], language, seed)
            for place, (side, language) in enumerate(zip(pair.sides, languages, strict=True))
        ]
        measures.layers_of(models, self._config)
        given = models, self._texts.read(pair.language), languages[0] != languages[1], self._config
        return Comparison(self._run, pair, seed, partial(measures.compare, *given))

    def run(self) -> str:
        """Compares what is missing, writes the report, returns the table; errors as those of
        `Run.train`, and ValueError where a model or a text cannot be used."""
        run = self._run
        of = {(pair.name, seed): pair for seed in self._config.seeds for pair in self._pairs}
        run.deal(list(of), lambda member: member, lambda *_: run.workdir / "checkpoints", 1)
        planned = [
            Planned(
                f"{pair.name} ({pair.description}), seed {seed}",
                [(pair.name, seed)],
                partial(self._comparison, pair, seed),
            )
            for (_, seed), pair in of.items()
        ]
        for _, each in run.waiting(planned)[1:]:  # all are tried before one binds the workdir
            each.make()
        return run.train(planned)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A pair of models, and what compares them."""

    of: Run
    pair: ModelPair
    seed: int
    measured: partial

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        """Compares the models, and stores what is found."""
        replica = self.of.replica(self.pair.name, self.pair.description, self.seed, None)
        self.of.store_result(replica, 0, RUNNING, self.measured())
