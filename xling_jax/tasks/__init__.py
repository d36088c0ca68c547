"""Labelled tasks of zero-shot transfer: trained in one language, tested in others (W&C §3.2, D&S
§5)."""

from collections.abc import Mapping
from typing import Any

from xling_jax.tasks.ner import NamedEntities
from xling_jax.tasks.nli import NaturalLanguageInference
from xling_jax.tasks.parsing import DependencyParsing
from xling_jax.tasks.pos import PartsOfSpeech
from xling_jax.tasks.task import Task

TASKS: Mapping[str, type[Task[Any]]] = {
    task.name: task
    for task in (NaturalLanguageInference, NamedEntities, DependencyParsing, PartsOfSpeech)
}
PAPER = tuple(name for name, task in TASKS.items() if task.column)  # those of W&C's Table 1
