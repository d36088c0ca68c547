"""The concepts of a language: what its words mean, and how often they are spoken of."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from xling_jax.corpora.embedded import ontology
from xling_jax.corpora.embedded.config import LanguageConfig

# Of the words that are not function words; the rest are common nouns.
_SHARES = {"VERB": 0.21, "ADJ": 0.13, "ADV": 0.06, "PERSON": 0.06, "SURNAME": 0.03}
_SHARES |= {"PLACE": 0.04, "GROUP": 0.03}
_GENERAL = 0.25  # of the content words belong to no topic
_MANDELBROT = 2.7  # flattens the head of Zipf's law (Mandelbrot 1953)


@dataclasses.dataclass(frozen=True, slots=True)
class Concept:
    """A dictionary word's meaning.

    Attributes:
      index: among all concepts of the language.
      row: among those of its kind (`Concepts`), the row and column of its preferences.
      category: universal part of speech.
      meaning: meaning class; of a function word, its English word.
      topic: number of its topic, -1 if it belongs to none.
    """

    index: int
    row: int
    category: str
    meaning: str
    topic: int = -1


@dataclasses.dataclass(frozen=True)
class Concepts:
    """All concepts of a language, by kind, each kind from the most to the least frequent.

    Attributes:
      nouns: common nouns and names of persons, places and groups.
      verbs, adjectives, adverbs, surnames: the other content words.
      function: function words by their English words.
      frequency: by kind, relative frequencies `[concepts of the kind]`, summing to 1.
      topics: probability of each topic `[topics]`.
    """

    nouns: list[Concept]
    verbs: list[Concept]
    adjectives: list[Concept]
    adverbs: list[Concept]
    surnames: list[Concept]
    function: dict[str, Concept]
    frequency: dict[str, np.ndarray]
    topics: np.ndarray

    def all(self) -> list[Concept]:
        """Every concept, in the order of `Concept.index`."""
        kinds = (self.nouns, self.verbs, self.adjectives, self.adverbs, self.surnames)
        return [*self.function.values(), *(concept for kind in kinds for concept in kind)]


def draw(config: LanguageConfig, rng: np.random.Generator) -> Concepts:
    """Draws the concepts of a language: their number, meaning classes, topics and frequencies."""
    # Unequal topics can be told apart by how often they come up.
    topics = _zipf(config.topics, 0.5, shift=0.0)
    function: dict[str, Concept] = {}
    for category, words in ontology.FUNCTION_WORDS.items():
        for row, word in enumerate(words):
            function[word] = Concept(len(function), row, category, word)

    content = config.word_types - len(function)
    count = {kind: max(2, round(content * share)) for kind, share in _SHARES.items()}
    common = content - sum(count.values())
    noun_shares = {name: noun.share for name, noun in ontology.NOUN_CLASSES.items()}
    verb_shares = {name: verb.share for name, verb in ontology.VERB_CLASSES.items()}
    names = {"person": count["PERSON"], "place": count["PLACE"], "group": count["GROUP"]}
    kinds = {
        "nouns": _apportion(common, noun_shares, "NOUN")
        + [("PROPN", name) for name, number in names.items() for _ in range(number)],
        "verbs": _apportion(count["VERB"], verb_shares, "VERB"),
        "adjectives": _apportion(count["ADJ"], ontology.ADJECTIVE_CLASSES, "ADJ"),
        "adverbs": _apportion(count["ADV"], ontology.ADVERB_CLASSES, "ADV"),
        "surnames": [("PROPN", "surname")] * count["SURNAME"],
    }
    made: dict[str, list[Concept]] = {}
    first = len(function)
    for kind, members in kinds.items():
        order = rng.permutation(len(members))
        topic = rng.choice(config.topics, size=len(members), p=topics)
        topic = np.where(rng.random(len(members)) < _GENERAL, -1, topic)
        made[kind] = []
        for row, member in enumerate(order):
            category, meaning = members[member]
            concept = Concept(first + row, row, category, meaning, int(topic[row]))
            made[kind].append(concept)
        first += len(members)
    frequency = {kind: _zipf(len(made[kind]), config.zipf_exponent) for kind in made}
    frequency["nouns"] = _share_with_names(made["nouns"], frequency["nouns"], config.names)
    return Concepts(**made, function=function, frequency=frequency, topics=topics)


def _zipf(number: int, exponent: float, shift: float = _MANDELBROT) -> np.ndarray:
    weights = (np.arange(1, number + 1) + shift) ** -exponent
    return weights / weights.sum()


def _apportion(number: int, shares: Mapping[str, float], category: str) -> list[tuple[str, str]]:
    """`number` pairs (category, class), at least one a class, otherwise in these shares."""
    ends = np.cumsum(list(shares.values()))
    ends = np.round(ends / ends[-1] * (number - len(shares))).astype(int)
    counts = np.diff(ends, prepend=0) + 1
    return [
        (category, name) for name, count in zip(shares, counts, strict=True) for _ in range(count)
    ]


def _share_with_names(nouns: list[Concept], frequency: np.ndarray, names: float) -> np.ndarray:
    """Scales frequencies so that names have this share of every class that has names."""
    scaled = frequency.copy()
    for meaning in ontology.NOUN_CLASSES:
        common = np.array([n.meaning == meaning and n.category == "NOUN" for n in nouns])
        proper = np.array([n.meaning == meaning and n.category == "PROPN" for n in nouns])
        if proper.any():
            total = frequency[common | proper].sum()
            scaled[common] *= (1 - names) * total / frequency[common].sum()
            scaled[proper] *= names * total / frequency[proper].sum()
    return scaled
