"""The sentences of the embedded language agree, recurse, and stand in a strict order."""

import collections

import pytest
from embedded_language import derivations, language, words_of

from xling_jax.corpora.embedded.config import SecondConfig
from xling_jax.corpora.embedded.linearization import Linearizer

# Relations that nest a phrase or clause in another, as `LanguageConfig.depth` counts them.
RECURSIVE = frozenset({"nmod", "acl:relcl", "ccomp", "xcomp", "advcl", "conj"})


def subject_form(clause, antecedents, lang):
    """Agreement of a clause's subject, from the words it is made of: "1Sing", "3Sing", "Plur"."""
    subject = clause.child("nsubj", "nsubj:pass")
    if subject.child("conj"):
        return "Plur"
    word = lang.linearizer.words(subject)
    own = next(w.form for w in word if w.constituent is subject)
    if own in ("who", "which", "what"):
        if clause.relation != "acl:relcl" or subject.features["PronType"] == "Int":
            return "3Sing"
        antecedent = antecedents[id(clause)]
        own = lang.lexicon.form(antecedent.concept, antecedent.features["Number"])
        subject = antecedent
    if own in ("you", "we", "they"):
        return "Plur"
    if own == "i":
        return "1Sing"
    plural = lang.lexicon.forms[subject.concept.index].get("Plur")
    return "Plur" if own == plural else "3Sing"


def test_the_finite_verb_agrees_with_its_subject_in_every_clause():
    lang = language()
    allowed = {
        "am": {"1Sing"},
        "is": {"3Sing"},
        "are": {"Plur"},
        "was": {"1Sing", "3Sing"},
        "were": {"Plur"},
        "has": {"3Sing"},
        "have": {"1Sing", "Plur"},
        "does": {"3Sing"},
        "do": {"1Sing", "Plur"},
    }
    for verb in lang.concepts.verbs:
        allowed[lang.lexicon.form(verb)] = {"1Sing", "Plur"}
        allowed[lang.lexicon.form(verb, "Pres3Sing")] = {"3Sing"}
    seen = collections.Counter()
    for derivation in derivations():
        words, _ = words_of(derivation, lang)
        antecedents = {id(c): node for node in derivation.nodes() for c in node.children}
        for clause in derivation.nodes():
            if "Tense" not in clause.features:
                continue
            # Of the verb and its auxiliaries, the one that stands first is finite.
            group = [
                w.form
                for w in words
                if w.constituent is clause
                or (w.head is clause and w.constituent.relation in ("aux", "aux:pass", "cop"))
            ]
            agreement = subject_form(clause, antecedents, lang)
            assert agreement in allowed.get(group[0], {agreement}), (group, lang.text(derivation))
            seen[agreement, group[0] in allowed, clause.relation] += 1
    assert all(
        seen[agreement, True, relation] > 10
        for agreement in ("3Sing", "Plur")
        for relation in ("root", "acl:relcl", "ccomp", "advcl", "conj")
    )


def test_determiners_agree_with_their_noun():
    lang = language()
    singular, plural = {"a", "this", "every"}, {"these", "two", "three", "many", "few"}
    plurals = {forms.get("Plur") for forms in lang.lexicon.forms}
    seen = collections.Counter()
    for derivation in derivations():
        words, place = words_of(derivation, lang)
        for word in words:
            if word.constituent.relation == "det":
                noun = words[place[id(word.head)]].form
                assert word.form not in (singular if noun in plurals else plural)
                seen[word.form] += 1
    assert all(seen[form] > 20 for form in singular | plural)


def test_questions_negation_and_passives_are_put_as_in_english():
    lang = language()
    participles = {lang.lexicon.form(verb, "Part") for verb in lang.concepts.verbs}
    seen = collections.Counter()
    for derivation in derivations():
        text = lang.text(derivation).split()
        assert (text[-1] == "?") == ("Mood" in derivation.features)
        assert text[-1] in ".?"
        words, place = words_of(derivation, lang)
        for clause in derivation.nodes():
            verb, subject = place[id(clause)], clause.child("nsubj", "nsubj:pass")
            if "Voice" in clause.features:
                assert words[verb].form in participles
                seen["passive"] += 1
            negations = [w for w in words if w.head is clause and w.form == "not"]
            assert len(negations) == ("Polarity" in clause.features)
            assert not negations or any(
                w.head is clause and w.constituent.relation in ("aux", "aux:pass", "cop")
                for w in words
            )
            seen["negation"] += len(negations)
            if "Mood" in clause.features and "PronType" not in subject.features:
                first = min(
                    place[id(w.constituent)]
                    for w in words
                    if w.head is clause and w.constituent.relation in ("aux", "aux:pass", "cop")
                )
                assert first < place[id(subject)] < verb
                seen["inversion"] += 1
    assert min(seen["passive"], seen["negation"], seen["inversion"]) > 50


def nesting(constituent):
    below = max((nesting(child) for child in constituent.children), default=0)
    return below + (constituent.relation in RECURSIVE)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_recursion_is_present_and_bounded(depth):
    depths = collections.Counter(nesting(derivation) for derivation in derivations(depth=depth))
    assert max(depths) == depth
    relations = {node.relation for d in derivations(depth=depth) for node in d.nodes()}
    assert relations & RECURSIVE == (RECURSIVE if depth else set())


def test_word_order_is_strict():
    lang = language()
    seen = collections.Counter()
    for derivation in derivations():
        _, place = words_of(derivation, lang)
        for node in derivation.nodes():
            for child in node.children:
                before = place[id(child)] < place[id(node)]
                if child.relation in ("det", "amod", "case"):
                    assert before
                elif child.relation in ("acl:relcl", "nmod", "flat", "xcomp", "ccomp"):
                    assert not before
                elif child.relation in ("nsubj", "obj") and "PronType" not in child.features:
                    assert before == (child.relation == "nsubj")
                seen[child.relation] += 1
    assert seen["obj"] > 1000 and seen["acl:relcl"] > 200


def test_a_derivation_can_be_put_in_another_word_order():
    lang = language()
    linearizer = Linearizer(lang.lexicon, lang.concepts.function, SecondConfig())
    linearizer.order |= {"obj": -40, "case": 1}
    objects = 0
    for derivation in derivations(500):
        english = [word.form for word in lang.linearizer.words(derivation)]
        words = linearizer.words(derivation)
        assert sorted(word.form for word in words) == sorted(english)
        place = {id(word.constituent): i for i, word in enumerate(words)}
        for node in derivation.nodes():
            for child in node.children:
                if child.relation == "obj":
                    assert place[id(child)] < place[id(node)]
                    objects += 1
                elif child.relation == "case":
                    assert place[id(child)] > place[id(node)]
    assert objects > 200


def test_linearization_leaves_the_derivation_as_it_is():
    lang = language()
    for derivation in derivations(200):
        before = derivation.copy()
        lang.text(derivation)
        assert derivation == before


def test_names_of_all_types_are_marked():
    entities = collections.Counter(
        node.entity for derivation in derivations() for node in derivation.nodes()
    )
    assert all(entities[entity] > 100 for entity in ("PER", "LOC", "ORG"))
    for derivation in derivations():
        for node in derivation.nodes():
            is_name = node.concept.category == "PROPN" and node.relation != "flat"
            assert bool(node.entity) == is_name
