"""A second embedded language differs from the first in what its knobs say, and in nothing else."""

import collections
import functools
import itertools
import re

import pytest

from xling_jax.corpora.embedded.concepts import FUNCTION_WORDS
from xling_jax.corpora.embedded.config import EMBEDDED, LanguageConfig, SecondConfig
from xling_jax.corpora.embedded.language import Pair, generate, pair_of

NEAR, FAR = EMBEDDED["near"], EMBEDDED["far"]
CONFIG = LanguageConfig(word_types=600)
SCRIPTS = ("latin", "cyrillic")
LATIN = re.compile("[a-z]")


@functools.cache
def pair(**knobs):
    return Pair(CONFIG, SecondConfig(**knobs))


@functools.cache
def derivations(count=1500):
    return list(itertools.islice(pair().languages[0].derivations(1), count))


def dictionary_forms(couple):
    """Dictionary forms of all words but punctuation, in both languages."""
    first, second = couple.languages
    concepts = [c for c in first.concepts.all() if c.category != "PUNCT"]
    return [(first.lexicon.form(c), second.lexicon.form(c)) for c in concepts]


def distances(couple, *relations, category=""):
    """How far after their head, in the second language, the dependents in these relations stand
    that the derivation has; the language adds others, as "not"."""
    found = []
    for derivation in derivations():
        words = couple.languages[1].words(derivation)
        said = {id(node) for node in derivation.nodes()}
        place = {id(word.constituent): i for i, word in enumerate(words)}
        found += [
            i - place[id(word.head)]
            for i, word in enumerate(words)
            if word.constituent.relation in relations
            and id(word.constituent) in said
            and "PronType" not in word.constituent.features
            and "Theme" not in word.constituent.features
            and word.head.concept.category.startswith(category)
        ]
    assert len(found) > 200
    return found


@pytest.mark.parametrize("second", [NEAR, EMBEDDED["middle"], FAR])
def test_the_same_configs_and_seed_give_the_same_text(second):
    one, other = Pair(CONFIG, second), Pair(CONFIG, second)
    assert one.parallel(200, 1) == other.parallel(200, 1)
    assert one.texts(200, 100, 1) == other.texts(200, 100, 1)
    assert one.parallel(20, 1) == tuple(lines[:20] for lines in other.parallel(200, 1))
    assert pair_of(CONFIG, second) is pair_of(CONFIG, second)


def test_the_first_language_is_that_of_generate():
    text = generate(CONFIG, 300, 1)
    assert Pair(CONFIG, FAR).parallel(300, 1)[0] == text
    assert Pair(CONFIG, FAR).texts(300, 1, 1)[0] == text


def test_with_all_words_shared_and_no_other_knob_the_second_is_a_copy():
    first, second = pair(anchors=1.0).parallel(300, 1)
    assert first == second
    first, second = pair().parallel(300, 1)
    assert [len(line.split()) for line in first] == [len(line.split()) for line in second]


def test_links_join_the_words_that_say_the_same():
    copied, turned = (pair(inverted=inverted) for inverted in (False, True))
    isolating = pair(order="sov", adpositions="after", morphology="isolating", articles=False)
    meanings, known = dict(isolating.dictionary()), 0
    lines = [couple.parallel(100, 3) for couple in (copied, turned, isolating)]
    links = [couple.links(100, 3) for couple in (copied, turned, isolating)]
    for number, line in enumerate(lines[0][0]):
        last = len(line.split()) - 1  # the mark that stays where it is
        assert all(i == j for i, j in links[0][number])
        assert all(i + j == last - 1 for i, j in links[1][number] if i < last)
        first, second = (side[number].split() for side in lines[2])
        for i, j in links[2][number]:
            if first[i] in meanings:
                assert second[j] == meanings[first[i]]
                known += 1
    assert known > 300 and 2 * sum(map(len, links[0])) > len(" ".join(lines[0][0]).split())


def test_translations_name_the_same_content_concepts():
    first, second = Pair(CONFIG, FAR).languages
    for derivation in derivations(300):
        said = [
            collections.Counter(
                word.constituent.concept.index
                for word in language.words(derivation)
                if word.constituent.concept.meaning not in first.concepts.function
            )
            for language in (first, second)
        ]
        assert said[0] == said[1] and said[0]


# Words.


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("morphology", ["english", "isolating", "rich"])
@pytest.mark.parametrize("anchors", [0.0, 0.1, 0.25, 1.0])
def test_as_many_words_are_shared_as_asked(anchors, morphology, script):
    forms = dictionary_forms(pair(anchors=anchors, morphology=morphology, script=script))
    assert sum(one == other for one, other in forms) == round(anchors * len(forms))
    assert len({other for _, other in forms}) == len(forms)
    own = {other for one, other in forms if one != other}
    assert own.isdisjoint(one for one, _ in forms)


def test_names_are_shared_first_and_more_anchors_leave_the_other_words():
    concepts = [c for c in pair().languages[0].concepts.all() if c.category != "PUNCT"]
    few, many = (dictionary_forms(pair(anchors=share)) for share in (0.1, 0.3))
    shared = [concept.category for concept, (a, b) in zip(concepts, few, strict=True) if a == b]
    assert set(shared) == {"PROPN"}
    for (word, one), (_, other) in zip(few, many, strict=True):
        assert one == other or (other == word != one)
    names = [ab for concept, ab in zip(concepts, many, strict=True) if concept.category == "PROPN"]
    assert all(a == b for a, b in names)


@pytest.mark.parametrize("morphology", ["english", "rich"])
def test_no_own_word_shares_a_form_with_another_word_of_either_language(morphology):
    first, second = pair(morphology=morphology).languages
    function = len(first.concepts.function)
    forms = [set(entry.values()) for entry in second.lexicon.forms if entry[""].isalpha()]
    assert sum(map(len, forms)) == len(set().union(*forms)) > 900
    used = {form for entry in first.lexicon.forms for form in entry.values()}
    assert used.isdisjoint(set().union(*forms))
    assert all(len(entry[""]) <= 6 for entry in second.lexicon.forms[:function])


@pytest.mark.parametrize("morphology", ["english", "rich"])
def test_cyrillic_has_no_latin_letters_but_in_anchors(morphology):
    couple = pair(anchors=0.1, script="cyrillic", morphology=morphology)
    anchors = {one for one, other in dictionary_forms(couple) if one == other}
    words = {word for line in couple.parallel(3000, 1)[1] for word in line.split()}
    latin = {word for word in words if LATIN.search(word)}
    assert latin <= anchors and len(latin) > 0.8 * len(anchors)
    assert all(word.isalpha() or word in ".?," for word in words)


def test_the_script_changes_letters_only():
    latin, cyrillic = (pair(script=s, morphology="rich").parallel(300, 1)[1] for s in SCRIPTS)
    letters: dict[str, set[str]] = collections.defaultdict(set)
    for one, other in zip(latin, cyrillic, strict=True):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            letters[a].add(b)
    assert all(len(found) == 1 for found in letters.values())
    assert len(set().union(*letters.values())) == len(letters)


def test_isolating_words_have_one_form():
    couple = pair(morphology="isolating")
    assert all(len(forms) == 1 for forms in couple.languages[1].lexicon.forms)
    forms = collections.defaultdict(set)
    for derivation in derivations():
        for word in couple.languages[1].words(derivation):
            forms[word.constituent.concept.index].add(word.form)
    assert all(len(found) == 1 for found in forms.values())


def test_rich_morphology_marks_case_and_agreement():
    second = pair(morphology="rich").languages[1]
    for noun in second.concepts.nouns:
        if noun.category == "NOUN":
            assert len(set(second.lexicon.forms[noun.index].values())) == 6
    cases = collections.defaultdict(set)
    subjects = collections.defaultdict(set)
    for derivation in derivations():
        for word in second.words(derivation):
            node = word.constituent
            if node.concept.category == "NOUN" and node.features["Number"] == "Sing":
                stem = second.lexicon.form(node.concept)
                cases[node.relation].add(word.form.removeprefix(stem))
            pronoun = node.child("nsubj")
            if (
                pronoun
                and pronoun.concept.category == "PRON"
                and node.features == {"Tense": "Pres"}
            ):
                if node.child("aux", "conj") is None and node.concept.category == "VERB":
                    ending = word.form.removeprefix(second.lexicon.form(node.concept))
                    subjects[pronoun.concept.meaning].add(ending)
    assert cases["nsubj"] == {""}
    assert len(cases["obj"]) == len(cases["obl"]) == 1 and cases["obj"] != cases["obl"]
    assert subjects["he"] == subjects["she"] and subjects["we"] == subjects["they"]
    assert len({min(subjects[word]) for word in ("i", "he", "we")}) == 3


def test_a_language_without_articles_expresses_none():
    first, second = pair(articles=False).languages
    for derivation in derivations(500):
        meanings, others = (
            [word.constituent.concept.meaning for word in language.words(derivation)]
            for language in (first, second)
        )
        assert {"the", "a"}.isdisjoint(others)
        assert len(others) == len(meanings) - meanings.count("the") - meanings.count("a")


# Order.


@pytest.mark.parametrize("order", ["svo", "sov", "vso"])
def test_subject_verb_and_object_stand_in_their_order(order):
    couple = pair(order=order)
    objects = distances(couple, "obj", category="VERB")
    subjects = distances(couple, "nsubj", "nsubj:pass", category="VERB")
    assert all((distance < 0) == (order == "sov") for distance in objects)
    assert all((distance < 0) == (order != "vso") for distance in subjects)
    for derivation in derivations(500):
        words = couple.languages[1].words(derivation)
        place = {id(word.constituent): i for i, word in enumerate(words)}
        for node in derivation.nodes():
            subject, other = node.child("nsubj"), node.child("obj")
            if subject and other and "PronType" not in other.features:
                assert place[id(subject)] < place[id(other)]


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(("knob", "relation"), [("adpositions", "case"), ("adjectives", "amod")])
def test_adpositions_and_adjectives_stand_on_their_side(knob, relation, side):
    for order in ("svo", "sov"):
        found = distances(pair(**{knob: side, "order": order}), relation)
        assert all((distance > 0) == (side == "after") for distance in found)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("order", ["svo", "sov", "vso"])
def test_adjuncts_stand_on_their_side(order, side):
    couple = pair(adjuncts=side, order=order)
    found = distances(couple, "obl", "obl:agent", "advmod", category="VERB")
    assert all((distance > 0) == (side == "after" and order != "sov") for distance in found)
    assert all(distance > 0 for distance in distances(couple, "nmod", category="NOUN"))


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("order", ["svo", "sov", "vso"])
@pytest.mark.parametrize("adpositions", ["before", "after"])
def test_modifiers_of_nouns_stand_on_their_side(order, adpositions, side):
    couple = pair(modifiers=side, order=order, adpositions=adpositions)
    for relation in ("nmod", "acl:relcl"):
        found = distances(couple, relation, category="NOUN")
        assert all((distance > 0) == (side == "after") for distance in found)
    found = distances(couple, "obl", "obl:agent", "advmod", category="VERB")
    assert all((distance > 0) == (order != "sov") for distance in found)
    for derivation in derivations():
        words = couple.languages[1].words(derivation)
        place = {id(word.constituent): i for i, word in enumerate(words)}
        for clause in derivation.nodes():
            if clause.relation == "acl:relcl":
                [pronoun] = [c for c in clause.children if c.features.get("PronType") == "Rel"]
                own = [place[id(node)] for node in clause.nodes() if id(node) in place]
                assert place[id(pronoun)] == (max if side == "before" else min)(own)


def test_inverted_sentences_are_turned_round_but_for_the_last_mark():
    for knobs in ({}, {"order": "sov", "morphology": "rich"}):
        plain = pair(**knobs).parallel(300, 1)[1]
        inverted = pair(**knobs, inverted=True).parallel(300, 1)[1]
        for line, turned in zip(plain, inverted, strict=True):
            *words, mark = line.split()
            assert turned.split() == [*reversed(words), mark]


# Texts.


def unigrams(lines):
    counts = collections.Counter(word for line in lines for word in line.split())
    return {word: count / counts.total() for word, count in counts.items()}


def variation(one, other):
    return sum(abs(one.get(w, 0) - other.get(w, 0)) for w in one.keys() | other.keys()) / 2


def test_domains_part_topics_and_frequencies():
    # With all words shared, both languages' texts can be compared.
    found = []
    for domain in (0.0, 0.5, 1.0):
        first, second = pair(anchors=1.0, domain=domain).texts(4000, 4000, 1)
        assert len(set(first) & set(second)) < 40
        found.append(variation(unigrams(first), unigrams(second)))
    other_seed = pair().texts(4000, 1, 2)[0]
    by_chance = variation(unigrams(first), unigrams(other_seed))
    assert abs(found[0] - by_chance) < 0.03
    assert found[1] > found[0] + 0.05 and found[2] > found[1] + 0.05
    first, second = (language.concepts for language in pair(domain=0.0).languages)
    assert (first.topics == second.topics).all()
    assert (first.topics == pair(domain=1.0).languages[1].concepts.topics[::-1]).all()


def test_the_domain_leaves_translations_as_they_are():
    assert pair(domain=1.0).parallel(200, 1) == pair().parallel(200, 1)


def test_the_dictionary_lists_content_words_by_frequency():
    couple = Pair(CONFIG, FAR)
    entries = couple.dictionary()
    assert set(entries) < set(dictionary_forms(couple))
    function = set(" ".join(FUNCTION_WORDS.values()).split())
    words = [one for one, _ in entries]
    assert len(words) == len(set(words)) == 600 - len(function)
    assert function.isdisjoint(words)
    counts = collections.Counter(
        word for line in generate(CONFIG, 3000, 7) for word in line.split()
    )
    often, seldom = (sum(counts[word] for word in part) for part in (words[:100], words[-100:]))
    assert often > 10 * seldom


# Errors.


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("anchors", 1.1),
        ("anchors", float("nan")),
        ("anchors", "all"),
        ("domain", -0.1),
        ("script", "greek"),
        ("order", "osv"),
        ("adpositions", "both"),
        ("adjectives", True),
        ("adjuncts", "both"),
        ("modifiers", "both"),
        ("morphology", "latin"),
        ("inverted", 1),
        ("articles", "no"),
        ("seed", -1),
        ("seed", 1.5),
    ],
)
def test_bad_knobs_raise_with_their_name_and_value(field, value):
    with pytest.raises(ValueError, match=re.escape(f"{field}={value!r}: give")):
        SecondConfig(**{field: value})


def test_bad_counts_and_seeds_raise():
    for call in (lambda: pair().parallel(0, 1), lambda: pair().texts(1, 0, 1)):
        with pytest.raises(ValueError, match="sentences=0"):
            call()
    for call in (lambda: pair().parallel(1, -1), lambda: pair().texts(1, 1, -1)):
        with pytest.raises(ValueError, match="seed=-1"):
            call()
