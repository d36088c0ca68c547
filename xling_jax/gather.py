"""Puts runs of one experiment together, with one report: `python -m xling_jax.gather`.

    python -m xling_jax.gather RUN RUN … --to=FOLDER

The runs are of one config and differ in rows or seeds, as where each was trained on a machine of
its own. The new folder has their results, curves, arrays and models, but no checkpoints, so that
what has not ended begins anew there: the command of the runs, with --workdir=FOLDER, trains what
else is asked for. Of a single run it is a copy with a new report. A run's `config.json` and
`results.json` are enough to be gathered.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from absl import app, flags

from xling_jax import errors, files
from xling_jax.experiments.real_xnli.report import TRANSFER
from xling_jax.records import Identity
from xling_jax.runs import fields, results, store

TO = flags.DEFINE_string("to", None, "The folder that is made.")
KEPT = ("arrays", "models")  # folders of a run, in which rows and seeds have names of their own


def gather(runs: Sequence[Path], to: Path) -> str:
    """Makes the folder and its report; returns the tables. ValueError, and nothing is made, where
    the runs are not of one experiment, a row and seed has two results, or something is damaged."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise ValueError(f"--to={to} is there already; name a new folder")
    gathered = [_Gathered(runs, to)]
    if tuned := [run / TRANSFER for run in runs if (run / TRANSFER / results.CONFIG).exists()]:
        gathered.append(_Gathered(tuned, to / TRANSFER))
    lock = store.lock(to)  # held until this function ends
    for each in gathered:
        each.write()
    tables = fields.report(gathered[0].config["experiment"])(to)
    del lock
    return tables


class _Gathered:
    """Runs of one experiment as one, still where they are."""

    def __init__(self, runs: Sequence[Path], to: Path):
        self._runs, self._to = runs, to
        described = {run: store.described(run) for run in runs}
        self.config = store.gathered(described)
        self._results = dict[tuple[str, int], results.Replica]()
        where = dict[tuple[str, int], Path]()
        for run, own in described.items():
            results.read_metrics(run / results.METRICS, Identity.of(own))
            for replica in results.read_results(run / results.RESULTS, Identity.of(own)):
                key = replica.row, replica.seed
                known = self._results.setdefault(key, replica)
                if dataclasses.replace(known, fingerprint=replica.fingerprint) != replica:
                    raise ValueError(
                        f"row {replica.row}, seed {replica.seed} has other results in "
                        f"{where[key]} than in {run}: give one of the two"
                    )
                where.setdefault(key, run)
        groups = [[(row, seed) for row, seed in group] for group in self.config.get("groups", [])]
        ended = [group for group in groups if group and self._results.keys() >= set(group)]
        self.config["groups"] = [list(map(list, group)) for group in ended]

    def write(self) -> None:
        """Writes all but the report."""
        for run in self._runs:
            for path in (file for kept in KEPT for file in sorted((run / kept).rglob("*"))):
                if path.is_file():
                    files.link_beside(self._to / path.relative_to(run), path)
        lines = [line for run in self._runs for line in _lines(run / results.METRICS)]
        if lines:
            files.write_beside(self._to / results.METRICS, b"".join(lines))
        results.write_results(self._to / results.RESULTS, list(self._results.values()))
        store.write(self._to, self.config)


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a file, if there is one: a run that was killed may leave half of one."""
    content = path.read_bytes() if path.exists() else b""
    return [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]


def main(arguments: Sequence[str]) -> None:
    """Gathers what the command line says."""
    runs = list(dict.fromkeys(Path(run).expanduser() for run in arguments[1:]))
    if not runs:
        raise ValueError("name the folders of one run or more")
    to = Path(TO.value or "").expanduser()
    print(f"{gather(runs, to)}\n\nReport: {to / 'report' / 'report.html'}")


if __name__ == "__main__":
    flags.register_validator(TO, bool, "name a folder")
    with errors.in_one_line():
        app.run(main, flags_parser=partial(errors.parse_flags, are_alone=False))
