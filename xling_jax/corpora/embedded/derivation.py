"""Derivations: what a sentence says, before it has words and an order."""

import dataclasses
from collections.abc import Iterator

from xling_jax.corpora.embedded.concepts import Concept

# Relations that nest a phrase or clause in another, as `LanguageConfig.depth` counts them.
RECURSIVE = frozenset({"nmod", "acl:relcl", "ccomp", "xcomp", "advcl", "conj"})


@dataclasses.dataclass(slots=True)
class Constituent:
    """A node of a derivation: a head and what depends on it, in no order.

    Attributes:
      concept: of the head.
      relation: to the constituent it depends on, named as in Universal Dependencies; "root" at
        the top.
      features: named as in Universal Dependencies where it has them: Number and Person of nouns
        and pronouns, PronType (Int, Rel); Tense, Aspect, Polarity, Voice, Mood or VerbForm (Inf)
        of the head of a clause; Theme of what the sentence starts from.
      children: the dependents.
      entity: PER, LOC or ORG for a proper name (which is the head and its "flat" children),
        otherwise "".
    """

    concept: Concept
    relation: str
    features: dict[str, str] = dataclasses.field(default_factory=dict)
    children: list["Constituent"] = dataclasses.field(default_factory=list)
    entity: str = ""

    def nodes(self) -> Iterator["Constituent"]:
        """This constituent and all below it."""
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
        """Adds a dependent that is a single function word."""
        self.children.append(Constituent(concept, relation))
