"""Gold entities: the names in sentences, tagged as in WikiAnn (Pan et al. 2017)."""

from xling_jax.corpora.embedded.derivation import Constituent
from xling_jax.corpora.embedded.linearization import Word
from xling_jax.corpora.embedded.sentences import Language


def tagged(language: Language, derivation: Constituent) -> tuple[list[str], list[str]]:
    """The words of a sentence and a tag for each: O, or B- or I- and PER, LOC or ORG.

    A name is an unbroken span in every word order.
    """
    words = language.words(derivation)
    names = [_name(word) for word in words]
    tags = []
    for name, last in zip(names, [None, *names], strict=False):
        if name is None:
            tags.append("O")
        else:
            tags.append(("I-" if name is last else "B-") + name.entity)
    return [word.form for word in words], tags


def _name(word: Word) -> Constituent | None:
    """The name that a word belongs to."""
    if word.constituent.relation == "flat":
        return word.head
    return word.constituent if word.constituent.entity else None
