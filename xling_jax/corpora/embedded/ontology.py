"""Meaning classes and what they combine with, the same for every language."""

import dataclasses

# Meaning classes of nouns that may be taken together below.
_THINGS = ("tool", "vehicle", "garment", "document")
_PLACES = ("place", "building")
_AGENTS = ("person", "group")


@dataclasses.dataclass(frozen=True)
class NounClass:
    """A meaning class of nouns.

    Attributes:
      share: of the common nouns, relative to the other classes.
      adpositions: by which a noun of the class is attached as an adjunct or a modifier.
      adjectives: classes of the adjectives that it takes.
      modifiers: classes of the nouns that may modify it.
      mass: without a plural.
      entity: type of its proper names, "" if it has none.
      pronoun: kind of the pronoun that stands for it.
    """

    share: float
    adpositions: tuple[str, ...]
    adjectives: tuple[str, ...]
    modifiers: tuple[str, ...]
    mass: bool = False
    entity: str = ""
    pronoun: str = "thing"


NOUN_CLASSES = {
    "person": NounClass(
        24,
        ("with", "for", "without"),
        ("human", "age", "size", "evaluation"),
        _PLACES + ("group", "event"),
        entity="PER",
        pronoun="person",
    ),
    "animal": NounClass(
        7, ("with", "near", "like"), ("size", "colour", "age", "human"), ("place", "person")
    ),
    "plant": NounClass(7, ("under", "behind", "near"), ("size", "colour", "age"), ("place",)),
    "food": NounClass(
        5, ("with", "for", "without"), ("taste", "colour", "evaluation"), ("plant", "place")
    ),
    "substance": NounClass(
        3, ("with", "in", "from"), ("colour", "taste", "texture"), ("place", "plant"), mass=True
    ),
    "tool": NounClass(8, ("with", "without"), ("size", "texture", "age"), ("person", "substance")),
    "vehicle": NounClass(3, ("by", "in", "on"), ("size", "colour", "age", "evaluation"), _AGENTS),
    "garment": NounClass(
        3.5, ("in", "under"), ("colour", "texture", "size"), ("person", "substance")
    ),
    "building": NounClass(
        9, ("in", "near", "at", "behind"), ("size", "age", "evaluation"), ("place", *_AGENTS)
    ),
    "place": NounClass(
        10,
        ("in", "near", "through", "across", "from"),
        ("size", "climate", "evaluation"),
        ("place", "plant"),
        entity="LOC",
    ),
    "body": NounClass(
        3, ("on", "under", "with"), ("size", "colour", "texture"), ("person", "animal")
    ),
    "document": NounClass(
        5, ("in", "from", "about"), ("abstract", "age", "evaluation"), ("idea", "event", "person")
    ),
    "event": NounClass(
        6, ("during", "after", "before"), ("abstract", "evaluation"), ("place", *_AGENTS)
    ),
    "idea": NounClass(
        5, ("about", "for", "against"), ("abstract", "evaluation"), ("person", "event", "idea")
    ),
    "group": NounClass(
        8, ("with", "for", "against"), ("size", "age", "evaluation"), ("place",), entity="ORG"
    ),
    "time": NounClass(
        4.5, ("during", "until", "after", "before"), ("abstract", "climate"), ("event", "place")
    ),
}


@dataclasses.dataclass(frozen=True)
class VerbClass:
    """A meaning class of verbs.

    Attributes:
      share: of the verbs, relative to the other classes.
      subjects, objects, complements: classes of the nouns that may fill the role; without
        objects the verb is intransitive, without complements it governs no adposition.
      adpositions: of which each verb governs one.
      clause: "ccomp" or "xcomp" if it may govern a clause in the place of an object, else "".
      adjuncts: classes of the nouns that may be adjuncts.
      adverbs: classes of the adverbs that it takes.
    """

    share: float
    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()
    complements: tuple[str, ...] = ()
    adpositions: tuple[str, ...] = ()
    clause: str = ""
    adjuncts: tuple[str, ...] = ("time", *_PLACES)
    adverbs: tuple[str, ...] = ("manner", "frequency", "certainty", "time")


_WITHOUT_MANNER = ("frequency", "certainty", "time")

VERB_CLASSES = {
    "motion": VerbClass(
        10,
        ("person", "animal", "vehicle"),
        complements=_PLACES,
        adpositions=("to", "from", "into", "through", "across"),
        adjuncts=("vehicle", "time", "person", "animal"),
    ),
    "consumption": VerbClass(
        6, ("person", "animal"), ("food", "plant"), adjuncts=("tool", "building", "time")
    ),
    "creation": VerbClass(
        7,
        _AGENTS,
        ("tool", "food", "building", "document", "garment"),
        adjuncts=("tool", "substance", "time"),
    ),
    "perception": VerbClass(
        6, ("person", "animal"), ("person", "animal", "vehicle", "event", "place", "plant")
    ),
    "emotion": VerbClass(
        5,
        ("person",),
        ("person", "idea", "animal", "event", "food"),
        adjuncts=("event", "time"),
        adverbs=_WITHOUT_MANNER,
    ),
    "attention": VerbClass(
        6,
        _AGENTS,
        complements=("idea", "event", "document", "person"),
        adpositions=("about", "for", "of", "at"),
        adjuncts=("building", "time", "person"),
    ),
    "speech": VerbClass(
        6, _AGENTS, ("idea", "document"), clause="ccomp", adjuncts=("building", "event")
    ),
    "thought": VerbClass(
        6,
        ("person",),
        ("idea", "event"),
        clause="ccomp",
        adjuncts=("time",),
        adverbs=_WITHOUT_MANNER,
    ),
    "desire": VerbClass(
        5,
        ("person", "animal"),
        ("food", "tool", "garment", "vehicle"),
        clause="xcomp",
        adjuncts=("event", "time"),
        adverbs=_WITHOUT_MANNER,
    ),
    "transfer": VerbClass(
        7,
        _AGENTS,
        ("tool", "food", "document", "garment", "animal"),
        _AGENTS,
        ("to", "for"),
        adjuncts=("building", "time"),
    ),
    "placement": VerbClass(
        6,
        ("person",),
        ("tool", "food", "garment", "document", "substance"),
        ("building", "tool", "body", "plant", "vehicle"),
        ("in", "on", "under", "behind"),
        adjuncts=("time", "person"),
    ),
    "change": VerbClass(7, ("plant", "animal", "body", "substance", "vehicle")),
    "occurrence": VerbClass(5, ("event", "time", "idea"), adverbs=_WITHOUT_MANNER),
    "damage": VerbClass(
        6,
        ("person", "animal", "event", "vehicle"),
        ("building", "tool", "vehicle", "body", "plant"),
        adjuncts=("tool", "event"),
    ),
    "possession": VerbClass(5, _AGENTS, ("building", "animal", *_THINGS), adverbs=_WITHOUT_MANNER),
    "company": VerbClass(8, _AGENTS, _AGENTS, adjuncts=("event", "building", "place")),
    "containment": VerbClass(
        4,
        ("place", "building", "document"),
        ("person", "plant", "idea", "substance"),
        adverbs=_WITHOUT_MANNER,
    ),
    "handling": VerbClass(
        6,
        ("person",),
        ("tool", "substance", "garment", "body", "vehicle"),
        adjuncts=("tool", "body", "building"),
    ),
}

# Adjectives and adverbs: class to share of the words of its kind.
ADJECTIVE_CLASSES = {
    "size": 14,
    "colour": 10,
    "age": 11,
    "evaluation": 16,
    "human": 11,
    "taste": 4,
    "texture": 6,
    "abstract": 7,
    "climate": 7,
}
ADVERB_CLASSES = {"manner": 11, "frequency": 8, "certainty": 5, "time": 7}

# Function words by category, named by their English words. The English lexicon spells them so.
FUNCTION_WORDS = {
    "DET": ("the", "a", "this", "some", "every", "no", "my", "your", "his", "our", "their")
    + ("two", "three", "many", "few"),
    "ADP": ("of", "in", "on", "at", "to", "from", "with", "without", "for", "by", "about")
    + ("near", "under", "behind", "through", "across", "into", "during", "until", "after")
    + ("before", "against", "like"),
    "PRON": ("i", "you", "he", "she", "it", "we", "they", "who", "which", "what"),
    "ADV": ("where",),
    "AUX": ("be", "have", "do", "will", "can", "must", "may", "should"),
    "PART": ("not",),
    "SCONJ": ("that", "because", "when", "if", "while", "although"),
    "CCONJ": ("and", "but", "or"),
    "PUNCT": (".", "?", ","),
}
