"""Inference pairs: two sentences, and whether the second follows from the first."""

import dataclasses

from xling_jax.corpora.embedded.derivation import Constituent
from xling_jax.corpora.embedded.edits import Edits, is_plain, negate
from xling_jax.corpora.embedded.grammar import Deriver
from xling_jax.corpora.embedded.pair import Pair

LABELS = ("entailment", "neutral", "contradiction")

_TRIES = 2000  # sentences for one example; a few are usual
_DROP_CLAUSE = 0.5
_TURN_VOICE = 0.25
_UNRELATED = "unrelated"

# What makes a label, by natural logic (MacCartney & Manning 2009): label and whether the
# hypothesis is negated, to (whether the premise is, edits of the hypothesis). Those of a label are
# equally probable.
_Ways = list[tuple[bool, tuple[str, ...]]]
_NEUTRAL: _Ways = [
    (True, ("weaken", "oppose")),
    *3 * [(False, ("strengthen", "replace", _UNRELATED))],
]
WAYS: dict[tuple[str, bool], _Ways] = {
    ("entailment", False): [(False, ("keep", "weaken"))],
    ("entailment", True): [(True, ("keep", "strengthen")), (False, ("oppose",))],
    ("contradiction", True): [(False, ("keep", "weaken"))],
    ("contradiction", False): [(True, ("keep", "strengthen")), (False, ("oppose",))],
    ("neutral", False): _NEUTRAL,
    ("neutral", True): _NEUTRAL,
}

# The share of hypotheses that are negated. As in pairs that people write, negation hints at
# contradiction (Gururangan et al. 2018, Table 4), so that what a small model learns first is worth
# something: 53 % of the labels are found by the hypothesis' negation, 62 % by both sentences'.
NEGATED = {"entailment": 0.1, "neutral": 0.3, "contradiction": 0.7}


@dataclasses.dataclass(frozen=True)
class Example:
    """A premise and a hypothesis in both languages, and one of `LABELS`."""

    premise: tuple[str, str]
    hypothesis: tuple[str, str]
    label: str


def pairs(pair: Pair, number: int, seed: int) -> list[Example]:
    """Inference pairs of two languages, each label as often as the others to within one.

    A hypothesis is made from the premise by edits that make it weaker, stronger, opposite or
    another statement (see `Edits`), by negation, and by changes that mean nothing: from active to
    passive, or without the sentence that it was coordinated with. Some neutral ones are another
    sentence on the same topic. What is the opposite of what belongs to the language, not to
    `seed`, and can only be learned from examples.

    Args:
      pair: the languages; what sentences say is drawn as in the first.
      number: how many, at least 1; fewer are a prefix of more.
      seed: of the examples, at least 0. Their premises are sentences of `pair.parallel` with this
        seed, but for their negation.

    Raises:
      ValueError: `number` or `seed` is too small, or the grammar has too little for a label.
    """
    if number < 1:
        raise ValueError(f"number={number}: ask for at least one")
    writer = _Writer(pair, seed)
    examples: list[Example] = []
    labels: list[str] = []
    while len(examples) < number:
        labels = labels or list(LABELS)
        label = writer.draws.choose(labels)
        labels.remove(label)
        examples.append(writer.example(label))
    return examples


class _Writer:
    def __init__(self, pair: Pair, seed: int) -> None:
        self._languages = pair.languages
        self._deriver: Deriver = pair.languages[0].deriver(seed)
        self._edits = Edits(pair.languages[0], self._deriver)
        self.draws = self._deriver.draws

    def example(self, label: str) -> Example:
        negated = self.draws.chance(NEGATED[label])
        premise_negated, edits = self.draws.choose(WAYS[label, negated])
        edit = self.draws.choose(edits)
        for _ in range(_TRIES):
            premise = self._deriver.sentence()
            if not is_plain(premise):
                continue
            negate(premise, premise_negated)
            hypothesis = self._hypothesis(premise, edit, not premise_negated)
            if hypothesis is None:
                continue
            negate(hypothesis, negated)
            texts, others = self._texts(premise), self._texts(hypothesis)
            if texts[0] != others[0] and texts[1] != others[1]:
                return Example(texts, others, label)
        raise ValueError(
            f"{label} by {edit}: none in {_TRIES} sentences; raise adjuncts, adverbs, coordination "
            "or depth in the LanguageConfig"
        )

    def _hypothesis(self, premise: Constituent, edit: str, positive: bool) -> Constituent | None:
        if edit == _UNRELATED:
            other = self._deriver.sentence()
            related = is_plain(other) and _topics(other) & _topics(premise)
            return other if related and other.concept != premise.concept else None
        hypothesis = premise.copy()
        if self.draws.chance(_DROP_CLAUSE):
            self._edits.drop_clause(hypothesis)
        if self.draws.chance(_TURN_VOICE):
            self._edits.turn_voice(hypothesis)
        return hypothesis if getattr(self._edits, edit)(hypothesis, positive) else None

    def _texts(self, derivation: Constituent) -> tuple[str, str]:
        first, second = self._languages
        return first.text(derivation), second.text(derivation)


def _topics(derivation: Constituent) -> set[int]:
    return {node.concept.topic for node in derivation.nodes()} - {-1}
