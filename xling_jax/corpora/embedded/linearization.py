"""From derivations to words: function words that the language adds, agreement and word order."""

from collections.abc import Mapping
from typing import NamedTuple

from xling_jax.corpora.embedded.concepts import Concept
from xling_jax.corpora.embedded.config import SecondConfig
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.lexicon import Lexicon

# Places of dependents: the negative ones stand before their head, the positive ones after it,
# from the smallest to the largest. The keys are relations and places that `Linearizer` assigns.
ENGLISH_ORDER = {
    "punct:first": -110,
    "cc": -100,
    "theme": -95,
    "mark": -90,
    "wh": -80,
    "aux:inverted": -70,
    "nsubj": -60,
    "nsubj:pass": -60,
    "aux": -50,
    "advmod:neg": -48,
    "advmod:emph": -46,
    "aux:second": -44,
    "case": -30,
    "det": -25,
    "amod": -20,
    "flat": 2,
    "nmod": 4,
    "acl:relcl": 6,
    "obj": 10,
    "xcomp": 15,
    "obl:arg": 20,
    "obl:agent": 25,
    "advmod": 30,
    "obl": 35,
    "ccomp": 40,
    "advcl": 50,
    "conj": 60,
    "punct": 70,
}
# What another order puts elsewhere, by the fields of `SecondConfig`. Clauses follow their verb in
# every order, as in Persian and Hindi, since speakers avoid them in its middle (Dryer 1980).
_OTHER_PLACES: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("order", "sov"): {
        "obl": -58,
        "obl:agent": -56,
        "obj": -54,
        "obl:arg": -52,
        "xcomp": -50,
        "advmod": -49,
        "aux:second": 7,
        "aux": 8,
    },
    # After what belongs to a noun, which may be the predicate.
    ("order", "vso"): {"nsubj": 8, "nsubj:pass": 8},
    ("adpositions", "after"): {"case": 3},
    ("adjectives", "after"): {"flat": 1, "amod": 2},
}


class Word(NamedTuple):
    """A word of a sentence: its form, its constituent, and the constituent it depends on."""

    form: str
    constituent: Constituent
    head: Constituent | None


class _Dependent(NamedTuple):
    place: int
    constituent: Constituent
    form: str  # "" to find out from the constituent


class Linearizer:
    """Puts derivations into words, with the function words and agreement of the language.

    Attributes:
      order: places of dependents, with the keys of `ENGLISH_ORDER`.
    """

    def __init__(
        self, lexicon: Lexicon, function: Mapping[str, Concept], config: SecondConfig
    ) -> None:
        self._lexicon, self._function, self._config = lexicon, function, config
        # As in English, an auxiliary, "do" if there is no other, goes before the subject of a
        # question and carries the negation; otherwise only their marks tell.
        self._has_inversion = config.order == "svo" and config.morphology == "english"
        self.order = dict(ENGLISH_ORDER)
        for (field, value), places in _OTHER_PLACES.items():
            if getattr(config, field) == value:
                self.order |= places

    def words(self, derivation: Constituent) -> list[Word]:
        """The words of a derivation in order, with punctuation."""
        words: list[Word] = []
        self._place(derivation, None, "", words)
        if self._config.inverted:
            words[:-1] = words[-2::-1]
        return words

    def _place(
        self, node: Constituent, head: Constituent | None, form: str, words: list[Word]
    ) -> None:
        """Appends the words of a constituent; `form` is that of its head, "" to find it out."""
        dependents = [
            _Dependent(self._position(child), child, "")
            for child in node.children
            if self._config.articles or child.concept.meaning not in ("the", "a")
        ]
        if "Tense" in node.features:
            form = self._finite(node, dependents)
        elif node.relation == "xcomp":
            dependents.append(self._added("to", "mark"))
        if "Theme" in node.features:
            dependents.append(self._added(",", "punct"))
        dependents.sort(key=lambda dependent: dependent.place)
        before = sum(place < 0 for place, _, _ in dependents)
        for _, child, child_form in dependents[:before]:
            self._place(child, node, child_form, words)
        words.append(Word(form or self._form(node, head), node, head))
        for _, child, child_form in dependents[before:]:
            self._place(child, node, child_form, words)

    def _finite(self, clause: Constituent, dependents: list[_Dependent]) -> str:
        """Adds what a finite clause needs to its dependents; returns the form of its head."""
        features, verbal = clause.features, clause.concept.category == "VERB"
        subject = next(c for c in clause.children if c.relation.startswith("nsubj"))
        asked = "Mood" in features and subject.features.get("PronType") != "Int"
        inverted = self._has_inversion and asked
        negated = "Polarity" in features

        chain = [child for child in clause.children if child.relation == "aux"]
        if features["Tense"] == "Fut":
            chain.append(Constituent(self._function["will"], "aux"))
        if "Aspect" in features:
            chain.append(Constituent(self._function["have"], "aux"))
        if "Voice" in features:
            chain.append(Constituent(self._function["be"], "aux:pass"))
        elif not verbal:
            chain.append(Constituent(self._function["be"], "cop"))
        if not chain and self._has_inversion and (negated or inverted):
            chain.append(Constituent(self._function["do"], "aux"))

        # Each verb of the group inflects the next; the first one agrees with the subject.
        dependents[:] = [d for d in dependents if d.constituent.relation != "aux"]
        agreement = _agreement(subject)
        form = ""
        inflection: str | None = None
        place = self.order["aux:inverted" if inverted else "aux"]

        def inflect(verb: Concept) -> str:
            if inflection is None:
                return self._lexicon.finite(verb, features["Tense"], agreement)
            return self._lexicon.form(verb, inflection)

        for auxiliary in chain:
            form = inflect(auxiliary.concept)
            dependents.append(_Dependent(place, auxiliary, form))
            inflection = "Part" if auxiliary.concept.meaning in ("have", "be") else ""
            place = self.order["aux:second"]
        if negated:
            dependents.append(self._added("not", "advmod", "advmod:neg"))
        if clause.relation == "ccomp":
            dependents.append(self._added("that", "mark"))
        elif clause.relation == "conj":
            dependents.append(self._added(",", "punct", "punct:first"))
        elif clause.relation == "root":
            dependents.append(self._added("?" if "Mood" in features else ".", "punct"))
        return inflect(clause.concept) if verbal else ""

    def _form(self, node: Constituent, head: Constituent | None) -> str:
        """The form of what is no finite verb: number of nouns and determiners, pronouns' case."""
        category = node.concept.category
        if category in ("NOUN", "PROPN", "PRON"):
            number = node.features.get("Number", "Sing")
            return self._lexicon.nominal(node.concept, number, _case(node, head))
        if category == "DET" and head is not None:
            return self._lexicon.nominal(node.concept, head.features["Number"], "Nom")
        return self._lexicon.form(node.concept)

    def _position(self, child: Constituent) -> int:
        if "PronType" in child.features:
            return self.order["wh"]
        if "Theme" in child.features:
            return self.order["theme"]
        return self.order[child.relation]

    def _added(self, word: str, relation: str, place: str = "") -> _Dependent:
        constituent = Constituent(self._function[word], relation)
        return _Dependent(self.order[place or relation], constituent, "")


def _agreement(subject: Constituent) -> str:
    if subject.child("conj") or subject.features["Number"] == "Plur":
        return "Plur"
    return subject.features.get("Person", "3") + "Sing"


def _case(noun: Constituent, head: Constituent | None) -> str:
    """The case of a noun or pronoun; a conjunct has that of the noun that it is joined to."""
    relation = head.relation if head and noun.relation == "conj" else noun.relation
    if relation in ("nsubj", "nsubj:pass", "flat"):
        return "Nom"
    return "Acc" if relation == "obj" else "Obl"
