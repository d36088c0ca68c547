"""Compares the pairs of models of one experiment."""

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from xling_jax import processes
from xling_jax.experiments.similarity import measures, pairs, report
from xling_jax.experiments.similarity.pairs import ModelPair
from xling_jax.experiments.similarity.texts import TextReader
from xling_jax.runs import config_files, encoders, fields
from xling_jax.runs.run import Measurement, Run

COMPARED = "compared"  # in config.json: rows and seeds with the models that they compared


class Experiment:
    """Compares pairs of models, and stores what comes out."""

    def __init__(self, config: ConfigDict, workdir: Path):
        """Makes the manifest of texts and models, and opens the workdir; ValueError or
        FileNotFoundError if the workdir, the config, a text or a model cannot be used."""
        fields.check(config)
        if processes.are_several():
            raise ValueError("--processes: one process compares models; start it without")
        self._config, models = config, config.models
        parse = partial(pairs.parse, models=models, languages=config.languages)
        self._pairs = config_files.chosen_rows(config, parse)
        self._folders = encoders.folders(models, config.seeds)
        self._run = Run(workdir, report.write)
        self._texts = TextReader(config)
        described = {pair.name: pair.description for pair in self._pairs}
        self._run.open(config, self._texts.manifest() + self._manifest(), described)

    def _manifest(self) -> list[dict[str, Any]]:
        found = []
        sides = {side.model: side for pair in self._pairs for side in pair.sides}
        for name, side in sides.items():
            paths = dict.fromkeys(own[name] for own in self._folders.values())
            found += side.manifest(Path(path).expanduser() for path in paths)
        return found

    def _comparison(self, pair: ModelPair, seed: int) -> Callable[[], Mapping[str, float]]:
        """A function that compares a pair, with its models and texts read, and its layers
        checked."""
        languages = self._config.languages[0], pair.language
        models = [
            pairs.load(side, place, self._folders[seed], language, seed)
            for place, (side, language) in enumerate(zip(pair.sides, languages, strict=True))
        ]
        measures.layers_of(models, self._config)
        given = models, self._texts.read(pair.language), languages[0] != languages[1], self._config
        return partial(measures.compare, *given)

    def _sides(self, pair: ModelPair, seed: int) -> list[list[str]]:
        """What is compared: each side's folder, language, and the seed of random weights."""
        languages = self._config.languages[0], pair.language
        return sorted(
            [self._folders[seed][side.model], language, str(seed) if side.is_random else ""]
            for side, language in zip(pair.sides, languages, strict=True)
        )

    def _wanted(self) -> list[Measurement]:
        """Each comparison once: two seeds that are each other's neighbours make one pair, not two.

        A result stays that of the models it compared, even if a seed has another neighbour now.
        Results of older versions do not say what they compared; it is taken to be what would be
        compared now.
        """
        done, stored = self._run.done(), self._run.stored.get(COMPARED, [])
        known = {(row, seed): sides for row, seed, sides in stored if (row, seed) in done}
        seeds = {(row, str(sides)): seed for (row, seed), sides in known.items()}
        found: list[Measurement] = []
        for seed, pair in itertools.product(sorted(self._config.seeds), self._pairs):
            member = pair.name, seed
            sides = known.setdefault(member, self._sides(pair, seed))
            if seeds.setdefault((pair.name, str(sides)), seed) == seed:
                make = partial(self._comparison, pair, seed)
                found.append(Measurement(pair.name, pair.description, seed, make))
        self._run.stored[COMPARED] = [[*member, sides] for member, sides in known.items()]
        return found

    def run(self) -> str:
        """Compares what is missing, writes the report and returns its tables; raises what
        `Run.measure` raises, and ValueError if a model or a text cannot be used."""
        return self._run.measure(self._wanted())
