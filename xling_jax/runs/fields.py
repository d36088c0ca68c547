"""The experiments by name, and the fields of their configs.

Fields that experiments have in common are in `fields.txt` here, and those of one experiment in the
`fields.txt` of its package. `python -m xling_jax.runs.fields > docs/fields.md` writes the page of
the documentation.
"""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from xling_jax import schema
from xling_jax.evaluators import registry
from xling_jax.schema import Field, Section

# Each is a package below `xling_jax/experiments/`, and its config file has the same name.
EXPERIMENTS = ("fake_english", "bilingual", "similarity", "zero_shot", "real_xnli", "evaluate")

TABLES = schema.tables(Path(__file__).with_name("fields.txt"))


def measured(*of: str) -> Field:
    """The field for names of metrics of these kinds, see `evaluators.registry`."""
    known = schema.choice("a metric", *registry.names(*of))
    return schema.several("what is measured besides perplexity", known, apart=True)


def read(file: str, **known: Any) -> Section:
    """The fields in the `fields.txt` beside a module. It may refer to the fields that configs have
    in common, and to what is `known`; see `schema.table`."""
    return schema.table(Path(file).with_name("fields.txt").read_text("utf-8"), TABLES | known)


def _of_experiment(name: object, module: str) -> Any:
    """A module of an experiment, imported only when it is asked for, so that reports and the
    command's help are quick; ValueError if there is no such experiment."""
    if name not in EXPERIMENTS:
        raise ValueError(f"config.name={name!r}: choose from {', '.join(EXPERIMENTS)}")
    return importlib.import_module(f"xling_jax.experiments.{name}.{module}")


def of_name(name: object) -> Section:
    """The fields of an experiment's config."""
    return _of_experiment(name, "fields").FIELDS


def experiment(name: object) -> Any:
    """The class of an experiment. It takes a config and a workdir; its `run` returns the tables."""
    return _of_experiment(name, "experiment").Experiment


def report(name: object) -> Callable[[Path], str]:
    """The function that writes the report of a workdir of an experiment and returns its tables."""
    return _of_experiment(name, "report").write


def is_used(name: object, row: str, description: str, field: str) -> bool:
    """Whether a field, given by its whole name, affects a row of the experiment: every field does,
    unless the experiment's module `fields` says otherwise."""
    own = getattr(_of_experiment(name, "fields"), "is_used", None)
    return own is None or own(row, description, field)


def row_of(name: object, row: str) -> str:
    """The config's name of a row, from its name in a run, which may contain more, such as the pair
    and the task."""
    own = getattr(_of_experiment(name, "fields"), "row_of", None)
    return own(row) if own else row


def check(config: ConfigDict) -> None:
    """Raises ValueError, naming the field and what it may be, unless a config can be used.

    Fields are checked one by one, and a few of them against each other; whether they suit texts,
    models and devices is for the experiment to check.
    """
    values = config.to_dict()
    schema.check(values, of_name(values.get("name")))
    for name in ("models", "overparam"):
        section = values.get(name, {})
        # In some experiments `models` has folders by the models' names.
        if isinstance(section.get("heads"), int) and section["hidden"] % section["heads"]:
            raise ValueError(
                f"{name}.hidden={section['hidden']} is not divisible by {name}.heads="
                f"{section['heads']}: choose a multiple"
            )
    neighbours = values.get("vocabulary", {}).get("neighbours", {})
    for above, section in (("vocabulary.neighbours.", neighbours), ("", values)):
        skip_gram = section.get("skip_gram", {})
        if 0 < skip_gram.get("max_n", 0) < skip_gram.get("min_n", 0):
            raise ValueError(
                f"{above}skip_gram.max_n={skip_gram['max_n']}: give min_n={skip_gram['min_n']} or "
                "more, or 0 for no n-grams"
            )


def described(config: ConfigDict) -> Iterator[str]:
    """A text for every field of a config: its name and value, its meaning, and what it may be."""
    section = of_name(config.get("name"))
    for name, value, field in schema.described(config.to_dict(), section):
        yield f"--config.{name}={value}\n    {field.meaning} ({field.form})"


def page() -> str:
    """Every experiment's fields as Markdown."""
    lines = [
        "# The fields of the configs",
        "",
        "Set any of them but `scale` and `runs` with `--config.FIELD=VALUE`. Where a path has a "
        "`*`, the options after the config's colon make the names (languages, pairs, rows); the "
        "command line adds none, and a row of your own is written after `row=`. A tuple takes the "
        "place of the whole default, and its names have quotes: "
        "`--config.evaluators.names=\"('retrieval', 'cka')\"`. `python -m xling_jax.main "
        "--config=configs/NAME.py --help` lists the fields of a config with their values.",
    ]
    known: dict[int, str] = {}
    for name in EXPERIMENTS:
        lines += ["", f"## {name}", "", "| field | what it may be | meaning |", "|---|---|---|"]
        for path, field in schema.listed(of_name(name), known, name):
            own = path.removeprefix(f"{name}.")
            if isinstance(field, str):
                lines.append(f"| `{own}.…` | | the fields of `{field}` |")
            else:
                lines.append(f"| `{own}` | {field.form} | {field.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
