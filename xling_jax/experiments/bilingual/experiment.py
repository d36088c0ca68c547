"""Runs the rows and seeds of one experiment on several languages."""

from functools import partial
from pathlib import Path

from ml_collections import ConfigDict

from xling_jax import devices, errors
from xling_jax.evaluators.registry import require_layers
from xling_jax.experiments.bilingual import report
from xling_jax.experiments.bilingual.data import Data, Preparer
from xling_jax.experiments.bilingual.group import Group, checkpoints_of
from xling_jax.experiments.bilingual.rows import Row, common_parts, parse
from xling_jax.experiments.bilingual.selection import RECORD, best_folder
from xling_jax.models import heads, partition
from xling_jax.models.bert import BertConfig
from xling_jax.runs import config_files, fields, store
from xling_jax.runs.run import Planned, Run
from xling_jax.training.metrics import say

LESS_MEMORY = devices.less_memory(
    "raise batches.accumulate, lower batches.sequences or the model's size, choose "
    "models.dtype=bfloat16"
)


class Experiment:
    """Runs the rows and seeds of one experiment, and stores what comes out."""

    def __init__(self, config: ConfigDict, workdir: Path):
        """Makes the manifest of the texts and opens the workdir; ValueError or FileNotFoundError if
        the workdir, the config or a text cannot be used."""
        fields.check(config)
        length, positions = config.batches.length, config.models.positions
        if length > positions:
            raise ValueError(
                f"batches.length={length}: choose 3 to models.positions={positions}, or more "
                "positions"
            )
        if config.models.token_types > 1:
            raise ValueError(
                f"models.token_types={config.models.token_types}: windows have one token type, so "
                "the others would never be trained: choose 1"
            )
        if config.evaluators.layers:
            require_layers(config.evaluators.layers, config.models.layers, "evaluators.layers")
        self._config, self._rows = config, rows(config)
        # Sizes of vocabularies do not matter here: paths are looked up by name.
        plain = heads.param_shapes(BertConfig(vocabulary_size=1, **config.models))
        for row in self._rows:
            with errors.in_field(f"row={row.name!r}"):
                partition.own_paths(plain, row.partition)
        start = config.training.start_from
        start_record = best_folder(start) / RECORD if start else None
        self._run = Run(workdir, report.write)
        self._data = Preparer(config, workdir)
        manifest = self._data.manifest(self._rows)
        if start_record:  # it holds the step, which changes if that run goes on
            where = "training.start_from"
            manifest.append(store.hashed(str(start_record), "", "start_from", where))
        self._run.open(config, manifest, {row.name: row.description for row in self._rows})

    def _require_same_text(self, row: Row, data: Data) -> None:
        """Raises ValueError if the text of a row is not what it was when the run began."""
        self._run.require_unchanged()
        found = {"prepared": data.description(), "tables": data.tables.sha256}
        stored = self._run.stored
        before = {
            key: stored.setdefault(key, {}).setdefault(row.name, x) for key, x in found.items()
        }
        if before != found:
            raise ValueError(
                f"row {row.name}: the text prepared now is not the one that this run began with. "
                "Install the versions of sentencepiece, sacremoses and jieba that config.json "
                "names, or choose another --workdir"
            )

    def prepare(self) -> str:
        """Makes the vocabularies and the token files of all rows; returns where they are."""
        for row in self._rows:
            say(f"row {row.name} ({row.description})")
            self._require_same_text(row, self._data(row))
        self._run.store()
        return f"Prepared: {self._run.workdir / 'tokens'}"

    def _make(self, row: Row, seeds: list[int]) -> Group:
        data = self._data(row)
        self._require_same_text(row, data)
        group = Group(self._config, self._run, row, seeds, data)
        group.check()
        self._run.require_unchanged()  # of what training starts from, too
        return group

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report and returns its table; raises
        what `Run.train` raises."""
        run, config = self._run, self._config
        rows = {row.name: row for row in self._rows}
        wanted = [(name, seed) for name in rows for seed in config.seeds]
        groups = run.deal(
            wanted,
            lambda member: member[0],
            lambda _, members: checkpoints_of(run.workdir, members),
            config.devices.side_by_side,
        )
        steps = config.training.epochs * config.training.steps_per_epoch
        run.stored["steps"] = {name: steps for name in run.stored["rows"]}
        planned = []
        for members in groups:
            if not set(wanted).isdisjoint(members):
                row, seeds = rows[members[0][0]], [seed for _, seed in members]
                name = f"row {row.name} ({row.description}), seeds {', '.join(map(str, seeds))}"
                planned.append(Planned(name, members, partial(self._make, row, seeds)))
        # All other rows are tried before the first one, made by `run.train`, binds the workdir.
        others = {each.members[0][0]: each for _, each in run.waiting(planned)}
        for each in list(others.values())[1:]:
            each.make()
        return run.train(
            planned,
            LESS_MEMORY,
            "lower training.learning_rate or raise training.warmup_steps",
        )


def rows(config: ConfigDict) -> list[Row]:
    """The rows that the config asks for; ValueError for an unknown row or modification, or
    something named twice."""
    languages, every = config.corpora.languages, config.every_row
    with errors.in_field("every_row"):
        common = common_parts(every)

    def read(name: str, description: str) -> Row:
        alone = parse(name, description, languages)
        if not common:
            return alone
        with errors.in_field(f"with every_row={every!r}"):
            return parse(name, description, languages, common)

    return config_files.chosen_rows(config, read)
