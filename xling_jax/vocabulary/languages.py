"""How languages share ids, each having a range of them."""

import abc
import dataclasses
import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from xling_jax.vocabulary.pieces import SPECIAL_TOKENS, Pieces


class SeparateIds(abc.ABC):
    """Language k's piece i has id i + k * shift.

    Every language has ids for special tokens too, which it uses only where they are not shared
    with the first language (Dufter & Schütze 2020 §2.3, shift-special).
    """

    languages: tuple[str, ...]

    def __post_init__(self) -> None:
        """Checks the languages."""
        if not self.languages or len(set(self.languages)) < len(self.languages):
            raise ValueError(
                f"languages={self.languages}: name at least one language, and each only once"
            )

    @property
    @abc.abstractmethod
    def shift(self) -> int:
        """Distance between the ids of a piece in one language and in the next."""

    @property
    def size(self) -> int:
        """Number of ids of all languages together."""
        return self.shift * len(self.languages)

    def offset(self, language: str) -> int:
        """What to add to a piece's id for this language; ValueError for an unknown one."""
        if language not in self.languages:
            raise ValueError(f"language {language!r} is not one of {', '.join(self.languages)}")
        return self.languages.index(language) * self.shift

    def ordinary(self, language: str) -> range:
        """The ids of this language that are no special tokens."""
        offset = self.offset(language)
        return range(offset + len(SPECIAL_TOKENS), offset + self.shift)

    def shifted(
        self, ids: Iterable[np.ndarray], language: str, first: int = len(SPECIAL_TOKENS)
    ) -> list[np.ndarray]:
        """Ids of the first language's pieces as ids of a language's; those below `first` stay."""
        offset = self.offset(language)
        return [np.where(x < first, x, x + offset) for x in ids]


@dataclasses.dataclass(frozen=True)
class ShiftedVocabulary(SeparateIds):
    """Fake-English: the same pieces for every language (Dufter & Schütze 2020 §2.1)."""

    pieces: Pieces
    languages: tuple[str, ...]

    @property
    def shift(self) -> int:
        """See `SeparateIds`."""
        return self.pieces.size

    @property
    def sha256(self) -> str:
        """Of the pieces."""
        return self.pieces.sha256

    def names(self) -> list[str]:
        """The name of every id: a piece with "::" before it once for the second language, ..."""
        return ["::" * k + name for k in range(len(self.languages)) for name in self.pieces.names]


@dataclasses.dataclass(frozen=True)
class ApartVocabulary(SeparateIds):
    """Pieces of its own for each of several natural languages, as many of each (D&S §5)."""

    pieces: Sequence[Pieces]
    languages: tuple[str, ...]

    def __post_init__(self) -> None:
        """Checks the languages and the sizes of their vocabularies."""
        super().__post_init__()
        if len({own.size for own in self.pieces}) != 1 or len(self.pieces) != len(self.languages):
            raise ValueError("give each language a vocabulary, all of one size")

    @property
    def shift(self) -> int:
        """See `SeparateIds`."""
        return self.pieces[0].size

    @property
    def sha256(self) -> str:
        """Of the pieces of all."""
        return hashlib.sha256("".join(own.sha256 for own in self.pieces).encode()).hexdigest()

    def names(self) -> list[str]:
        """The piece of every id; several languages may have the same one."""
        return [name for own in self.pieces for name in own.names]
