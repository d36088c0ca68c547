"""How languages share the ids of their pieces.

W&C (§4.2, §4.3) compare several ways, see `make`; in D&S each language has a range of ids, see
`ShiftedVocabulary`. Special tokens have the ids 0 to 4 in every language.
"""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from xling_jax.vocabulary.pieces import SPECIAL_TOKENS, Pieces

SPECIALS = len(SPECIAL_TOKENS)
WAYS = ("joint", "union", "prefixed", "separate")


@dataclasses.dataclass(frozen=True)
class LanguageVocabulary:
    """The pieces of each language as ids. way: see `make`. languages: their names. pieces: each
    language's vocabulary. ids: int32 [pieces] for each language, the id of each of its pieces."""

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
        """How many pieces each language's vocabulary has."""
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

    def names(self, language: int) -> list[str]:
        """The name of every id; "" where the language has none."""
        own = dict(zip(self.ids[language].tolist(), self.pieces[language].names, strict=True))
        return [own.get(number, "") for number in range(self.size)]

    def own_ids(self, occurring: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The ids of each language's pieces in increasing order: all of its vocabulary, but of a
        joint one the special tokens and those `occurring` in its text."""
        if self.way != "joint":
            return list(map(np.unique, self.ids))
        special = np.arange(SPECIALS, dtype=np.int32)
        return [np.union1d(special, text) for text in occurring]


def make(way: str, languages: Sequence[str], pieces: Sequence[Pieces]) -> LanguageVocabulary:
    """Gives ids to pieces.

    Args:
      way: "joint", one vocabulary of all languages' text, or a vocabulary for each language:
        "union", equal pieces have one id; "prefixed", no id is in two of them; "separate", ids
        mean nothing outside the language.
      languages: their names.
      pieces: the one vocabulary, or each language's.

    Raises:
      ValueError: an unknown way, or another number of vocabularies.
    """
    if way not in WAYS:
        raise ValueError(f"vocabulary.sharing={way!r}: choose from {', '.join(WAYS)}")
    if len(pieces) != (1 if way == "joint" else len(languages)):
        raise ValueError(f"vocabulary.sharing={way!r}: {len(pieces)} vocabularies were given")
    if way == "joint":
        pieces = list(pieces) * len(languages)
    ids = [np.arange(each.size) for each in pieces]
    if way == "prefixed":
        firsts = np.cumsum([0] + [each.size - SPECIALS for each in pieces])
        ids = [np.where(x < SPECIALS, x, x + first) for x, first in zip(ids, firsts, strict=False)]
    elif way == "union":
        known: dict[str, int] = {}
        ids = [
            np.array([known.setdefault(name, len(known)) for name in each.names]) for each in pieces
        ]
    return LanguageVocabulary(
        way, tuple(languages), tuple(pieces), tuple(x.astype(np.int32) for x in ids)
    )


def anchors(vocabulary: LanguageVocabulary, counts: Sequence[np.ndarray]) -> Mapping[str, float]:
    """How much the languages have in common.

    vocabulary: of K languages. counts: for each language, how often each id occurs in its training
    text, [size]. Returns `anchors`: ordinary pieces that occur in the text of two languages or
    more. `anchor_tokens_NAME`: the share of a language's tokens that they cover; `anchor_tokens`:
    the mean over languages.
    """
    occurs_KxV = np.stack([each > 0 for each in counts])
    occurs_KxV[:, :SPECIALS] = False
    is_anchor_V = (occurs_KxV.sum(axis=0) > 1) & (vocabulary.way != "separate")
    shares = [float(each[is_anchor_V].sum() / max(1, each[SPECIALS:].sum())) for each in counts]
    names = [f"anchor_tokens_{name}" for name in vocabulary.languages]
    return {
        "anchors": float(is_anchor_V.sum()),
        **dict(zip(names, shares, strict=True)),
        "anchor_tokens": float(np.mean(shares)),
    }


@dataclasses.dataclass(frozen=True)
class ShiftedVocabulary:
    """Language k's piece i has id i + k * shift (D&S §2.1, §5).

    Every language has ids for special tokens too, which it uses only where they are not shared
    with the first language (D&S §2.3, shift-special).

    languages: their names. pieces: each language's, all of one size. is_fake: whether they are all
    the first one's, as in English and Fake-English.
    """

    languages: tuple[str, ...]
    pieces: tuple[Pieces, ...]
    is_fake: bool = False

    def __post_init__(self) -> None:
        if not self.languages or len(set(self.languages)) < len(self.languages):
            raise ValueError(
                f"languages={self.languages}: name at least one language, and each only once"
            )
        if len({own.size for own in self.pieces}) != 1 or len(self.pieces) != len(self.languages):
            raise ValueError("give each language a vocabulary, all of one size")

    @property
    def shift(self) -> int:
        """Ids of a language."""
        return self.pieces[0].size

    @property
    def size(self) -> int:
        """Ids of all languages together."""
        return self.shift * len(self.languages)

    @property
    def sha256(self) -> str:
        """Of the pieces."""
        if self.is_fake:
            return self.pieces[0].sha256
        return hashlib.sha256("".join(own.sha256 for own in self.pieces).encode()).hexdigest()

    def names(self) -> list[str]:
        """The piece of every id, with "::" before it once for Fake-English; several natural
        languages may have the same one."""
        mark = "::" * self.is_fake
        return [mark * k + name for k, own in enumerate(self.pieces) for name in own.names]

    def ordinary(self, language: int) -> range:
        """The ids of a language that are no special tokens."""
        return range(language * self.shift + SPECIALS, (language + 1) * self.shift)

    def shifted(
        self, ids: Sequence[np.ndarray], language: int, first: int = SPECIALS
    ) -> list[np.ndarray]:
        """Numbers of pieces as ids of a language; those below `first` stay the first language's."""
        return [np.where(x < first, x, x + language * self.shift) for x in ids]
