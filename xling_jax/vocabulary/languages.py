"""How languages share ids."""

import dataclasses

from xling_jax.vocabulary.pieces import SPECIAL_TOKENS, Pieces


@dataclasses.dataclass(frozen=True)
class ShiftedVocabulary:
    """Fake-English: language k's piece i has id i + k * shift (Dufter & Schütze 2020 §2.1).

    Every language has ids for special tokens too, which it uses only where they are not shared
    with the first language (§2.3, shift-special).
    """

    pieces: Pieces
    languages: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.languages or len(set(self.languages)) < len(self.languages):
            raise ValueError(
                f"languages={self.languages}: name at least one language, and each only once"
            )

    @property
    def shift(self) -> int:
        """Distance between the ids of a piece in one language and in the next."""
        return self.pieces.size

    @property
    def size(self) -> int:
        """Number of ids of all languages together."""
        return self.shift * len(self.languages)

    @property
    def sha256(self) -> str:
        """Of the pieces."""
        return self.pieces.sha256

    def offset(self, language: str) -> int:
        """What to add to a piece's id for this language; ValueError for an unknown one."""
        if language not in self.languages:
            raise ValueError(f"language {language!r} is not one of {', '.join(self.languages)}")
        return self.languages.index(language) * self.shift

    def ordinary(self, language: str) -> range:
        """The ids of this language that are no special tokens."""
        offset = self.offset(language)
        return range(offset + len(SPECIAL_TOKENS), offset + self.shift)

    def names(self) -> list[str]:
        """The name of every id: a piece with "::" before it once for the second language, ..."""
        return ["::" * k + name for k in range(len(self.languages)) for name in self.pieces.names]
