"""The phrase grammar: draws derivations, which name concepts and relations but no words."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from xling_jax.corpora.embedded.concepts import (
    MASS,
    NOUN_CLASSES,
    VERB_CLASSES,
    Concept,
    Concepts,
)
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.preferences import Preferences

_SECOND_NAME = {"person": 0.4, "group": 0.3, "place": 0.0}
_OF = 0.5  # share of the modifying phrases that are of-phrases
_AGENT = 0.3  # share of the passives that name the agent
_PREDICATE_ADJECTIVE = 0.7  # share of the predications with an adjective; the others say where
_QUESTION_WORD = 0.6  # share of the questions with one, where a constituent can be asked for
_THEME = 0.35  # share of the adverbial clauses that start their sentence; half as many adjuncts do
_BLOCK = 64  # draws made at once from one row of a table
_NUMBERS = 4096  # uniform numbers drawn at once
_TRIES = 3  # to find a noun on the topic

# (word, number, person) of the pronouns for persons and for everything else.
_PERSONAL = [("i", "Sing", "1"), ("you", "Plur", "2"), ("he", "Sing", "3")]
_PERSONAL += [("she", "Sing", "3"), ("we", "Plur", "1"), ("they", "Plur", "3")]
_IMPERSONAL = [("it", "Sing", "3"), ("it", "Sing", "3"), ("they", "Plur", "3")]

T = TypeVar("T")


@dataclasses.dataclass(slots=True)
class Constituent:
    """A node of a derivation, which is what a sentence says before it has words and an order.

    Attributes:
      concept: of the head.
      relation: to the constituent that it depends on, named as in Universal Dependencies; "root" at
        the top.
      features: Number and Person of nouns and pronouns, PronType (Int, Rel); Tense, Aspect,
        Polarity, Voice, Mood or VerbForm (Inf) of the head of a clause, all named as in Universal
        Dependencies; Theme of a constituent that starts its sentence.
      children: the dependents, in no particular order.
      entity: PER, LOC or ORG for a proper name (the head with its "flat" children), otherwise "".
    """

    concept: Concept
    relation: str
    features: dict[str, str] = dataclasses.field(default_factory=dict)
    children: list["Constituent"] = dataclasses.field(default_factory=list)
    entity: str = ""

    def nodes(self) -> Iterator["Constituent"]:
        """This constituent and all those below it."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def child(self, *relations: str) -> "Constituent | None":
        """The first dependent in one of these relations, None if there is none."""
        return next((child for child in self.children if child.relation in relations), None)

    def copy(self) -> "Constituent":
        """A copy that can be changed without changing this."""
        children = [child.copy() for child in self.children]
        return dataclasses.replace(self, features=dict(self.features), children=children)

    def add(self, concept: Concept, relation: str) -> None:
        """Adds a dependent that is a single word."""
        self.children.append(Constituent(concept, relation))


class Deriver:
    """Draws derivations of sentences, one after the other."""

    def __init__(
        self, config: LanguageConfig, concepts: Concepts, preferences: Preferences, seed: int
    ) -> None:
        self._config = config
        self._preferences = preferences
        self._function = concepts.function
        words = concepts.function.values()
        self._coordinators = [c for c in words if c.category == "CCONJ"]
        # "That" marks only complements.
        self._subordinators = [c for c in words if c.category == "SCONJ" and c.meaning != "that"]
        self._off_topic = math.exp(-config.topicality)
        # The last number keeps these draws apart from those that made the language.
        self._rng = np.random.Generator(np.random.PCG64([config.seed, seed, 1]))
        self._numbers: list[float] = []
        self._pools: dict[tuple[str, int], list[Any]] = {}
        self._topic = self.draw("topic", 0)

    # Random draws.

    def draw(self, table: str, row: int) -> Any:
        """Draws from a row of one of `Preferences.tables`; in blocks, because that is faster."""
        pool = self._pools.setdefault((table, row), [])
        if not pool:
            weights, outcomes = self._preferences.tables[table]
            cumulative = np.cumsum(weights[row])
            points = self._rng.random(_BLOCK) * cumulative[-1]
            columns = np.searchsorted(cumulative, points, side="right")
            pool += [outcomes[column] for column in columns.tolist()]
        return pool.pop()

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._number() < probability

    def choose(self, items: Sequence[T]) -> T:
        """One of the items, all with the same probability."""
        return items[int(self._number() * len(items))]

    def _number(self) -> float:
        """A uniform number in [0, 1)."""
        if not self._numbers:
            self._numbers = self._rng.random(_NUMBERS).tolist()
        return self._numbers.pop()

    def _inclined(self, habit: str, row: int) -> bool:
        return self.chance(self._preferences.habits[habit][row])

    def _noun(self, table: str, row: int) -> Concept:
        """A noun from the table, preferably one of the current topic or of none."""
        for _ in range(_TRIES):
            noun = self.draw(table, row)
            if noun.topic in (-1, self._topic) or self.chance(self._off_topic):
                break
        return noun

    # Sentences and clauses.

    def sentence(self) -> Constituent:
        """The next derivation; its root is the head of the main clause."""
        config, depth = self._config, self._config.depth
        if self.chance(1 / config.paragraph):
            self._topic = self.draw("topic", 0)
        root = self._clause("root", depth)
        if self.chance(config.questions):
            self._ask(root)
            return root
        for child in root.children:
            if child.relation == "obl" and self.chance(_THEME / 2):
                child.features["Theme"] = "Yes"
        if depth and self.chance(config.adverbial_clauses):
            clause = self._clause("advcl", depth - 1)
            clause.add(self.choose(self._subordinators), "mark")
            if self.chance(_THEME):
                clause.features["Theme"] = "Yes"
            root.children.append(clause)
        if depth and self.chance(config.coordination):
            clause = self._clause("conj", depth - 1)
            clause.add(self.choose(self._coordinators), "cc")
            root.children.append(clause)
        return root

    def _ask(self, root: Constituent) -> None:
        """Makes the clause a yes-no question, or one that asks for a constituent."""
        root.features["Mood"] = "Int"
        askable = [
            (place, child)
            for place, child in enumerate(root.children)
            if child.concept.category in ("NOUN", "PROPN")
            and (
                child.relation in ("nsubj", "nsubj:pass", "obj")
                or (child.relation == "obl" and child.concept.meaning in ("place", "building"))
            )
        ]
        if askable and self.chance(_QUESTION_WORD):
            place, child = self.choose(askable)
            word = "who" if child.concept.meaning == "person" else "what"
            if child.relation == "obl":
                word = "where"
            features = {"PronType": "Int", "Number": "Sing"}
            root.children[place] = Constituent(self._function[word], child.relation, features)

    def _clause(self, relation: str, depth: int) -> Constituent:
        """A finite clause on the topic."""
        if self.chance(self._config.predications):
            return self._predication(relation, depth)
        verb = self.draw("verb", self._topic)
        is_passive = VERB_CLASSES[verb.meaning].objects and self._inclined("passives", verb.row)
        clause = self._finite(verb, relation, verb.row)
        if not is_passive:
            clause.children.append(self._argument("subject", verb.row, "nsubj", depth))
            self._complete(clause, depth)
            return clause
        clause.features["Voice"] = "Pass"
        clause.children.append(self._argument("object", verb.row, "nsubj:pass", depth))
        if self.chance(_AGENT):
            by = self._function["by"]
            clause.children.append(self._argument("subject", verb.row, "obl:agent", depth, by))
        self._add_obliques(clause, depth)
        return clause

    def _finite(self, head: Concept, relation: str, verb_row: int) -> Constituent:
        """A clause's head, with tense, aspect, modal and polarity by the verb's preferences."""
        tense, aspect, modal = self.draw("tense", verb_row)
        clause = Constituent(head, relation, {"Tense": tense})
        if aspect:
            clause.features["Aspect"] = aspect
        if modal:
            clause.add(self._function[modal], "aux")
        if self._inclined("negation", verb_row):
            clause.features["Polarity"] = "Neg"
        return clause

    def _predication(self, relation: str, depth: int) -> Constituent:
        """A clause that says what something is like or where it is, in a tense that some verb of
        the topic prefers."""
        tense_of = self.draw("verb", self._topic).row
        noun = self.draw("noun", self._topic)
        if self.chance(_PREDICATE_ADJECTIVE):
            clause = self._finite(self.draw("adjective", noun.row), relation, tense_of)
        else:
            place = self._adjunct_phrase("modifier", noun.row, relation, 0)
            clause = self._finite(place.concept, relation, tense_of)
            clause.features |= place.features
            clause.children += place.children
            clause.entity = place.entity
        clause.children.append(self._noun_phrase(noun, "nsubj", depth))
        return clause

    def _complete(self, clause: Constituent, depth: int, with_object: bool = True) -> None:
        """Adds a verb's dependents other than its subject; its object only `with_object`."""
        row = clause.concept.row
        kind = VERB_CLASSES[clause.concept.meaning]
        if with_object and kind.objects:
            governs_clause = kind.clause and depth and self._inclined("complement_clauses", row)
            if governs_clause and kind.clause == "ccomp":
                clause.children.append(self._clause("ccomp", depth - 1))
            elif governs_clause:
                clause.children.append(self._infinitive(clause, depth - 1))
            else:
                clause.children.append(self._argument("object", row, "obj", depth))
        self._add_obliques(clause, depth)

    def _infinitive(self, clause: Constituent, depth: int) -> Constituent:
        """A clause without a subject; its verb suits the governing verb's subject."""
        verb = self.draw("verb", self._topic)
        subject = next(c for c in clause.children if c.relation == "nsubj")
        if subject.concept.category in ("NOUN", "PROPN"):
            verb = self.draw("subject_of", subject.concept.row)
        infinitive = Constituent(verb, "xcomp", {"VerbForm": "Inf"})
        # "Want to want" is left out: the last verb would need the subject one clause further up.
        self._complete(infinitive, 0 if VERB_CLASSES[verb.meaning].clause else depth)
        return infinitive

    def _add_obliques(self, clause: Constituent, depth: int) -> None:
        row = clause.concept.row
        governed = self._preferences.governed[row]
        if governed is not None:
            complement = self._argument("complement", row, "obl:arg", depth, governed)
            clause.children.append(complement)
        if self._inclined("adverbs", row):
            adverb = self.draw("adverb", row)
            of_event = adverb.meaning in ("manner", "time")
            clause.add(adverb, "advmod" if of_event else "advmod:emph")
        kind = VERB_CLASSES[clause.concept.meaning]
        # A verb with only a subject says so little that sentences would soon repeat themselves.
        if not (kind.objects or kind.complements) or self._inclined("adjuncts", row):
            clause.children.append(self.adjunct(clause.concept, depth))

    def adjunct(self, verb: Concept, depth: int = 0) -> Constituent:
        """An adjunct that suits the verb, with at most `depth` recursive constituents nested."""
        return self._adjunct_phrase("adjunct", verb.row, "obl", depth)

    def _relative_clause(self, noun: Concept, number: str, depth: int) -> Constituent:
        word = "who" if noun.meaning == "person" else "which"
        as_subject = self.chance(self._preferences.subject_share[noun.row])
        verb = self.draw("subject_of" if as_subject else "object_of", noun.row)
        clause = self._finite(verb, "acl:relcl", verb.row)
        role, features = "nsubj" if as_subject else "obj", {"PronType": "Rel", "Number": number}
        clause.children.append(Constituent(self._function[word], role, features))
        if not as_subject:
            clause.children.append(self._argument("subject", verb.row, "nsubj", depth))
        self._complete(clause, depth, with_object=as_subject)
        return clause

    # Noun phrases.

    def _argument(
        self, table: str, row: int, relation: str, depth: int, adposition: Concept | None = None
    ) -> Constituent:
        """A noun phrase or pronoun, drawn from `row` of the table of its role."""
        noun = self._noun(table, row)
        if self._inclined("pronouns", noun.row):
            pronouns = _PERSONAL if noun.meaning == "person" else _IMPERSONAL
            word, number, person = self.choose(pronouns)
            features = {"Number": number, "Person": person}
            phrase = Constituent(self._function[word], relation, features)
        else:
            phrase = self._noun_phrase(noun, relation, depth)
            if depth and self.chance(self._config.coordination):
                other = self._noun(table, row)
                if other is not noun:
                    conjunct = self._noun_phrase(other, "conj", depth - 1)
                    conjunct.add(self._function["and"], "cc")
                    phrase.children.append(conjunct)
        if adposition is not None:
            phrase.add(adposition, "case")
        return phrase

    def _adjunct_phrase(self, table: str, row: int, relation: str, depth: int) -> Constituent:
        """A noun phrase with an adposition by the noun's preferences."""
        phrase = self._noun_phrase(self._noun(table, row), relation, depth)
        phrase.add(self.draw("adposition", phrase.concept.row), "case")
        return phrase

    def _noun_phrase(self, noun: Concept, relation: str, depth: int) -> Constituent:
        row, kind = noun.row, NOUN_CLASSES[noun.meaning]
        if noun.category == "PROPN":
            name = Constituent(noun, relation, {"Number": "Sing"}, entity=kind.entity)
            if self.chance(_SECOND_NAME[noun.meaning]):
                name.add(self.draw("surname", row), "flat")
            return name
        if noun.meaning in MASS:
            number, determiners = "Sing", "Mass"
        else:
            number = determiners = "Plur" if self._inclined("plural", row) else "Sing"
        phrase = Constituent(noun, relation, {"Number": number})
        determiner = self.draw(determiners, row)
        if determiner is not None:
            phrase.add(determiner, "det")
        if self._inclined("adjectives", row):
            adjective = self.draw("adjective", row)
            phrase.add(adjective, "amod")
            if self.chance(self._config.adjectives) and (
                (second := self.draw("adjective", row)) is not adjective
            ):
                phrase.add(second, "amod")
        if depth and self._inclined("prepositional_phrases", row):
            modifier = self._adjunct_phrase("modifier", row, "nmod", depth - 1)
            if self.chance(_OF):
                modifier.children[-1].concept = self._function["of"]
            phrase.children.append(modifier)
        if depth and self._inclined("relative_clauses", row):
            phrase.children.append(self._relative_clause(noun, number, depth - 1))
        return phrase
