"""Puts runs of one experiment together, with one report: `python -m xling_jax.gather`.

    python -m xling_jax.gather RUN RUN … --workdir=FOLDER

The runs are of one config and differ in rows or seeds, as where each was trained on a machine of
its own. The new folder has their results, curves, arrays and models, so that their command, with
this --workdir, trains whatever else is asked for. It has no checkpoints: what has not ended begins
anew there. `config.json` and `results.json` are enough of a run (of real_xnli also those in
`transfer/`), and a single run can be given as well.
"""

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from xling_jax import errors, files
from xling_jax.records import Identity
from xling_jax.runs import fields, results, store
from xling_jax.runs.run import Member
from xling_jax.training.metrics import say


def gather(runs: Sequence[Path], workdir: Path) -> str:
    """Makes the folder and its reports; returns the tables.

    Files of models and arrays are linked where the file system can do that. ValueError or
    FileNotFoundError, and nothing is made, where the folder is there, the runs are not of one
    experiment, two have different results of a row and seed, or results or curves are damaged.
    """
    files.require_new(workdir, "--workdir")
    names = (store.CONFIG, store.RESULTS)
    inner = {path.parent.name for run in runs for name in names for path in run.glob(f"*/{name}")}
    every = [_Merged(runs, workdir)]
    for name in sorted(inner):  # as real_xnli's fine-tuning
        every.append(_Merged([run / name for run in runs if (run / name).is_dir()], workdir / name))
    lock = store.lock(workdir)
    for merged in every:
        merged.write()
    tables = [merged.report() for merged in reversed(every)]
    del lock
    return tables[-1]


class _Merged:
    """Runs of one experiment as one. A row and seed is of one run alone: of the first that has its
    result, or else of the first that has begun it."""

    def __init__(self, runs: Sequence[Path], workdir: Path):
        described = {run: store.read(run) for run in runs}
        self._workdir, self._runs = workdir, runs
        self._config = store.merged(described)
        self._report = fields.report(self._config["experiment"])
        self._results = dict[Member, results.Replica]()
        self._owners = dict[Member, Path]()
        for run, own in described.items():
            ended = results.read_results(run / results.RESULTS, Identity.of(own))
            if not ended:
                say(f"{run}: nothing has ended yet")
            for replica in ended:
                self._add(replica, run)
        groups = [(run, group) for run, own in described.items() for group in own.get("groups", [])]
        self._config["groups"] = list(self._groups(groups))
        self._lines = list(self._owned(described))
        for name, entries in self._config.items():
            if name not in (*store.DESCRIPTION, "groups") and isinstance(entries, list):
                by_run = [(run, x) for run, own in described.items() for x in own.get(name, [])]
                self._config[name] = [x for run, x in by_run if self._is_of(run, x[0], x[1])]

    def _add(self, replica: results.Replica, run: Path) -> None:
        member = replica.row, replica.seed
        known = self._results.setdefault(member, replica)
        owner = self._owners.setdefault(member, run)
        if dataclasses.replace(known, fingerprint=replica.fingerprint) != replica:
            path = run / results.RESULTS
            raise ValueError(
                f"row {replica.row}, seed {replica.seed} has other results in {owner} than in "
                f"{run}: leave out one of these runs, or take that entry out of {path}"
            )

    def _is_of(self, run: Path, row: str, seed: int) -> bool:
        return self._owners.setdefault((row, seed), run) == run

    def _groups(self, groups: Sequence[tuple[Path, Sequence[Member]]]) -> Iterator[list[Member]]:
        """Each run's groups of rows and seeds that are its own, those that have ended apart."""
        for run, group in groups:
            own = [(row, seed) for row, seed in group if self._is_of(run, row, seed)]
            for has_ended in (True, False):
                if part := [x for x in own if (x in self._results) == has_ended]:
                    yield part

    def _owned(self, described: Mapping[Path, Any]) -> Iterator[bytes]:
        """The lines of `metrics.jsonl` of the rows and seeds that are each run's own."""
        for run, own in described.items():
            path = run / results.METRICS
            results.read_metrics(path, Identity.of(own))
            for _, entry in results.read_lines(path):
                if "row" in entry and self._is_of(run, entry["row"], entry["seed"]):
                    yield json.dumps(entry).encode() + b"\n"

    def write(self) -> None:
        """Writes all but the report."""
        for row, seed in self._results:
            run = self._owners[row, seed]
            arrays = results.arrays_of(run, row, seed)
            self._link(arrays, results.arrays_of(self._workdir, row, seed))
            models = store.models_of(run, row, seed)
            for path in models.resolve().rglob("[!.]*"):
                to = store.models_of(self._workdir, row, seed) / path.relative_to(models.resolve())
                self._link(path, to)
        for run in self._runs:
            for table in (run / "vocabulary").glob("neighbours-*.npy"):
                self._link(table, self._workdir / "vocabulary" / table.name)
        if self._lines:
            files.write_beside(self._workdir / results.METRICS, b"".join(self._lines))
        results.write_results(self._workdir / results.RESULTS, list(self._results.values()))
        store.write(self._workdir, self._config)

    @staticmethod
    def _link(path: Path, to: Path) -> None:
        if path.is_file():
            files.link_beside(to, path.resolve())

    def report(self) -> str:
        """Writes the report; returns the tables."""
        return self._report(self._workdir)


def main() -> None:
    """Gathers what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("--workdir", required=True, type=Path, help="the folder that is made")
    given = parser.parse_args()
    workdir = given.workdir.expanduser()
    tables = gather(list(dict.fromkeys(run.expanduser() for run in given.runs)), workdir)
    print(f"{tables}\n\nReport: {workdir / 'report' / 'report.html'}")


if __name__ == "__main__":
    with errors.in_one_line():
        main()
