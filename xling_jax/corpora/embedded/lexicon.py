"""English-like words: the forms of each concept."""

import dataclasses
import functools
from collections.abc import Callable, Iterator

import numpy as np

from xling_jax.corpora.embedded import morphology
from xling_jax.corpora.embedded.concepts import Concept, Concepts

# Relative frequencies as repetitions. Stems end in no s, so that a final s is an inflection; some
# usual sounds are missing so that rude English words do not come out.
_ONSETS = (
    "b b d d f g h j k l l m m n p p r r s s t t t v w "
    "bl br ch cl cr dr fl fr gl gr pl pr sc sh sl sn sp st str sw th tr tw"
).split()
_VOWELS = "a a e e e i i o o u".split()
_SHORT_VOWELS = [*_VOWELS, *"a ai e ea i o oo ou".split()]  # in words of one syllable
_SHORT_CODAS = "d l l ll ld ch m mp n n nd r r rt sh st th".split()
_INNER = "b d d k l l ld ll lt m m mb mp n n nd ng nt p r r rd rm rn rt ss st t t v".split()
_CODAS = "d k ld ll l m n n nd p r r rn sh t t th".split()
_NAME_ENDINGS = "a a a an el er in on us".split()

# The forms that may express a case, the best first: a word lacks those of its language's cases
# that it does not tell apart.
_CASES = {"Nom": ("",), "Acc": ("Acc", ""), "Obl": ("Obl", "Acc", "")}


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """The words of a language.

    Attributes:
      forms: for each `Concept.index`, the form of each inflection: "" is the dictionary form,
        which also stands for every inflection not listed. In English nouns and determiners have
        Plur, pronouns Acc; verbs Pres3Sing, Past and Part, and "be" tense with person and number.
        For other languages see `morphology`.
    """

    forms: list[dict[str, str]]

    def form(self, concept: Concept, inflection: str = "") -> str:
        """The word for a concept."""
        forms = self.forms[concept.index]
        return forms.get(inflection) or forms[""]

    def finite(self, verb: Concept, tense: str, agreement: str) -> str:
        """The form of a verb in tense Pres or Past that agrees with 1Sing, 3Sing or Plur."""
        forms = self.forms[verb.index]
        return forms.get(tense + agreement) or forms.get(tense) or forms[""]

    def nominal(self, concept: Concept, number: str, case: str) -> str:
        """The form of a noun, pronoun or determiner in number Sing, Plur and case Nom, Acc, Obl."""
        forms = self.forms[concept.index]
        keys = (key for ending in _CASES[case] for key in (number + ending, ending))
        return next(forms[key] for key in keys if key in forms)


def draw(concepts: Concepts, rng: np.random.Generator) -> Lexicon:
    """Draws an English-like lexicon: English function words, invented content words.

    No two content words share a form, in any inflection, and none is spelt like a function word.
    Frequent words are shorter.
    """
    forms = [{"": word} | morphology.IRREGULAR.get(word, {}) for word in concepts.function]
    used = {form for entry in forms for form in entry.values()}
    letters = integers(rng)

    def invented(concept: Concept) -> dict[str, str]:
        return morphology.english(concept, stem(concept, letters))

    for concept in concepts.all()[len(forms) :]:
        forms.append(unused(functools.partial(invented, concept), used))
    return Lexicon(forms)


def unused(draw_forms: Callable[[], dict[str, str]], used: set[str]) -> dict[str, str]:
    """Draws the forms of a word until none of them is in `used`, and adds them there."""
    while True:
        entry = draw_forms()
        if used.isdisjoint(entry.values()):
            used.update(entry.values())
            return entry


def stem(concept: Concept, letters: Iterator[int]) -> str:
    """Invents the stem of a content word from random integers."""
    if concept.category == "PROPN":
        return _spell(letters, _ONSETS, _VOWELS, _INNER, _NAME_ENDINGS)
    # Brevity law: of the frequent words most have one syllable, of the rare ones none.
    if next(letters) % 200 >= concept.row:
        return _spell(letters, _ONSETS, _SHORT_VOWELS, _SHORT_CODAS)
    if next(letters) % 6 == 0:
        return _spell(letters, _ONSETS, _VOWELS, _INNER) + "y"
    return _spell(letters, _ONSETS, _VOWELS, _INNER, _VOWELS, _CODAS)


def function_word(letters: Iterator[int]) -> str:
    """Invents a function word of one short syllable from random integers."""
    if next(letters) % 2:
        return _spell(letters, _ONSETS, _VOWELS)
    return _spell(letters, _ONSETS, _VOWELS, _CODAS)


def _spell(letters: Iterator[int], *parts: list[str]) -> str:
    return "".join(part[next(letters) % len(part)] for part in parts)


def integers(rng: np.random.Generator) -> Iterator[int]:
    """Random integers without end, of 0 to 2^30 - 1."""
    while True:
        yield from rng.integers(1 << 30, size=4096).tolist()
