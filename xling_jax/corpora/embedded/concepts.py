"""The concepts of a language: what its words mean, what combines with what, and how often.

Meaning classes are the same for every language; which concepts they have is drawn.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig

# Below, lists of classes and words are strings of names separated by spaces.


class NounClass(NamedTuple):
    """A meaning class of nouns.

    share: of the common nouns, relative to other classes. adpositions: which attach its nouns as
    adjuncts or modifiers. adjectives, modifiers: classes of adjectives and nouns that may modify
    its nouns. entity: the type of its proper names; "" if it has none.
    """

    share: float
    adpositions: str
    adjectives: str
    modifiers: str
    entity: str


class VerbClass(NamedTuple):
    """A meaning class of verbs.

    share: of the verbs, relative to other classes. adverbs: classes of its adverbs. subjects,
    objects, complements, adjuncts: classes of the nouns in each role; without objects a verb is
    intransitive, without complements it governs no adposition. governed: adpositions, of which each
    verb governs one. clause: "ccomp" or "xcomp" if its verbs may govern a clause instead of an
    object.
    """

    share: float
    adverbs: str
    subjects: str
    objects: str
    complements: str
    governed: str
    adjuncts: str
    clause: str


def _rows(table: str) -> Iterator[list[str]]:
    for line in table.strip().splitlines():
        yield [column.strip() for column in line.split("|")]


_NOUNS = """
person    | 24  | with for without | human age size evaluation | place building group event | PER
animal    | 7   | with near like | size colour age human | place person |
plant     | 7   | under behind near | size colour age | place |
food      | 5   | with for without | taste colour evaluation | plant place |
substance | 3   | with in from | colour taste texture | place plant |
tool      | 8   | with without | size texture age | person substance |
vehicle   | 3   | by in on | size colour age evaluation | person group |
garment   | 3.5 | in under | colour texture size | person substance |
building  | 9   | in near at behind | size age evaluation | place person group |
place     | 10  | in near through across from | size climate evaluation | place plant | LOC
body      | 3   | on under with | size colour texture | person animal |
document  | 5   | in from about | abstract age evaluation | idea event person |
event     | 6   | during after before | abstract evaluation | place person group |
idea      | 5   | about for against | abstract evaluation | person event idea |
group     | 8   | with for against | size age evaluation | place | ORG
time      | 4.5 | during until after before | abstract climate | event place |
"""
_VERBS = """
motion      | 10 | person animal vehicle | | place building | to from into through across \
  | vehicle time person animal |
consumption | 6 | person animal | food plant | | | tool building time |
creation    | 7 | person group | tool food building document garment | | | tool substance time |
perception  | 6 | person animal | person animal vehicle event place plant \
  | | | time place building |
emotion     | 5 | person | person idea animal event food | | | event time |
attention   | 6 | person group | | idea event document person | about for of at \
  | building time person |
speech      | 6 | person group | idea document | | | building event | ccomp
thought     | 6 | person | idea event | | | time | ccomp
desire      | 5 | person animal | food tool garment vehicle | | | event time | xcomp
transfer    | 7 | person group | tool food document garment animal | person group | to for \
  | building time |
placement   | 6 | person | tool food garment document substance | building tool body plant vehicle \
  | in on under behind | time person |
change      | 7 | plant animal body substance vehicle | | | | time place building |
occurrence  | 5 | event time idea | | | | time place building |
damage      | 6 | person animal event vehicle | building tool vehicle body plant | | | tool event |
possession  | 5 | person group | building animal tool vehicle garment document \
  | | | time place building |
company     | 8 | person group | person group | | | event building place |
containment | 4 | place building document | person plant idea substance | | | time place building |
handling    | 6 | person | tool substance garment body vehicle | | | tool body building |
"""
MASS = ("substance",)  # classes of nouns without a plural
_ADVERBS = "frequency certainty time"  # of every verb; all but states also have adverbs of manner
_STATES = ("emotion", "thought", "desire", "occurrence", "possession", "containment")

NOUN_CLASSES = {name: NounClass(float(share), *columns) for name, share, *columns in _rows(_NOUNS)}
VERB_CLASSES = {
    name: VerbClass(float(share), "manner " * (name not in _STATES) + _ADVERBS, *columns)
    for name, share, *columns in _rows(_VERBS)
}

# Adjectives and adverbs: class to share of the words of its kind.
_ADJECTIVE_CLASSES = {"size": 14, "colour": 10, "age": 11, "evaluation": 16, "human": 11}
_ADJECTIVE_CLASSES |= {"taste": 4, "texture": 6, "abstract": 7, "climate": 7}
_ADVERB_CLASSES = {"manner": 11, "frequency": 8, "certainty": 5, "time": 7}

# Function words by category, named by their words in the first language, which are English.
FUNCTION_WORDS = {
    "DET": "the a this some every no my your his our their two three many few",
    "ADP": "of in on at to from with without for by about near under behind through across into "
    "during until after before against like",
    "PRON": "i you he she it we they who which what",
    "ADV": "where",
    "AUX": "be have do will can must may should",
    "PART": "not",
    "SCONJ": "that because when if while although",
    "CCONJ": "and but or",
    "PUNCT": ". ? ,",
}

# Shares of the content words, for a `name_types` of 16 %; the remaining words are common nouns.
_NAMES = {"surname": 0.03, "person": 0.06, "place": 0.04, "group": 0.03}
_OTHERS = {"VERB": 0.21, "ADJ": 0.13, "ADV": 0.06}
_GENERAL = 0.25  # share of the content words that belong to no topic
_MANDELBROT = 2.7  # flattens the head of Zipf's law (Mandelbrot 1953)


@dataclasses.dataclass(frozen=True, slots=True)
class Concept:
    """A dictionary word's meaning.

    index: its number among all concepts of the language. row: its number among those of its kind
    (see `Concepts`), which is also its row or column in tables of preferences; of a function word,
    its number in its category. category: universal part of speech. meaning: meaning class; of a
    function word, its English word. topic: number of its topic; -1 if it belongs to none.
    """

    index: int
    row: int
    category: str
    meaning: str
    topic: int = -1


@dataclasses.dataclass(frozen=True)
class Concepts:
    """All concepts of a language, by kind.

    Each kind goes from the most to the least frequent. In `nouns` this holds only among the common
    nouns of a class, and among its names.

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
        return [*self.function.values(), *self.content()]

    def content(self) -> list[Concept]:
        """The concepts that are not function words."""
        return [*self.nouns, *self.verbs, *self.adjectives, *self.adverbs, *self.surnames]

    def in_domain(self, config: SecondConfig, seed: int) -> "Concepts":
        """The concepts with the frequencies and topics of a second language's domain; kinds are
        then no longer sorted by frequency. seed: of the first language."""
        if config.domain == 0:
            return self
        rng = np.random.Generator(np.random.PCG64([seed, config.seed, 2]))
        share = config.domain
        frequency = {
            kind: (1 - share) * own + share * _dealt(getattr(self, kind), own, rng)
            for kind, own in self.frequency.items()
        }
        # The topics' probabilities fall with their number.
        topics = (1 - share) * self.topics + share * self.topics[::-1]
        return dataclasses.replace(self, frequency=frequency, topics=topics)


def _dealt(kind: list[Concept], frequency: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permutes frequencies among concepts of the same category and meaning class."""
    dealt = frequency.copy()
    for key in dict.fromkeys((concept.category, concept.meaning) for concept in kind):
        rows = [concept.row for concept in kind if (concept.category, concept.meaning) == key]
        dealt[rows] = frequency[rng.permutation(rows)]
    return dealt


def draw(config: LanguageConfig, rng: np.random.Generator) -> Concepts:
    """Draws the concepts of a language: their number, meaning classes, topics and frequencies."""
    # Topics of unequal frequency can be told apart by it.
    topics = _zipf(config.topics, 0.5, shift=0.0)
    function: dict[str, Concept] = {}
    for category, words in FUNCTION_WORDS.items():
        for row, word in enumerate(words.split()):
            function[word] = Concept(len(function), row, category, word)

    content = config.word_types - len(function)
    names, others = config.name_types / 0.16, (1 - config.name_types) / 0.84
    shares = {kind: share * others for kind, share in _OTHERS.items()}
    shares |= {kind: share * names for kind, share in _NAMES.items()}
    count = {kind: max(2, round(content * share)) for kind, share in shares.items()}
    common = content - sum(count.values())
    noun_shares = {name: noun.share for name, noun in NOUN_CLASSES.items()}
    verb_shares = {name: verb.share for name, verb in VERB_CLASSES.items()}
    proper = [("PROPN", kind) for kind in ("person", "place", "group") for _ in range(count[kind])]
    kinds = {
        "nouns": _apportion(common, noun_shares, "NOUN") + proper,
        "verbs": _apportion(count["VERB"], verb_shares, "VERB"),
        "adjectives": _apportion(count["ADJ"], _ADJECTIVE_CLASSES, "ADJ"),
        "adverbs": _apportion(count["ADV"], _ADVERB_CLASSES, "ADV"),
        "surnames": [("PROPN", "surname")] * count["surname"],
    }
    made: dict[str, list[Concept]] = {}
    first = len(function)
    for kind, members in kinds.items():
        order = rng.permutation(len(members))
        topic = rng.choice(config.topics, size=len(members), p=topics)
        topic = np.where(rng.random(len(members)) < _GENERAL, -1, topic)
        made[kind] = [
            Concept(first + row, row, category, meaning, int(topic[row]))
            for row, (category, meaning) in enumerate(members[member] for member in order)
        ]
        first += len(members)
    frequency = {kind: _zipf(len(made[kind]), config.zipf_exponent) for kind in made}
    frequency["nouns"] = _share_with_names(made["nouns"], frequency["nouns"], config.names)
    return Concepts(**made, function=function, frequency=frequency, topics=topics)


def _zipf(number: int, exponent: float, shift: float = _MANDELBROT) -> np.ndarray:
    weights = (np.arange(1, number + 1) + shift) ** -exponent
    return weights / weights.sum()


def _apportion(number: int, shares: Mapping[str, float], category: str) -> list[tuple[str, str]]:
    """`number` pairs (category, class): one of each class, and the others in these shares."""
    ends = np.cumsum(list(shares.values()))
    ends = np.round(ends / ends[-1] * (number - len(shares))).astype(int)
    return [
        (category, name) for name in np.repeat(list(shares), np.diff(ends, prepend=0) + 1).tolist()
    ]


def _share_with_names(nouns: list[Concept], frequency: np.ndarray, names: float) -> np.ndarray:
    """Scales frequencies so that names make up the share `names` of every class that has any."""
    scaled = frequency.copy()
    for meaning in NOUN_CLASSES:
        common = np.array([n.meaning == meaning and n.category == "NOUN" for n in nouns])
        proper = np.array([n.meaning == meaning and n.category == "PROPN" for n in nouns])
        if proper.any():
            total = frequency[common | proper].sum()
            scaled[common] *= (1 - names) * total / frequency[common].sum()
            scaled[proper] *= names * total / frequency[proper].sum()
    return scaled
