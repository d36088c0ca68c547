"""Evaluates the encoders of one experiment."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from ml_collections import ConfigDict

from xling_jax import processes
from xling_jax.evaluators import language_pairs
from xling_jax.experiments.evaluate import report, texts
from xling_jax.models import folders as model_folders
from xling_jax.models.heads import FIRST_UNTRAINED_SEED
from xling_jax.models.text_model import TextModel
from xling_jax.runs import config_files, encoders, fields
from xling_jax.runs.encoders import Encoder
from xling_jax.runs.run import Measurement, Run
from xling_jax.training.metrics import say


@dataclasses.dataclass(frozen=True)
class Row:
    """A model of the config, or random weights of its size."""

    name: str
    description: str
    encoder: Encoder


def parse(name: str, description: str, models: ConfigDict) -> Row:
    """Reads `MODEL` or `random[MODEL]`; ValueError for a model that there is not."""
    if (encoder := encoders.parse(description)) is None:
        raise ValueError(f"{description!r} is neither MODEL nor random[MODEL]")
    encoder.require(models)
    return Row(name, description, encoder)


def metrics(scores: pd.DataFrame) -> dict[str, float]:
    """The numbers by their names, as results have them: METRIC_LANGUAGES_LAYER_PART, and the ends
    of a whole metric's interval as parts `low` and `high`."""
    found: dict[str, float] = {}
    for line in scores.itertuples(index=False):
        name = "_".join(str(x) for x in (line.metric, line.languages, line.layer) if x != "")
        values = {line.part: line.value}
        if not line.part and line.low == line.low:  # no NaN
            values |= {"low": line.low, "high": line.high}
        found |= {f"{name}_{part}" if part else name: value for part, value in values.items()}
    return found


class Experiment:
    """Evaluates encoders, and stores what comes out."""

    def __init__(self, config: ConfigDict, workdir: Path):
        """Reads the texts, makes the manifest of the models, and opens the workdir.

        Raises:
          ValueError, FileNotFoundError: the config, a text or a model cannot be used, or the
            workdir holds another experiment.
        """
        fields.check(config)
        if processes.are_several():
            raise ValueError("--processes: one process evaluates models; start it without")
        self._config = config
        parsed = partial(parse, models=config.models)
        self._rows = config_files.chosen_rows(config, parsed)
        for encoder in (row.encoder for row in self._rows if not row.encoder.is_random):
            if len(config.seeds) > 1 and "{seed}" not in config.models[encoder.model]:
                raise ValueError(
                    f"seeds={tuple(config.seeds)}: models.{encoder.model} is the same for all: put "
                    "{seed} into its folder, or give one seed"
                )
        self._folders = encoders.folders(config.models, config.seeds)
        self._run = Run(workdir, report.write)
        self._texts = texts.read(config)
        described = {row.name: row.description for row in self._rows}
        if not self._run.open(config, self._texts.manifest + self._manifest(), described):
            self._require_what_measures_need()

    def _require_what_measures_need(self) -> None:
        """Raises ValueError for a measure that is asked for by name if no pair has what it
        needs."""
        names = set(self._config.measures)
        given = {"dictionaries": self._texts.dictionaries, "links": self._texts.links}
        asked = names if names != set(language_pairs.NAMES) else set()
        for name, field in language_pairs.NEEDED.items():
            if name in asked and not given.get(field, True):
                pair = "_".join(self._config.languages[:2])
                raise ValueError(
                    f"measures: {name} needs {field} of two languages: give a file, as with "
                    f"--config.{field}.{pair}=FILE, or leave it out"
                )

    def _folder(self, encoder: Encoder, seed: int, language: str) -> Path:
        return model_folders.of_language(self._folders[seed][encoder.model], language)

    def _manifest(self) -> list[dict[str, Any]]:
        found = []
        for encoder in {row.encoder.model: row.encoder for row in self._rows}.values():
            found += encoder.manifest(
                dict.fromkeys(
                    self._folder(encoder, seed, language)
                    for seed in self._config.seeds
                    for language in self._config.languages
                )
            )
        return found

    def run(self) -> str:
        """Evaluates what is missing, writes the report and returns its tables; raises what
        `Run.measure` raises, and ValueError if a model or a text cannot be used."""
        return self._run.measure(
            [
                Measurement(
                    row.name, row.description, seed, partial(partial, self._evaluate, row, seed)
                )
                for seed in self._config.seeds
                for row in self._rows
            ]
        )

    def _evaluate(self, row: Row, seed: int) -> dict[str, float]:
        config, given = self._config, self._texts

        def load(language: str) -> TextModel:
            folder = self._folder(row.encoder, seed, language)
            return row.encoder.load(folder, language, FIRST_UNTRAINED_SEED + seed)

        scores = language_pairs.evaluate(
            load,
            given.sentences,
            names=config.measures,
            layers=config.layers or None,
            dictionaries=given.dictionaries,
            links=given.links,
            masked_every=config.perplexity.masked_every,
            passes=config.perplexity.passes,
            say=say,
        )
        number = len(next(iter(given.sentences.values())))
        return metrics(scores) | {"retrieval_candidates": float(number)}
