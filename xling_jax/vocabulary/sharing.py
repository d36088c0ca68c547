"""How languages share the ids of their pieces.

W&C (§4.2, §4.3) compare several ways, see `make`; in D&S each language has a range of ids, see
`ShiftedVocabulary`. Special tokens have the ids 0 to 4 in every language, unless D&S's
shift-special gives each language its own.
"""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from xling_jax.vocabulary.pieces import BLANK, SPECIALS, Pieces

WAYS = ("joint", "union", "prefixed", "separate")


@dataclasses.dataclass(frozen=True)
class LanguageVocabulary:
    """The pieces of each language as ids.

    way: see `make`. languages: their names. pieces: each language's vocabulary. ids: for each
    language, int32 [pieces], the id of each of its pieces.
    """

    way: str
    languages: tuple[str, ...]
    pieces: tuple[Pieces, ...]
    ids: tuple[np.ndarray, ...]

    @property
    def size(self) -> int:
        """Rows of the token embedding table, or of each language's table if they are separate."""
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
        """The piece of every id; "" for ids that the language does not have."""
        own = dict(zip(self.ids[language].tolist(), self.pieces[language].names, strict=True))
        return [own.get(number, "") for number in range(self.size)]

    def own_ids(self, occurring: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The ids of each language's pieces, in increasing order: its whole vocabulary, or, if the
        vocabulary is joint, the special tokens and the ids `occurring` in its text."""
        if self.way != "joint":
            return list(map(np.unique, self.ids))
        special = np.arange(SPECIALS, dtype=np.int32)
        return [np.union1d(special, text) for text in occurring]


def make(way: str, languages: Sequence[str], pieces: Sequence[Pieces]) -> LanguageVocabulary:
    """Gives ids to pieces.

    Args:
      way: "joint": one vocabulary learned from the text of all languages. Otherwise each language
        has a vocabulary: "union": equal pieces have the same id; "prefixed": only special tokens
        share ids; "separate": ids mean nothing outside their language.
      languages: their names.
      pieces: the one vocabulary, or each language's.

    Raises:
      ValueError: an unknown way, or a wrong number of vocabularies.
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

    counts: for each language, how often each id occurs in its training text, [size].

    Returns `anchors`, the number of ordinary pieces that occur in the text of two languages or
    more; `anchor_tokens_NAME`, the share of a language's ordinary tokens that these cover; and
    `anchor_tokens`, its mean over languages. All are 0 if the languages' ids are separate.
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


def fertility(vocabulary: LanguageVocabulary, counts: Sequence[np.ndarray]) -> Mapping[str, float]:
    """`fertility_NAME`, the mean number of pieces of a word in a language's training text, where
    words of other languages may have been put in. Words are what stands between blanks; unknown
    characters are not counted. For `counts` see `anchors`."""
    begins_KxV = np.array(
        [[piece.startswith(BLANK) for piece in vocabulary.names(k)] for k in range(len(counts))]
    )
    if vocabulary.way != "separate":  # an id stands for the same piece in every language
        begins_KxV[:] = begins_KxV.any(axis=0)
    return {
        f"fertility_{name}": float(count_V[SPECIALS:].sum() / max(1, count_V[begins_V].sum()))
        for name, count_V, begins_V in zip(vocabulary.languages, counts, begins_KxV, strict=True)
    }


@dataclasses.dataclass(frozen=True)
class ShiftedVocabulary:
    """Language k's piece i has id i + k * shift (D&S §2.1, §5).

    Every language has ids for special tokens too, but uses them only if they are not shared with
    the first language (D&S §2.3, shift-special).

    languages: their names. pieces: each language's vocabulary, all of one size. is_fake: whether
    all are the first language's, as in English and Fake-English.
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
        """Number of ids of a language."""
        return self.pieces[0].size

    @property
    def size(self) -> int:
        """Number of ids of all languages together."""
        return self.shift * len(self.languages)

    @property
    def sha256(self) -> str:
        """A hash of the pieces of all languages."""
        if self.is_fake:
            return self.pieces[0].sha256
        return hashlib.sha256("".join(own.sha256 for own in self.pieces).encode()).hexdigest()

    def names(self) -> list[str]:
        """The piece of every id. Those of fake language k have "::" before them k times; natural
        languages may have pieces in common."""
        mark = "::" * self.is_fake
        return [mark * k + name for k, own in enumerate(self.pieces) for name in own.names]

    def ordinary(self, language: int) -> range:
        """The ids of a language that are not special tokens."""
        return range(language * self.shift + SPECIALS, (language + 1) * self.shift)

    def shifted(
        self, ids: Sequence[np.ndarray], language: int, first: int = SPECIALS
    ) -> list[np.ndarray]:
        """Turns ids of pieces in their vocabulary into ids of a language; those below `first` stay
        the first language's."""
        return [np.where(x < first, x, x + language * self.shift) for x in ids]
