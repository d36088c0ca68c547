"""English-like words: the forms of each concept."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from xling_jax.corpora.synthetic.concepts import Concept, Concepts

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

_IRREGULAR = {
    "be": {
        "Pres1Sing": "am",
        "Pres3Sing": "is",
        "PresPlur": "are",
        "Past1Sing": "was",
        "Past3Sing": "was",
        "PastPlur": "were",
        "Part": "been",
    },
    "have": {"Pres3Sing": "has", "Past": "had", "Part": "had"},
    "do": {"Pres3Sing": "does", "Past": "did", "Part": "done"},
    "this": {"Plur": "these"},
    "i": {"Acc": "me"},
    "he": {"Acc": "him"},
    "she": {"Acc": "her"},
    "we": {"Acc": "us"},
    "they": {"Acc": "them"},
}


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """The words of a language.

    Attributes:
      forms: for each `Concept.index`, the form of each inflection: "" is the dictionary form,
        which also stands for every inflection not listed. Nouns and determiners have Plur,
        pronouns Acc; verbs Pres3Sing, Past and Part, and "be" tense with person and number.
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


def draw(concepts: Concepts, rng: np.random.Generator) -> Lexicon:
    """Draws an English-like lexicon: English function words, invented content words.

    No two content words share a form, in any inflection, and none is spelt like a function word.
    Frequent words are shorter.
    """
    forms = [{"": word} | _IRREGULAR.get(word, {}) for word in concepts.function]
    used = {form for entry in forms for form in entry.values()}
    letters = _integers(rng)
    for concept in concepts.all()[len(forms) :]:
        while True:
            entry = _inflect(concept, _stem(concept, letters))
            if used.isdisjoint(entry.values()):
                break
        used.update(entry.values())
        forms.append(entry)
    return Lexicon(forms)


def _stem(concept: Concept, letters: Iterator[int]) -> str:
    def choose(*parts: list[str]) -> str:
        return "".join(part[next(letters) % len(part)] for part in parts)

    if concept.category == "PROPN":
        return choose(_ONSETS, _VOWELS, _INNER, _NAME_ENDINGS)
    # Brevity law: of the frequent words most have one syllable, of the rare ones none.
    if next(letters) % 200 >= concept.row:
        return choose(_ONSETS, _SHORT_VOWELS, _SHORT_CODAS)
    if next(letters) % 6 == 0:
        return choose(_ONSETS, _VOWELS, _INNER) + "y"
    return choose(_ONSETS, _VOWELS, _INNER, _VOWELS, _CODAS)


def _inflect(concept: Concept, stem: str) -> dict[str, str]:
    """The forms of a content word, with English spelling rules."""
    if concept.category == "NOUN":
        return {"": stem, "Plur": _add_s(stem)}
    if concept.category == "VERB":
        past = stem[:-1] + "ied" if stem.endswith("y") else stem + "ed"
        return {"": stem, "Pres3Sing": _add_s(stem), "Past": past, "Part": past}
    if concept.meaning == "manner":
        return {"": (stem[:-1] + "i" if stem.endswith("y") else stem) + "ly"}
    return {"": stem}


def _add_s(stem: str) -> str:
    if stem.endswith("y"):
        return stem[:-1] + "ies"
    return stem + ("es" if stem.endswith(("ch", "sh")) else "s")


def _integers(rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield from rng.integers(1 << 30, size=4096).tolist()
