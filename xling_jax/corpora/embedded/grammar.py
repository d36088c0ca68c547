"""The phrase grammar: draws derivations, which name concepts and relations but no words."""

from xling_jax.corpora.embedded import ontology
from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.derivation import Constituent
from xling_jax.corpora.embedded.draws import Draws
from xling_jax.corpora.embedded.habits import Habits
from xling_jax.corpora.embedded.preferences import Preferences, Sampler

_SECOND_NAME = {"person": 0.4, "group": 0.3, "place": 0.0}
_OF = 0.5  # of the modifying phrases are of-phrases
_AGENT = 0.3  # of the passives name the agent
_PREDICATE_ADJECTIVE = 0.7  # of the predications; the others say where something is
_QUESTION_WORD = 0.6  # of the questions have one, where something can be asked for
_THEME = 0.35  # of the adverbial clauses, and half as many adjuncts, start their sentence

# Kind of pronoun to (word, number, person).
_PRONOUNS = {
    "person": [
        ("i", "Sing", "1"),
        ("you", "Plur", "2"),
        ("he", "Sing", "3"),
        ("she", "Sing", "3"),
        ("we", "Plur", "1"),
        ("they", "Plur", "3"),
    ],
    "thing": [("it", "Sing", "3"), ("it", "Sing", "3"), ("they", "Plur", "3")],
}


class Deriver:
    """Draws derivations of sentences, one after the other.

    Attributes:
      draws: what they are made of.
    """

    def __init__(
        self,
        config: LanguageConfig,
        concepts: Concepts,
        preferences: Preferences,
        habits: Habits,
        seed: int,
    ) -> None:
        self._config = config
        self._habits = habits
        self._function = concepts.function
        self._subject_share = preferences.subject_share.tolist()
        self._classes = [ontology.VERB_CLASSES[verb.meaning] for verb in concepts.verbs]
        # "That" only marks complements.
        self._subordinators = [
            concept
            for concept in concepts.function.values()
            if concept.category == "SCONJ" and concept.meaning != "that"
        ]
        self._coordinators = [c for c in concepts.function.values() if c.category == "CCONJ"]
        self.draws = Draws(config, concepts, preferences, habits, seed)
        self._chance = self.draws.chance

    def sentence(self) -> Constituent:
        """The next derivation; its root is the head of the main clause."""
        config, depth = self._config, self._config.depth
        if self._chance(1 / config.paragraph):
            self.draws.change_topic()
        root = self._clause("root", depth)
        if self._chance(config.questions):
            self._ask(root)
            return root
        for child in root.children:
            if child.relation == "obl" and self._chance(_THEME / 2):
                child.features["Theme"] = "Yes"
        if depth and self._chance(config.adverbial_clauses):
            clause = self._clause("advcl", depth - 1)
            clause.add(self.draws.choose(self._subordinators), "mark")
            if self._chance(_THEME):
                clause.features["Theme"] = "Yes"
            root.children.append(clause)
        if depth and self._chance(config.coordination):
            clause = self._clause("conj", depth - 1)
            clause.add(self.draws.choose(self._coordinators), "cc")
            root.children.append(clause)
        return root

    def adjunct(self, verb: Concept) -> Constituent:
        """An adjunct that the verb takes, with nothing nested in it."""
        return self._adjunct_phrase(self.draws.adjunct, verb.row, "obl", 0)

    # Clauses.

    def _clause(self, relation: str, depth: int) -> Constituent:
        """A finite clause on the topic."""
        if self._chance(self._config.predications):
            return self._predication(relation, depth)
        verb = self.draws.verb.draw(self.draws.topic)
        row = verb.row
        if self._classes[row].objects and self._chance(self._habits.passive[row]):
            return self._passive(verb, relation, depth)
        clause = self._finite(verb, relation, row)
        clause.children.append(self._argument(self.draws.subject, row, "nsubj", depth))
        self._complete(clause, depth)
        return clause

    def _finite(self, head: Concept, relation: str, verb_row: int) -> Constituent:
        """A clause's head with the tense and polarity that this verb is inclined to."""
        tense = self.draws.tense.draw(verb_row)
        clause = Constituent(head, relation, {"Tense": tense.tense})
        if tense.aspect:
            clause.features["Aspect"] = tense.aspect
        if tense.modal is not None:
            clause.add(tense.modal, "aux")
        if self._chance(self._habits.negation[verb_row]):
            clause.features["Polarity"] = "Neg"
        return clause

    def _predication(self, relation: str, depth: int) -> Constituent:
        """What something is like or where it is, in the tense of any verb of the topic."""
        tense_of = self.draws.verb.draw(self.draws.topic).row
        noun = self.draws.noun.draw(self.draws.topic)
        if self._chance(_PREDICATE_ADJECTIVE):
            clause = self._finite(self.draws.adjective.draw(noun.row), relation, tense_of)
        else:
            place = self._adjunct_phrase(self.draws.modifier, noun.row, relation, 0)
            clause = self._finite(place.concept, relation, tense_of)
            clause.features |= place.features
            clause.children += place.children
            clause.entity = place.entity
        clause.children.append(self._noun_phrase(noun, "nsubj", depth))
        return clause

    def _passive(self, verb: Concept, relation: str, depth: int) -> Constituent:
        clause = self._finite(verb, relation, verb.row)
        clause.features["Voice"] = "Pass"
        clause.children.append(self._argument(self.draws.object, verb.row, "nsubj:pass", depth))
        if self._chance(_AGENT):
            agent = self._argument(self.draws.subject, verb.row, "obl:agent", depth)
            agent.add(self._function["by"], "case")
            clause.children.append(agent)
        self._add_obliques(clause, depth)
        return clause

    def _complete(self, clause: Constituent, depth: int, with_object: bool = True) -> None:
        """Adds to a verb what it has besides its subject, and its object unless it has one."""
        row = clause.concept.row
        kind = self._classes[row]
        if with_object and kind.objects:
            governs_clause = kind.clause and depth and self._chance(self._habits.clause[row])
            if governs_clause and kind.clause == "ccomp":
                clause.children.append(self._clause("ccomp", depth - 1))
            elif governs_clause:
                clause.children.append(self._infinitive(clause, depth - 1))
            else:
                clause.children.append(self._argument(self.draws.object, row, "obj", depth))
        self._add_obliques(clause, depth)

    def _infinitive(self, clause: Constituent, depth: int) -> Constituent:
        """A clause without subject, whose verb goes with the governing verb's subject."""
        verb = self.draws.verb.draw(self.draws.topic)
        subject = next(c for c in clause.children if c.relation == "nsubj")
        if subject.concept.category in ("NOUN", "PROPN"):
            verb = self.draws.subject_of.draw(subject.concept.row)
        infinitive = Constituent(verb, "xcomp", {"VerbForm": "Inf"})
        # Wanting to want is left out: it needs the subject one clause further up.
        self._complete(infinitive, 0 if self._classes[verb.row].clause else depth)
        return infinitive

    def _add_obliques(self, clause: Constituent, depth: int) -> None:
        row = clause.concept.row
        governed = self._habits.governed[row]
        if governed is not None:
            complement = self._argument(self.draws.complement, row, "obl:arg", depth)
            complement.add(governed, "case")
            clause.children.append(complement)
        if self._chance(self._habits.adverb[row]):
            adverb = self.draws.adverb.draw(row)
            relation = "advmod" if adverb.meaning in ("manner", "time") else "advmod:emph"
            clause.children.append(Constituent(adverb, relation))
        kind = self._classes[row]
        # A verb with nothing but a subject says so little that its sentences would soon recur.
        if not (kind.objects or kind.complements) or self._chance(self._habits.adjunct[row]):
            clause.children.append(self._adjunct_phrase(self.draws.adjunct, row, "obl", depth))

    def _relative_clause(self, noun: Concept, number: str, depth: int) -> Constituent:
        word = "who" if noun.meaning == "person" else "which"
        as_subject = self._chance(self._subject_share[noun.row])
        verb = (self.draws.subject_of if as_subject else self.draws.object_of).draw(noun.row)
        relative = Constituent(
            self._function[word],
            "nsubj" if as_subject else "obj",
            {"PronType": "Rel", "Number": number},
        )
        clause = self._finite(verb, "acl:relcl", verb.row)
        clause.children.append(relative)
        if not as_subject:
            clause.children.append(self._argument(self.draws.subject, verb.row, "nsubj", depth))
        self._complete(clause, depth, with_object=as_subject)
        return clause

    # Noun phrases.

    def _argument(
        self, sampler: Sampler[Concept], row: int, relation: str, depth: int
    ) -> Constituent:
        """A noun phrase or pronoun in a role that `row` of the sampler assigns."""
        noun = self.draws.on_topic(sampler, row)
        if self._chance(self._habits.pronoun[noun.row]):
            kind = ontology.NOUN_CLASSES[noun.meaning].pronoun
            word, number, person = self.draws.choose(_PRONOUNS[kind])
            features = {"Number": number, "Person": person}
            return Constituent(self._function[word], relation, features)
        phrase = self._noun_phrase(noun, relation, depth)
        if depth and self._chance(self._config.coordination):
            other = self.draws.on_topic(sampler, row)
            if other is not noun:
                conjunct = self._noun_phrase(other, "conj", depth - 1)
                conjunct.add(self._function["and"], "cc")
                phrase.children.append(conjunct)
        return phrase

    def _adjunct_phrase(
        self, sampler: Sampler[Concept], row: int, relation: str, depth: int
    ) -> Constituent:
        """A noun phrase with the adposition that the noun is inclined to."""
        phrase = self._noun_phrase(self.draws.on_topic(sampler, row), relation, depth)
        phrase.add(self.draws.adposition.draw(phrase.concept.row), "case")
        return phrase

    def _noun_phrase(self, noun: Concept, relation: str, depth: int) -> Constituent:
        if noun.category == "PROPN":
            return self._name(noun, relation)
        row, habits = noun.row, self._habits
        if ontology.NOUN_CLASSES[noun.meaning].mass:
            number, determiners = "Sing", "Mass"
        else:
            number = determiners = "Plur" if self._chance(habits.plural[row]) else "Sing"
        phrase = Constituent(noun, relation, {"Number": number})
        determiner = self.draws.determiner[determiners].draw(row)
        if determiner is not None:
            phrase.add(determiner, "det")
        if self._chance(habits.adjective[row]):
            adjective = self.draws.adjective.draw(row)
            phrase.add(adjective, "amod")
            if self._chance(self._config.adjectives) and (
                (second := self.draws.adjective.draw(row)) is not adjective
            ):
                phrase.add(second, "amod")
        if depth and self._chance(habits.modifier[row]):
            modifier = self._adjunct_phrase(self.draws.modifier, row, "nmod", depth - 1)
            if self._chance(_OF):
                modifier.children[-1].concept = self._function["of"]
            phrase.children.append(modifier)
        if depth and self._chance(habits.relative_clause[row]):
            phrase.children.append(self._relative_clause(noun, number, depth - 1))
        return phrase

    def _name(self, noun: Concept, relation: str) -> Constituent:
        entity = ontology.NOUN_CLASSES[noun.meaning].entity
        name = Constituent(noun, relation, {"Number": "Sing"}, entity=entity)
        if self._chance(_SECOND_NAME[noun.meaning]):
            name.add(self.draws.surname.draw(noun.row), "flat")
        return name

    # Questions.

    def _ask(self, root: Constituent) -> None:
        """Makes the clause a question, of truth or of one of its constituents."""
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
        if askable and self._chance(_QUESTION_WORD):
            place, child = self.draws.choose(askable)
            word = "who" if child.concept.meaning == "person" else "what"
            if child.relation == "obl":
                word = "where"
            features = {"PronType": "Int", "Number": "Sing"}
            root.children[place] = Constituent(self._function[word], child.relation, features)
