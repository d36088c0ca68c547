"""From derivations to words: adds function words, makes words agree and puts them in order."""

from collections.abc import Mapping
from typing import NamedTuple

from xling_jax.corpora.embedded.concepts import Concept
from xling_jax.corpora.embedded.config import SecondConfig
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.lexicon import Lexicon

# A head and its dependents in English order: relations, and places that `Linearizer` assigns.
_ENGLISH = (
    "punct:first cc theme mark wh relative aux:inverted nsubj nsubj:pass aux advmod:neg "
    "advmod:emph aux:second case det amod head flat nmod acl:relcl obj xcomp obl:arg obl:agent "
    "advmod obl ccomp advcl conj punct"
).split()
# What the values of `SecondConfig` move, and after what. The order counts: modifiers move after the
# adposition before it may go behind the noun. Clauses follow their verb in every order, as in
# Persian and Hindi, since speakers avoid clauses in mid-sentence (Dryer 1980). Subjects of vso
# follow all that belongs to a noun, since the predicate may be one.
_MOVES = {
    ("order", "sov"): {
        "obl obl:agent obj obl:arg xcomp advmod": "nsubj:pass",
        "aux:second aux": "acl:relcl",
    },
    ("order", "vso"): {"nsubj nsubj:pass": "acl:relcl"},
    ("adjuncts", "before"): {"obl obl:agent advmod": "advmod:emph"},
    ("modifiers", "before"): {"acl:relcl nmod": "case", "relative": "conj"},
    ("adpositions", "after"): {"case": "flat"},
    ("adjectives", "after"): {"amod": "flat"},
}


class Word(NamedTuple):
    """A word of a sentence: its form, its constituent, and the constituent it depends on."""

    form: str
    constituent: Constituent
    head: Constituent | None


class _Dependent(NamedTuple):
    place: int
    constituent: Constituent
    form: str  # "" if the constituent decides it


class Linearizer:
    """Puts derivations into words, with the function words and agreement of the language.

    order: the place of each relation. Dependents are sorted by it, with the head at 0.
    """

    def __init__(
        self, lexicon: Lexicon, function: Mapping[str, Concept], config: SecondConfig
    ) -> None:
        self._lexicon, self._function, self._config = lexicon, function, config
        # With inversion, as in English, questions need an auxiliary before the subject (unless they
        # ask for it), and negations need one; "do" if there is no other. Otherwise "?" and "not"
        # are enough.
        self._has_inversion = config.order == "svo" and config.morphology == "english"
        order = _ENGLISH
        for (field, value), moves in _MOVES.items():
            if getattr(config, field) == value:
                for moved, after in moves.items():
                    order = _move(order, moved.split(), after)
        self.order = {name: place - order.index("head") for place, name in enumerate(order)}

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
        """Appends the words of a constituent. form: of its head; "" if the constituent decides."""
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
        """Adds to `dependents` what a finite clause needs; returns the form of its head, "" if that
        is no verb."""
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
        """The form of a word other than a finite verb: with number and case if it has them."""
        category = node.concept.category
        if category in ("NOUN", "PROPN", "PRON"):
            number = node.features.get("Number", "Sing")
            return self._lexicon.nominal(node.concept, number, _case(node, head))
        if category == "DET" and head is not None:
            return self._lexicon.nominal(node.concept, head.features["Number"], "Nom")
        return self._lexicon.form(node.concept)

    def _position(self, child: Constituent) -> int:
        if kind := child.features.get("PronType"):
            return self.order["relative" if kind == "Rel" else "wh"]
        if "Theme" in child.features:
            return self.order["theme"]
        return self.order[child.relation]

    def _added(self, word: str, relation: str, place: str = "") -> _Dependent:
        constituent = Constituent(self._function[word], relation)
        return _Dependent(self.order[place or relation], constituent, "")


def _move(order: list[str], moved: list[str], after: str) -> list[str]:
    rest = [name for name in order if name not in moved]
    place = rest.index(after) + 1
    return [*rest[:place], *moved, *rest[place:]]


def _agreement(subject: Constituent) -> str:
    if subject.child("conj") or subject.features["Number"] == "Plur":
        return "Plur"
    return subject.features.get("Person", "3") + "Sing"


def _case(noun: Constituent, head: Constituent | None) -> str:
    """The case of a noun or pronoun; a conjunct has the case of the noun that it is joined to."""
    relation = head.relation if head and noun.relation == "conj" else noun.relation
    if relation in ("nsubj", "nsubj:pass", "flat"):
        return "Nom"
    return "Acc" if relation == "obj" else "Obl"
