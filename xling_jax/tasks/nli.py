"""Inference: does a second sentence follow from a first? (W&C §3.2; Conneau et al. 2018)"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xling_jax import schema
from xling_jax.batches import labelled
from xling_jax.batches.labelled import Encoded
from xling_jax.corpora import sources
from xling_jax.corpora.embedded import inference
from xling_jax.corpora.embedded.language import Pair
from xling_jax.tasks.task import SEEDS, Predictions, Scores, Task, by_frequency, numbered

if TYPE_CHECKING:
    from xling_jax.models.text_model import TextModel

LABELS = ("contradiction", "entailment", "neutral")
_ALIASES = {"contradictory": "contradiction"}  # in MultiNLI's translations
_COLUMNS = ("premise", "hypothesis", "label")
_ORIGINAL = {  # the columns of XNLI's files for testing and for training
    "sentence1": "premise",
    "sentence2": "hypothesis",
    "gold_label": "label",
    "hypo": "hypothesis",
}


class Inference(NamedTuple):
    """A premise, a hypothesis, and one of LABELS."""

    premise: str
    hypothesis: str
    label: str


def read(path: str | os.PathLike[str], language: str = "") -> list[Inference]:
    """Reads pairs, one per line: premise, hypothesis and label, separated by tabs.

    The first line may name the columns, in any order and also by XNLI's own names. If there is a
    column `language`, only lines of the given language are taken. Pairs without an agreed label
    (`-`) are left out.

    ValueError, naming the line if it is about one: the file is not UTF-8 or has no pair, a column
    is named twice, or a line is no such pair.
    """
    found: list[Inference] = []
    columns = {name: number for number, name in enumerate(_COLUMNS)}
    width = len(_COLUMNS)
    for number, line in sources.numbered(path):
        if not line.strip():
            continue
        cells = line.split("\t")
        try:
            if number == 1 and (named := _header(cells)):
                columns, width = named, len(cells)
                continue
            if len(cells) != width:
                raise ValueError(
                    f"{len(cells)} columns between tabs, and not {width}: "
                    + ", ".join(sorted(columns, key=columns.__getitem__))
                )
            if language and "language" in columns and cells[columns["language"]] != language:
                continue
            premise, hypothesis, label = (cells[columns[name]].strip() for name in _COLUMNS)
            label = _ALIASES.get(label, label)
            if label == "-":
                continue
            if label not in LABELS:
                raise ValueError(f"{label!r} is none of {', '.join(LABELS)}")
            if not premise or not hypothesis:
                raise ValueError(f"the {'hypothesis' if premise else 'premise'} is empty")
        except ValueError as error:
            raise sources.wrong(path, number, error) from error
        found.append(Inference(premise, hypothesis, label))
    if not found:
        raise ValueError(f"{path} has no pairs" + (f" of {language}" if language else ""))
    return found


def _header(cells: Sequence[str]) -> dict[str, int]:
    """The places of the columns that a first line names; empty if it does not name them."""
    names = [_ORIGINAL.get(cell.strip(), cell.strip()) for cell in cells]
    if not set(_COLUMNS) <= set(names):
        return {}
    if twice := [name for name in (*_COLUMNS, "language") if names.count(name) > 1]:
        raise ValueError(f"the column {twice[0]} is there twice: leave one of them out")
    return numbered(names)


@dataclasses.dataclass(frozen=True)
class NaturalLanguageInference(Task[Inference]):
    """Pairs of sentences with one of three labels."""

    name, title, column = "nli", "NLI", "nli"
    metric = measure = "accuracy"
    note = "accuracy, the share of pairs of sentences with the right one of three labels"
    options = {
        "most_words": schema.whole(
            "words of an embedded premise and hypothesis in the first language; 0: any number", 0
        ),
        "replaced": schema.number(
            "share of embedded pairs whose label depends on what replaces a word", 0, 1
        ),
    }

    most_words: int = 0
    replaced: float = 0.0

    def read(self, path: str, language: str) -> list[Inference]:
        return read(path, language)

    def make(self, pair: Pair, number: int, part: str) -> tuple[list[Inference], list[Inference]]:
        made = inference.pairs(pair, number, SEEDS[part], self.most_words, self.replaced)
        first, second = (
            [Inference(x.premise[k], x.hypothesis[k], x.label) for x in made] for k in (0, 1)
        )
        return first, second

    def labels(self, items: Sequence[Inference]) -> tuple[str, ...]:
        return LABELS

    def encode(self, items: Sequence[Inference], model: TextModel, longest: int) -> list[Encoded]:
        premises = model.encode([item.premise for item in items])
        hypotheses = model.encode([item.hypothesis for item in items])
        has_types = model.config.token_types > 1
        return [
            labelled.pair(first, second, model.special_ids, longest, has_types, model.inverted)
            for first, second in zip(premises, hypotheses, strict=True)
        ]

    def targets(self, items: Sequence[Inference], labels: Sequence[str]) -> list[np.ndarray]:
        number = numbered(labels)
        return [np.array([[number[item.label]]], np.int32) for item in items]

    def scores(
        self, items: Sequence[Inference], predictions: Predictions, labels: Sequence[str]
    ) -> Scores:
        right = [
            labels[int(found[0])] == item.label
            for item, (found,) in zip(items, predictions, strict=True)
        ]
        return {"accuracy": float(np.mean(right))}

    def baselines(self, known: Sequence[Inference], items: Sequence[Inference]) -> Scores:
        return by_frequency([item.label for item in known], [item.label for item in items])
