"""Config files, the options after their colon, and the rows that they ask for."""

import difflib
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ml_collections import ConfigDict

from xling_jax import numerals
from xling_jax.evaluators.registry import DEEP, EVALUATORS
from xling_jax.files import plain_name, short_name

T = TypeVar("T")
_NAME_ONE = "name a config file, such as configs/fake_english.py"
_BY_LANGUAGE = {name: each for name, each in EVALUATORS.items() if each.languages}
_PARTS = sorted({part for each in _BY_LANGUAGE.values() for part in each.parts})
_MORE = sorted({other.removeprefix(f"{name}_") for name in _BY_LANGUAGE for other in EVALUATORS
                if other.startswith(f"{name}_")})  # fmt: skip
# What would be read as a part of a metric's name behind a language, or, in a language's place, as
# another metric.
_MISREAD = re.compile(rf"_(\d+|{DEEP}|{'|'.join(_PARTS)})$|^({'|'.join(_MORE)})(_|$)")
_LONGEST_ROW = 220  # bytes, since names of files add up to 31 to a row's, and 255 are allowed
_RENAMED = {"transfer": "zero_shot"}  # older names of config files


def parse_options(argument: str | None, defaults: Mapping[str, str]) -> dict[str, str]:
    """Reads what follows the colon in `--config=file.py:row=8,scale=paper`; ValueError for an
    option that `defaults` lacks, that has no value, or that is given twice."""
    options, given = dict(defaults), set[str]()
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


def load_config(path: str, argument: str | None = None) -> ConfigDict:
    """The config that a config file's function `get_config` returns, given the options.

    ValueError, naming the file, if there is no such file, it fails, or it refuses the options.
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
        if not isinstance(config, ConfigDict):
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
    if path.is_dir():
        found = ", ".join(map(str, sorted(path.glob("*.py"))))
        return "a folder; name a file in it" + (f": {found}" if found else "")
    if path.exists():
        return f"not a regular file; {_NAME_ONE}"
    folders = (Path("configs"), path.parent)
    there = {file.stem: file for folder in folders for file in folder.glob("*.py") if file != path}
    if new := there.get(_RENAMED.get(path.stem, "")):
        return f"no such file; it is called {new} now"
    near = difflib.get_close_matches(path.stem, there, n=1)
    return f"no such file; is it {there[near[0]]}?" if near else f"no such file; {_NAME_ONE}"


def require_fields(config: ConfigDict, flag: str, arguments: Sequence[str]) -> None:
    """Raises ValueError if an argument such as `--config.training.epochs=3` sets a field that the
    config does not have, or `scale`, which only records what the config file chose; `flag` is the
    part before the first dot."""
    for argument in arguments:
        name = "--" + argument.partition("=")[0].lstrip("-")
        if not argument.startswith("-") or not name.startswith(f"{flag}."):
            continue
        section: Any = config
        field = name.removeprefix(f"{flag}.")
        if field == "scale" and field in config:
            raise ValueError(
                f"{argument}: this would change no size; choose it after the config's colon, as in "
                "FILE.py:scale=paper"
            )
        for part in field.split("."):
            part = part.partition("[")[0]  # a place in a tuple
            if not isinstance(section, Mapping | ConfigDict) or part not in section:
                near = difflib.get_close_matches(field, flatten(config.to_dict()), n=1)
                hint = f"; is it {flag}.{near[0]}?" if near else ""
                raise ValueError(f"{name}: the config has no such field{hint}")
            if not part.isidentifier():
                raise ValueError(
                    f"{argument}: {part} cannot be set here; write the description of a row "
                    "itself after row=, as in row=inv-order, and the workdir of a pair after from="
                )
            section = section[part]


def machine_fields() -> dict[str, Any]:
    """The fields of every experiment that trains: devices, profile and log."""
    return {
        "devices": {
            "cpu": 0,
            "side_by_side": 0,
            "replica_axis_at_most": 0,
            "shard_parameters": False,
        },
        "profile": False,
        "log": {"tensorboard": False},
    }


def config_beside(path: str, name: str, argument: str) -> ConfigDict:
    """The config of the file `name` in the folder of another config file, `path`, with options;
    ValueError if it is not there."""
    beside = Path(path).with_name(name)
    if not beside.exists():
        raise ValueError(f"it needs {beside}, which is not there: copy that config file too")
    return load_config(str(beside), argument)


def chosen_rows(config: ConfigDict, parse: Callable[[str, str], T]) -> list[T]:
    """What `parse(name, description)` returns for each row that a config asks for.

    `config.row` holds names joined by `+`: of rows in `config.rows`, or of sets of rows in
    `config.sets`; any other name is itself a description. ValueError for no row, a row or seed
    named twice, two rows that would have the same folder, or a row that `parse` refuses.
    """
    rows, sets = ", ".join(config.rows), ", ".join(config.sets)
    asked = config.row.split("+")
    if not all(name.strip() for name in asked):
        raise ValueError(
            f"row={config.row!r} has an empty name: join names by one + each; a row: {rows}; a set "
            f"of rows: {sets}"
        )
    names = [x for name in asked for x in config.sets.get(name, (name,))]
    if not names:
        raise ValueError(f"row={config.row}: there is none; a row: {rows}")
    for kind, given in (("row", names), ("seed", list(config.seeds))):
        if twice := sorted({each for each in given if given.count(each) > 1}):
            listed = ", ".join(map(str, twice))
            raise ValueError(
                f"row={config.row}, seeds={tuple(config.seeds)}: {kind} {listed} named twice"
            )
    require_own_folders(names)
    found = []
    for name in names:
        description = config.rows.get(name, name)
        try:
            found.append(parse(name, description))
        except ValueError as error:
            meant = f" ({description})" if description != name else ""
            raise ValueError(
                f"row={name!r}{meant}: {error}; or a row: {rows}; or a set of rows: {sets}"
            ) from error
    return found


def default_workdir(name: str) -> str:
    """The folder below runs/ for a run of this name; for what it must not have see
    `workdirs.lock`."""
    return short_name(plain_name(name, more="+"))


def require_own_folders(rows: Iterable[str]) -> None:
    """Raises ValueError if a row's name is too long for a folder's, or if two rows would keep their
    models in one folder."""
    by_folder: dict[str, str] = {}
    for row in rows:
        if len(plain_name(row).encode()) > _LONGEST_ROW:
            raise ValueError(
                f"row={row!r}: too long for the name of a folder, in which at most {_LONGEST_ROW} "
                "bytes may be the row's. Give it a shorter name in the rows of the config file: "
                "NAME and, as its description, what is the name now"
            )
        other = by_folder.setdefault(plain_name(row), row)
        if other != row:
            raise ValueError(
                f"row={row!r} and row={other!r} would have the same folder, "
                f"{plain_name(row)}: run them in different workdirs"
            )


def languages(option: str, value: str) -> tuple[str, ...]:
    """Reads `en-fr` as (en, fr); ValueError for fewer than two languages, one that is named twice,
    or a name that cannot be a field's."""
    names = tuple(value.split("-"))
    if len(names) < 2 or "" in names:
        raise ValueError(f"{option}={value!r}: name two languages or more, joined by one - each")
    for name in names:
        is_method = hasattr(ConfigDict, name)
        if not name.isidentifier() or is_method or _MISREAD.search(name):
            raise ValueError(
                f"{option}={value!r}: no language can be called {name!r}; take letters, digits "
                "and _, but behind the last _ no number and no word such as low or forward, which "
                f"end names of metrics; before the first _ none of {', '.join(_MORE)}, which "
                "other metrics' names have there; and not get, items, keys and the like, which "
                "are methods of configs"
            )
        if names.count(name) > 1:
            raise ValueError(f"{option}={value!r}: {name!r} is named twice")
    return names


def require_free(section: str, names: Iterable[str], taken: Iterable[str]) -> None:
    """Raises ValueError if a name that is made of languages is taken in a section of the config."""
    if both := sorted(set(names).intersection(taken)):
        raise ValueError(
            f"{section}.{both[0]} is something else already: give that language another name"
        )


def choose(name: str, value: str, choices: Mapping[str, Any]) -> Any:
    """The entry of `choices` that an option names; ValueError, listing them, if there is none."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown: choose from {', '.join(choices)}")
    return choices[value]


def integers(name: str, value: str) -> tuple[int, ...]:
    """Reads `0+42` as (0, 42); ValueError naming the option."""
    try:
        return tuple(map(numerals.whole, value.split("+")))
    except ValueError:
        raise ValueError(
            f"{name}={value!r}: write whole numbers joined by +, such as 0+42"
        ) from None


def integer(name: str, value: str) -> int:
    """Reads `20` as 20; ValueError naming the option."""
    try:
        return numerals.whole(value)
    except ValueError:
        raise ValueError(f"{name}={value!r}: write one whole number") from None


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields as `section.field`, in JSON's types."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = json.loads(json.dumps(value))
    return flat
