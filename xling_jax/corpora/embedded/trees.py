"""Gold trees: the dependency trees of sentences, as CoNLL-U."""

from xling_jax.corpora.embedded.derivation import Constituent
from xling_jax.corpora.embedded.sentences import Language

# Of the derivation only; it is no feature of Universal Dependencies.
_INTERNAL = "Theme"


def conllu(language: Language, derivation: Constituent) -> list[str]:
    """A sentence's tree as lines of CoNLL-U, with `# text` before and a blank line after.

    A word has ID, FORM, LEMMA (the dictionary form), UPOS, FEATS, HEAD and DEPREL, all else being
    "_". The features are those of the derivation (see `Constituent`): what an auxiliary expresses
    is with its verb. Trees of inverted or other orders have the same heads as the English ones.
    """
    words = language.words(derivation)
    place = {id(word.constituent): number for number, word in enumerate(words, 1)}
    lines = ["# text = " + " ".join(word.form for word in words)]
    for number, word in enumerate(words, 1):
        node = word.constituent
        lemma = language.lexicon.form(node.concept)
        head = 0 if word.head is None else place[id(word.head)]
        columns = (number, word.form, lemma, node.concept.category, "_", _features(node))
        lines.append("\t".join(map(str, (*columns, head, node.relation, "_", "_"))))
    return [*lines, ""]


def _features(node: Constituent) -> str:
    named = sorted(f"{name}={value}" for name, value in node.features.items() if name != _INTERNAL)
    return "|".join(named) or "_"
