"""Inference pairs: two sentences, and whether the second follows from the first.

The second is made from the first by edits whose effect on its truth is known.
"""

import dataclasses
from collections.abc import Collection

import numpy as np

from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.grammar import Constituent, Deriver
from xling_jax.corpora.embedded.language import Language, Pair

LABELS = ("entailment", "neutral", "contradiction")

_TRIES = 2000  # sentences tried for one example; usually a few are enough
_DROP_CLAUSE = 0.5
_TURN_VOICE = 0.25

# How labels come about, by natural logic (MacCartney & Manning 2009). For a label, and whether the
# hypothesis is negated: equally probable pairs (whether the premise is negated, edits of the
# hypothesis), of whose edits one is made.
_Ways = list[tuple[bool, tuple[str, ...]]]
_SAME: _Ways = [(False, ("keep", "weaken"))]
_OTHER: _Ways = [(True, ("keep", "strengthen")), (False, ("oppose",))]
_NEUTRAL: _Ways = [
    (True, ("weaken", "oppose")),
    *3 * [(False, ("strengthen", "replace", "unrelated"))],
]
WAYS: dict[tuple[str, bool], _Ways] = {
    ("entailment", False): _SAME,
    ("entailment", True): _OTHER,
    ("contradiction", True): _SAME,
    ("contradiction", False): _OTHER,
    ("neutral", False): _NEUTRAL,
    ("neutral", True): _NEUTRAL,
}

# The share of hypotheses that are negated. As in pairs that people write, negation hints at
# contradiction (Gururangan et al. 2018, Table 4), so that what a small model learns first is worth
# something: 53 % of the labels can be guessed from the hypothesis's negation, 62 % from that and
# the premise's.
NEGATED = {"entailment": 0.1, "neutral": 0.3, "contradiction": 0.7}

# The same for pairs that differ in at least one word. What it means decides, while negation and the
# number of words in common say next to nothing of the label.
REPLACED: dict[tuple[str, bool], _Ways] = {
    ("entailment", False): [(False, ("generalize",))],
    ("entailment", True): [(False, ("oppose",))],
    ("contradiction", True): [(False, ("generalize",))],
    ("contradiction", False): [(False, ("oppose",))],
    ("neutral", False): [(False, ("replace",))],
    ("neutral", True): [(False, ("replace",))],
}
_REPLACED_NEGATED = 0.3

_ARGUMENTS = ("nsubj", "nsubj:pass", "obj", "obl", "obl:arg", "obl:agent")
_NARROWS_EVENT = ("obl", "obl:agent", "advmod", "advcl")
_NARROWS_NOUN = ("amod", "nmod", "acl:relcl", "conj")
_DEFINITE = {"the", "this", "my", "your", "his", "our", "their"}
_QUANTIFIED = {"no", "few", "some", "every"}
# After these a clause can be negated or narrowed independently of the rest of the sentence.
_HARMLESS = {"and", "but", "when", "while"}


@dataclasses.dataclass(frozen=True)
class Example:
    """A premise and a hypothesis in both languages, and one of `LABELS`."""

    premise: tuple[str, str]
    hypothesis: tuple[str, str]
    label: str


def pairs(
    pair: Pair, number: int, seed: int, most_words: int = 0, replaced: float = 0.0
) -> list[Example]:
    """Inference pairs in two languages; how often each label occurs differs by one at most.

    A hypothesis is made from the premise by an edit that makes it weaker, stronger, opposite or
    another statement (see `Edits`), by negation, and by changes that do not affect the label: from
    active to passive or back, or without a coordinated sentence. Some neutral hypotheses are
    another sentence on the same topic. Which words are opposites, and which more general, belongs
    to the language, not to `seed`, and can only be learned from examples.

    most_words: the most words of an example in the first language, premise, hypothesis and
    punctuation together; 0 for any number. A smaller `number` gives a prefix of a larger one.
    replaced: the share of pairs whose label is decided by what replaces a word: a more general
    word, the opposite or another one. Of the others nearly nine in ten can be told by whether there
    is a "not" and by how many words the two sentences have in common.

    ValueError: `number` is below 1, `seed` below 0, or no sentence for a label was found.
    """
    if number < 1:
        raise ValueError(f"number={number}: ask for at least one")
    deriver = pair.languages[0].deriver(seed)
    edits = Edits(pair.languages[0], deriver, has_general=replaced > 0)
    examples: list[Example] = []
    labels: list[str] = []
    while len(examples) < number:
        labels = labels or list(LABELS)
        label = deriver.choose(labels)
        labels.remove(label)
        # Draws nothing at 0, so that the pairs are those of earlier versions.
        is_replaced = bool(replaced) and deriver.chance(replaced)
        negated = deriver.chance(_REPLACED_NEGATED if is_replaced else NEGATED[label])
        ways = (REPLACED if is_replaced else WAYS)[label, negated]
        examples.append(_example(pair, deriver, edits, label, negated, ways, most_words))
    return examples


def _example(
    pair: Pair, deriver: Deriver, edits: "Edits", label: str, negated: bool, ways: _Ways,
    most_words: int,
) -> Example:  # fmt: skip
    first, second = pair.languages
    premise_negated, names = deriver.choose(ways)
    edit = deriver.choose(names)
    for _ in range(_TRIES):
        premise = deriver.sentence()
        if not is_plain(premise):
            continue
        _negate(premise, premise_negated)
        hypothesis = _hypothesis(premise, deriver, edits, edit)
        if hypothesis is None:
            continue
        _negate(hypothesis, negated)
        texts = first.text(premise), second.text(premise)
        others = first.text(hypothesis), second.text(hypothesis)
        is_long = most_words and len(f"{texts[0]} {others[0]}".split()) > most_words
        if texts[0] != others[0] and texts[1] != others[1] and not is_long:
            return Example(texts, others, label)
    way_out = "adjuncts, adverbs, coordination or depth in the LanguageConfig"
    if most_words:
        way_out = f"most_words={most_words}, or {way_out}"
    raise ValueError(f"{label} by {edit}: none in {_TRIES} sentences; raise {way_out}")


def _hypothesis(
    premise: Constituent, deriver: Deriver, edits: "Edits", edit: str
) -> Constituent | None:
    if edit == "unrelated":
        other = deriver.sentence()
        related = is_plain(other) and _topics(other) & _topics(premise)
        return other if related and other.concept != premise.concept else None
    hypothesis = premise.copy()
    if deriver.chance(_DROP_CLAUSE):
        edits.drop_clause(hypothesis)
    if deriver.chance(_TURN_VOICE):
        edits.turn_voice(hypothesis)
    positive = "Polarity" not in premise.features
    return hypothesis if getattr(edits, edit)(hypothesis, positive) else None


def _topics(derivation: Constituent) -> set[int]:
    return {node.concept.topic for node in derivation.nodes()} - {-1}


def is_plain(root: Constituent) -> bool:
    """Whether a sentence is so simple that every edit has the effect on its truth that it claims.

    Such a sentence states something about a definite subject, without quantifiers that scope over
    a negation, adverbs of frequency or certainty, "can" and "may", conditions and reasons.
    """
    subject = root.child("nsubj", "nsubj:pass")
    return (
        "Mood" not in root.features
        and subject is not None
        and _is_definite(subject)
        and not any(_determiners(phrase) & _QUANTIFIED for phrase in (root, *_arguments(root)))
        and all(
            word.concept.meaning in _HARMLESS
            for child in root.children
            if _is_clause(child, "conj", "advcl")
            for word in child.children
            if word.relation in ("cc", "mark")
        )
        and root.child("advmod:emph") is None
        and not any(child.concept.meaning in ("can", "may") for child in root.children)
    )


def _negate(root: Constituent, negated: bool) -> None:
    """Makes the main clause negative or positive."""
    root.features.pop("Polarity", None)
    if negated:
        root.features["Polarity"] = "Neg"


class Edits:
    """Edits of a main clause in place; each returns whether it was possible.

    If their last argument `positive` is False, they make only changes that have a known effect
    under a negation too.

    antonyms: the opposites of verbs and adjectives, by `Concept.index`; they are of the same
    meaning class, cannot both be true, and are always the same in a language.
    general: with `has_general`, the word of a class that is true whenever another one of the class
    is: the most frequent one, which has no opposite. A class of two verbs or adjectives has none.
    """

    def __init__(self, language: Language, deriver: Deriver, has_general: bool = False) -> None:
        self._deriver = deriver
        self._governed = language.preferences.governed
        self._function = language.concepts.function
        self._alike: dict[tuple[str, str], list[Concept]] = {}
        for concept in language.concepts.all():
            self._alike.setdefault((concept.category, concept.meaning), []).append(concept)
        self.general = {
            of: alike[0]
            for of, alike in self._alike.items()
            if has_general and (of[0] == "NOUN" or (of[0] in ("VERB", "ADJ") and len(alike) > 2))
        }
        self.antonyms = _antonyms(language.concepts, language.config.seed, self.general.values())

    def drop_clause(self, root: Constituent) -> bool:
        """Leaves out a sentence coordinated with the main clause; the rest stays true."""
        clause = next((child for child in root.children if _is_clause(child, "conj")), None)
        if clause is not None:
            root.children.remove(clause)
        return clause is not None

    def turn_voice(self, root: Constituent) -> bool:
        """Turns active into passive or back, with the same meaning: both participants must be
        definite."""
        subject, object_ = root.child("nsubj"), root.child("obj")
        agent, patient = root.child("obl:agent"), root.child("nsubj:pass")
        if subject and object_ and _is_definite(subject) and _is_definite(object_):
            root.features["Voice"] = "Pass"
            subject.relation, object_.relation = "obl:agent", "nsubj:pass"
            subject.add(self._function["by"], "case")
        elif agent and patient and _is_definite(agent) and _is_definite(patient):
            del root.features["Voice"]
            agent.relation, patient.relation = "nsubj", "obj"
            agent.children = [child for child in agent.children if child.relation != "case"]
        else:
            return False
        return True

    def keep(self, root: Constituent, positive: bool) -> bool:
        """Changes nothing."""
        return True

    def weaken(self, root: Constituent, positive: bool) -> bool:
        """Leaves out an adjunct, adverb, agent or modifier, or one of the coordinated nouns."""
        found = [(root, child) for child in root.children if child.relation in _NARROWS_EVENT]
        if positive:
            found += [
                (noun, child)
                for noun in _arguments(root)
                for child in noun.children
                if child.relation in _NARROWS_NOUN
            ]
        if found:
            parent, child = self._deriver.choose(found)
            parent.children = [other for other in parent.children if other is not child]
        return bool(found)

    def strengthen(self, root: Constituent, positive: bool) -> bool:
        """Adds an adjunct, an adverb of manner or time, or an adjective, even one that the sentence
        says of the noun already."""
        found: list[tuple[Constituent, Constituent]] = []
        row = root.concept.row
        if root.concept.category == "VERB":
            if root.child("obl") is None:
                found.append((root, self._deriver.adjunct(root.concept)))
            adverb = self._deriver.draw("adverb", row)
            if root.child("advmod") is None and adverb.meaning in ("manner", "time"):
                found.append((root, Constituent(adverb, "advmod")))
        if positive:
            found += [
                (noun, Constituent(self._deriver.draw("adjective", noun.concept.row), "amod"))
                for noun in _arguments(root)
                if noun.concept.category == "NOUN" and noun.child("amod") is None
            ]
        found = [
            (parent, child) for parent, child in found if not _determiners(child) & _QUANTIFIED
        ]
        if found:
            parent, child = self._deriver.choose(found)
            parent.children.append(child)
        return bool(found)

    def oppose(self, root: Constituent, positive: bool) -> bool:
        """Replaces the verb or adjective by its opposite, if all participants that are named are
        definite; whom a passive does not name may be another, so some labels are wrong."""
        antonym = self.antonyms.get(root.concept.index)
        participants = (root.child(role) for role in ("obj", "obl:arg", "obl:agent"))
        if antonym is None or not all(_is_definite(p) for p in participants if p is not None):
            return False
        self._put(root, antonym)
        return True

    def replace(self, root: Constituent, positive: bool) -> bool:
        """Replaces the verb, adjective or a noun by another word of its class, neither the antonym
        nor the general one."""
        node = self._content(root)
        if node is None:
            return False
        old = node.concept
        new = self._deriver.choose(self._alike[old.category, old.meaning])
        others = self.antonyms.get(old.index), self.general.get((old.category, old.meaning))
        if new == old or new in others:
            return False
        self._put(node, new)
        return True

    def generalize(self, root: Constituent, positive: bool) -> bool:
        """Replaces the verb, adjective or a noun by the general word of its class."""
        node = self._content(root)
        if node is None:
            return False
        new = self.general.get((node.concept.category, node.concept.meaning))
        if new is None or new == node.concept:
            return False
        self._put(node, new)
        return True

    def _content(self, root: Constituent) -> Constituent | None:
        """The verb, adjective or a noun; None if there is none. Where words are replaced by general
        ones, the verb or adjective is as probable as all nouns together."""
        nodes = [noun for noun in _arguments(root) if noun.concept.category == "NOUN"]
        if root.concept.category in ("VERB", "ADJ"):
            nodes += [root] * (max(1, len(nodes)) if self.general else 1)
        return self._deriver.choose(nodes) if nodes else None

    def _put(self, node: Constituent, concept: Concept) -> None:
        node.concept = concept
        complement = node.child("obl:arg")  # of verbs only
        case = complement and complement.child("case")
        governed = case and self._governed[concept.row]
        if case and governed:
            case.concept = governed


def _arguments(root: Constituent) -> list[Constituent]:
    return [child for child in root.children if child.relation in _ARGUMENTS]


def _is_clause(node: Constituent, *relations: str) -> bool:
    return node.relation in relations and "Tense" in node.features


def _determiners(phrase: Constituent) -> set[str]:
    """The determiners of a noun and of the nouns coordinated with it."""
    found = {child.concept.meaning for child in phrase.children if child.relation == "det"}
    for child in phrase.children:
        if child.relation == "conj" and not _is_clause(child, "conj"):
            found |= _determiners(child)
    return found


def _is_definite(phrase: Constituent) -> bool:
    own = phrase.child("det")
    definite = phrase.concept.category in ("PROPN", "PRON") or (
        own is not None and own.concept.meaning in _DEFINITE
    )
    return definite and all(_is_definite(c) for c in phrase.children if c.relation == "conj")


def _antonyms(concepts: Concepts, seed: int, general: Collection[Concept]) -> dict[int, Concept]:
    """Pairs the verbs and adjectives of each meaning class, but for general ones; if their number
    is odd, one is left."""
    rng = np.random.Generator(np.random.PCG64([seed, 3]))
    antonyms = {}
    for kind in (concepts.verbs, concepts.adjectives):
        for meaning in dict.fromkeys(concept.meaning for concept in kind):
            alike = [x for x in kind if x.meaning == meaning and x not in general]
            order = [alike[i] for i in rng.permutation(len(alike))]
            for one, other in zip(order[::2], order[1::2], strict=False):
                antonyms[one.index], antonyms[other.index] = other, one
    return antonyms
