"""How languages share the ids of their pieces: joint, union, prefixed, separate (W&C §4.2, §4.3).

Special tokens have the ids 0 to 4 in every language.
"""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from xling_jax.vocabulary.pieces import SPECIAL_TOKENS, Pieces

SPECIALS = len(SPECIAL_TOKENS)
WAYS = {
    "joint": "one vocabulary of all languages' text",
    "union": "a vocabulary for each language; equal pieces have one id",
    "prefixed": "a vocabulary for each language; no id is in two of them",
    "separate": "a vocabulary for each language, and ids that mean nothing outside it",
}


@dataclasses.dataclass(frozen=True)
class LanguageVocabulary:
    """The pieces of each language as ids.

    way: one of `WAYS`. languages: their names. pieces: each language's vocabulary.
    ids: int32 [pieces] for each language, the id of each of its pieces.
    """

    way: str
    languages: tuple[str, ...]
    pieces: tuple[Pieces, ...]
    ids: tuple[np.ndarray, ...]

    @property
    def size(self) -> int:
        """Rows of the table of token embeddings: of a language's own one if they are separate."""
        return 1 + max(int(ids.max()) for ids in self.ids)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many pieces each language has."""
        return tuple(len(ids) for ids in self.ids)

    @property
    def sha256(self) -> str:
        """A hash of the pieces of all languages and their ids."""
        content = hashlib.sha256(self.way.encode())
        for pieces, ids in zip(self.pieces, self.ids, strict=True):
            content.update(pieces.sha256.encode() + ids.tobytes())
        return content.hexdigest()

    def encode(self, language: int, sentences: Sequence[str]) -> list[np.ndarray]:
        """Ids of each sentence of a language, int32 [pieces], without special tokens."""
        return [self.ids[language][found] for found in self.pieces[language].encode(sentences)]

    def names(self) -> list[list[str]]:
        """For each language, the name of every id; "" where it has none."""
        found = [[""] * self.size for _ in self.languages]
        for names, pieces, ids in zip(found, self.pieces, self.ids, strict=True):
            for name, number in zip(pieces.names, ids.tolist(), strict=True):
                names[number] = name
        return found

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """The ids of each language's pieces in increasing order, [languages, most pieces], and
        how many they are; rows are filled up with the largest."""
        table = np.stack(
            [np.pad(np.sort(ids), (0, max(self.sizes) - len(ids)), mode="edge") for ids in self.ids]
        )
        return table.astype(np.int32), np.array(self.sizes, np.int32)


def make(way: str, languages: Sequence[str], pieces: Sequence[Pieces]) -> LanguageVocabulary:
    """Gives ids to the pieces of languages.

    Args:
      way: one of `WAYS`.
      languages: their names.
      pieces: the one vocabulary of "joint", otherwise one for each language.

    Raises:
      ValueError: an unknown way, or another number of vocabularies.
    """
    if way not in WAYS:
        raise ValueError(f"vocabulary.sharing={way!r}: choose from {', '.join(WAYS)}")
    if len(pieces) != (1 if way == "joint" else len(languages)):
        raise ValueError(f"vocabulary.sharing={way!r}: {len(pieces)} vocabularies were given")
    if way == "joint":
        pieces = list(pieces) * len(languages)
    if way in ("joint", "separate"):
        ids = [np.arange(each.size) for each in pieces]
    elif way == "prefixed":
        firsts = np.cumsum([0] + [each.size - SPECIALS for each in pieces])
        own = [np.arange(each.size) for each in pieces]
        ids = [np.where(x < SPECIALS, x, x + first) for x, first in zip(own, firsts, strict=False)]
    else:
        known: dict[str, int] = {}
        ids = [
            np.array([known.setdefault(name, len(known)) for name in each.names]) for each in pieces
        ]
    return LanguageVocabulary(
        way, tuple(languages), tuple(pieces), tuple(x.astype(np.int32) for x in ids)
    )


def anchors(vocabulary: LanguageVocabulary, counts: Sequence[np.ndarray]) -> Mapping[str, float]:
    """How much the languages have in common.

    Args:
      vocabulary: of K languages.
      counts: for each language, how often each id occurs in its training text, [size].

    Returns:
      `anchors`: ordinary pieces that occur in the text of two languages or more.
      `anchor_share`: of the ordinary pieces that occur at all.
      `anchor_tokens_NAME`: the share of a language's tokens that they cover; `anchor_tokens`: the
      mean over languages.
    """
    occurs_KxV = np.stack([each > 0 for each in counts])
    occurs_KxV[:, :SPECIALS] = False
    is_anchor_V = occurs_KxV.sum(axis=0) > 1
    if vocabulary.way == "separate":
        is_anchor_V[:] = False
    found = {
        "anchors": float(is_anchor_V.sum()),
        "anchor_share": float(is_anchor_V.sum() / max(1, occurs_KxV.any(axis=0).sum())),
    }
    shares = [float(each[is_anchor_V].sum() / max(1, each[SPECIALS:].sum())) for each in counts]
    for name, share in zip(vocabulary.languages, shares, strict=True):
        found[f"anchor_tokens_{name}"] = share
    return found | {"anchor_tokens": float(np.mean(shares))}
