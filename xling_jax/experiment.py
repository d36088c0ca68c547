"""An experiment: a checked config with a fingerprint, stored with what it produced."""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_collections

from xling_jax.files import write_beside
from xling_jax.reports.results import read_config

# Sections and fields that change how fast a run goes or how often it saves, not what it computes.
# The table of rows is one: what the chosen rows stand for is hashed apart.
WITHOUT_EFFECT = (
    "devices",
    "rows",
    "sets",
    "workdir",
    "batches.accumulate",
    "batches.resident_tokens",
    "corpora.processes",
    "evaluators.row_lengths",
    "evaluators.sentences",
    "training.steps_per_call",
    "training.save_every",
)
CONFIG = "config.json"
VERSIONS_OF = (
    "xling_jax",
    "jax",
    "flax",
    "optax",
    "orbax-checkpoint",
    "sentencepiece",
    "numpy",
    "gensim",
    "sacremoses",
    "jieba",
)


def parse_options(argument: str | None, defaults: Mapping[str, str]) -> dict[str, str]:
    """Reads what follows the colon in `--config=file.py:row=8,scale=paper`.

    Raises:
      ValueError: an option that `defaults` does not name, or one without a value.
    """
    options = dict(defaults)
    for part in filter(None, (argument or "").split(",")):
        name, equals, value = part.partition("=")
        if name not in defaults or not equals or not value:
            raise ValueError(
                f"unknown option {part!r} of the config: write NAME=VALUE, separated by commas, "
                f"with names from {', '.join(defaults)}"
            )
        options[name] = value
    return options


def choose(name: str, value: str, choices: Mapping[str, Any]) -> Any:
    """The entry of `choices`; ValueError naming the option and what there is."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown: choose from {', '.join(choices)}")
    return choices[value]


def integers(name: str, value: str) -> tuple[int, ...]:
    """Reads `0+42` as (0, 42); ValueError naming the option."""
    try:
        return tuple(int(part) for part in value.split("+"))
    except ValueError:
        raise ValueError(f"{name}={value!r}: write whole numbers joined by +, as 0+42") from None


def integer(name: str, value: str) -> int:
    """Reads `20` as 20; ValueError naming the option."""
    if not value.isdigit():
        raise ValueError(f"{name}={value!r}: write one whole number")
    return int(value)


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields as `section.field`, in JSON's types."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = json.loads(json.dumps(value))
    return flat


def _with_effect(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in flatten(config).items()
        if not any(name == field or name.startswith(field + ".") for field in WITHOUT_EFFECT)
    }


def fingerprint(
    config: Mapping[str, Any], texts: Sequence[Mapping[str, Any]], rows: Mapping[str, str]
) -> str:
    """A hash of what decides the numbers: the fields with effect, the texts, the chosen rows."""
    content = [_with_effect(config), [text["sha256"] for text in texts], dict(rows)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def require_writable(workdir: Path) -> None:
    """Makes the folder; ValueError naming it if nothing can be written there."""
    probe = workdir / f".writable-{os.getpid()}"
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"--workdir={workdir}: cannot write there ({error.strerror}); choose another folder"
        ) from error


def _require_same(stored: Mapping[str, Any], new: Mapping[str, Any], workdir: Path) -> None:
    """Refuses to mix two experiments in one workdir."""
    if stored.get("fingerprint") == new["fingerprint"]:
        return
    before, now = _with_effect(stored.get("config", {})), _with_effect(new["config"])
    if stored.get("rows") != new["rows"]:
        before["rows"], now["rows"] = stored.get("rows"), new["rows"]
    fields = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    lines = [f"  {name}: {before.get(name)} there, {now.get(name)} now" for name in fields]
    for old, text in zip(stored.get("texts", []), new["texts"], strict=False):
        if old.get("sha256") != text["sha256"]:
            lines.append(f"  the content of {text['source']} ({text['language']})")
    raise ValueError(
        f"--workdir={workdir} holds a run of another config. What differs:\n"
        + "\n".join(lines or ["  config.json, which is damaged"])
        + "\nChoose another --workdir, or repeat the command of that run to resume it."
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def describe(
    config: ml_collections.ConfigDict,
    texts: Sequence[Mapping[str, Any]],
    rows: Mapping[str, str],
) -> dict[str, Any]:
    """What `config.json` says of an experiment.

    Args:
      config: checked.
      texts: the manifest of what it was given to read.
      rows: the descriptions of the chosen rows.
    """
    fields = config.to_dict()
    return {
        "experiment": config.name,
        "fingerprint": fingerprint(fields, texts, rows),
        "scale": config.scale,
        "versions": {"python": platform.python_version()}
        | {name: _version(name) for name in VERSIONS_OF},
        "texts": list(texts),
        "rows": dict(rows),
        "config": fields,
    }


def stored(workdir: Path, description: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the same experiment stored when it began in this workdir; None if none did.

    Raises:
      ValueError: the folder holds a run of another config; the fields that differ are named.
    """
    found = read_config(workdir / CONFIG)
    if not found:
        return None
    _require_same(found, description, workdir)
    return found


def store(workdir: Path, description: Mapping[str, Any]) -> None:
    """Writes `config.json`."""
    write_beside(workdir / CONFIG, json.dumps(description, indent=1) + "\n")


def require_same_vocabulary(found: Mapping[str, Any] | None, new: Mapping[str, Any]) -> None:
    """Raises ValueError if the pieces are not those that the stored run began with."""
    if found and found["vocabulary"]["sha256"] != new["sha256"]:
        was = found["versions"].get("sentencepiece")
        raise ValueError(
            "the vocabulary trained now is not the one that this run began with: install "
            f"sentencepiece=={was}, or choose another --workdir"
        )


def require_positive(config: ml_collections.ConfigDict, *names: str) -> None:
    """Raises ValueError unless each field, named `section.field`, is above 0."""
    _require(config, names, lambda value: value > 0, "a number above 0")


def require_not_negative(config: ml_collections.ConfigDict, *names: str) -> None:
    """Raises ValueError if one of the fields, named `section.field`, is below 0."""
    _require(config, names, lambda value: value >= 0, "0 or a number above it")


def _require(
    config: ml_collections.ConfigDict,
    names: Sequence[str],
    is_good: Callable[[Any], bool],
    choice: str,
) -> None:
    fields = flatten(config.to_dict())
    for name in names:
        if not is_good(fields[name]):
            raise ValueError(f"{name}={fields[name]}: choose {choice}")
