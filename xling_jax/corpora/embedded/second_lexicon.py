"""The words of a second language: its own, but for those that both languages have."""

import functools

import numpy as np

from xling_jax.corpora.embedded import morphology
from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.lexicon import Lexicon, function_word, integers, stem, unused
from xling_jax.corpora.embedded.second import SecondConfig

# One letter for each, so that a word is as long, and as much like others, in either script.
_CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абцдефгхийклмнопюрстувщэыз")

Forms = dict[str, str]


def derive(first: Lexicon, concepts: Concepts, config: SecondConfig, seed: int) -> Lexicon:
    """Draws the lexicon of a second language.

    Its own words sound like the first language's and are none of them, in any inflection; no two
    of them, or of them and the anchors, share a form.

    Args:
      first: the first language's lexicon.
      concepts: its concepts.
      config: the second language's knobs.
      seed: of the first language.
    """
    streams = np.random.SeedSequence([seed, config.seed]).spawn(3)
    rngs = [np.random.Generator(np.random.PCG64(stream)) for stream in streams]
    inflect = morphology.inflection(config.morphology, rngs[0])
    suppletive = config.morphology == "english"
    # Each word as an anchor would have it, so that no own word depends on which are anchors.
    given = [
        first.forms[c.index] if suppletive else inflect(c, first.form(c)) for c in concepts.all()
    ]
    used = {form for forms in (*first.forms, *given) for form in forms.values()}
    own = _own_words(first, concepts, inflect, suppletive, rngs[1], used)
    if config.script == "cyrillic":
        given = [{"": forms[""]} for forms in given]
        own = [{key: form.translate(_CYRILLIC) for key, form in forms.items()} for forms in own]
    anchors = _anchors(concepts, config.anchors, rngs[2])
    return Lexicon([given[i] if i in anchors else own[i] for i in range(len(own))])


def _own_words(
    first: Lexicon,
    concepts: Concepts,
    inflect: morphology.Inflection,
    suppletive: bool,
    rng: np.random.Generator,
    used: set[str],
) -> list[Forms]:
    """Invents a word for every concept, in Latin letters; adds their forms to `used`."""
    letters = integers(rng)

    def invented(concept: Concept) -> Forms:
        is_function = concept.meaning in concepts.function
        return inflect(concept, function_word(letters) if is_function else stem(concept, letters))

    own: list[Forms] = []
    for concept in concepts.all():
        if suppletive and concept.meaning in concepts.function:
            # As irregular as the first language's: one invented word for each of its forms.
            pattern = first.forms[concept.index]
            words = {
                form: unused(lambda: {"": function_word(letters)}, used)[""]
                for form in dict.fromkeys(pattern.values())
            }
            own.append({key: words[form] for key, form in pattern.items()})
        else:
            own.append(unused(functools.partial(invented, concept), used))
    return own


def _anchors(concepts: Concepts, share: float, rng: np.random.Generator) -> set[int]:
    """Indices of the concepts with the same word in both languages, punctuation included."""
    everything = concepts.all()
    words = [concept for concept in everything if concept.category != "PUNCT"]
    order = [words[i] for i in rng.permutation(len(words))]
    order.sort(key=lambda concept: concept.category != "PROPN")
    chosen = order[: round(share * len(words))]
    chosen += [concept for concept in everything if concept.category == "PUNCT"]
    return {concept.index for concept in chosen}
