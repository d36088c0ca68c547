"""The replicas of an experiment, and what those with the same program share: the kind of model,
compiled steps, the evaluator."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from xling_jax import devices
from xling_jax.batches import packing, setting
from xling_jax.batches.packing import Sampler
from xling_jax.evaluators.multilinguality import Multilinguality
from xling_jax.evaluators.registry import paper_layers, require_layers
from xling_jax.experiments.fake_english.data import Data
from xling_jax.experiments.fake_english.neighbours import Neighbours
from xling_jax.models.bert import BertConfig
from xling_jax.runs import config_files
from xling_jax.runs.group import optimizer
from xling_jax.training import sharding
from xling_jax.training.metrics import say
from xling_jax.training.step import Program, StepCompiler

LESS_MEMORY = devices.less_memory(
    "lower batches.sentences or the model's size, choose models.dtype=bfloat16"
)


@dataclasses.dataclass(frozen=True)
class ReplicaSpec:
    """A row and a seed, from which a replica is made."""

    row: str
    description: str
    seed: int
    modifications: setting.Modifications


def replica_specs(config: ConfigDict) -> list[ReplicaSpec]:
    """The replicas that the config asks for; raises what `config_files.chosen_rows`,
    `setting.parse` and `Modifications.epochs_of` raise."""

    def parse(name: str, description: str) -> list[ReplicaSpec]:
        modifications = setting.parse(description, config.corpora.languages)
        _epochs(config, modifications)
        return [ReplicaSpec(name, description, seed, modifications) for seed in config.seeds]

    return [spec for row in config_files.chosen_rows(config, parse) for spec in row]


def _epochs(config: ConfigDict, modifications: setting.Modifications) -> int:
    is_large = "overparam" in modifications and "overparam" in config
    own = config.overparam.epochs if is_large else 0
    return modifications.epochs_of(own or config.training.epochs)


def with_their_groups(
    wanted: Sequence[ReplicaSpec], stored: Mapping[str, Any], languages: Sequence[str]
) -> list[ReplicaSpec]:
    """The wanted replicas, and those that share a group of the stored experiment with any of them;
    ValueError if a group has an unknown row."""
    found = {(spec.row, spec.seed): spec for spec in wanted}
    asked = set(found)
    for group in stored["groups"]:
        if asked.isdisjoint((row, seed) for row, seed in group):
            continue
        for row, seed in group:
            if not (description := stored["rows"].get(row)):
                raise ValueError(f"config.json is damaged: its groups have an unknown row {row!r}")
            modifications = setting.parse(description, languages)
            found.setdefault((row, seed), ReplicaSpec(row, description, seed, modifications))
    return list(found.values())


@dataclasses.dataclass(frozen=True)
class ProgramKind:
    """What the replicas of one program have in common; untrained models have 0 epochs."""

    model: BertConfig
    epochs: int


class Programs:
    """Makes what replicas of the same kind share; what is costly is made once."""

    def __init__(
        self,
        config: ConfigDict,
        data: Data,
        specs: Sequence[ReplicaSpec],
        folder: Path,
        stored: Mapping[str, str],
    ):
        """Checks the specs and finds the neighbours that they need; compiles no step yet.

        For `folder` and `stored` see `Neighbours`; ValueError names fields that do not go together.
        """
        self._config, self._data = config, data
        for spec in specs:
            self.kind(spec)
            if not (data.is_parallel or spec.modifications.is_parallel):
                raise ValueError(
                    f"row {spec.row} ({spec.description}): these texts are not parallel as they "
                    "are, so no-parallel means nothing: leave it out"
                )
        rows = [spec.modifications for spec in specs]
        self.neighbours = Neighbours(config, data, rows, folder, stored)
        self.compiler = StepCompiler(data.train)

    def kind(self, spec: ReplicaSpec) -> ProgramKind:
        """The kind of a spec; ValueError if the model lacks a layer that is to be evaluated, or has
        too few positions for the longest sentence or too few token types for the languages."""
        sizes: dict[str, Any] = self._config.models.to_dict()
        if "overparam" in spec.modifications:
            large = self._config.overparam
            sizes |= {name: large[name] for name in ("hidden", "intermediate", "heads")}
        model = BertConfig(vocabulary_size=self._data.vocabulary.size, **sizes)
        require_layers(self._layers(model), model.layers, "evaluators.layers")
        length = self._config.batches.max_length
        kinds = len(self._data.vocabulary.languages) if "lang-pos" in spec.modifications else 1
        row = f"row {spec.row} ({spec.description})"
        if model.positions < kinds * length:
            raise ValueError(
                f"models.positions={model.positions}, but {row} needs {kinds} x "
                f"batches.max_length={length}: raise the one or lower the other"
            )
        if model.token_types < kinds:
            raise ValueError(
                f"models.token_types={model.token_types}, but {row} needs one for each of {kinds} "
                "languages: raise it"
            )
        return ProgramKind(model, _epochs(self._config, spec.modifications))

    def _layers(self, model: BertConfig) -> tuple[int, ...]:
        return tuple(self._config.evaluators.get("layers", ())) or paper_layers(model.layers)

    def layout(self, mesh: Mesh) -> packing.Layout:
        """One layout for rows with and without no-parallel: it does not depend on which rows are
        trained, so neither do a row's numbers."""
        return self._layout(mesh.shape[devices.DATA])

    @functools.cache  # noqa: B019 - there are few
    def _layout(self, shards: int) -> packing.Layout:
        section = self._config.batches
        empty, both = packing.Layout((), section.sentences), self._data.is_parallel
        return packing.choose_layout(
            self._data.train.lengths,
            [self._sampler(x, empty).sentences for x in (True, False)[: 1 + both]],
            section.sentences,
            section.row_lengths,
            shards,
            section.attend_padding,
        )

    @functools.cache  # noqa: B019 - the pipeline plans what replicas share once
    def _sampler(self, is_parallel: bool, layout: packing.Layout, seed: int = 0) -> Sampler:
        languages = len(self._data.vocabulary.languages)
        return Sampler(self._data.train.lengths, languages, layout, seed, is_parallel)

    def sampler(self, spec: ReplicaSpec, mesh: Mesh) -> Sampler:
        return self._sampler(spec.modifications.is_parallel, self.layout(mesh), spec.seed)

    def setting(self, spec: ReplicaSpec) -> setting.Setting:
        vocabulary, is_large = self._data.vocabulary, "overparam" in spec.modifications
        section = self._config.overparam if is_large else self._config.training
        return setting.make(
            spec.modifications,
            vocabulary.languages,
            seed=spec.seed,
            learning_rate=section.learning_rate,
            max_length=self._config.batches.max_length,
            shift=vocabulary.shift,
            neighbours=self.neighbours.of(spec.modifications),
        )

    def steps(self, kind: ProgramKind, mesh: Mesh) -> tuple[int, int, int]:
        """Updates of the whole training, of an epoch, and of one compiled call: nearly equal
        parts of an epoch, of at most `training.steps_per_call` updates."""
        epoch = self._sampler(True, self.layout(mesh)).steps_per_epoch
        calls = np.ceil(epoch / self._config.training.steps_per_call)
        return kind.epochs * epoch, epoch, int(np.ceil(epoch / calls))

    def program(self, kind: ProgramKind, mesh: Mesh) -> Program:
        return Program(
            model=kind.model,
            optimizer=optimizer(self._config.training, max(1, self.steps(kind, mesh)[0])),
            pieces=self._data.piece_range,
            rows=self.layout(mesh).shard_rows,
            shards=sharding.shards_of(self._config.devices, mesh),
            masking_rate=self._config.training.masking_rate,
        )

    @functools.cache  # noqa: B019
    def evaluator(self, model: BertConfig, mesh: Mesh) -> Multilinguality:
        """The evaluator of a model size; its batches are laid out as those of training."""
        batches, data = self._config.batches, self._data
        return Multilinguality(
            model,
            data.evaluated,
            data.piece_range,
            mesh,
            names=self._config.evaluators.names,
            layers=self._layers(model),
            sentences=batches.sentences,
            row_lengths=batches.row_lengths,
            attend_padding=batches.attend_padding,
        )

    def at_most(self, specs: Sequence[ReplicaSpec]) -> int:
        """How many of the specs, all of one kind, fit in memory side by side; 1 even if one may not
        fit."""
        number, limit = len(specs), devices.memory_limit()
        kind = self.kind(specs[0])
        if not kind.epochs or limit is None:
            return number
        at_most = number
        while True:
            number = devices.side_by_side(len(specs), at_most)
            needed = self._bytes_needed(kind, specs[0], number, limit)
            if needed <= limit:
                return at_most
            gib = f"{needed / 2**30:.1f} GiB a device of {limit / 2**30:.1f}"
            if number == 1:
                say(f"memory may not suffice: one replica needs {gib}. {LESS_MEMORY}")
                return 1
            say(f"{number} replicas side by side need {gib}: fewer at a time")
            at_most = min(number - 1, max(1, int(number * limit / needed)))

    def _bytes_needed(self, kind: ProgramKind, spec: ReplicaSpec, number: int, limit: int) -> int:
        """The bytes that so many replicas need on a device; twice the limit if compiling them runs
        out of memory."""
        mesh = devices.make_mesh(number, at_most=self._config.devices.replica_axis_at_most)
        program, layout = self.program(kind, mesh), self.layout(mesh)
        steps = self.steps(kind, mesh)[2]
        try:
            compiled = self.compiler(program, mesh, layout, steps, number, self.setting(spec))
        except jax.errors.JaxRuntimeError as error:
            if devices.OUT_OF_MEMORY not in str(error):
                raise
            return 2 * limit
        if compiled.bytes_needed > limit and number > 1:
            self.compiler.discard(compiled)
        return compiled.bytes_needed
