"""evaluate: the same numbers as plain definitions give, with intervals, of models and of states."""

import dataclasses

import numpy as np
import pytest
from test_similarity import WORDS, model, states_of, text

from xling_jax import evaluate
from xling_jax.corpora.dictionaries import from_pairs
from xling_jax.corpora.word_links import GoldLinks
from xling_jax.evaluators import language_pairs, word_alignment
from xling_jax.evaluators.dictionary_induction import Pairs
from xling_jax.evaluators.intervals import compare_words
from xling_jax.models import heads, stored
from xling_jax.models.bert import Bert
from xling_jax.models.hugging_face.text import HuggingFaceModel
from xling_jax.vocabulary.pieces import CLS, MASK, SEP

NUMBER = 40


def reader(language, seed=0):
    """`model` as one of this language."""
    return dataclasses.replace(model(seed), language=language)


def values(scores, **wanted):
    """Numbers by what they are of, where the other columns have these values."""
    for column, value in wanted.items():
        scores = scores[scores[column] == value]
    return scores


def value(scores, metric, languages="en-de", layer="", part=""):
    (found,) = values(
        scores, metric=metric, languages=languages, layer=layer, part=part
    ).value.tolist()
    return found


def vectors(seed=0, noise=1.5, layers=2, width=12):
    """Of three languages, each the same points with noise and a shift of its own."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(layers, NUMBER, width))
    return {
        name: points + noise * random.normal(size=points.shape) + 2 * random.normal(size=width)
        for name in ("en", "de", "fr")
    }


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ranks(similarity):
    """Of the counterparts among a row's similarities."""
    return (similarity > np.diag(similarity)[:, None]).sum(1)


def plain_csls(x, y, k=10):
    cosine = unit(x) @ unit(y).T
    r_x, r_y = (np.sort(a, axis=1)[:, -k:].mean(1) for a in (cosine, cosine.T))
    return 2 * cosine - r_x[:, None] - r_y[None, :]


def plain_cka(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    within = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return np.linalg.norm(x.T @ y) ** 2 / within


def test_numbers_of_states_are_those_of_the_definitions():
    states = vectors()
    scores = evaluate(states)
    for layer in range(2):
        x, y = (states[name][layer] for name in ("en", "de"))
        cosine = unit(x) @ unit(y).T
        both = ranks(cosine), ranks(cosine.T)
        at = {"layer": layer}
        for k, part in ((1, ""), (5, "p5"), (10, "p10")):
            expected = np.mean([(r < k).mean() for r in both])
            assert value(scores, "retrieval", part=part, **at) == pytest.approx(expected)
        for part, own in zip(("forward", "backward"), both, strict=True):
            assert value(scores, "retrieval", part=part, **at) == pytest.approx((own < 1).mean())
        expected = np.mean([(1 / (1 + r)).mean() for r in both])
        assert value(scores, "mrr", **at) == pytest.approx(expected)
        csls = plain_csls(x, y)
        expected = np.mean([(ranks(s) < 1).mean() for s in (csls, csls.T)])
        assert value(scores, "csls", **at) == pytest.approx(expected)
        cosine = unit(x - x.mean(0)) @ unit(y - y.mean(0)).T
        expected = np.mean([(ranks(s) < 1).mean() for s in (cosine, cosine.T)])
        assert value(scores, "centred", **at) == pytest.approx(expected)
        assert value(scores, "cka", **at) == pytest.approx(plain_cka(x, y), rel=1e-4)
    of_pairs = values(scores, metric="cka", layer=1, part="").set_index("languages").value
    assert set(of_pairs.index) == {"en-de", "en-fr", "de-fr", ""}
    assert of_pairs[""] == pytest.approx(of_pairs.drop("").mean())


def test_a_map_finds_what_an_orthogonal_one_hides():
    random = np.random.default_rng(3)
    points = random.normal(size=(1, NUMBER, 8))
    rotation, _ = np.linalg.qr(random.normal(size=(8, 8)))
    scores = evaluate({"en": points, "de": points @ rotation})
    assert value(scores, "retrieval", layer=0) < 0.5
    assert value(scores, "mapped", layer=0) == 1
    assert value(scores, "cka", layer=0) == pytest.approx(1, abs=1e-5)


def test_intervals_hold_the_number_and_become_narrow_with_more_sentences():
    few, many = (
        {name: np.tile(own, (1, times, 1)) for name, own in vectors(noise=1.0).items()}
        for times in (1, 9)
    )
    widths = {}
    for number, states in (("few", few), ("many", many)):
        scores = values(evaluate(states, names=("mrr", "cka")), layer=0, languages="en-de")
        assert (scores.low <= scores.value).all() and (scores.value <= scores.high).all()
        widths[number] = (scores.high - scores.low).to_numpy()
    # Nine times the same sentences: a third of the width, but for what rounding and ties move.
    assert (widths["many"] < 0.6 * widths["few"]).all() and (widths["few"] > 0).all()
    again = values(evaluate(few, names=("mrr", "cka")), layer=0, languages="en-de")
    assert np.array_equal(again.low, values(evaluate(few), layer=0, languages="en-de")[
        lambda x: x.metric.isin(["mrr", "cka"]) & (x.part == "")].low)  # fmt: skip


def test_an_interval_holds_the_middle_95_percent():
    states = vectors()
    (found,) = values(
        evaluate(states, names=("retrieval",)), layer=0, languages="en-de", part=""
    ).itertuples()
    cosine = unit(states["en"][0]) @ unit(states["de"][0]).T
    found_N = np.mean([ranks(cosine) < 1, ranks(cosine.T) < 1], axis=0)
    deviation = found_N.std() / NUMBER**0.5
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * deviation, rel=0.15)


def test_a_second_translation_hardly_changes_the_interval_of_words():
    first, second = (vectors(noise=1.0)[name][0] for name in ("en", "de"))
    first, second = first - first.mean(0), second - second.mean(0)
    widths = []
    for more in ([], [(0, 1)]):
        pairs = Pairs(np.array([*zip(range(NUMBER), range(NUMBER), strict=True), *more]), 40, 40)
        score = compare_words(first, second, pairs, ("words",))["words", ""]
        widths.append(np.diff(score.limits)[0])
    assert 0.9 < widths[1] / widths[0] < 1.1


def test_vectors_of_different_widths_have_cka_alone():
    states = vectors()
    scores = evaluate({"en": states["en"], "de": states["de"][..., :5]})
    assert set(scores.metric) == {"cka"}
    three = evaluate({**states, "de": states["de"][..., :5]})
    means = three[(three.languages == "") & (three.part == "")]
    assert set(means.metric) == {"cka"} and "retrieval" in set(three.metric)


def test_models_give_what_their_states_give():
    one, other = model(), reader("de", 1)
    texts = {"en": text(30), "de": text(30, seed=4)}
    scores = evaluate({"en": one, "de": other}, texts, dictionaries={("en", "de"): PAIRS})
    states = {
        name: np.stack([states_of(own, line)[0].mean(1) for line in texts[name]], axis=1)
        for name, own in (("en", one), ("de", other))
    }
    by_states = evaluate(states)
    for metric in ("retrieval", "mapped", "csls", "centred", "cka"):
        for layer in range(3):
            at = {"layer": layer}
            expected = value(by_states, metric, **at)
            assert value(scores, metric, **at) == pytest.approx(expected, abs=1e-4)


PAIRS = [("dog", "cat"), ("dog", "bird"), ("old", "small"), ("cat", "dog"), ("runs", "sleeps")]


def test_words_are_encoded_alone_and_found_by_csls():
    one, other = model(), reader("de", 1)
    texts = {"en": text(5), "de": text(5)}
    names = ("words", "translation", "retrieval", "mu")
    scores = evaluate({"en": one, "de": other}, texts, names=names,
                      dictionaries={("en", "de"): PAIRS})  # fmt: skip
    sides = [list(dict.fromkeys(words)) for words in zip(*PAIRS, strict=True)]
    for layer in range(3):
        x, y = (
            np.stack([states_of(own, word)[0][layer].mean(0) for word in words])
            for own, words in zip((one, other), sides, strict=True)
        )
        csls = plain_csls(x, y)
        shares = []
        for side, found in ((0, csls), (1, csls.T)):
            best = found.argmax(1)
            right = [
                (sides[side][i], sides[1 - side][j]) in {pair[:: 1 - 2 * side] for pair in PAIRS}
                for i, j in enumerate(best)
            ]
            shares.append(np.mean(right))
        assert value(scores, "words", layer=layer) == pytest.approx(np.mean(shares))
        assert value(scores, "words", layer=layer, part="forward_p1") == pytest.approx(shares[0])
        # "bird" translates "dog" too, which has "cat" already.
        pairs = [PAIRS[n] for n in (0, 2, 3, 4)]
        x, y = (
            x[[sides[0].index(a) for a, _ in pairs]], y[[sides[1].index(b) for _, b in pairs]]
        )  # fmt: skip
        cosine = unit(x) @ unit(y).T
        expected = np.mean([(ranks(s) < 1).mean() for s in (cosine, cosine.T)])
        assert value(scores, "translation", layer=layer) == pytest.approx(expected)
    of_mu = [value(scores, name, layer=layer) for name in ("retrieval", "translation")
             for layer in (0, 1)]  # fmt: skip
    assert value(scores, "mu") == pytest.approx(np.mean(of_mu))


def test_a_dictionary_may_be_a_mapping():
    known, texts = {"dog": "cat", "old": "runs"}, {"en": text(5), "de": text(5)}
    given = known, list(known.items())
    one, other = (evaluate(reader, texts, names=("words",), dictionaries={("en", "de"): words})
                  for words in given)  # fmt: skip
    assert one.equals(other) and value(one, "words", part="words") == 2


def test_a_dictionary_of_the_other_direction_or_in_a_file_gives_the_same(tmp_path):
    """Words are what they are, in either case: neither side is put into small letters."""
    models, texts = {"en": model(), "de": reader("de", 1)}, {"en": text(5), "de": text(5)}
    pairs = [*PAIRS, ("Old", "runs"), ("bird", "Dog")]
    both = {("en", "de"): pairs, ("de", "en"): [(b, a) for a, b in pairs]}
    given = [{of: words} for of, words in both.items()]
    for of, words in both.items():
        path = tmp_path / "-".join(of)
        path.write_text("".join(f"{a}\t{b}\n" for a, b in words), "utf-8")
        given.append({of: path})
    found = [evaluate(models, texts, names=("words",), dictionaries=each) for each in given]
    known = evaluate(models, texts, names=("words",), dictionaries={("en", "de"): PAIRS})
    for scores in found:
        assert value(scores, "words", layer=2) == value(known, "words", layer=2)


def test_words_that_a_model_writes_alike_are_one(monkeypatch):
    kind, plain = type(model()), type(model()).encode
    monkeypatch.setattr(kind, "encode", lambda self, x: plain(self, [each.lower() for each in x]))
    texts = {"en": text(5), "de": text(5)}
    once, twice = (
        evaluate(reader, texts, names=("words", "translation"), dictionaries={("en", "de"): pairs})
        for pairs in ([*PAIRS, ("small", "cat")], [*PAIRS, ("small", "Cat")])
    )
    assert once.equals(twice) and value(once, "words", part="covered") == 5


def plain_losses(one, sentence):
    """The loss of every piece, masked alone.

    The arrays always have the same shape, since each new one would be compiled anew.
    """
    size = one.config.positions
    ids = one.encode([sentence])[0][: size - 2]
    number, every = len(ids), np.arange(size)
    tokens, places = np.full((size, size), SEP), np.broadcast_to(every, (size, size))
    tokens[:, : number + 1] = [CLS, *ids]
    tokens[every[:number], every[:number] + 1] = MASK
    segments = np.where(places < number + 2, 0, -1)
    (states,) = Bert(one.config).apply(
        {"params": one.params}, tokens, places, segments, np.zeros_like(tokens),
        layers=(one.config.layers,),
    )  # fmt: skip
    masked = states[every, np.minimum(every + 1, size - 1)]
    logits = np.asarray(heads.masked_language_logits(one.config, one.params, masked))
    return [
        np.log(np.exp(row - row.max()).sum()) + row.max() - row[piece]
        for row, piece in zip(logits, ids, strict=False)
    ]


def test_pseudo_perplexity_masks_one_piece_at_a_time():
    one = dataclasses.replace(model(), mask_id=MASK)
    texts = {"en": text(6), "de": text(6, seed=4)}
    models = {language: dataclasses.replace(one, language=language) for language in texts}
    names = ("pseudo_perplexity",)
    scores = evaluate(models, texts, names=names, masked_every=64, passes=64)
    of_language = []
    for language, lines in texts.items():
        losses = [loss for line in lines for loss in plain_losses(one, line)]
        of_language.append(np.exp(np.mean(losses)))
        found = value(scores, "pseudo_perplexity", language)
        assert found == pytest.approx(of_language[-1], rel=1e-4)
    assert value(scores, "pseudo_perplexity", "") == pytest.approx(np.sqrt(np.prod(of_language)))
    few = evaluate(models, texts, names=names)
    (row,) = values(few, metric="pseudo_perplexity", languages="en").itertuples()
    assert row.value == pytest.approx(of_language[0], rel=0.3) and row.low < row.value < row.high
    without = evaluate(reader, texts, names=names)  # it has no [MASK]
    assert set(without.metric) == {"retrieval_cut"}


def test_words_are_linked_that_are_each_others_nearest():
    lines = [line for line in text(60) if 1 < len(line.split()) < 12][:8]
    gold = [GoldLinks([(n, n) for n in range(len(line.split()))]) for line in lines]
    turned = [" ".join(reversed(line.split())) for line in lines]
    links = {("en", "de"): gold}
    same = evaluate(reader, {"en": lines, "de": lines}, names=("alignment_f1",), links=links)
    scores = evaluate(reader, {"en": lines, "de": turned}, names=("alignment_f1",), links=links)
    assert value(same, "alignment_f1", layer=2) > 0.95 > value(scores, "alignment_f1", layer=2)
    possible = [GoldLinks([], links.sure) for links in gold]
    found = evaluate(
        reader, {"en": lines, "de": lines}, names=("alignment_f1",), links={("en", "de"): possible}
    )
    assert value(found, "alignment_f1", layer=2) == 0  # nothing has to be found, and F1 needs some


def test_what_is_longer_than_the_model_is_said_and_has_no_links():
    long, said = "dog cat " * 40, []
    words, places = long.split(), model().config.positions
    gold = {("en", "de"): [GoldLinks([(n, n) for n in range(len(words))])]}
    texts = {"en": [long, "dog"], "de": [long, "dog"]}
    names = ("retrieval", "alignment_f1")
    scores = evaluate(reader, texts, names=names, links=gold, say=said.append)
    assert value(scores, "retrieval_cut", "en") == 0.5
    assert f"cut to the {places} places of the model of en: 1 of 2 sentences" in said
    assert value(scores, "alignment_f1", layer=0) < 0.9
    short = evaluate(reader, {"en": ["dog", "cat"], "de": ["dog", "cat"]}, names=("retrieval",))
    assert "retrieval_cut" not in set(short.metric)
    without = evaluate(reader, texts, names=("alignment_f1",), links=gold)
    assert value(without, "retrieval_cut", "en") == 0.5


def test_sentences_that_repeat_others_are_counted_and_the_first_is_found():
    lines, said = [*text(30)[:20], *text(30)[:10]], []
    assert len(set(lines)) == 20
    names = ("retrieval", "csls")
    scores = evaluate(reader, {"en": lines, "de": text(30)}, names=names, say=said.append)
    assert value(scores, "retrieval_repeated", "en") == pytest.approx(10 / 30)
    assert "en: 10 sentences repeat others" in said
    states = {name: np.repeat(own, 3, axis=1) for name, own in vectors(noise=0).items()}
    same = evaluate({"en": states["en"], "de": states["en"]}, names=names)
    assert value(same, "retrieval", layer=0) == value(same, "csls", layer=0) == 1 / 3


def test_words_of_a_dictionary_are_written_as_behind_another_word(monkeypatch):
    asked, kind = [], type(model())
    monkeypatch.setattr(
        kind, "encode_alone", lambda self, words: asked.extend(words) or self.encode(words)
    )
    texts = {"en": text(5), "de": text(5)}
    evaluate(reader, texts, names=("words",), dictionaries={("en", "de"): PAIRS})
    assert set(asked) == {word for pair in PAIRS for word in pair}


def test_gold_links_count_as_och_and_ney_have_it():
    counts = np.array([[3.0, 4.0, 2.0, 5.0]])
    assert word_alignment.f1(counts)[0] == pytest.approx(2 * 0.75 * 0.4 / (0.75 + 0.4))


def test_folders_are_read_one_language_at_a_time(tmp_path):
    for number, name in enumerate(("en", "de")):
        stored.save(tmp_path / "row0" / name, reader(name, number))
    said = []
    texts = {"en": text(5), "de": text(5)}
    scores = evaluate(tmp_path / "row0" / "{language}", texts, say=said.append)
    expected = evaluate({"en": model(0), "de": reader("de", 1)}, texts)
    assert value(scores, "retrieval", layer=2) == value(expected, "retrieval", layer=2)
    assert value(scores, "pseudo_perplexity", "en") > 1  # the folder says what masks
    assert said[0] == "en: 5 sentences"


def test_of_loaded_models_only_those_of_transformers_read_every_language():
    one = model()
    theirs = HuggingFaceModel(one.config, one.params, "en", tokenizer=None, unknown=None)
    assert language_pairs._Reader(theirs)("de").language == "de"
    ours = dataclasses.replace(theirs, normalization=one.normalization)
    for given in (one, ours, lambda language: one):
        assert language_pairs._Reader(given)("en").language == "en"
        with pytest.raises(ValueError, match="reads en is given for de: give a folder, or a model"):
            language_pairs._Reader(given)("de")


def test_mu_is_of_the_models_depth_whatever_layers_are_asked_for():
    texts = {"en": text(5), "de": text(5)}
    models, known = {"en": model(), "de": reader("de", 1)}, {("de", "en"): PAIRS}
    whole = evaluate(models, texts, dictionaries=known)
    some = evaluate(models, texts, names=("mu",), layers=(1, 0), dictionaries=known)
    assert value(some, "mu") == value(whole, "mu")
    assert set(some.metric) - {"retrieval_cut"} == {"mu"}
    with pytest.raises(ValueError, match=r"layers=\(0, 2\): mu is of layers 0 and 1: add them"):
        evaluate(models, texts, names=("mu",), layers=(0, 2), dictionaries=known)


def test_words_that_cannot_be_written_do_not_count():
    models = {"en": model(), "de": reader("de", 1)}
    texts = {"en": text(5), "de": text(5)}
    pairs = [*PAIRS, ("old", "old")]
    more = [("собака", "狗"), *pairs, ("dog", "狗")]
    scores = [
        evaluate(models, texts, names=("words",), dictionaries={("en", "de"): given})
        for given in (pairs, more)
    ]
    parts = "words", "covered", "alike"
    counts = [[value(own, "words", part=part) for part in parts] for own in scores]
    assert counts == [[4, 4, 1], [5, 4, 1]]
    without = [own[own.part != "words"].reset_index(drop=True) for own in scores]
    assert without[0].equals(without[1])
    none = {("en", "de"): [("собака", "狗")]}
    found = evaluate(models, texts, names=("words", "translation"), dictionaries=none)
    assert [value(found, "words", part=part) for part in parts] == [1, 0, 0]
    assert set(found[found.metric != "retrieval_cut"].part) == set(parts)


def test_there_is_no_mean_where_no_word_of_a_pair_can_be_written():
    models = {"en": model(), "de": reader("de", 1), "fr": reader("fr", 2)}
    texts = {name: text(5, seed=n) for n, name in enumerate(models)}
    known = {("en", "de"): PAIRS, ("en", "fr"): PAIRS}
    whole = evaluate(models, texts, names=("words", "mu", "cka"), dictionaries=known)
    known["en", "fr"] = [("собака", "狗")]
    part = evaluate(models, texts, names=("words", "mu", "cka"), dictionaries=known)
    of_all = whole.languages == ""
    assert set(whole[of_all & (whole.part == "")].metric) == {"words", "mu", "cka"}
    kept = part[(part.languages == "") & (part.part == "")]
    assert set(kept.metric) == {"cka"}
    assert value(part, "words", "en-fr", part="covered") == 0


def test_links_may_be_given_in_either_direction():
    lines = [line for line in text(60) if 1 < len(line.split()) < 12][:8]
    turned = [" ".join(reversed(line.split())) for line in lines]
    sizes = [len(line.split()) for line in lines]
    gold = [GoldLinks([(n, size - 1 - n) for n in range(size // 2)]) for size in sizes]
    back = [GoldLinks([(b, a) for a, b in links.sure]) for links in gold]
    scores = [
        evaluate(reader, {"en": lines, "de": turned}, names=("alignment_f1",), links=links)
        for links in ({("en", "de"): gold}, {("de", "en"): back})
    ]
    assert scores[0].equals(scores[1]) and value(scores[0], "alignment_f1", layer=2) > 0.2


def test_two_sentences_have_no_interval_of_cka_and_nothing_after_a_map():
    states = {name: own[:, :2] for name, own in vectors().items()}
    scores = evaluate(states)
    assert not (scores.metric == "mapped").any()
    assert scores[scores.metric == "cka"].low.isna().all()


BOTH = {"en": WORDS, "de": WORDS}


@pytest.mark.parametrize(
    "given, texts, options, message",
    [
        ({"en": np.zeros((2, 3, 4))}, None, {}, "at least two languages"),
        ({"en": np.zeros((2, 3, 4)), "de": np.zeros((2, 2, 4))}, None, {}, "give as many of each"),
        ({"en": np.zeros((2, 3, 4)), "de": np.zeros((3, 3, 4))}, None, {}, "as many layers"),
        ("folder", None, {}, "texts: give sentences"),
        ({"en": "folder", "de": "folder"}, None, {}, "texts: give sentences"),
        ({"en": np.full((1, 3, 4), np.nan), "de": np.zeros((1, 3, 4))}, None, {}, "layer 0 of en"),
        (
            {"en": np.full((1, 3, 4), 1e39), "de": np.zeros((1, 3, 4))},
            None,
            {},
            "layer 0 of en: a state is .* too large for float32",
        ),
        (
            "model",
            {"en": WORDS, "de": ["10\u00a0000 dogs", *WORDS[1:]]},
            {"links": {("en", "de"): [GoldLinks([])]}},
            r"'10\\xa0000' would be read as 2 words",
        ),
        (
            "model",
            {"en": WORDS, "de": ["the \x96 dog", *WORDS[1:]]},
            {"links": {("en", "de"): [GoldLinks([])]}},
            "would be read as 0 words",
        ),
        (
            "model",
            {"en": WORDS, "de": WORDS},
            {"links": {("en", "de"): [[(0, 0)]]}},
            "give a GoldLinks",
        ),
        ({}, None, {}, "as many layers"),
        (
            {"en": [[[1.0], [1.0, 2.0]]], "de": np.zeros((1, 2, 2))},
            None,
            {},
            r"states of en: give real numbers \[layers, n, d\], as a NumPy array",
        ),
        (vectors(), None, {"names": ("cka", "words")}, "names: words needs dictionaries"),
        (vectors(), None, {"names": ("pseudo_perplexity",)}, "pseudo_perplexity needs texts"),
        (vectors(), None, {"dictionaries": {("en", "de"): PAIRS}}, "links: give texts too"),
        (vectors(), None, {"links": {("en", "de"): [GoldLinks([])]}}, "links: give texts too"),
        (vectors(), None, {"passes": 0}, "passes=0"),
        ("model", BOTH, {"masked_every": 0}, "masked_every=0"),
        ("model", BOTH, {"names": ("alignment_f1",)}, "alignment_f1 needs links"),
        (model(), BOTH, {}, "model: one that reads en is given for de"),
        ({"en": np.zeros((2, 3, 4))}, {"en": WORDS, "de": WORDS}, {}, "texts: leave them out"),
        ("model", {"en": WORDS, "de": [*WORDS[1:], None]}, {}, "sentence 14 of de is None"),
        ({"en": model()}, {"en": WORDS, "de": WORDS}, {}, "there is none for de"),
        ("model", {"en": WORDS, "de": [*WORDS[1:], " "]}, {}, "sentence 14 of de is empty"),
        (
            "model",
            {"en": WORDS, "de": WORDS},
            {"dictionaries": {("en", "de"): PAIRS, ("de", "en"): PAIRS}},
            "in either direction",
        ),
        (
            "model",
            {"en": WORDS, "de": WORDS},
            {"dictionaries": {("en", "de"): from_pairs(PAIRS, "en", "fr")}},
            "it translates en into fr",
        ),
        (
            "model",
            {"en": WORDS, "de": WORDS},
            {"links": {("en", "de"): [GoldLinks([])] * 99}},
            "they are of 99 sentences",
        ),
        *(
            ("model", BOTH, {"dictionaries": {("en", "de"): words}}, rf"\('en', 'de'\): {message}")
            for words, message in (
                (["du", "ab"], "'du': give a word and its translation"),
                ([("dog", "Hund", 1.0)], r"\('dog', 'Hund', 1.0\): give a word"),
                ({"dog": ["Hund"]}, r"\('dog', \['Hund'\]\): give a word"),
                ([], "there are no pairs"),
            )
        ),
        ("/nowhere", {"en": WORDS, "de": WORDS}, {}, "/nowhere"),
        ("model", {"en": "a.txt", "de": "b.txt"}, {}, "texts: en is 'a.txt': give a list"),
        ("model", {"en": WORDS, "de": WORDS}, {"names": "words"}, "names='words': give a list"),
        ("model", {"en": WORDS, "de": WORDS[:5]}, {}, "give as many of each"),
        ("model", {"en": WORDS, "de": WORDS}, {"layers": (9,)}, "the model has layers 0..2"),
        ("model", {"en": WORDS, "de": WORDS}, {"names": ("bleu",)}, "'bleu' is not measured"),
        (
            "model",
            {"en": WORDS, "de": WORDS},
            {"dictionaries": {("en", "fr"): PAIRS}},
            "no text of fr",
        ),
        (
            "model",
            {"en": WORDS, "de": WORDS},
            {"links": {("en", "de"): [GoldLinks([(0, 7)])]}},
            "link 0-7",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(given, texts, options, message):
    given = reader if given == "model" else given
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        evaluate(given, texts, **options)
