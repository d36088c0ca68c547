"""A row of a table as values: everything that tells ablations apart at one model size.

Because a setting is arrays, not branches, replicas with different settings share one compiled
program (Dufter & Schütze 2020, §2.3, §2.4 and §4).
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

ORIGINAL = "original"
MODIFICATIONS = {
    "lang-pos": "language k has positions from 128·k and token type k",
    "shift-special": "every language has its own special tokens",
    "no-random": "no random replacement: (mask, keep, random) = (0.8, 0.2, 0)",
    "no-random-as-published": "the published code's reading of no-random: (0.9, 0.1, 0)",
    "inv-order": "the last language's (or [NAME]'s) sentences are reversed",
    "no-parallel": "each language is trained on its own part of the corpus",
    "untrained": "the initial parameters",
    "overparam": "BERT-base instead of BERT-small",
}
MARGINALS = (0.8, 0.1, 0.1)  # (mask, keep, random) of Devlin et al. 2019
NO_RANDOM = {"no-random": (0.8, 0.2, 0.0), "no-random-as-published": (0.9, 0.1, 0.0)}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Setting:
    """The array leaves of one replica's setting.

    seed: uint32, of corruption and dropout.
    learning_rate: float32, the peak of the schedule.
    position_offset: int32, language k's first position is k times it.
    token_type_step: int32, language k's token type is k times it.
    special_shift: int32, language k's special tokens are shifted by k times it.
    inverted: bool [languages], whose sentences are reversed.
    marginals: float32 [3], shares of selected tokens masked, kept and replaced at random.
    """

    seed: jax.Array
    learning_rate: jax.Array
    position_offset: jax.Array
    token_type_step: jax.Array
    special_shift: jax.Array
    inverted: jax.Array
    marginals: jax.Array


@dataclasses.dataclass(frozen=True)
class Modifications:
    """The modifications that a row's description names, checked."""

    names: frozenset[str]
    inverted: frozenset[str]  # languages

    def __contains__(self, name: str) -> bool:
        return name in self.names


def parse(description: str, languages: Sequence[str]) -> Modifications:
    """Reads a description such as `lang-pos;inv-order[fake]`.

    Args:
      description: names of `MODIFICATIONS` joined by `;`, or `original`.
      languages: the languages' names in order.

    Raises:
      ValueError: an unknown modification or language, or two that exclude each other.
    """
    names, inverted = set(), set()
    for part in filter(None, (part.strip() for part in description.split(";"))):
        match = re.fullmatch(r"([a-z-]+)(?:\[(.+)\])?", part)
        name, language = match.groups() if match else (part, None)
        if name == ORIGINAL:
            continue
        if name not in MODIFICATIONS or (language and name != "inv-order"):
            raise ValueError(
                f"unknown modification {part!r} in row {description!r}: "
                f"choose from {', '.join([ORIGINAL, *MODIFICATIONS])}"
            )
        if name == "inv-order":
            language = language or languages[-1]
            if language not in languages:
                raise ValueError(f"{part!r}: there is no language {language!r} in {languages}")
            inverted.add(language)
        names.add(name)
    if set(NO_RANDOM) <= names:
        raise ValueError(f"row {description!r}: choose one reading of no-random")
    return Modifications(frozenset(names), frozenset(inverted))


def make(
    modifications: Modifications,
    languages: Sequence[str],
    *,
    seed: int,
    learning_rate: float,
    max_length: int,
    shift: int,
) -> Setting:
    """The values of a row.

    Args:
      modifications: as `parse` gives them.
      languages: the languages' names in order.
      seed: of the replica.
      learning_rate: peak.
      max_length: places a sentence may take; what lang-pos offsets positions by.
      shift: ids between a special token of one language and the next one's own.
    """
    marginals = MARGINALS
    for name, values in NO_RANDOM.items():
        marginals = values if name in modifications else marginals
    own_positions = "lang-pos" in modifications
    fields: dict[str, Any] = {
        "seed": np.uint32(seed),
        "learning_rate": np.float32(learning_rate),
        "position_offset": np.int32(max_length if own_positions else 0),
        "token_type_step": np.int32(own_positions),
        "special_shift": np.int32(shift if "shift-special" in modifications else 0),
        "inverted": np.array([name in modifications.inverted for name in languages]),
        "marginals": np.array(marginals, np.float32),
    }
    return Setting(**fields)
