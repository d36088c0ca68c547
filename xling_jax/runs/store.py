"""An experiment: a checked config with a fingerprint, stored beside its results."""

import hashlib
import itertools
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from xling_jax import errors, processes, records
from xling_jax.corpora import sources
from xling_jax.files import plain_name, write_beside
from xling_jax.records import Identity
from xling_jax.runs import fields
from xling_jax.runs.config_files import flatten, require_own_folders
from xling_jax.runs.results import CONFIG, METRICS, RESULTS, read_config, read_metrics, read_results
from xling_jax.training.metrics import say

# Sections and fields that do not change what a replica computes, but how fast a run is, how often
# it saves, which replicas there are, and what is measured of them or done with them afterwards. The
# meaning of the chosen rows and the content of texts and models are compared separately.
WITHOUT_EFFECT = """
devices keep_models log pretrained profile row rows runs seeds sets tasks transfer workdir
batches.accumulate batches.resident_tokens corpora.processes evaluators.names
evaluators.row_lengths evaluators.sentences models.remat training.steps_per_call
training.save_every training.kept_checkpoints
""".split()  # the last one is of older configs
# Texts to learn from, and those that must not be the same, by the last parts of their fields.
TESTED_APART = {
    "train": ("dev", "test", "test_first"),
    "other": ("dev", "test", "test_first"),
    "learned": ("tested",),
    "dictionary": ("test_dictionary",),
}
# The values of fields that older configs lack, by the last two parts of their names.
UNNAMED = {
    "every_row": "",
    "ner.embeddings": True,
    "ner.new_names": False,
    "neighbours.tries": 1,
    "nli.embeddings": True,
    "nli.most_words": 0,
    "nli.replaced": 0.0,
    "parsing.embeddings": True,
    "pos.embeddings": True,
    "second.adjuncts": "after",
    "second.modifiers": "after",
    "synthetic.name_types": 0.16,
    "training.masking_rate": 0.15,
    "training.start_alike": False,
}
MADE = "made"  # the field of an embedded language's hash among a run's texts
NEEDED = ("fingerprint", "config", "rows", "texts")  # to resume a run from
DESCRIPTION = {  # the fields of every run's `config.json`, see `describe`
    "experiment", "fingerprint", "earlier_fingerprints", "later_versions", "scale", "versions",
    "texts", "rows", "config", records.SEAL,
}  # fmt: skip
VERSIONS_OF = """
xling_jax jax flax optax orbax-checkpoint sentencepiece numpy gensim sacremoses sentencex jieba
tokenizers
""".split()


def _unnamed(name: str) -> Any:
    """The value of a field that a config lacks; None if `UNNAMED` does not have it."""
    return UNNAMED.get(".".join(name.split(".")[-2:]))


def _with_effect(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in flatten(config).items()
        if not any(name == field or name.startswith(field + ".") for field in WITHOUT_EFFECT)
        and (value is None or value != _unnamed(name))
    }


def fingerprint(
    config: Mapping[str, Any], texts: Sequence[Mapping[str, Any]], rows: Mapping[str, str]
) -> str:
    """A hash of what decides the results: the fields with effect, the texts, the chosen rows."""
    return _digest([_with_effect(config), [text["sha256"] for text in texts], dict(rows)])


def fingerprint_of_every_row(experiment: str, config: Mapping[str, Any]) -> str:
    """A hash of those fields with effect that affect the results of every row."""
    common = {name: value for name, value in _with_effect(config).items()
              if fields.is_used(experiment, "", "", name)}  # fmt: skip
    return _digest([common, [], {}])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def hashed(source: str, language: str, field: str, where: str) -> dict[str, str]:
    """A manifest's entry for a source, a file or a TFDS name, with a hash of its content.

    `field` is the field of the config that names the source, and `where` its whole name, for
    errors. The entry of a file has its `path`, which `Run.require_unchanged` reads again and
    `config.json` does not keep. ValueError or FileNotFoundError if the source cannot be read.
    """
    with errors.in_field(where):
        digest = sources.fingerprint(source)
    entry = {"source": source, "language": language, "field": field, "sha256": digest}
    return entry if sources.state(source) is None else entry | {"path": source}


def require_apart(manifest: Iterable[Mapping[str, Any]]) -> None:
    """Raises ValueError if a text of a language is given both to learn from and to test on.

    A field `*_first` names text of the first language, whichever language it belongs to: it is
    compared with the texts of all. Takes entries that `hashed` returns, and ignores those without a
    field.
    """

    def owner(language: str, purpose: str) -> str:
        return "" if purpose.endswith("_first") else language

    given = dict[tuple[str, str, str], dict[str, str]]()
    for entry in manifest:
        of, _, purpose = entry.get("field", "").rpartition(".")
        of = re.sub(r"^texts(_of_pair\.\w+)?\.", "", of)  # a pair may have some of its own
        key = of, owner(entry["language"], purpose), purpose
        given.setdefault(key, {})[entry["sha256"]] = entry["source"]
    for (of, language, purpose), own in given.items():
        for tested in TESTED_APART.get(purpose, ()):
            there = given.get((of, owner(language, tested), tested), {})
            for same in own.keys() & there.keys():
                one, other = (f"{of}.{name}".removeprefix(".") for name in (purpose, tested))
                raise ValueError(
                    f"{own[same]} is both {one} and {other} of {language}: what is learned from "
                    "cannot be tested on; give another text"
                )


def models_of(workdir: Path, row: str, seed: int) -> Path:
    """The folder of the models of a row and seed: in it, each language has a folder of its name."""
    return workdir / "models" / f"row{plain_name(row)}_seed{seed}"


def _is_used(by: Mapping[str, Any], experiment: str, field: str) -> bool:
    """Whether a field affects some row of a described run, or the run has no rows."""
    rows, every = by["rows"].items(), by["config"].get("every_row", "")
    both = [(name, f"{text};{every}" if every else text) for name, text in rows]
    return not both or any(fields.is_used(experiment, name, text, field) for name, text in both)


def _differences(
    stored: Mapping[str, Any], new: Mapping[str, Any], there: str = "there", here: str = "now"
) -> list[str]:
    """A line for each difference between two runs that changes the results of rows of both. A field
    that is empty counts as one that is missing."""
    experiment = new["experiment"]
    if (other := stored.get("experiment", experiment)) != experiment:
        return [f"the experiment: {other} {there}, {experiment} {here}"]
    before, now = (_with_effect(of["config"]) for of in (stored, new))

    def value(config: Mapping[str, Any], name: str) -> Any:
        found = config.get(name, _unnamed(name))
        return "nothing" if found == "" else found

    lines = [
        f"{name}: {value(before, name)} {there}, {value(now, name)} {here}"
        for name in sorted({*before, *now})
        if before.get(name, "") != now.get(name, "")
        and all(_is_used(of, experiment, name) for of in (stored, new))
    ]
    old, rows = (
        {fields.row_of(experiment, name): described for name, described in of["rows"].items()}
        for of in (stored, new)
    )
    lines += [
        f"row {name}: {old[name]} {there}, {description} {here}"
        for name, description in rows.items()
        if old.get(name, description) != description
    ]
    given = new["config"].get("pretrained", {})
    for_all_seeds = [name for name, folder in given.items() if "{seed}" not in folder]
    hashes: dict[tuple[str, ...], set[str]] = {}
    for entry in stored.get("texts", []):  # one file may be there twice, cut at different places
        hashes.setdefault(_text(entry, for_all_seeds), set()).add(entry["sha256"])
    for (one, where), (other, elsewhere) in itertools.permutations([(stored, there), (new, here)]):
        both = _models(one, "runs", "row") & _models(other, "pretrained")
        lines += [
            f"{name}: the model of a run {where}, one given by its folder {elsewhere}"
            for name in sorted(both)
        ]
    return lines + [
        f"the content of {entry['source']} ({entry['language'] or entry.get('field', '')})"
        + ", which other versions of NumPy or of this program make" * (entry.get("field") == MADE)
        for entry in new["texts"]
        if entry["sha256"] not in hashes.get(_text(entry, for_all_seeds), {entry["sha256"]})
    ]


def _models(of: Mapping[str, Any], field: str, prefix: str = "") -> set[str]:
    """The pretrained rows that a described run has from what a field names, as PAIR/NAME; their
    folders' names have a prefix."""
    places = (entry["source"].split("/") for entry in of.get("texts", [])
              if entry.get("field") == field and entry["language"] == "model")  # fmt: skip
    return {f"{pair}/{_without_seed(name).removeprefix(prefix)}" for pair, name, *_ in places}


def _without_seed(folder: str) -> str:
    """The name of a model in that of its folder, NAME_seedN."""
    return re.sub(r"_seed\d+$", "", folder)


def _text(entry: Mapping[str, Any], for_all_seeds: Sequence[str] = ()) -> tuple[str, ...]:
    """What identifies a text: its source, language and field. A model from elsewhere is the same,
    whichever pair it is for, and one of `for_all_seeds` whichever seed."""
    source, language, field = (entry.get(name, "") for name in ("source", "language", "field"))
    if field == "pretrained":
        _, folder, *rest = source.split("/")
        name = _without_seed(folder)
        source = "/".join([name if name in for_all_seeds else folder, *rest])
    return source, language, field


def _latest(
    stored: Mapping[str, Any],
    new: Mapping[str, Any],
    is_of_new_rows: Callable[[str], bool],
    prefix: str = "",
) -> dict[str, Any]:
    """A stored config with the values of a new one in the fields that have no effect on results,
    and in those that affect only the new one's rows."""
    found = dict(stored)
    for name, value in new.items():
        known, path = stored.get(name), prefix + name
        is_section = isinstance(value, Mapping)
        if path == "transfer" and known and not value["tasks"]:
            continue  # it says how models were fine-tuned before
        if path in WITHOUT_EFFECT:
            found[name] = {**(known or {}), **value} if is_section else value
        elif is_section and (more := _latest(known or {}, value, is_of_new_rows, f"{path}.")):
            found[name] = more
        elif not is_section and is_of_new_rows(path):
            found[name] = value
    return found


def _widened(stored: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A stored experiment with the rows and texts of a new one added, run as the new one says."""

    def is_of_new_rows(field: str) -> bool:
        before, now = (_is_used(of, new["experiment"], field) for of in (stored, new))
        return now and not before

    rows = {**stored["rows"], **new["rows"]}
    known = {_text(entry) for entry in stored["texts"]}
    texts = [*stored["texts"], *(entry for entry in new["texts"] if _text(entry) not in known)]
    config = json.loads(json.dumps(_latest(stored["config"], new["config"], is_of_new_rows)))
    now, before = fingerprint(config, texts, rows), stored["fingerprint"]
    earlier = [x for x in (*stored.get("earlier_fingerprints", ()), before) if x != now]
    more = {"rows": rows, "texts": texts, "earlier_fingerprints": list(dict.fromkeys(earlier))}
    return {**stored, **more, "config": config, "fingerprint": now}


def merged(runs: Mapping[Path, Mapping[str, Any]]) -> dict[str, Any]:
    """The `config.json` of one run with the rows and seeds of several, made from theirs. Lists that
    have an entry for each row and seed are left as in the first one. ValueError, naming what
    differs, if they are not of one experiment."""
    for (first, one), (second, two) in itertools.combinations(runs.items(), 2):
        if lines := _contradictions(one, two, f"in {first}", f"in {second}"):
            raise ValueError(
                f"{first} and {second} are not of one experiment. What differs:\n"
                + "".join(f"  {line}\n" for line in lines)
                + "Give runs of one config, text and vocabulary, with other rows or seeds (of "
                "zero_shot also pairs or tasks)."
            )
    (first, described), *others = runs.items()
    found = dict(described)
    for folder, other in others:
        more: dict[str, Any] = {}
        for name in {*found, *other} - DESCRIPTION:
            values = [of[name] for of in (found, other) if name in of]
            is_by_name = isinstance(values[0], Mapping)
            more[name] = {**values[0], **values[-1]} if is_by_name else values[0]
        asked = {
            name: list(dict.fromkeys([*found["config"][name], *other["config"].get(name, ())]))
            for name in ("seeds", "tasks")
            if isinstance(found["config"].get(name), Sequence)
        }
        theirs = [*other.get("earlier_fingerprints", ()), other["fingerprint"]]
        found["earlier_fingerprints"] = [*found.get("earlier_fingerprints", ()), *theirs]
        found = _widened(found, other) | more
        found["config"] |= asked
        for versions in (other.get("versions", {}), *other.get("later_versions", ())):
            go_on(found, versions)
        here, there = (of.get("versions", {}) for of in (described, other))
        for name in VERSIONS_OF:
            if here.get(name) != there.get(name):
                say(f"{name} {here.get(name)} in {first}, {there.get(name)} in {folder}")
    require_own_folders(found["rows"])
    return found


def _contradictions(
    one: Mapping[str, Any], other: Mapping[str, Any], here: str, there: str
) -> list[str]:
    """A line for each reason why two described runs are not of one experiment; `here` and `there`
    name the runs."""
    lines = _differences(one, other, here, there)
    before, now = (", ".join(_measured(of)) or "nothing" for of in (one, other))
    if set(_measured(one)) != set(_measured(other)):
        lines.append(f"evaluators.names: {before} {here}, {now} {there}")
    for name in sorted(one.keys() & other.keys() - DESCRIPTION):
        known, own = one[name], other[name]
        if isinstance(known, Mapping):  # by row, or for all rows
            lines += [
                f"{name} {key}: {known[key]} {here}, {own[key]} {there}"
                for key in known
                if key in own and known[key] != own[key]
            ]
        elif not isinstance(known, list) and known != own:
            lines.append(f"{name}: {known} {here}, {own} {there}")
    return lines


def _measured(stored: Mapping[str, Any]) -> Sequence[str]:
    """The metrics that a run's config asks for."""
    return stored["config"].get("evaluators", {}).get("names", ())


def go_on(stored: dict[str, Any], versions: Mapping[str, str | None]) -> None:
    """Adds the versions that a run is resumed with to what it stored, if they are new."""
    known = [stored.get("versions", {}), *stored.get("later_versions", ())]
    if versions not in known:
        stored["later_versions"] = [*known[1:], versions]


def describe(
    config: ConfigDict, texts: Sequence[Mapping[str, Any]], rows: Mapping[str, str]
) -> dict[str, Any]:
    """The description of an experiment in `config.json`: its checked config, the manifest of its
    texts, and the descriptions of the chosen rows."""
    values = config.to_dict()
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in VERSIONS_OF:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "experiment": config.name,
        "fingerprint": fingerprint(values, texts, rows),
        "earlier_fingerprints": [],
        "later_versions": [],
        "scale": config.get("scale", ""),
        "versions": versions,
        "texts": [{key: x for key, x in entry.items() if key != "path"} for entry in texts],
        "rows": dict(rows),
        "config": values,
    }


def require_same_in_all(description: Mapping[str, Any]) -> None:
    """Raises ValueError in all processes of the run, naming what differs, unless all describe the
    same experiment."""

    def values(of: Mapping[str, Any]) -> dict[str, Any]:
        found = flatten(of["config"]) | {
            f"the version of {x}": y for x, y in of["versions"].items()
        }
        for entry in of["texts"]:
            found.setdefault(f"the content of {entry['source']}", []).append(entry["sha256"])
        return found

    def explain(first: Mapping[str, Any]) -> str:
        before, now = values(first), values(description)
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return (
            f"the processes of this run differ in {', '.join(names)}: give all machines the same "
            "command, texts, models and packages"
        )

    processes.require_same(description, explain)


def begun(
    workdir: Path, description: Mapping[str, Any], needed: Sequence[str] = ()
) -> dict[str, Any] | None:
    """What the same experiment stored when it began in this workdir; None if none began.

    Rows that it did not have are added: a table can grow. A run that trained nothing may be
    replaced by any other. `needed` names fields that `config.json` must have besides the
    description. ValueError if the folder holds a run of another config, naming the fields that
    differ, or if something there is damaged or of another experiment.
    """
    return processes.of_first(lambda: _begun(workdir, description, (*NEEDED, *needed)))


def _trained(workdir: Path) -> Path | None:
    """A file or checkpoint that a run computed in a workdir; None if there is none."""
    found, lines = workdir / RESULTS, workdir / METRICS
    if os.path.lexists(found):
        return found
    if os.path.lexists(lines) and not (lines.is_file() and not lines.stat().st_size):
        return lines
    return next((x for x in workdir.glob("checkpoints/*/[0-9]*") if x.name.isdigit()), None)


def read(workdir: Path) -> dict[str, Any]:
    """The `config.json` of a workdir that a run began in; FileNotFoundError if there is none,
    ValueError if it is damaged."""
    path = workdir / CONFIG
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: name the folder of a run")
    found = read_config(path)
    _require(found, ("experiment", *NEEDED), path)
    return found


def _require(found: Mapping[str, Any], needed: Sequence[str], path: Path) -> None:
    if missing := [name for name in needed if name not in found]:
        raise ValueError(f"{path} is damaged: it has no {missing[0]}: {records.RESTORE}")


def _begun(
    workdir: Path, description: Mapping[str, Any], needed: Sequence[str]
) -> dict[str, Any] | None:
    path, trained = workdir / CONFIG, _trained(workdir)
    found = read_config(path)
    if not found and (trained or os.path.lexists(path)):
        what = "holds nothing" if os.path.lexists(path) else "is not there"
        of = f", and {trained} is of a run that it described" if trained else ""
        raise ValueError(f"{path} {what}{of}: {records.RESTORE}")
    if not found:
        return None
    _require(found, NEEDED, path)
    lines = _differences(found, description)
    if lines and not trained:
        return None
    if lines:
        raise ValueError(
            f"--workdir={workdir} holds a run of another config. What differs:\n"
            + "".join(f"  {line}\n" for line in lines)
            + "Choose another --workdir, or repeat the command of that run to resume it."
        )
    before, now = _measured(found), _measured(description)
    if trained and set(before) != set(now):
        raise ValueError(
            f"evaluators.names: in {workdir} {', '.join(before) or 'nothing'} is measured, and "
            f"{', '.join(now) or 'nothing'} would stand beside it: ask for the same, choose "
            "another --workdir, or measure the stored models with configs/evaluate.py"
        )
    _require(found, needed, path)
    require_own_folders([*found["rows"], *description["rows"]])
    found = _widened(found, description)
    read_results(workdir / RESULTS, Identity.of(found))
    read_metrics(workdir / METRICS, Identity.of(found))
    return found


def write(workdir: Path, description: Mapping[str, Any]) -> None:
    """Writes `config.json`."""
    write_beside(workdir / CONFIG, json.dumps(records.sealed(description), indent=1) + "\n")


def require_same_vocabulary(found: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises ValueError if a vocabulary is not the one that the stored run began with."""
    if found["vocabulary"].get("sha256") != new["sha256"]:
        was = found.get("versions", {}).get("sentencepiece")
        raise ValueError(
            "the vocabulary trained now is not the one that this run began with: install "
            f"sentencepiece=={was}, or choose another --workdir"
        )
