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


def store(
    workdir: Path,
    config: ml_collections.ConfigDict,
    texts: Sequence[Mapping[str, Any]],
    **described: Any,
) -> dict[str, Any]:
    """Writes `config.json`, or reads it where the same experiment began before.

    Args:
      workdir: of the run.
      config: checked.
      texts: the manifest of what it was given to read.
      **described: more to store. A resumed run gets what was stored when it began.

    Returns:
      The content of `config.json`.

    Raises:
      ValueError: the folder holds a run of another config; the fields that differ are named.
    """
    path = workdir / "config.json"
    fields = config.to_dict()
    entry = {
        "experiment": config.name,
        "fingerprint": fingerprint(fields, texts),
        "scale": config.scale,
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in VERSIONS_OF},
        "texts": list(texts),
        **described,
        "config": fields,
    }
    stored = read_config(path)
    if stored:
        _require_same(stored, entry, workdir)
        return stored
    write_beside(path, json.dumps(entry, indent=1) + "\n")
    return read_config(path)
