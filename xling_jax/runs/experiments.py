"""The experiments by name. What each consists of is imported when it is asked for, so that reports
and the help of the command come quickly."""

import dataclasses
import importlib
from typing import Any

from xling_jax.schema import Section


@dataclasses.dataclass(frozen=True)
class Registered:
    """An experiment: a package below `xling_jax/experiments/` and its config file have its name."""

    name: str

    def _module(self, name: str) -> Any:
        return importlib.import_module(f"xling_jax.experiments.{self.name}.{name}")

    @property
    def fields(self) -> Section:
        """What its config may be."""
        return self._module("fields").FIELDS

    @property
    def experiment(self) -> Any:
        """The class that runs it: made from a config and a workdir; `run` returns the tables."""
        return self._module("experiment").Experiment


EXPERIMENTS = {
    name: Registered(name)
    for name in ("fake_english", "bilingual", "similarity", "zero_shot", "real_xnli")
}


def of_name(name: object) -> Registered:
    """The experiment of this name; ValueError if there is none."""
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise ValueError(f"config.name={name!r}: choose from {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
