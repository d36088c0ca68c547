"""Evaluates the encoders of one experiment."""

import dataclasses
import functools
import re
from pathlib import Path
from typing import Any

import ml_collections
import pandas as pd

from xling_jax import errors, processes
from xling_jax.evaluators import language_pairs
from xling_jax.experiments.evaluate import report, texts
from xling_jax.experiments.evaluate.texts import EvaluationTexts
from xling_jax.experiments.similarity.pairs import folders
from xling_jax.models import folders as model_folders
from xling_jax.models.text_model import TextModel
from xling_jax.runs import config_files, fields
from xling_jax.runs.run import Planned, Run
from xling_jax.training.interruption import Interruption
from xling_jax.training.metrics import MetricsFile, say
from xling_jax.training.step import RUNNING

_RANDOM = re.compile(r"random\[(.*)\]")
_SEED = 2**32  # seeds of training are below it, and a random encoder is not how a model began


@dataclasses.dataclass(frozen=True)
class Encoder:
    """A row: a model of the config, or random weights of its size."""

    name: str
    description: str
    model: str
    is_random: bool


def parse(name: str, description: str, models: ml_collections.ConfigDict) -> Encoder:
    """Reads `MODEL` or `random[MODEL]`; ValueError for a model that there is not."""
    random = _RANDOM.fullmatch(description)
    model = random[1] if random else description
    if model not in models:
        raise ValueError(f"there is no model {model!r} among {', '.join(models)}")
    return Encoder(name, description, model, random is not None)


def metrics(scores: pd.DataFrame) -> dict[str, float]:
    """The numbers by their names, as results have them: METRIC_LANGUAGES_LAYER_PART, and the ends
    of intervals as parts `low` and `high`."""
    found: dict[str, float] = {}
    for line in scores.itertuples(index=False):
        name = "_".join(str(x) for x in (line.metric, line.languages, line.layer) if x != "")
        values = {line.part: line.value}
        if line.low == line.low:  # no NaN
            values |= {"low": line.low, "high": line.high}
        found |= {f"{name}_{part}" if part else name: value for part, value in values.items()}
    return found


class Experiment:
    """Evaluates encoders, and stores what comes out."""

    def __init__(self, config: ml_collections.ConfigDict, workdir: Path):
        """Reads the texts and what describes the models, and opens the workdir or refuses it.

        Raises:
          ValueError, FileNotFoundError: the config, a text or a model cannot be used, or the
            workdir holds another experiment.
        """
        fields.check(config)
        if processes.are_several():
            raise ValueError("--processes: one process evaluates models; start it without")
        self._config = config
        self._encoders = config_files.chosen_rows(
            config, functools.partial(parse, models=config.models)
        )
        for encoder in self._encoders:
            if len(config.seeds) > 1 and not (
                encoder.is_random or "{seed}" in config.models[encoder.model]
            ):
                raise ValueError(
                    f"seeds={tuple(config.seeds)}: models.{encoder.model} is the same for all: put "
                    "{seed} into its folder, or give one seed"
                )
        self._folders = folders(config.models, config.seeds)
        self._run = Run(workdir, report.write)
        self._texts = texts.read(config)
        described = {encoder.name: encoder.description for encoder in self._encoders}
        self._run.open(config, self._texts.manifest + self._manifest(), described)

    def _folder(self, encoder: Encoder, seed: int, language: str) -> Path:
        path = self._folders[seed][encoder.model].replace("{language}", language)
        return Path(path).expanduser()

    def _manifest(self) -> list[dict[str, Any]]:
        """The files of all models, with their hashes."""
        found: dict[Path, list[dict[str, Any]]] = {}
        for encoder in self._encoders:
            for seed in self._config.seeds:
                for language in self._config.languages:
                    path = self._folder(encoder, seed, language)
                    if path not in found:
                        with errors.in_field(f"models.{encoder.model}"):
                            found[path] = model_folders.manifest(path)
        return [entry for own in found.values() for entry in own]

    def _load(self, encoder: Encoder, seed: int, language: str) -> TextModel:
        with errors.in_field(f"models.{encoder.model}"):
            model = model_folders.load(self._folder(encoder, seed, language), language)
        return model.randomized(_SEED + seed) if encoder.is_random else model

    def run(self) -> str:
        """Evaluates what is missing, writes the report, returns the table; errors as those of
        `Run.train`, and ValueError where a model or a text cannot be used."""
        run = self._run
        of = {(each.name, seed): each for seed in self._config.seeds for each in self._encoders}
        run.deal(list(of), lambda member: member, lambda *_: run.workdir / "checkpoints", 1)
        planned = [
            Planned(
                f"{each.name} ({each.description}), seed {seed}",
                [(each.name, seed)],
                functools.partial(self._evaluation, each, seed),
            )
            for (_, seed), each in of.items()
        ]
        return run.train(planned)

    def _evaluation(self, encoder: Encoder, seed: int) -> "Evaluation":
        load = functools.partial(self._load, encoder, seed)
        return Evaluation(self._config, self._run, encoder, seed, load, self._texts)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """An encoder and what it reads; `load` gives its model of a language."""

    config: ml_collections.ConfigDict
    of: Run
    encoder: Encoder
    seed: int
    load: functools.partial[TextModel]
    texts: EvaluationTexts

    def run(self, _: MetricsFile, __: Interruption) -> None:
        """Evaluates it, and stores what is found."""
        config, given = self.config, self.texts
        scores = language_pairs.evaluate(
            self.load,
            given.sentences,
            names=config.measures,
            layers=config.layers or None,
            dictionaries=given.dictionaries,
            links=given.links,
            masked_every=config.perplexity.masked_every,
            passes=config.perplexity.passes,
            say=say,
        )
        replica = self.of.replica(self.encoder.name, self.encoder.description, self.seed, None)
        self.of.store_result(replica, 0, RUNNING, metrics(scores))
