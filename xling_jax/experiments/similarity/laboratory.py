"""Compares the pairs of models of one experiment."""

from pathlib import Path
from typing import Any

import ml_collections

from xling_jax import processes
from xling_jax.experiments.similarity import measures, pairs, report
from xling_jax.experiments.similarity.pairs import ModelPair
from xling_jax.experiments.similarity.texts import TextReader, Texts
from xling_jax.models import folders as model_folders
from xling_jax.models.text_model import TextModel
from xling_jax.runs import config_files, experiment, fields, outcomes, results
from xling_jax.training.interruption import Interrupted, Interruption
from xling_jax.training.metrics import say


class Laboratory:
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
        self._config, self._workdir = config, workdir

        def parse(name: str, description: str) -> ModelPair:
            return pairs.parse(name, description, config.models, config.languages)

        self._pairs = config_files.chosen_rows(config, parse)
        self._folders = pairs.folders(config.models, config.seeds)
        self._lock = experiment.take(workdir)
        self._texts = TextReader(config)
        description = experiment.describe(
            config,
            self._texts.manifest() + self._manifest(),
            {pair.name: pair.description for pair in self._pairs},
        )
        self._stored = experiment.stored(workdir, description) or description
        members = [[[pair.name, seed]] for pair in self._pairs for seed in config.seeds]
        groups = self._stored.get("groups", [])
        self._stored["groups"] = groups + [group for group in members if group not in groups]

    def _manifest(self) -> list[dict[str, Any]]:
        """The files of the pairs' models, with their hashes."""
        found = []
        for name in dict.fromkeys(side.model for pair in self._pairs for side in pair.sides):
            with experiment.named(f"models.{name}"):
                for path in dict.fromkeys(own[name] for own in self._folders.values()):
                    found += model_folders.manifest(Path(path).expanduser())
        return found

    def _read(self, pair: ModelPair, seed: int) -> tuple[list[TextModel], Texts]:
        """The models of a pair, with the layers that are compared, and its texts."""
        languages = self._config.languages[0], pair.language
        models = [
            pairs.load(side, place, self._folders[seed], language, seed)
            for place, (side, language) in enumerate(zip(pair.sides, languages, strict=True))
        ]
        measures.layers_of(models, self._config)
        return models, self._texts.read(pair.language)

    def run(self) -> str:
        """Compares what is missing, writes the report, returns the table.

        Raises:
          ValueError: a model or a text cannot be used.
          Interrupted: the run was asked to end.
        """
        path = self._workdir / experiment.RESULTS
        done = outcomes.done(path)
        planned = [(pair, seed) for seed in self._config.seeds for pair in self._pairs]
        waiting = [
            (n, *each) for n, each in enumerate(planned, 1) if (each[0].name, each[1]) not in done
        ]
        for _, pair, seed in waiting[1:]:  # all are tried before the first one binds the workdir
            self._read(pair, seed)
        if not waiting:
            experiment.store(self._workdir, self._stored)
        with Interruption() as interruption:
            for number, pair, seed in waiting:
                if interruption.was_asked():
                    raise Interrupted(
                        f"interrupted before pair {number} of {len(planned)}; the same command "
                        "goes on from there"
                    )
                say(f"{number} of {len(planned)}: {pair.name} ({pair.description}), seed {seed}")
                is_translated = pair.language != self._config.languages[0]
                models, texts = self._read(pair, seed)
                experiment.store(self._workdir, self._stored)
                found = measures.compare(models, texts, is_translated, self._config)
                results.add_result(
                    path,
                    results.Replica(
                        experiment=self._config.name,
                        row=pair.name,
                        description=pair.description,
                        seed=seed,
                        step=0,
                        metrics=found,
                        fingerprint=self._stored["fingerprint"],
                    ),
                )
                if number < len(planned):
                    report.write(self._workdir)
        return report.write(self._workdir)
