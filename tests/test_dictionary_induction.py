"""dictionary_induction: rotated copies are found again, gold with several translations."""

import numpy as np
import pytest

from xling_jax.corpora.dictionaries import from_pairs
from xling_jax.evaluators.dictionary_induction import CUTOFFS, Pairs, hits, induce

N, D = 400, 20


@pytest.fixture
def spaces():
    random = np.random.default_rng(0)
    x = random.normal(size=(N, D)).astype(np.float32) + 2
    rotation = np.linalg.qr(random.normal(size=(D, D)))[0]
    order = random.permutation(N)
    y = (x @ rotation)[order].astype(np.float32)
    dictionary = from_pairs([(f"x{n}", f"y{place}") for place, n in enumerate(order)], "a", "b")
    rows = [{f"{side}{n}": n for n in range(N)} for side in "xy"]
    return x, y, dictionary, rows


def halves(dictionary, rows):
    pairs = [(word, found[0][0]) for word, found in dictionary.entries.items()]
    return [Pairs.of(from_pairs(part, "a", "b"), *rows) for part in (pairs[:200], pairs[200:])]


def test_a_rotated_copy_is_found_again_and_not_without_the_map(spaces):
    x, y, dictionary, rows = spaces
    train, test = halves(dictionary, rows)
    found = induce(x, y, train, test)
    assert all(found[f"{way}_p{k}"] == 1 for way in ("forward", "backward") for k in CUTOFFS)
    assert (found["words"], found["covered"], found["learned"]) == (200, 200, len(train.rows))
    without = induce(x, y, None, test)
    assert without["p1"] < 0.1 and without["learned"] == 0


def test_noise_lowers_precision_and_more_candidates_raise_it(spaces):
    x, y, dictionary, rows = spaces
    train, test = halves(dictionary, rows)
    noisy = y + np.random.default_rng(1).normal(size=y.shape).astype(np.float32)
    found = induce(x, noisy, train, test)
    assert 0.1 < found["p1"] < found["p5"] < found["p10"] < 1


def test_any_translation_counts_and_each_word_once():
    dictionary = from_pairs(
        [("a", "u"), ("a", "v"), ("b", "w"), ("c", "nowhere"), ("d", "u")], "x", "y"
    )
    pairs = Pairs.of(dictionary, {"a": 0, "b": 1, "c": 2}, {"u": 0, "v": 1, "w": 2})
    assert (pairs.words, pairs.covered) == (4, 2)
    words, table = pairs.gold()
    assert words.tolist() == [0, 1] and table.tolist() == [[0, 1], [2, -1]]
    assert pairs.reverse().gold()[1].tolist() == [[0], [0], [1]]
    keys = np.eye(3, dtype=np.float32)
    queries = np.stack([keys[1], keys[0], keys[2]])
    assert hits(queries, keys, (words, table))[1].mean() == 0.5


def test_pairs_of_rows_that_are_not_there_are_refused(spaces):
    x, y, dictionary, rows = spaces
    train, test = halves(dictionary, rows)
    none = Pairs(np.zeros((0, 2), np.int32), 0, 0)
    for name, pairs in (("train", (none, test)), ("test", (train, none))):
        with pytest.raises(ValueError, match=rf"{name}.rows \(0, 2\): give at least one row"):
            induce(x, y, *pairs)
    with pytest.raises(ValueError, match="rows from .* row numbers are integers from 0, below 9"):
        induce(x[:9], y, train, test)
    with pytest.raises(ValueError, match="gold: give at least one word"):
        hits(x, y, (np.zeros(0, int), np.zeros((0, 1), int)))


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_side_that_is_not_finite_is_named(spaces, side):
    x, y, dictionary, rows = spaces
    (x if side == "source" else y)[7, 0] = np.nan
    with pytest.raises(ValueError, match=f"^{side}: row 7"):
        induce(x, y, *halves(dictionary, rows))


def test_a_dictionary_of_unknown_words_is_refused():
    with pytest.raises(ValueError, match="none of the dictionary's 1 words of x is known"):
        Pairs.of(from_pairs([("a", "u")], "x", "y"), {}, {"u": 0})
