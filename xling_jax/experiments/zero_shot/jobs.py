"""What is fine-tuned: each row of each pair on each task, with each setting of a search."""

import dataclasses
import itertools
from pathlib import Path

import jax
from ml_collections import ConfigDict

from xling_jax import descriptions, devices, errors, numerals
from xling_jax.models.folders import of_language
from xling_jax.runs import config_files, fields
from xling_jax.runs.store import models_of

ALONE = "alone"  # models that were each trained on one language
LAYERS = {  # what a row does with the layers of its models
    "first": "first[N]: the first N stay as they are, under new ones",
    "map": "other languages' states after them are mapped to the first language's",
}


@dataclasses.dataclass(frozen=True)
class Row:
    """What a row's description says.

    Attributes:
      models: the row of pretraining, or ALONE.
      base: the number of layers that are kept, frozen, with new ones on them (W&C §5.1.2); None:
        the model is fine-tuned as it is.
      is_mapped: whether other languages' states are mapped to those of the first.
    """

    name: str
    description: str
    models: str
    base: int | None = None
    is_mapped: bool = False


def parse(name: str, description: str) -> Row:
    """Reads a description: a row of pretraining, and `first[N]` and `map` joined to it by `;`;
    ValueError if it means nothing."""
    models, *rest = (part.strip() for part in description.split(";"))
    if not models or "/" in models or models.partition("[")[0] in LAYERS:
        raise ValueError(
            "begin with a row of the pretraining: ROW of its folder models/rowROW_seedSEED in the "
            "run"
        )
    found = descriptions.parts(";".join(rest), LAYERS, ("first",)) if rest else []
    descriptions.only_once(found, "first")
    base = None
    for part in found:
        if part.name == "first":
            with errors.in_field(repr(part.text)):
                base = numerals.whole(part.argument)
    is_mapped = any(part.name == "map" for part in found)
    if is_mapped and base is None:
        raise ValueError("map: say which layer's states are mapped, with first[N]")
    if models == ALONE and base is None:
        raise ValueError(f"{ALONE}: models of one language each share nothing to transfer")
    return Row(name, ";".join([models, *rest]), models, base, is_mapped)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A setting of a search: the batch size, the learning rates of the encoder and the head."""

    batch: int
    encoder: float
    head: float

    @property
    def name(self) -> str:
        return f"{self.batch}/{self.encoder:g}/{self.head:g}"


@dataclasses.dataclass(frozen=True)
class Job:
    """A pretrained row that learns a task.

    Attributes:
      pair: languages joined by `-`.
      run: the workdir of the pretraining.
      given: the folder of models that do not come from it, with {language} and {seed}.
    """

    pair: str
    row: Row
    task: str
    run: str
    given: str = ""

    @property
    def name(self) -> str:
        return f"{self.pair}/{self.row.name}/{self.task}"

    def setting(self, choice: Choice) -> str:
        return f"{self.name}/{choice.name}"

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the pair; the first is fine-tuned on."""
        return tuple(self.pair.split("-"))

    @property
    def field(self) -> str:
        """The field of the config that names the models."""
        return f"pretrained.{self.row.models}" if self.given else f"runs.{self.pair}"

    def folders(self, seed: int) -> dict[str, Path]:
        run, models = Path(self.run).expanduser(), self.row.models
        if self.given:
            folder = self.given.replace("{seed}", str(seed))
            return {name: of_language(folder, name) for name in self.languages}
        return {
            name: models_of(run, name if models == ALONE else models, seed) / name
            for name in self.languages
        }


def jobs(config: ConfigDict) -> list[Job]:
    """The jobs of an experiment, tasks of a row together; ValueError naming a field that means
    nothing, before anything is read."""
    fields.check(config)
    for pair in config.runs:
        if len(pair.split("-")) < 2:
            raise ValueError(f"pair={pair}: name two languages or more, joined by -")
    for task in config.tasks:
        if task not in config.settings:
            raise ValueError(
                f"tasks: settings.{task} is missing from the config: ask for the task by an "
                f"option, as configs/zero_shot.py:task=all+{task}, or leave it out"
            )
        if config.models.train_own and not config.settings[task].embeddings:
            raise ValueError(
                "models.train_own=True trains the first language's embeddings, and "
                f"settings.{task}.embeddings=False none: set settings.{task}.embeddings=True, or "
                "models.train_own=False"
            )
    rows = config_files.chosen_rows(config, parse)
    for row in rows:
        if row.base is not None and config.models.train_own:
            raise ValueError(
                f"row={row.name}: its first layers stay as they are, and models.train_own=True is "
                "for models that are trained as a whole: set models.train_own=False"
            )
    given = config.pretrained
    if lost := [row for row in rows if given and row.models not in given]:
        raise ValueError(
            f"row={lost[0].name}: there is no model {lost[0].models!r} among {', '.join(given)}: "
            "name its folder in models= too, or leave models= out for the rows of a run"
        )
    return [
        Job(pair, row, task, run, given.get(row.models, ""))
        for (pair, run), row, task in itertools.product(config.runs.items(), rows, config.tasks)
    ]


def choices(config: ConfigDict, task: str) -> list[Choice]:
    """The settings that are tried for a task, those of one batch size together. ValueError if two
    have the same name, which has six digits of a rate."""
    section = config.settings[task]
    found = [Choice(batch, *rates) for batch in section.batches for rates in section.rates]
    if len(names := [each.name for each in found]) > len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"settings.{task}.batches and .rates: {twice} is there twice (batch/encoder/head, each "
            "rate to six digits): give it once"
        )
    return found


def require_sharing(config: ConfigDict) -> None:
    """ValueError if a batch of a task cannot be shared by the processes, see `sharing_of`, even if
    as many of its settings train side by side as may."""
    of = config.devices
    for task in config.tasks:
        section = config.settings[task]
        replicas = min(len(section.rates), of.side_by_side or len(section.rates))
        for batch in section.batches:
            sharing_of(task, batch, replicas, of.replica_axis_at_most)


def sharing_of(task: str, batch: int, replicas: int, at_most: int) -> list[jax.Device]:
    """The most devices, equally many of each process, that can share a batch of each replica
    evenly; for `at_most` see `devices.replica_axis_at_most`. ValueError if not even one of each
    process can."""
    own: dict[int, list[jax.Device]] = {}
    for device in jax.devices():
        own.setdefault(device.process_index, []).append(device)
    for each in range(min(map(len, own.values())), 0, -1):
        number = each * len(own)
        if batch % (number // devices.replica_axis(replicas, number, at_most)) == 0:
            return [device for some in own.values() for device in some[:each]]
    raise ValueError(
        f"settings.{task}.batches: {len(own)} processes cannot share batches of {batch}; choose "
        f"{-(-batch // len(own)) * len(own)}, or another number of processes"
    )
