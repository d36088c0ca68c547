"""The embedded language comes out the same again, with the words and text asked for."""

import collections
import os
import subprocess
import sys

import numpy as np
import pytest
from embedded_language import derivations, language, sentences

from xling_jax.corpora.embedded import concepts, lexicon
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.language import generate

SMALL = LanguageConfig(word_types=600)
FUNCTION_WORDS = set(" ".join(concepts.FUNCTION_WORDS.values()).split())


# Reproducibility.


def test_the_same_seeds_give_the_same_text_in_another_process():
    code = (
        "from xling_jax.corpora.embedded.language import *\n"
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


@pytest.mark.parametrize("share", [0.16, 0.4])
def test_names_have_the_share_of_the_word_types_that_is_asked_for(share):
    drawn = concepts.draw(LanguageConfig(name_types=share), np.random.default_rng(0))
    names = [concept.category == "PROPN" for concept in drawn.content()]
    assert np.mean(names) == pytest.approx(share, abs=0.002)


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
        for node in derivation.nodes()
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
        {"names": 0.95, "predications": 0.95, "questions": 0.95, "name_types": 0.01},
        {"names": 0.01, "name_types": 0.4},
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
        ("name_types", 0.41),
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
