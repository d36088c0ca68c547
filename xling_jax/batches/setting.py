"""A row of a table as values: everything that tells ablations apart at one model size.

Because a setting is arrays, not branches, replicas with different settings share one compiled
program (Dufter & Schütze 2020, §2.3, §2.4 and §4).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from xling_jax import descriptions
from xling_jax.descriptions import Part

ORIGINAL = "original"
MODIFICATIONS = {
    "lang-pos": "language k has positions from batches.max_length·k and token type k",
    "shift-special": "every language has its own special tokens",
    "no-random": "no random replacement: (mask, keep, random) = (0.8, 0.2, 0)",
    "no-random-as-published": "the published code's reading of no-random: (0.9, 0.1, 0)",
    "inv-order": "the second language's (or [NAME]'s) sentences are reversed",
    "no-parallel": "each language is trained on its own part of the corpus",
    "knn-replace": "(mask, keep, random, neighbour in another language) = (0.5, 0.1, 0.1, 0.3)",
    "knn-replace-as-published": "what the published code does: (0.50, 0.16, 0.10, 0.24)",
    "untrained": "the initial parameters",
    "overparam": "BERT-base instead of BERT-small",
    "epochs": "epochs[N]: trained for N epochs; epochs[Nx]: N times as many as the config says",
    "learning-rate": "learning-rate[X]: trained with the peak X instead of the config's",
}
NEED_ARGUMENT, MAY_HAVE_ARGUMENT = ("epochs", "learning-rate"), ("inv-order",)
MARGINALS = (0.8, 0.1, 0.1, 0.0)  # (mask, keep, random, neighbour): Devlin et al. 2019; W&C §3.1
RANDOM = 2  # the place of the random share
KNN = {
    "knn-replace": (0.5, 0.1, 0.1, 0.3),  # D&S §4
    "knn-replace-as-published": (0.50, 0.16, 0.10, 0.24),
}
NO_RANDOM = {"no-random": 1, "no-random-as-published": 0}  # which marginal gets random's share
ONE_READING = (tuple(NO_RANDOM), tuple(KNN))  # a row has at most one of each
OF_TRAINING = ("epochs", "learning-rate", *KNN)  # these mean nothing for an untrained model


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Setting:
    """The array leaves of one replica's setting.

    Attributes:
      seed: uint32, of corruption and dropout.
      learning_rate: float32, the peak of the schedule.
      position_offset: int32; language k's positions start at k * position_offset.
      token_type_step: int32; language k's token type is k * token_type_step.
      special_shift: int32; language k's special tokens are shifted by k * special_shift.
      inverted: bool [languages], whether a language's sentences are reversed.
      marginals: float32 [4], the shares of selected pieces that are masked, kept, replaced at
        random and replaced by a neighbour.
      neighbours: int32 [V, N], pieces of other languages that may replace a piece, padded with -1.
    """

    seed: jax.Array
    learning_rate: jax.Array
    position_offset: jax.Array
    token_type_step: jax.Array
    special_shift: jax.Array
    inverted: jax.Array
    marginals: jax.Array
    neighbours: jax.Array


@dataclasses.dataclass(frozen=True)
class Modifications:
    """The modifications that a row's description names, checked."""

    names: frozenset[str]
    inverted: frozenset[str]  # languages
    epochs: float | None = None
    epochs_are_times: bool = False  # `epochs` is a multiple of the config's
    learning_rate: float | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.names

    @property
    def is_parallel(self) -> bool:
        """Whether each language is trained on all of its text."""
        return "no-parallel" not in self.names

    def epochs_of(self, config_epochs: int) -> int:
        """Epochs of training, given the config's number; ValueError if the row's own number comes
        to less than one, or too many."""
        if "untrained" in self.names:
            return 0
        if self.epochs is None:
            return config_epochs
        number = self.epochs * config_epochs if self.epochs_are_times else self.epochs
        if not 1 <= round(number) <= descriptions.MOST_EPOCHS:
            times = f" times {config_epochs}" if self.epochs_are_times else ""
            raise ValueError(
                f"epochs: {self.epochs:g}{times} epochs are asked for; choose from 1 to "
                f"{descriptions.MOST_EPOCHS:,}"
            )
        return round(number)

    @property
    def needs_neighbours(self) -> bool:
        return not self.names.isdisjoint(KNN)


def parse(description: str, languages: Sequence[str]) -> Modifications:
    """Reads a description such as `lang-pos;inv-order[fake];epochs[2.5x]`, or `original`.

    ValueError: see `descriptions.parts`; an unknown language, a bad number, or modifications that
    exclude each other.
    """
    known = {ORIGINAL: "nothing is changed"} | MODIFICATIONS
    found = descriptions.parts(description, known, NEED_ARGUMENT, MAY_HAVE_ARGUMENT)
    descriptions.only_once(found, *NEED_ARGUMENT)
    names, inverted = {part.name for part in found}, set[str]()
    epochs: float | None = None
    are_times, learning_rate = False, None
    if ORIGINAL in names and len(found) > 1:
        raise ValueError(f"{ORIGINAL} stands alone, for no modification")
    for part in found:
        if part.name == "inv-order":
            language = part.argument or languages[1]
            if language not in languages:
                listed = ", ".join(languages)
                raise ValueError(f"{part.text!r}: choose a language from {listed}")
            if language in inverted:
                raise ValueError(f"{part.text!r}: {language} is inverted twice")
            inverted.add(language)
        elif part.name == "epochs":
            are_times = part.argument.endswith("x")
            epochs = _number(part, part.argument.removesuffix("x"))
            if not are_times and not epochs.is_integer():
                raise ValueError(
                    f"{part.text!r}: give a whole number of epochs, or a multiple such as 2.5x"
                )
        elif part.name == "learning-rate":
            learning_rate = _number(part, part.argument)
    for readings in ONE_READING:
        if names.issuperset(readings):
            raise ValueError(f"choose one reading of {readings[0]}: {' or '.join(readings)}")
    if "untrained" in names and (without := names.intersection(OF_TRAINING)):
        raise ValueError(f"an untrained model has no {', '.join(sorted(without))}")
    changed = frozenset(names - {ORIGINAL})
    return Modifications(changed, frozenset(inverted), epochs, are_times, learning_rate)


def _number(part: Part, text: str) -> float:
    """A number above 0 in a part's argument; ValueError naming the part."""
    try:
        return descriptions.positive(text)
    except ValueError as error:
        raise ValueError(f"{part.text!r}: {error}") from error


def make(
    modifications: Modifications,
    languages: Sequence[str],
    *,
    seed: int,
    learning_rate: float,
    max_length: int,
    shift: int,
    neighbours: np.ndarray,
) -> Setting:
    """The values of a row.

    Args:
      learning_rate: the peak, unless the row names its own.
      max_length: places a sentence may take, by which lang-pos offsets positions.
      shift: distance between the ids of a special token in one language and in the next.
      neighbours: int32 [V, N], see `Setting`.
    """
    own_positions = "lang-pos" in modifications
    knn = [KNN[name] for name in KNN if name in modifications]
    marginals = list(knn[-1] if knn else MARGINALS)
    for name, takes in NO_RANDOM.items():
        if name in modifications:
            marginals[takes], marginals[RANDOM] = marginals[takes] + marginals[RANDOM], 0.0
    fields: dict[str, Any] = {
        "seed": np.uint32(seed),
        "learning_rate": np.float32(modifications.learning_rate or learning_rate),
        "position_offset": np.int32(max_length if own_positions else 0),
        "token_type_step": np.int32(own_positions),
        "special_shift": np.int32(shift if "shift-special" in modifications else 0),
        "inverted": np.array([name in modifications.inverted for name in languages]),
        "marginals": np.array(marginals, np.float32),
        "neighbours": neighbours,
    }
    return Setting(**fields)
