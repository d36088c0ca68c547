"""Morphologies: the forms that a word of a language has."""

from collections.abc import Callable

import numpy as np

from xling_jax.corpora.embedded.concepts import Concept

Inflection = Callable[[Concept, str], dict[str, str]]
"""Concept and stem to forms by inflection, "" being the dictionary form."""

MORPHOLOGIES = ("english", "isolating", "rich")

IRREGULAR = {
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

_SUFFIX_VOWELS, _SUFFIX_CONSONANTS = "aeiou", "dgklmnrtvz"


def inflection(morphology: str, rng: np.random.Generator) -> Inflection:
    """The way to inflect of one of `MORPHOLOGIES`; suffixes, if it has its own, are drawn."""
    if morphology == "rich":
        return Rich(rng)
    return english if morphology == "english" else isolating


def english(concept: Concept, stem: str) -> dict[str, str]:
    """The forms of an English content word, with English spelling rules."""
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


def isolating(concept: Concept, stem: str) -> dict[str, str]:
    """The only form of a word that does not inflect."""
    return {"": stem}


class Rich:
    """Suffixes for number, case, tense and agreement.

    Nouns have Plur, and the cases Acc and Obl in both numbers (the dictionary form is Nom, that
    of subjects); pronouns have the cases; verbs and auxiliaries have Pres and Past, each with
    1Sing, 3Sing and Plur, and Part.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        syllables = [v + c for v in _SUFFIX_VOWELS for c in _SUFFIX_CONSONANTS]
        names = ("Plur", "Acc", "Obl", "Past", "1Sing", "3Sing", "VerbPlur", "Part")
        drawn = rng.choice(len(syllables), size=len(names), replace=False)
        self._suffix = {n: syllables[i] for n, i in zip(names, drawn.tolist(), strict=True)}

    def __call__(self, concept: Concept, stem: str) -> dict[str, str]:
        """The forms of a word."""
        suffix = self._suffix
        forms = {"": stem}
        if concept.category in ("VERB", "AUX"):
            for tense, base in (("Pres", stem), ("Past", stem + suffix["Past"])):
                forms[tense + "1Sing"] = base + suffix["1Sing"]
                forms[tense + "3Sing"] = base + suffix["3Sing"]
                forms[tense + "Plur"] = base + suffix["VerbPlur"]
            forms["Part"] = stem + suffix["Part"]
        if concept.category == "NOUN":
            forms["Plur"] = stem + suffix["Plur"]
        if concept.category in ("NOUN", "PROPN", "PRON"):
            for number, base in list(forms.items()):
                for case in ("Acc", "Obl"):
                    forms[number + case] = base + suffix[case]
        return forms
