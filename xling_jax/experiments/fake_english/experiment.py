"""Runs the groups of replicas of one experiment."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ml_collections import ConfigDict

from xling_jax.experiments.fake_english import neighbours, report
from xling_jax.experiments.fake_english.data import Source, read
from xling_jax.experiments.fake_english.group import Group
from xling_jax.experiments.fake_english.programs import (
    LESS_MEMORY,
    Programs,
    replica_specs,
    with_their_groups,
)
from xling_jax.runs import fields, store
from xling_jax.runs.run import Member, Planned, Run
from xling_jax.training.metrics import say


class Experiment:
    """Runs the groups of replicas of one experiment, and stores what comes out."""

    def __init__(
        self,
        config: ConfigDict,
        workdir: Path,
        source: Callable[[ConfigDict], Source] = read,
        report: Callable[[Path], str] = report.write,
    ):
        """Reads the texts from a source and opens the workdir; writes `config.json` only if all is
        well. `report` writes the report of a workdir and returns its tables.

        Raises:
          ValueError, FileNotFoundError: the config or a text cannot be used, or the workdir holds
            another experiment.
        """
        fields.check(config)
        wanted = replica_specs(config)
        self._run = run = Run(workdir, report)
        manifest, prepare = source(config)
        has_begun = run.open(
            config,
            manifest + neighbours.manifest(config),
            {spec.row: spec.description for spec in wanted},
            ("vocabulary", "neighbours", "groups", "steps"),
        )
        data = prepare(workdir)
        vocabulary = {
            "size": data.vocabulary.size,
            "languages": list(data.vocabulary.languages),
            "sha256": data.vocabulary.sha256,
        }
        if has_begun:
            store.require_same_vocabulary(run.stored, vocabulary)
            wanted = with_their_groups(wanted, run.stored, tuple(config.corpora.languages))
        hashes = run.stored.get("neighbours", {})
        programs = Programs(config, data, wanted, workdir / "vocabulary", hashes)
        of = {(spec.row, spec.seed): spec for spec in wanted}

        def folder(number: int, _: Sequence[Member] = ()) -> Path:
            return workdir / "checkpoints" / f"group{number}"

        groups = run.deal(
            list(of),
            lambda member: programs.kind(of[member]),
            folder,
            config.devices.side_by_side,
            lambda members: programs.at_most([of[member] for member in members]),
        )

        def planned(number: int, members: Sequence[Member]) -> Planned:
            specs = [of[member] for member in members]
            group = Group(config, run, data, programs, specs, folder(number))
            run.stored.setdefault("steps", {}).update({spec.row: group.steps for spec in specs})
            name = ", ".join(f"row {x.row} ({x.description}) seed {x.seed}" for x in specs)
            return Planned(name, members, lambda: group)

        self._planned = [
            planned(number, members)
            for number, members in enumerate(groups)
            if members and members[0] in of
        ]
        run.require_unchanged()
        run.stored["vocabulary"] = vocabulary
        run.stored["neighbours"] = hashes | programs.neighbours.hashes
        run.store()
        for line in data.described:
            say(line)

    @property
    def was_interrupted(self) -> bool:
        """Whether the run was asked to end during the last group, after which nothing is left to do
        here."""
        return self._run.was_interrupted

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report and returns its tables; raises
        what `Run.train` raises."""
        return self._run.train(
            self._planned,
            LESS_MEMORY,
            "lower training.learning_rate (overparam.learning_rate, or the row's own) or raise "
            "training.warmup_steps",
        )
