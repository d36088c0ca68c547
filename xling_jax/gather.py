"""Puts runs of one experiment together, with one report: `python -m xling_jax.gather`.

    python -m xling_jax.gather RUN RUN … --workdir=FOLDER

The runs have one config and differ in rows or seeds, for instance because each was trained on a
machine of its own; those of zero_shot may also differ in pairs and tasks. The new folder has their
results, curves, arrays and models, so that their command, with this --workdir, trains whatever else
is asked for. Checkpoints are not copied: replicas that have not ended begin anew there. Of a run
only `config.json` and `results.json` are needed (and those in `transfer/`, if it is of real_xnli),
though without its models nothing can be fine-tuned. A single run works too.
"""

import argparse
import collections
import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from xling_jax import errors, files
from xling_jax.experiments.real_xnli.report import TRANSFER
from xling_jax.records import Identity
from xling_jax.runs import fields, results, store, workdirs
from xling_jax.runs.run import Member
from xling_jax.training.metrics import say


def gather(runs: Sequence[str | os.PathLike[str]], workdir: str | os.PathLike[str]) -> str:
    """Makes the folder and its reports; returns the tables.

    Files of models and arrays are linked if the file system has links. ValueError or
    FileNotFoundError, before anything is made, if the folder is there and not empty, the runs are
    not of one experiment, two have different results for a row and seed, or results or curves are
    damaged.
    """
    workdir = Path(workdir).expanduser()
    files.require_new(workdir, "--workdir")
    folders = list(dict.fromkeys(Path(run).expanduser() for run in runs))
    every = [_Merged(folders, workdir)]
    kept = (store.CONFIG, store.RESULTS)
    tuned = [run / TRANSFER for run in folders if any((run / TRANSFER / x).exists() for x in kept)]
    if tuned:
        every.insert(0, _Merged(tuned, workdir / TRANSFER))
    lock = workdirs.lock(workdir)
    for merged in every:
        merged.write()
    tables = [merged.report() for merged in every]
    del lock
    return tables[-1]


class _Merged:
    """Runs of one experiment as one. Each row and seed comes from one run: if some have a result
    for it, from the first of these that has most of its curves, models and arrays; or else from the
    one that has trained it longest, or the first that asked for it."""

    def __init__(self, runs: Sequence[Path], workdir: Path):
        described = {run: store.read(run) for run in runs}
        self._workdir, self._runs = workdir, runs
        self._config = store.merged(described)
        self._report = fields.report(self._config["experiment"])
        self._results = dict[Member, results.Replica]()
        self._owners = dict[Member, Path]()
        lines = [
            (run, entry, record)
            for run, own in described.items()
            for entry, record in results.read_lines(run / results.METRICS, Identity.of(own))
            if record
        ]
        self._steps = collections.Counter[tuple[Path, Member]]()
        for run, _, record in lines:
            place = run, (record.row, record.seed)
            self._steps[place] = max(self._steps[place], record.step + 1)
        for run, own in described.items():
            ended = results.read_results(run / results.RESULTS, Identity.of(own))
            if not ended:
                say(f"{run}: nothing has ended yet")
            for replica in ended:
                self._add(replica, run)
        for (run, member), _ in self._steps.most_common():
            self._owners.setdefault(member, run)
        self._lines = [x for run, x, of in lines if self._is_of(run, of.row, of.seed)]
        groups = [(run, group) for run, own in described.items() for group in own.get("groups", [])]
        self._config["groups"] = list(self._groups(groups))
        names = {name for own in described.values() for name in own}
        for name in names - store.DESCRIPTION - {"groups"}:
            noted = [(run, own[name]) for run, own in described.items() if name in own]
            if isinstance(noted[0][1], list):  # an entry for each row and seed
                entries = [(run, entry) for run, own in noted for entry in own]
                self._config[name] = [x for run, x in entries if self._is_of(run, x[0], x[1])]

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
        if self._kept(run, member) > self._kept(owner, member):
            self._owners[member] = run

    def _kept(self, run: Path, member: Member) -> tuple[int, bool, bool]:
        """How far a run's curves of a row and seed go, and whether it has models and arrays."""
        models, arrays = store.models_of(run, *member), results.arrays_of(run, *member)
        return self._steps[run, member], models.exists(), arrays.exists()

    def _is_of(self, run: Path, row: str, seed: int) -> bool:
        return self._owners.setdefault((row, seed), run) == run

    def _groups(self, groups: Sequence[tuple[Path, Sequence[Member]]]) -> Iterator[list[Member]]:
        """Each run's groups, reduced to the rows and seeds that come from it; those that have ended
        are groups of their own."""
        for run, group in groups:
            own = [(row, seed) for row, seed in group if self._is_of(run, row, seed)]
            for has_ended in (True, False):
                if part := [x for x in own if (x in self._results) == has_ended]:
                    yield part

    def write(self) -> None:
        """Writes everything but the report."""
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
            content = "".join(json.dumps(line) + "\n" for line in self._lines)
            files.write_beside(self._workdir / results.METRICS, content)
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
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("--workdir", required=True, type=Path, help="the folder that is made")
    given = parser.parse_args()
    tables = gather(given.runs, given.workdir)
    print(f"{tables}\n\nReport: {given.workdir / 'report' / 'report.html'}")


if __name__ == "__main__":
    with errors.in_one_line():
        main()
