"""An experiment: a checked config with a fingerprint, stored with what it produced."""

import contextlib
import difflib
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import ml_collections

from xling_jax import processes
from xling_jax.corpora import sources
from xling_jax.files import write_beside
from xling_jax.reports.results import read_config

T = TypeVar("T")

# Sections and fields that change how fast a run goes, how often it saves, which replicas there are
# or what is done with them afterwards, not what a replica computes. What the chosen rows stand for
# and the content of texts and models are compared apart, wherever they lie.
WITHOUT_EFFECT = (
    "devices",
    "profile",
    "row",
    "rows",
    "runs",
    "seeds",
    "sets",
    "tasks",
    "transfer",
    "workdir",
    "batches.accumulate",
    "batches.resident_tokens",
    "corpora.processes",
    "evaluators.row_lengths",
    "evaluators.sentences",
    "models.remat",
    "training.kept_checkpoints",
    "training.steps_per_call",
    "training.save_every",
)
CONFIG = "config.json"
_NAME_ONE = "name a config file, as configs/fake_english.py"
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
    "tokenizers",
)


def parse_options(argument: str | None, defaults: Mapping[str, str]) -> dict[str, str]:
    """Reads what follows the colon in `--config=file.py:row=8,scale=paper`.

    Raises:
      ValueError: an option that `defaults` does not name, or one without a value.
    """
    options = dict(defaults)
    given = set()
    for part in filter(None, (argument or "").split(",")):
        name, equals, value = part.partition("=")
        if name not in defaults or not equals or not value:
            raise ValueError(
                f"unknown option {part!r} of the config: write NAME=VALUE, separated by commas, "
                f"with names from {', '.join(defaults)}"
            )
        if name in given:
            raise ValueError(f"option {part!r} of the config: {name} is given twice")
        given.add(name)
        options[name] = value
    return options


def load_config(path: str, argument: str | None = None) -> ml_collections.ConfigDict:
    """The experiment of a config file.

    Args:
      path: of a Python file with a function `get_config`.
      argument: what the function is given, if anything: options.

    Raises:
      ValueError: there is no such file, it fails, or it refuses the options; the file is named.
    """
    if not path:
        raise ValueError(f"--config= is empty: {_NAME_ONE}")
    if not os.path.isfile(path):
        raise ValueError(f"--config={path}: {_no_config(Path(path))}")
    loader = importlib.machinery.SourceFileLoader(f"config_{Path(path).stem}", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(module)
        if not hasattr(module, "get_config"):
            raise ValueError("a config file needs a function get_config, which returns the config")
        config = module.get_config(*([] if argument is None else [argument]))
        if not isinstance(config, ml_collections.ConfigDict):
            raise ValueError(f"get_config returns a {type(config).__name__}, not a ConfigDict")
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno or 1}: {error.msg}") from error
    except (Exception, SystemExit) as error:  # whatever may go wrong in a file of Python
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f", line {frame.lineno}" for frame in frames if frame.filename == path]
        what = f"{type(error).__name__}: {error}"
        if isinstance(error, ValueError):
            what = str(error)
            if frames[-1].filename != path:  # it refuses an option
                lines = []
        raise ValueError(f"{path}{lines[-1] if lines else ''}: {what}") from error
    return config


def _no_config(path: Path) -> str:
    """Why a path is no config file, and which may be meant."""
    if path.is_dir():
        found = ", ".join(map(str, sorted(path.glob("*.py"))))
        return "a folder; name a file in it" + (f": {found}" if found else "")
    if path.exists():
        return f"not a regular file; {_NAME_ONE}"
    folders = (Path("configs"), path.parent)
    there = {file.stem: file for folder in folders for file in folder.glob("*.py") if file != path}
    near = difflib.get_close_matches(path.stem, there, n=1)
    return f"no such file; is it {there[near[0]]}?" if near else f"no such file; {_NAME_ONE}"


def require_fields(config: ml_collections.ConfigDict, flag: str, arguments: Sequence[str]) -> None:
    """Raises ValueError where an argument sets a field that the config does not have.

    Args:
      config: as its file gives it.
      flag: what the arguments that set fields begin with, before the dot.
      arguments: of the command line, as `--config.training.epochs=3`.
    """
    for argument in arguments:
        name = argument.partition("=")[0]
        if not name.startswith(f"{flag}."):
            continue
        section: Any = config
        field = name.removeprefix(f"{flag}.")
        for part in field.split("."):
            part = part.partition("[")[0]  # a place in a tuple
            if not isinstance(section, Mapping | ml_collections.ConfigDict) or part not in section:
                near = difflib.get_close_matches(field, flatten(config.to_dict()), n=1)
                hint = f"; is it {flag}.{near[0]}?" if near else ""
                raise ValueError(f"{name}: the config has no such field{hint}")
            if not part.isidentifier():
                raise ValueError(
                    f"{argument}: {part} cannot be set here; a row's description stands behind "
                    "row= as it is, as row=inv-order"
                )
            section = section[part]


def config_beside(path: str, name: str, argument: str) -> ml_collections.ConfigDict:
    """The experiment of another config file in the same folder.

    Args:
      path: of the config file that asks. name: of the other. argument: its options.
    """
    return load_config(str(Path(path).with_name(name)), argument)


def chosen_rows(config: ml_collections.ConfigDict, parse: Callable[[str, str], T]) -> list[T]:
    """The rows that a config asks for, as `parse(name, description)` gives them.

    `config.row` names rows of `config.rows`, or sets of rows of `config.sets`, joined by `+`; or
    it is itself a description.

    Raises:
      ValueError: no row, seeds that are none, a row or seed named twice, or a row that `parse`
        refuses.
    """
    if not config.seeds or any(not 0 <= seed < 2**32 for seed in config.seeds):
        raise ValueError(f"seeds={tuple(config.seeds)}: choose numbers from 0 to 2^32 - 1")
    names = [x for name in config.row.split("+") for x in config.sets.get(name, (name,))]
    if not names:
        raise ValueError(f"row={config.row}: there is none; a row: {', '.join(config.rows)}")
    for kind, given in (("row", names), ("seed", list(config.seeds))):
        if twice := sorted({each for each in given if given.count(each) > 1}):
            listed = ", ".join(map(str, twice))
            raise ValueError(
                f"row={config.row}, seeds={tuple(config.seeds)}: {kind} {listed} named twice"
            )
    found = []
    for name in names:
        try:
            found.append(parse(name, config.rows.get(name, name)))
        except ValueError as error:
            raise ValueError(
                f"row={name!r}: {error}; or a row: {', '.join(config.rows)}; or a set of rows: "
                f"{', '.join(config.sets)}"
            ) from error
    return found


def choose(name: str, value: str, choices: Mapping[str, Any]) -> Any:
    """The entry of `choices`; ValueError naming the option and what there is."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown: choose from {', '.join(choices)}")
    return choices[value]


def integers(name: str, value: str) -> tuple[int, ...]:
    """Reads `0+42` as (0, 42); ValueError naming the option."""
    parts = value.split("+")
    if not all(map(_is_whole, parts)):
        raise ValueError(f"{name}={value!r}: write whole numbers joined by +, as 0+42")
    return tuple(map(int, parts))


def integer(name: str, value: str) -> int:
    """Reads `20` as 20; ValueError naming the option."""
    if not _is_whole(value):
        raise ValueError(f"{name}={value!r}: write one whole number")
    return int(value)


def _is_whole(text: str) -> bool:
    """Whether a text is a number of ASCII's digits, of a length that int64 holds."""
    return text.isascii() and text.isdigit() and len(text) <= 18


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


@contextlib.contextmanager
def named(field: str) -> Iterator[None]:
    """Puts the name of a field in front of what goes wrong while its file is read."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{field}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from error


def hashed(source: str, language: str, field: str, where: str) -> dict[str, str]:
    """What a manifest says of a source, with a hash of its content.

    Args:
      source: a file or a TFDS name. language: that it is of. field: that it was given in.
      where: the field's whole name, for errors.

    Raises:
      ValueError, FileNotFoundError: it cannot be read.
    """
    with named(where):
        digest = sources.fingerprint(source)
    return {"source": source, "language": language, "field": field, "sha256": digest}


def require_writable(workdir: Path) -> None:
    """Makes the folder; ValueError naming it if nothing can be written there."""
    if processes.is_first():
        probe = workdir / f".writable-{os.getpid()}"
        try:
            workdir.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ValueError(
                f"--workdir={workdir}: cannot write there ({error.strerror}); choose another folder"
            ) from error
    processes.wait("the workdir")


def _differences(stored: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What two experiments have both, and different: fields, rows of one name, texts."""
    before, now = _with_effect(stored.get("config", {})), _with_effect(new["config"])
    lines = [
        f"{name}: {before.get(name)} there, {now.get(name)} now"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    old_rows = stored.get("rows", {})
    lines += [
        f"row {name}: {old_rows[name]} there, {description} now"
        for name, description in new["rows"].items()
        if old_rows.get(name, description) != description
    ]
    hashes: dict[tuple[str, ...], set[str]] = {}
    for entry in stored.get("texts", []):  # one file may serve twice, cut at different places
        hashes.setdefault(_text(entry), set()).add(entry["sha256"])
    lines += [
        f"the content of {entry['source']} ({entry['language']})"
        for entry in new["texts"]
        if entry["sha256"] not in hashes.get(_text(entry), {entry["sha256"]})
    ]
    if any(isinstance(each, int) for group in stored.get("groups", []) for each in group):
        lines.append("how groups are written: an older version did that")
    return lines


def _text(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What a text is for: its source, language and field."""
    return tuple(entry.get(name, "") for name in ("source", "language", "field"))


def _widened(stored: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A stored experiment with the rows of a new one, and their texts."""
    rows = {**stored["rows"], **new["rows"]}
    known = {_text(entry) for entry in stored["texts"]}
    texts = [*stored["texts"], *(entry for entry in new["texts"] if _text(entry) not in known)]
    more = {"rows": rows, "texts": texts}
    return {**stored, **more, "fingerprint": fingerprint(stored["config"], texts, rows)}


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
        "scale": config.get("scale", ""),
        "versions": {"python": platform.python_version()}
        | {name: _version(name) for name in VERSIONS_OF},
        "texts": list(texts),
        "rows": dict(rows),
        "config": fields,
    }


def stored(workdir: Path, description: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the same experiment stored when it began in this workdir; None if none did.

    Rows that were not asked for before are added to it: a table can grow.

    Raises:
      ValueError: the folder holds a run of another config; the fields that differ are named.
    """
    found = processes.of_first(lambda: read_config(workdir / CONFIG))
    if not found:
        return None
    is_whole = isinstance(found.get("config"), dict) and {"rows", "texts"} <= found.keys()
    lines = _differences(found, description) if is_whole else ["config.json, which is damaged"]
    if lines:
        raise ValueError(
            f"--workdir={workdir} holds a run of another config. What differs:\n"
            + "".join(f"  {line}\n" for line in lines)
            + "Choose another --workdir, or repeat the command of that run to resume it."
        )
    return _widened(found, description)


def profile_folder(config: ml_collections.ConfigDict, workdir: Path) -> Path | None:
    """Where traces of a run go, if the config asks for some."""
    return workdir / "profile" if config.profile else None


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
