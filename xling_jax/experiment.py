"""An experiment: a checked config with a fingerprint, stored with what it produced."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_collections

from xling_jax.reports.results import read_config, write_beside

# Sections and fields that change how fast a run goes or how often it saves, not what it computes.
WITHOUT_EFFECT = ("devices", "training.steps_per_call", "training.save_every")
CONFIG = "config.json"
VERSIONS_OF = ("xling_jax", "jax", "flax", "optax", "orbax-checkpoint", "sentencepiece", "numpy")


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


def fingerprint(config: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> str:
    """A hash of everything that decides the numbers: the fields with effect, and the texts."""
    content = [_with_effect(config), [text["sha256"] for text in texts]]
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


def describe(
    config: ml_collections.ConfigDict, texts: Sequence[Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """What `config.json` says of an experiment.

    Args:
      config: checked.
      texts: the manifest of what it was given to read.
      **more: further entries.
    """
    fields = config.to_dict()
    return {
        "experiment": config.name,
        "fingerprint": fingerprint(fields, texts),
        "scale": config.scale,
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in VERSIONS_OF},
        "texts": list(texts),
        **more,
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


def require_positive(config: ml_collections.ConfigDict, *names: str) -> None:
    """Raises ValueError unless each field, named `section.field`, is above 0."""
    fields = flatten(config.to_dict())
    for name in names:
        if not fields[name] > 0:
            raise ValueError(f"{name}={fields[name]}: choose a number above 0")
