"""The words of a language: invented stems, inflected by the rules of its morphology."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.config import SecondConfig

Forms = dict[str, str]
"""Forms of a word by inflection, "" being the dictionary form."""
Inflection = Callable[[Concept, str], Forms]
"""Concept and stem to forms."""

# Repetitions are relative frequencies. No stem of a common word ends in s, so that a final s is an
# inflection; some usual sounds are missing, so that no rude English words come out.
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
_SUFFIXES = [vowel + consonant for vowel in "aeiou" for consonant in "dgklmnrtvz"]
# One letter for each, so that words have the same length and the same resemblances in each script.
_CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абцдефгхийклмнопюрстувщэыз")

_IRREGULAR_FORMS = """
be Pres1Sing=am Pres3Sing=is PresPlur=are Past1Sing=was Past3Sing=was PastPlur=were Part=been
have Pres3Sing=has Past=had Part=had
do Pres3Sing=does Past=did Part=done
this Plur=these
i Acc=me
he Acc=him
she Acc=her
we Acc=us
they Acc=them
"""
_IRREGULAR = {
    word: dict(form.split("=") for form in forms)
    for word, *forms in map(str.split, _IRREGULAR_FORMS.strip().splitlines())
}

# The forms that may express a case, the best first: a word has no forms for cases that it does not
# distinguish.
_CASES = {"Nom": ("",), "Acc": ("Acc", ""), "Obl": ("Obl", "Acc", "")}


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """The words of a language.

    forms: for each `Concept.index`, the form of each inflection; "" is the dictionary form, which
    also serves for every inflection not listed. In English, nouns and some determiners have Plur,
    some pronouns Acc, verbs Pres3Sing, Past and Part, and "be" has its tenses with person and
    number. For a rich morphology see `_rich`.
    """

    forms: list[Forms]

    def form(self, concept: Concept, inflection: str = "") -> str:
        """The word for a concept."""
        forms = self.forms[concept.index]
        return forms.get(inflection) or forms[""]

    def finite(self, verb: Concept, tense: str, agreement: str) -> str:
        """The form of a verb in `tense` (Pres, Past) with `agreement` (1Sing, 3Sing, Plur)."""
        forms = self.forms[verb.index]
        return forms.get(tense + agreement) or forms.get(tense) or forms[""]

    def nominal(self, concept: Concept, number: str, case: str) -> str:
        """The form of a noun, pronoun or determiner in number (Sing, Plur) and case (Nom, Acc,
        Obl)."""
        forms = self.forms[concept.index]
        keys = (key for ending in _CASES[case] for key in (number + ending, ending))
        return next(forms[key] for key in keys if key in forms)


def draw(concepts: Concepts, rng: np.random.Generator) -> Lexicon:
    """Draws an English-like lexicon: English function words, invented content words.

    No two content words share a form, in any inflection, and none is spelt like a function word.
    Frequent words are shorter.
    """
    forms = [{"": word} | _IRREGULAR.get(word, {}) for word in concepts.function]
    used = {form for entry in forms for form in entry.values()}
    letters = _integers(rng)
    for concept in concepts.content():
        forms.append(_unused((_english(concept, x) for x in _stems(concept, letters)), used))
    return Lexicon(forms)


def derive(first: Lexicon, concepts: Concepts, config: SecondConfig, seed: int) -> Lexicon:
    """Draws the lexicon of a second language from that of the first. seed: of the first language.

    Its own words sound like those of the first language, but no form is the same as one of these;
    nor do any two of them, or one of them and an anchor, share a form.
    """
    streams = np.random.SeedSequence([seed, config.seed]).spawn(3)
    rngs = [np.random.Generator(np.random.PCG64(stream)) for stream in streams]
    is_english, everything = config.morphology == "english", concepts.all()
    inflect: Inflection = _english if is_english else _isolating
    if config.morphology == "rich":
        inflect = _rich(rngs[0])
    # The forms of every word as an anchor, so that own words do not depend on which are anchors.
    anchored = [
        first.forms[c.index] if is_english else inflect(c, first.form(c)) for c in everything
    ]
    used = {form for forms in (*first.forms, *anchored) for form in forms.values()}
    letters = _integers(rngs[1])
    own: list[Forms] = []
    for concept in concepts.function.values():
        if is_english:
            # As irregular as in the first language: one invented word for each form.
            pattern = first.forms[concept.index]
            words = {
                form: _unused(({"": word} for word in _function_words(letters)), used)[""]
                for form in dict.fromkeys(pattern.values())
            }
            own.append({key: words[form] for key, form in pattern.items()})
        else:
            own.append(_unused((inflect(concept, x) for x in _function_words(letters)), used))
    for concept in concepts.content():
        own.append(_unused((inflect(concept, x) for x in _stems(concept, letters)), used))
    if config.script == "cyrillic":
        anchored = [{"": forms[""]} for forms in anchored]
        own = [{key: form.translate(_CYRILLIC) for key, form in forms.items()} for forms in own]
    anchors = _anchors(everything, config.anchors, rngs[2])
    return Lexicon([anchored[i] if i in anchors else own[i] for i in range(len(own))])


def _anchors(concepts: list[Concept], share: float, rng: np.random.Generator) -> set[int]:
    """Indices of the concepts that have the same word in both languages: names first, and always
    punctuation, which does not count for the share."""
    words = [concept for concept in concepts if concept.category != "PUNCT"]
    order = [words[i] for i in rng.permutation(len(words))]
    order.sort(key=lambda concept: concept.category != "PROPN")
    chosen = order[: round(share * len(words))]
    chosen += [concept for concept in concepts if concept.category == "PUNCT"]
    return {concept.index for concept in chosen}


def _unused(candidates: Iterator[Forms], used: set[str]) -> Forms:
    """The first word without a form in `used`; adds its forms to `used`."""
    found = next(forms for forms in candidates if used.isdisjoint(forms.values()))
    used.update(found.values())
    return found


def _stems(concept: Concept, letters: Iterator[int]) -> Iterator[str]:
    """Invents stems of a content word, without end."""
    while True:
        if concept.category == "PROPN":
            yield _spell(letters, _ONSETS, _VOWELS, _INNER, _NAME_ENDINGS)
        # Law of brevity: most of the frequent words have one syllable, and no rare one does.
        elif next(letters) % 200 >= concept.row:
            yield _spell(letters, _ONSETS, _SHORT_VOWELS, _SHORT_CODAS)
        elif next(letters) % 6 == 0:
            yield _spell(letters, _ONSETS, _VOWELS, _INNER) + "y"
        else:
            yield _spell(letters, _ONSETS, _VOWELS, _INNER, _VOWELS, _CODAS)


def _function_words(letters: Iterator[int]) -> Iterator[str]:
    """Invents words of one short syllable, without end."""
    while True:
        codas = [] if next(letters) % 2 else [_CODAS]
        yield _spell(letters, _ONSETS, _VOWELS, *codas)


def _spell(letters: Iterator[int], *parts: list[str]) -> str:
    return "".join(part[next(letters) % len(part)] for part in parts)


def _integers(rng: np.random.Generator) -> Iterator[int]:
    """Random integers from 0 to 2^30 - 1, without end."""
    while True:
        yield from rng.integers(1 << 30, size=4096).tolist()


def _english(concept: Concept, stem: str) -> Forms:
    """The forms of a content word, by the rules of English spelling."""
    base = stem[:-1] + "i" if stem.endswith("y") else stem
    with_s = base + ("es" if stem.endswith(("y", "ch", "sh")) else "s")
    if concept.category == "NOUN":
        return {"": stem, "Plur": with_s}
    if concept.category == "VERB":
        return {"": stem, "Pres3Sing": with_s, "Past": base + "ed", "Part": base + "ed"}
    return {"": base + "ly" if concept.meaning == "manner" else stem}


def _isolating(concept: Concept, stem: str) -> Forms:
    return {"": stem}


def _rich(rng: np.random.Generator) -> Inflection:
    """Draws suffixes for number, case, tense and agreement.

    Common nouns have Plur, and the cases Acc and Obl in both numbers (the dictionary form is Nom,
    the case of subjects); names and pronouns have only the cases; verbs and auxiliaries have Pres
    and Past, each with 1Sing, 3Sing and Plur, and Part.
    """
    names = ("Plur", "Acc", "Obl", "Past", "1Sing", "3Sing", "VerbPlur", "Part")
    drawn = rng.choice(len(_SUFFIXES), size=len(names), replace=False)
    suffix = {name: _SUFFIXES[i] for name, i in zip(names, drawn.tolist(), strict=True)}

    def inflect(concept: Concept, stem: str) -> Forms:
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

    return inflect
