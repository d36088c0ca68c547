"""The knobs of a second embedded language, which is derived from a first."""

import dataclasses

from xling_jax import schema
from xling_jax.corpora.embedded.morphology import MORPHOLOGIES

FIELDS = {
    "anchors": schema.share(
        "share of the dictionary words that are the same in both languages, names before all "
        "others; punctuation, which always is, does not count; more anchors are the same ones and "
        "others, and leave the remaining words as they are"
    ),
    "script": schema.choice(
        "with cyrillic every word but the anchors, which then do not inflect, is written letter "
        "for letter in Cyrillic, so that the languages share no other piece",
        "latin",
        "cyrillic",
    ),
    "order": schema.choice(
        "of subject, verb and object; pronouns that ask or relate stand first in their clause in "
        "any order",
        "svo",
        "sov",
        "vso",
    ),
    "adpositions": schema.choice("where they stand to their noun", "before", "after"),
    "adjectives": schema.choice("where they stand to their noun", "before", "after"),
    "inverted": schema.flag(
        "every sentence is turned round but for its last mark (the inverted order of Dufter & "
        "Schütze 2020)"
    ),
    "morphology": schema.choice(
        "isolating: the dictionary form is the only one; rich: other suffixes than English, cases "
        "of nouns and pronouns, and agreement of verbs; only an SVO language of English morphology "
        'has English inversion and "do"',
        *MORPHOLOGIES,
    ),
    "articles": schema.flag("whether there are any"),
    "domain": schema.share(
        "how far its own text is in topics and word frequencies from the first language's: 0 is "
        "the same; at 1 the rarest topic is as frequent as the first language's most frequent one, "
        "and so on, and the frequencies of words of the same kind and meaning class are dealt out "
        "anew; between, both are mixed; translations are not affected"
    ),
    "seed": schema.seed("of its words, and of which of them are anchors"),
}


@dataclasses.dataclass(frozen=True)
class SecondConfig:
    """How a second language differs from the first, with which it shares what can be said.

    With the defaults it has other words, and is otherwise the same; `FIELDS` says what each value
    means.
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
        schema.check(dataclasses.asdict(self), FIELDS)


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
