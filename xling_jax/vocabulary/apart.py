"""A vocabulary for each of several natural languages, with nothing in common."""

import dataclasses
import hashlib
from collections.abc import Sequence

from xling_jax.vocabulary.pieces import SPECIAL_TOKENS, Pieces


@dataclasses.dataclass(frozen=True)
class ApartVocabulary:
    """Language k's piece i has id i + k * shift, as Fake-English's (D&S §5).

    The languages have as many pieces each. Special tokens are the first language's, unless a
    setting gives each language its own.
    """

    pieces: Sequence[Pieces]
    languages: tuple[str, ...]

    def __post_init__(self) -> None:
        if len({own.size for own in self.pieces}) != 1 or len(self.pieces) != len(self.languages):
            raise ValueError("give each language a vocabulary, all of one size")

    @property
    def shift(self) -> int:
        """Ids of a language."""
        return self.pieces[0].size

    @property
    def size(self) -> int:
        """Ids of all."""
        return self.shift * len(self.languages)

    @property
    def sha256(self) -> str:
        """Of the pieces of all."""
        return hashlib.sha256("".join(own.sha256 for own in self.pieces).encode()).hexdigest()

    def ordinary(self, language: str) -> range:
        """The ids of a language that are no special tokens."""
        first = self.languages.index(language) * self.shift
        return range(first + len(SPECIAL_TOKENS), first + self.shift)

    def names(self) -> list[str]:
        """The piece of every id; several languages may have the same one."""
        return [name for own in self.pieces for name in own.names]
