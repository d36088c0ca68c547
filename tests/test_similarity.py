"""text_encoder and similarity: batches, words in context, CKA of models, aligned sentences."""

import dataclasses
import functools
import itertools

import jax
import ml_collections
import numpy as np
import pytest

from xling_jax.corpora.dictionaries import from_pairs
from xling_jax.corpora.normalize import Normalization
from xling_jax.evaluators import similarity, text_encoder
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.evaluators.word_alignment import mutual_argmax
from xling_jax.evaluators.word_order import contextual_links
from xling_jax.experiments.similarity import measures
from xling_jax.experiments.similarity.texts import LanguageTexts
from xling_jax.linalg import cka
from xling_jax.models import heads, stored
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.vocabulary import pieces as vocabulary
from xling_jax.vocabulary.pieces import CLS, MASK, SEP

WORDS = "the dog cat bird sees likes hears a small big old and sleeps runs".split()


@functools.lru_cache
def text(number=300, seed=0):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, 30))) for _ in range(number)]


@functools.lru_cache
def model(seed=0, hidden=16):
    pieces = vocabulary.train(text(), 45)
    config = BertConfig(
        vocabulary_size=45, layers=2, hidden=hidden, intermediate=32, heads=2, positions=48,
        initial_sd=0.3,
    )  # fmt: skip
    ids = np.random.default_rng(9).permutation(np.arange(5, 45))
    ids = np.concatenate([np.arange(5), ids]).astype(np.int32)
    return stored.StoredModel(
        config, heads.initial_params(config, seed), "en", pieces, ids, Normalization()
    )


def states_of(one, sentence):
    """Every layer's states of one sentence alone, by the encoder itself, [L, pieces, D].

    Filled up to one length, since every other length would be compiled anew.
    """
    length = one.config.positions
    ids = one.encode([sentence])[0][: length - 2]
    tokens, places = np.full((1, length), SEP), np.arange(length)[None]
    tokens[0, : len(ids) + 1] = [CLS, *ids]
    segments = np.where(places < len(ids) + 2, 0, -1)
    zeros = np.zeros_like(tokens)
    found = Bert(one.config).apply({"params": one.params}, tokens, places, segments, zeros)
    return np.stack([state[0, 1 : len(ids) + 1] for state in found]), ids


@pytest.mark.parametrize("places", [64, 8192])
def test_sentences_are_the_means_of_their_pieces_whatever_the_batches(monkeypatch, places):
    monkeypatch.setattr(text_encoder, "PLACES", places)
    one, sentences = model(), [*text(40), "", "cat " * 100]
    found = TextEncoder(one).sentences(sentences)
    assert found.shape == (3, 42, 16) and not found[:, 40].any()
    for number in (0, 7, 39, 41):
        expected = states_of(one, sentences[number])[0].mean(axis=1)
        np.testing.assert_allclose(found[:, number], expected, atol=2e-5)


def test_a_string_is_no_list_of_sentences():
    one = TextEncoder(dataclasses.replace(model(), mask_id=MASK))
    for name, call in (
        ("texts", lambda: one.sentences("a dog")),
        ("texts", lambda: one.masked_losses("a dog", 7, 1)),
        ("written", lambda: one.words("a dog", ["dog"])),
        ("words", lambda: one.words(["a dog"], "dog")),
    ):
        with pytest.raises(ValueError, match=f"^{name}='.*dog': give a list"):
            call()


def test_layers_can_be_chosen():
    one = TextEncoder(model(), [2])
    every = TextEncoder(model()).sentences(text(5))
    np.testing.assert_allclose(one.sentences(text(5))[0], every[2], atol=1e-6)
    with pytest.raises(ValueError, match=r"layers=\(3,\): the model has layers 0..2"):
        TextEncoder(model(), [3])


def test_words_are_the_means_over_their_occurrences():
    one = model()
    sentences = ["the dog sees the cat", "Dog and dog", "a bird sleeps"]
    found, counts = TextEncoder(one).words(
        list(map(one.write, sentences)), ["dog", "bird", "zebra"]
    )
    assert counts.tolist() == [3, 1, 0] and not found[:, 2].any()
    sums = []
    for sentence in sentences:
        states, ids = states_of(one, sentence)
        names = [one.pieces.names[one.ids.tolist().index(k)] for k in ids]
        starts = [n for n, name in enumerate(names) if name.startswith("▁")] + [len(names)]
        for word, a, b in zip(one.write(sentence).split(), starts[:-1], starts[1:], strict=True):
            if word.lower() == "dog":
                sums.append(states[:, a:b].mean(axis=1))
    np.testing.assert_allclose(found[:, 0], np.mean(sums, axis=0), atol=2e-5)


def test_occurrences_are_the_words_where_they_stand(monkeypatch):
    """Also those that the model writes as several words or none."""
    monkeypatch.setattr(text_encoder, "PLACES", 64)
    one = model()
    sentences = [*map(str.split, [*text(30), "cat " * 60]), ["the dog", "", "cat", "a bird"]]
    wanted = [range(0, len(sentence), 2) for sentence in sentences[:-1]] + [[0, 1, 3]]
    encoder = TextEncoder(one)
    found, is_there = encoder.occurrences(sentences, wanted)
    assert found.shape == (3, sum(map(len, wanted)), 16)
    start = 0
    for number, words in enumerate(wanted):
        written = " ".join(filter(None, sentences[number]))
        states, ids = states_of(one, written)
        _, word_of = one.encode_words([written])[0]
        for place, word in enumerate(words, start):
            before, after = (len(" ".join(sentences[number][:n]).split()) for n in (word, word + 1))
            own = np.flatnonzero((before <= word_of) & (word_of < after))
            assert is_there[place] == (len(own) > 0 and own[-1] < len(ids))
            expected = states[:, own].mean(axis=1) if is_there[place] else np.zeros((3, 16))
            np.testing.assert_allclose(found[:, place], expected, atol=2e-5)
        start += len(words)
    assert is_there.any() and not is_there.all()


def test_words_of_a_sentence_and_itself_are_linked_to_themselves():
    """Also where the second reads another model's states of them, at the embeddings."""
    sentences = [" ".join(dict.fromkeys(line.split()[:6])) for line in text(20)]
    sides = sentences, sentences
    for links, line in zip(contextual_links(model(), model(), 0, sides), sentences, strict=True):
        assert links == [(n, n) for n in range(len(line.split()))]


def test_words_are_linked_by_the_matching_with_the_greatest_sum_of_cosines():
    """D&S B.2, Match: of all assignments, which mutual nearest neighbours do not find."""
    lines = [" ".join(dict.fromkeys(line.split()[:6])) for line in text(12, 3)]
    sides = lines, [" ".join(line.split()[::-1][:4]) for line in lines]
    both = model(), model(1)
    is_other = False
    for number, links in enumerate(contextual_links(*both, 1, sides)):
        states = []
        for one, side in zip(both, sides, strict=True):
            wanted = [range(len(side[number].split()))]
            found = TextEncoder(one, [1]).occurrences([side[number].split()], wanted)[0][0]
            states.append(found / np.linalg.norm(found, axis=-1, keepdims=True))
        cosines = states[0] @ states[1].T
        n, m = cosines.shape
        assert len(links) == m <= n
        best = max(
            cosines[list(rows), range(m)].sum() for rows in itertools.permutations(range(n), m)
        )
        assert sum(cosines[link] for link in links) == pytest.approx(best, abs=1e-5)
        is_other |= links != mutual_argmax(cosines)
    assert is_other


def test_cka_of_models_is_that_of_their_sentences_in_chunks(monkeypatch):
    monkeypatch.setattr(similarity, "CHUNK", 70)
    first, second = TextEncoder(model()), TextEncoder(model(1, 32))
    pairs = [(line, line) for line in text()]
    found = similarity.layer_cka(first, second, pairs)
    x, y = first.sentences(text()), second.sentences(text())
    expected = [float(cka.linear_cka(a, b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(similarity.layer_cka(first, first, pairs), 1, atol=1e-5)
    assert (found < 0.99).all()


def test_cka_needs_two_pairs():
    encoder = TextEncoder(model())
    with pytest.raises(ValueError, match="give at least two"):
        similarity.layer_cka(encoder, encoder, [("ab", "ab")])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_states_that_are_not_finite_are_refused_by_their_layer(value):
    spoilt = model(1)
    params = jax.tree.map(lambda x: x, spoilt.params)
    params["layers"]["1"]["output"]["bias"] = np.full(16, value, np.float32)
    spoilt = TextEncoder(dataclasses.replace(spoilt, params=params))
    pairs = [(line, line) for line in text(20)]
    with pytest.raises(ValueError, match="layer 2 with layer 2: a state is a NaN"):
        similarity.layer_cka(TextEncoder(model()), spoilt, pairs)


def test_a_map_learned_on_some_sentences_translates_others():
    first, second = TextEncoder(model()), TextEncoder(model(1))
    pairs = [(line, line) for line in dict.fromkeys(text(600, 1)) if len(line.split()) > 3]
    learned, tested = pairs[:400], pairs[400:]
    without = similarity.sentence_translation(first, second, None, tested)
    with_map = similarity.sentence_translation(first, second, learned, tested)
    assert len(with_map) == 3
    assert with_map[0][""] > 0.5 > 0.2 > without[0][""]
    same = similarity.sentence_translation(first, first, None, tested)
    assert same[2][""] == 1


def test_correlation_over_layers():
    assert similarity.layer_correlation([0.1, 0.2, 0.3], [1, 2, 3]) == pytest.approx(1)
    assert np.isnan(similarity.layer_correlation([0.1, 0.1, 0.1], [1, 2, 3]))
    with pytest.raises(ValueError, match="at least two"):
        similarity.layer_cka(TextEncoder(model()), TextEncoder(model()), [])


def test_sentences_longer_than_the_model_are_counted():
    assert text_encoder.number_cut(model(), ["ab " * 100, "ab"]) == 1


@pytest.mark.parametrize("languages", [(), ("en", "near")], ids=["alone", "with vectors"])
def test_words_whose_language_is_not_known_are_not_translated(languages, tmp_path, capsys):
    """A word of a vocabulary in common would be its own translation."""
    train, test = (from_pairs([pair], "en", "near") for pair in (("a", "dog"), ("dog", "cat")))
    (tmp_path / "all.vec").write_text("2 2\ndog 1 0\ncat 0 1\n")
    vectors = dict.fromkeys(languages, str(tmp_path / "all.vec"))
    texts = LanguageTexts([("dog", "cat"), ("a", "dog")], None, None, train, test, vectors, {})
    config = ml_collections.ConfigDict({"layers": (), "words": {"most": 10}, "skip_gram": {}})
    found = measures.compare([model(), model(1)], texts, True, config)
    assert not any(name.startswith("words") for name in found)
    assert "give texts.LANGUAGE.contexts" in capsys.readouterr().err


def test_a_cut_sentence_is_counted_once_however_often_it_is_encoded(capsys):
    long = "ab " * 100
    texts = LanguageTexts(
        [(long, "ab"), ("ab", "a")], None, ([long, "cat"], [long]), None, None, {}, {}
    )
    measures.compare([model(), model(1)], texts, True, ml_collections.ConfigDict({"layers": ()}))
    told = [line for line in capsys.readouterr().err.splitlines() if "cut to" in line]
    assert [line.split(": ")[1] for line in told] == ["1 of 3 sentences"] * 2
