"""Pretrains the rows of D&S Table 3, fine-tunes them on one language, tests them on all."""

from pathlib import Path

from ml_collections import ConfigDict

from xling_jax import errors, processes
from xling_jax.experiments.fake_english import experiment as pretraining
from xling_jax.experiments.fake_english.programs import replica_specs
from xling_jax.experiments.real_xnli import report
from xling_jax.experiments.real_xnli.data import read
from xling_jax.experiments.real_xnli.fields import WHOLE
from xling_jax.experiments.zero_shot import experiment as fine_tuning
from xling_jax.experiments.zero_shot import jobs
from xling_jax.experiments.zero_shot.texts import LabelledReader
from xling_jax.files import plain_name
from xling_jax.runs import fields, store
from xling_jax.runs.store import models_of
from xling_jax.training.interruption import Interrupted
from xling_jax.training.loop import Diverged
from xling_jax.training.metrics import say

SECTION = "transfer"  # of the config: most fields of configs/zero_shot.py


def transfer(config: ConfigDict, workdir: Path) -> ConfigDict:
    """The config of zero_shot for the fine-tuning, still without rows and seeds."""
    values = config.to_dict()
    own = {
        "name": "zero_shot",
        "workdir": report.TRANSFER,
        "runs": {"-".join(config.corpora.languages): str(workdir)},
        **{name: {} for name in ("rows", "sets", "pretrained", "texts_of_pair")},
        **{name: values[name] for name in WHOLE},
    }
    return ConfigDict(own | values[SECTION])


class Experiment:
    """Runs one experiment, and stores what comes out."""

    def __init__(self, config: ConfigDict, workdir: Path):
        """Reads the texts to pretrain on and the files to fine-tune on, and opens the workdir;
        ValueError or FileNotFoundError if the workdir, the config or a text cannot be used."""
        fields.check(config)
        self._workdir, self._languages = workdir, tuple(config.corpora.languages)
        self._cells = replica_specs(config)
        if large := [spec.row for spec in self._cells if "overparam" in spec.modifications]:
            raise ValueError(f"row {large[0]}: overparam means nothing here; set models.* instead")
        self._transfer = transfer(config, workdir)
        every = [(plain_name(spec.row), spec.seed) for spec in self._cells]
        reader = LabelledReader(self._transfer, SECTION)
        if self._transfer.tasks:
            with errors.in_field(SECTION):
                planned = jobs.jobs(self._of(every))
            files = [
                x for task in self._transfer.tasks for x in reader.manifest(task, self._languages)
            ]
            if self._transfer.word_order:
                files += reader.parallel_manifest(planned[0])  # the same for every row and task
            with errors.in_field(SECTION):
                store.require_apart(files)
            # Before pretraining takes hours, and stores these fields in its own description.
            rows = {job.name: job.row.description for job in planned}
            store.begun(workdir / report.TRANSFER, store.describe(self._of(every), files, rows))
        self._pretraining = pretraining.Experiment(config, workdir, read, report.write)

    def _of(self, trained: list[tuple[str, int]]) -> ConfigDict:
        """The config for fine-tuning some rows, all with the same seeds."""
        config = self._transfer.copy_and_resolve_references()
        config.row = "+".join(dict.fromkeys(row for row, _ in trained))
        config.seeds = tuple(dict.fromkeys(seed for _, seed in trained))
        return config

    def _by_seeds(self) -> list[list[tuple[str, int]]]:
        """The rows and seeds that have models, in a list for each group of rows with the same
        seeds."""
        trained: dict[str, list[int]] = {}
        for spec in self._cells:
            folder = models_of(self._workdir, spec.row, spec.seed)
            if processes.of_first(folder.exists):
                trained.setdefault(plain_name(spec.row), []).append(spec.seed)
            else:
                say(f"{folder} is not there: row {spec.row}, seed {spec.seed} is not fine-tuned")
        alike: dict[tuple[int, ...], list[tuple[str, int]]] = {}
        for row, seeds in trained.items():
            alike.setdefault(tuple(seeds), []).extend((row, seed) for seed in seeds)
        return list(alike.values())

    def run(self) -> str:
        """Trains and tests what is missing, writes the report and returns its tables; raises what
        `Run.train` raises."""
        folder = self._workdir / report.TRANSFER
        if not processes.of_first(folder.exists):
            with errors.in_field(SECTION):
                jobs.require_sharing(self._transfer)  # pretraining may take long
        table = self._pretraining.run()
        if not self._transfer.tasks:
            return table
        before: pretraining.Experiment | fine_tuning.Experiment = self._pretraining
        diverged: Diverged | None = None
        for trained in self._by_seeds():
            if before.was_interrupted:
                raise Interrupted("interrupted before fine-tuning; the same command goes on")
            say("fine-tuning what was pretrained")
            before, diverged = fine_tuning.Experiment(self._of(trained), folder, SECTION), None
            try:
                before.run()
            except Diverged as error:  # nothing stored so far has a score
                diverged = error
        written = processes.by_first(lambda: report.write(self._workdir))
        if diverged:
            raise diverged
        return written
