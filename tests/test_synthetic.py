"""The embedded languages agree, recurse, choose their partners, and come out the same again."""

import collections
import functools
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from xling_jax.corpora.synthetic import concepts, lexicon, ontology
from xling_jax.corpora.synthetic.derivation import RECURSIVE
from xling_jax.corpora.synthetic.linearization import ENGLISH_ORDER, Linearizer
from xling_jax.corpora.synthetic.sentences import Language, LanguageConfig, generate

SMALL = LanguageConfig(word_types=600)
FUNCTION_WORDS = {word for words in ontology.FUNCTION_WORDS.values() for word in words}


@functools.cache
def language(**knobs):
    return Language(LanguageConfig(**{"word_types": 600} | knobs))


@functools.cache
def derivations(count=3000, **knobs):
    return list(itertools.islice(language(**knobs).derivations(1), count))


@functools.cache
def sentences(count=10_000, seed=1, **knobs):
    return generate(LanguageConfig(**{"word_types": 600} | knobs), count, seed)


def nodes(constituent):
    yield constituent
    for child in constituent.children:
        yield from nodes(child)


def child_of(constituent, *relations):
    return next((c for c in constituent.children if c.relation in relations), None)


def words_of(constituent, lang):
    """Words in order, and the place and form of each constituent."""
    words = lang.linearizer.words(constituent)
    place = {id(word.constituent): i for i, word in enumerate(words)}
    return words, place


# Reproducibility.


def test_the_same_seeds_give_the_same_text_in_another_process():
    code = (
        "from xling_jax.corpora.synthetic.sentences import *\n"
        "print('\\n'.join(generate(LanguageConfig(word_types=600), 50, 1)))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1] == sentences()[:50]


def test_fewer_sentences_are_a_prefix_of_more():
    assert generate(SMALL, 20, 1) == sentences()[:20]


def test_the_sentence_seed_changes_the_sentences_but_not_the_language():
    train, dev = sentences(), sentences(seed=2)
    assert len(set(dev) & set(train)) < 0.02 * len(dev)
    words, dev_words = ({w for s in text for w in s.split()} for text in (train, dev))
    assert len(words & dev_words) > 0.9 * len(words | dev_words)


def test_the_language_seed_changes_the_content_words():
    words, other = ({w for s in sentences(5000, seed=k) for w in s.split()} for k in (0, 1))
    assert len(words & other) > 0.8 * len(words)
    other = {
        w for s in generate(LanguageConfig(word_types=600, seed=1), 5000, 0) for w in s.split()
    }
    content = words - FUNCTION_WORDS
    assert len(content & other) < 0.1 * len(content)


def test_two_languages_can_differ_in_one_part_only():
    lexicon, other = language().lexicon, language(collocation=0.5, habits=0.2).lexicon
    assert lexicon.forms == other.forms


# Lexicon.


@pytest.mark.parametrize("word_types", [200, 600, 2000, 5000])
def test_the_language_has_the_word_types_asked_for(word_types):
    rng = np.random.default_rng(0)
    drawn = concepts.draw(LanguageConfig(word_types=word_types), rng)
    words = lexicon.draw(drawn, rng)
    dictionary = [words.form(concept) for concept in drawn.all()]
    assert len(dictionary) == len(set(dictionary)) == word_types
    assert [concept.index for concept in drawn.all()] == list(range(word_types))


def test_nearly_all_words_are_used():
    lang = language()
    dictionary = {form: i for i, forms in enumerate(lang.lexicon.forms) for form in forms.values()}
    used = {dictionary.get(word) for sentence in sentences() for word in sentence.split()}
    assert None not in used
    assert len(used) >= 0.98 * 600


def test_no_two_content_words_share_a_form_and_inflections_are_suffixes():
    forms = [set(entry.values()) for entry in language().lexicon.forms]
    content = [entry for entry in forms if not entry & FUNCTION_WORDS]
    assert sum(map(len, content)) == len(set().union(*content)) > 900
    assert all(form.isascii() and form.isalpha() for entry in content for form in entry)
    for concept in language().concepts.verbs:
        stem, third, past = (language().lexicon.form(concept, i) for i in ("", "Pres3Sing", "Past"))
        assert third.endswith("s") and past.endswith("ed") and third[:3] == past[:3] == stem[:3]


@pytest.mark.parametrize("exponent", [0.3, 1.0])
def test_content_words_follow_zipf_s_law(exponent):
    lang = language(zipf_exponent=exponent)
    counts = collections.Counter(
        node.concept.row
        for derivation in derivations(zipf_exponent=exponent)
        for node in nodes(derivation)
        if node.concept.category == "VERB"
    )
    frequency = np.sort([counts[verb.row] for verb in lang.concepts.verbs])[::-1]
    # The head is flattened, and the last ranks are where sampling noise sorts to.
    ranks = np.arange(3, 90)
    slope = np.polyfit(np.log(ranks + 2.7), np.log(frequency[ranks - 1]), 1)[0]
    assert slope == pytest.approx(-exponent, abs=0.3)


def test_a_few_words_make_most_of_the_text_and_a_frequent_word_is_short():
    counts = collections.Counter(word for s in sentences() for word in s.split())
    frequency = np.array([count for _, count in counts.most_common()])
    assert 0.5 < frequency[:100].sum() / frequency.sum() < 0.85
    lengths = [len(word) for word, _ in counts.most_common()]
    assert np.mean(lengths[:100]) + 1 < np.mean(lengths[-500:])


# Grammar.


def subject_form(clause, antecedents, lang):
    """Agreement of a clause's subject, from the words it is made of: "1Sing", "3Sing", "Plur"."""
    subject = child_of(clause, "nsubj", "nsubj:pass")
    if child_of(subject, "conj"):
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
        antecedents = {id(c): node for node in nodes(derivation) for c in node.children}
        for clause in nodes(derivation):
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
        for clause in nodes(derivation):
            verb, subject = place[id(clause)], child_of(clause, "nsubj", "nsubj:pass")
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
    relations = {node.relation for d in derivations(depth=depth) for node in nodes(d)}
    assert relations & RECURSIVE == (RECURSIVE if depth else set())


def test_word_order_is_strict():
    lang = language()
    seen = collections.Counter()
    for derivation in derivations():
        _, place = words_of(derivation, lang)
        for node in nodes(derivation):
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
    verb_final = ENGLISH_ORDER | {"obj": -40, "case": 1}
    linearizer = Linearizer(lang.lexicon, lang.concepts.function, verb_final)
    objects = 0
    for derivation in derivations(500):
        english = [word.form for word in lang.linearizer.words(derivation)]
        words = linearizer.words(derivation)
        assert sorted(word.form for word in words) == sorted(english)
        place = {id(word.constituent): i for i, word in enumerate(words)}
        for node in nodes(derivation):
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
        assert lang.text(derivation) == lang.text(derivation)


def test_names_of_all_types_are_marked():
    entities = collections.Counter(
        node.entity for derivation in derivations() for node in nodes(derivation)
    )
    assert all(entities[entity] > 100 for entity in ("PER", "LOC", "ORG"))
    for derivation in derivations():
        for node in nodes(derivation):
            is_name = node.concept.category == "PROPN" and node.relation != "flat"
            assert bool(node.entity) == is_name


# Distributions.


def mutual_information(pairs):
    """Plug-in mutual information in nats."""
    joint = collections.Counter(pairs)
    left, right = (collections.Counter(side) for side in zip(*pairs, strict=True))
    return sum(
        count / len(pairs) * np.log(count * len(pairs) / left[a] / right[b])
        for (a, b), count in joint.items()
    )


def pairs_of(relation, **knobs):
    return [
        (node.concept.index, child.concept.index)
        for derivation in derivations(**knobs)
        for node in nodes(derivation)
        for child in node.children
        if child.relation == relation and child.concept.category not in ("PRON", "DET")
    ]


def information(relation, **knobs):
    """Mutual information above that of the same words paired at random."""
    pairs = pairs_of(relation, **knobs)
    heads, partners = zip(*pairs, strict=True)
    shuffled = np.random.default_rng(0).permutation(partners).tolist()
    return mutual_information(pairs) - mutual_information(list(zip(heads, shuffled, strict=True)))


@pytest.mark.parametrize("relation", ["obj", "nsubj", "amod", "advmod"])
def test_words_choose_their_partners(relation):
    assert information(relation) > 0.3


def test_classes_collocations_and_topics_each_inform():
    off = {"selection": 0.0, "collocation": 0.0, "topicality": 0.0}
    assert abs(information("obj", **off)) < 0.06
    for knob, value in (("selection", 6.0), ("collocation", 2.0), ("topicality", 3.0)):
        assert information("obj", **off | {knob: value}) > 0.1, knob


def test_verbs_take_nouns_of_their_classes():
    wrong = total = 0
    for derivation in derivations():
        for verb in nodes(derivation):
            child = child_of(verb, "obj")
            if verb.concept.category == "VERB" and child and child.concept.category == "NOUN":
                allowed = ontology.VERB_CLASSES[verb.concept.meaning].objects
                wrong += child.concept.meaning not in allowed
                total += 1
    assert total > 1000
    assert wrong < 0.1 * total


def topics_of(derivation):
    return [node.concept.topic for node in nodes(derivation) if node.concept.topic >= 0]


def same_topic(pairs):
    """How often a word of the first and one of the second sentence of a pair share a topic."""
    return np.mean([a == b for first, second in pairs for a in first for b in second])


@pytest.mark.parametrize("topicality", [0.0, 3.0])
def test_a_paragraph_has_a_topic_if_there_are_topics(topicality):
    topics = [topics_of(derivation) for derivation in derivations(topicality=topicality)]
    near = same_topic(itertools.pairwise(topics))
    far = same_topic(zip(topics, topics[1000:], strict=False))
    assert (near > 1.4 * far) if topicality else (near < 1.1 * far)


def recognised(**knobs):
    """Share of frequent words whose neighbours in one half of a text single them out in the other.

    The counts of the words one and two before and after are compared by their Bhattacharyya
    coefficient.
    """
    text = [sentence.split() for sentence in sentences(6000, **knobs)]
    ids: dict[str, int] = {}
    for word in itertools.chain.from_iterable(text):
        ids.setdefault(word, len(ids))
    halves = []
    for half in (text[:3000], text[3000:]):
        counts = np.zeros((len(ids), 4, len(ids)), np.float32)
        for sentence in half:
            row = [ids[word] for word in sentence]
            for k, offset in enumerate((1, 2)):
                for a, b in zip(row, row[offset:], strict=False):
                    counts[a, k, b] += 1
                    counts[b, 2 + k, a] += 1
        halves.append(counts.reshape(len(ids), -1))
    enough = np.minimum(*(half[:, :].sum(1) for half in halves)) >= 60
    first, second = (np.sqrt(half[enough] / half[enough].sum(1, keepdims=True)) for half in halves)
    assert enough.sum() > 200
    return np.mean((first @ second.T).argmax(1) == np.arange(len(first)))


def test_every_frequent_word_has_a_distribution_of_its_own():
    distinct = recognised()
    assert distinct > 0.7
    assert distinct > recognised(collocation=0.0, habits=0.0) + 0.2


# Text.


def test_sentences_are_mostly_different_and_of_realistic_length():
    text = sentences()
    assert len(set(text)) > 0.99 * len(text)
    lengths = np.array([len(sentence.split()) for sentence in text])
    assert 10 < lengths.mean() < 13.5
    assert np.quantile(lengths, 0.05) <= 6 and np.quantile(lengths, 0.95) >= 20
    assert lengths.max() < 126


def test_text_is_lower_case_words_separated_by_single_spaces():
    for sentence in sentences():
        assert sentence == " ".join(sentence.split()) == sentence.lower()
        assert all(token.isalpha() or token in {".", "?", ","} for token in sentence.split())


def test_capitals_mark_names_and_sentences_and_change_nothing_else():
    capitals = generate(LanguageConfig(word_types=600, capitals=1), 1000, 1)
    assert [sentence.lower() for sentence in capitals] == sentences()[:1000]
    names = {language().lexicon.form(n) for n in language().concepts.all() if n.category == "PROPN"}
    for sentence in capitals:
        first, *rest = sentence.split()
        assert first[0].isupper()
        assert all(word[0].isupper() == (word.lower() in names | {"i"}) for word in rest)


@pytest.mark.parametrize(
    "knobs",
    [
        {"topics": 1},
        {"habits": 10.0, "collocation": 10.0, "selection": 10.0, "topicality": 10.0},
        {"relative_clauses": 0.95, "coordination": 0.95, "depth": 3},
        {"zipf_exponent": 0.0, "adjectives": 0.0, "adverbs": 0.0, "pronouns": 0.0, "names": 0.01},
        {"names": 0.95, "predications": 0.95, "questions": 0.95},
    ],
)
def test_extreme_knobs_still_make_a_language(knobs):
    with np.errstate(all="raise", under="ignore"):
        text = generate(LanguageConfig(**{"word_types": 200} | knobs), 100, 0)
    assert all(sentence.split()[-1] in ".?" for sentence in text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("word_types", 199),
        ("word_types", 10_001),
        ("word_types", 600.0),
        ("topics", 0),
        ("paragraph", 0.5),
        ("depth", -1),
        ("seed", -1),
        ("zipf_exponent", -0.1),
        ("collocation", float("nan")),
        ("selection", 11),
        ("adjectives", 1.0),
        ("pronouns", -0.1),
        ("names", 0.0),
        ("capitals", 2),
        ("habits", "1"),
    ],
)
def test_bad_knobs_raise_with_their_name_and_value(field, value):
    with pytest.raises(ValueError, match=f"{field}={value!r}: give"):
        LanguageConfig(**{field: value})


def test_bad_counts_and_seeds_raise():
    with pytest.raises(ValueError, match="sentences=0"):
        generate(SMALL, 0, 1)
    with pytest.raises(ValueError, match="seed=-1"):
        generate(SMALL, 1, -1)
