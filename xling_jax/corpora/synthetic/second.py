"""The knobs of a second embedded language, which is derived from a first."""

import dataclasses

from xling_jax.corpora.synthetic.morphology import MORPHOLOGIES

_CHOICES = {
    "script": ("latin", "cyrillic"),
    "order": ("svo", "sov", "vso"),
    "adpositions": ("before", "after"),
    "adjectives": ("before", "after"),
    "morphology": MORPHOLOGIES,
}


@dataclasses.dataclass(frozen=True)
class SecondConfig:
    """How a second language differs from the first, with which it shares what can be said.

    With the defaults it has other words, and is otherwise the same.

    Attributes:
      anchors: share of the dictionary words that are the same in both languages, names before
        all others; punctuation, which always is, does not count. More anchors are the same ones
        and others, and leave the remaining words as they are.
      script: "latin", or "cyrillic": every word but the anchors, which then do not inflect, is
        written letter for letter in Cyrillic, so that the languages share no other piece.
      order: of subject, verb and object: "svo", "sov" or "vso". Pronouns that ask or relate
        stand first in their clause in any order.
      adpositions: "before" or "after" their noun.
      adjectives: "before" or "after" their noun.
      inverted: every sentence is turned round but for its last mark (the inverted order of
        Dufter & Schütze 2020).
      morphology: "english"; "isolating", where the dictionary form is the only one; or "rich",
        with other suffixes than English, cases of nouns and pronouns, and agreement of verbs.
        Only an SVO language of English morphology has English inversion and "do".
      articles: whether there are any.
      domain: how far its own text is in topics and word frequencies from the first language's: 0
        is the same; at 1 the rarest topic is as frequent as the first language's most frequent
        one, and so on, and the frequencies of words of the same kind and meaning class are dealt
        out anew. Between, both are mixed. Translations are not affected.
      seed: of its words, and of which of them are anchors; at least 0.
    """

    anchors: float = 0.0
    script: str = "latin"
    order: str = "svo"
    adpositions: str = "before"
    adjectives: str = "before"
    inverted: bool = False
    morphology: str = "english"
    articles: bool = True
    domain: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("anchors", "domain"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ValueError(f"{name}={value!r}: give a share of 0 (none) to 1 (all)")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                named = " or ".join(repr(choice) for choice in choices)
                raise ValueError(f"{name}={value!r}: give {named}")
        for name in ("inverted", "articles"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise ValueError(f"{name}={value!r}: give True or False")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed={self.seed!r}: give a whole number of at least 0")


# As a Romance language is to English.
NEAR = SecondConfig(anchors=0.25, adjectives="after")
# As a language of another family, script and type is.
FAR = SecondConfig(
    anchors=0.05,
    script="cyrillic",
    order="sov",
    adpositions="after",
    morphology="rich",
    articles=False,
)
