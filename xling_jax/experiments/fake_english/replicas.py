"""Which replicas a Fake-English experiment has, and which of them share a program."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections

from xling_jax.batches import setting
from xling_jax.runs import config_files


@dataclasses.dataclass(frozen=True)
class ReplicaSpec:
    """A row of the table and a seed: what becomes a replica."""

    row: str
    description: str
    seed: int
    modifications: setting.Modifications


def replica_specs(config: ml_collections.ConfigDict) -> list[ReplicaSpec]:
    """The replicas that the config asks for; errors as those of `config_files.chosen_rows`,
    `setting.parse` and `epochs`."""

    def parse(name: str, description: str) -> list[ReplicaSpec]:
        modifications = setting.parse(description, config.corpora.languages)
        epochs(config, modifications)
        return [ReplicaSpec(name, description, seed, modifications) for seed in config.seeds]

    return [spec for row in config_files.chosen_rows(config, parse) for spec in row]


def epochs(config: ml_collections.ConfigDict, modifications: setting.Modifications) -> int:
    """Epochs of a row; see `Modifications.epochs_of` for errors."""
    is_large = "overparam" in modifications and "overparam" in config
    own = config.overparam.epochs if is_large else 0
    return modifications.epochs_of(own or config.training.epochs)


def with_their_groups(
    wanted: Sequence[ReplicaSpec], stored: Mapping[str, Any], languages: Sequence[str]
) -> list[ReplicaSpec]:
    """Replicas, and those with which some of them share a group of a stored experiment."""
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
