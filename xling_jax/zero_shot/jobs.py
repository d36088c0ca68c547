"""What is fine-tuned: each row of each pair on each task."""

import dataclasses
import itertools
import re
from pathlib import Path

import ml_collections

from xling_jax import experiment, fields
from xling_jax.bilingual.export import folder_of

ALONE = "alone"  # the models that were trained on a language each


@dataclasses.dataclass(frozen=True)
class Row:
    """What a row's description says.

    name, description: of the row. models: the row of pretraining, or ALONE. base: the number of
    layers that are kept, frozen, with new ones on them (W&C §5.1.2); None: the model is fine-tuned
    as it is. is_mapped: whether other languages' states are mapped to those of the first.
    """

    name: str
    description: str
    models: str
    base: int | None = None
    is_mapped: bool = False


def parse(name: str, description: str) -> Row:
    """Reads a description: a row of pretraining, and `first[N]` and `map` joined to it by `;`.

    Raises:
      ValueError: it cannot be read, or a map without layers to map.
    """
    models, *rest = (part.strip() for part in description.split(";"))
    base, is_mapped = None, False
    if sum(part.startswith("first") for part in rest) > 1 or len(set(rest)) < len(rest):
        raise ValueError(f"{description!r}: a part is there twice")
    for part in rest:
        if match := re.fullmatch(r"first\[(\d+)\]", part):
            base = int(match[1])
        elif part == "map":
            is_mapped = True
        else:
            raise ValueError(
                f"unknown part {part!r}: write ROW;first[N] or ROW;first[N];map, with a row as its "
                "folder below the run's models/ is called, less `row`"
            )
    if not models or "/" in models:
        raise ValueError(f"{description!r}: name a row of the pretraining")
    if is_mapped and base is None:
        raise ValueError(f"{description!r}: say which layer's states are mapped, with first[N]")
    if models == ALONE and base is None:
        raise ValueError(f"{description!r}: models of one language each share nothing to transfer")
    return Row(name, ";".join([models, *rest]), models, base, is_mapped)


@dataclasses.dataclass(frozen=True)
class Job:
    """A pretrained row that learns a task.

    name: `PAIR/ROW/TASK`. pair: languages joined by `-`. row: see `Row`. task: its name. run: the
    workdir of the pretraining.
    """

    pair: str
    row: Row
    task: str
    run: str

    @property
    def name(self) -> str:
        """For results and messages."""
        return f"{self.pair}/{self.row.name}/{self.task}"

    @property
    def languages(self) -> tuple[str, ...]:
        """The first is fine-tuned on."""
        return tuple(self.pair.split("-"))

    def folders(self, seed: int) -> dict[str, Path]:
        """The folder of each language's model."""
        run, models = Path(self.run).expanduser(), self.row.models
        return {
            name: folder_of(run, name if models == ALONE else models, seed) / name
            for name in self.languages
        }


@dataclasses.dataclass(frozen=True)
class Choice:
    """A setting of a search: examples of a batch, learning rates of the encoder and the head."""

    batch: int
    encoder: float
    head: float

    @property
    def name(self) -> str:
        """For results and messages."""
        return f"{self.batch}/{self.encoder:g}/{self.head:g}"


def jobs(config: ml_collections.ConfigDict) -> list[Job]:
    """The jobs of an experiment, tasks of a row together.

    Raises:
      ValueError: a field that means nothing.
    """
    check(config)
    rows = experiment.chosen_rows(config, parse)
    for row in rows:
        if row.base is not None and config.models.train_own:
            raise ValueError(
                f"row={row.name}: its first layers stay as they are; set models.train_own=False, "
                "which is for models that are trained as a whole"
            )
    return [
        Job(pair, row, task, run)
        for (pair, run), row, task in itertools.product(config.runs.items(), rows, config.tasks)
    ]


def choices(config: ml_collections.ConfigDict, task: str) -> list[Choice]:
    """The settings that are tried for a task, those of one batch size together."""
    section = config.settings[task]
    return [Choice(batch, *rates) for batch in section.batches for rates in section.rates]


def check(config: ml_collections.ConfigDict) -> None:
    """Raises ValueError for a field that means nothing, before anything is read."""
    fields.check(config)
    for pair in config.runs:
        if len(pair.split("-")) < 2:
            raise ValueError(f"pair={pair}: name two languages or more, joined by -")
