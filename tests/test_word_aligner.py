"""linalg.word_aligner: links of words, against the model computed word by word."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import digamma

from xling_jax.linalg import word_aligner
from xling_jax.linalg.word_aligner import ALPHA, NULL, TENSION, align, symmetrize


def corpus(sentences=400, words=60, seed=0):
    """Sentences whose translation keeps the order but for neighbours that change places."""
    random = np.random.default_rng(seed)
    sources, targets, gold = [], [], []
    for _ in range(sentences):
        n = int(random.integers(1, 25))
        source = random.integers(0, words, n)
        order = np.arange(n)
        for i in range(0, n - 1, 2):
            if random.random() < 0.4:
                order[[i, i + 1]] = order[[i + 1, i]]
        sources.append([f"s{w}" for w in source])
        targets.append([f"t{source[j]}" for j in order])
        gold.append(sorted((int(j), i) for i, j in enumerate(order)))
    return sources, targets, gold


def test_words_find_their_translations_wherever_they_stand():
    sources, targets, gold = corpus()
    found = list(align(sources, targets))
    right = sum(len(set(a) & set(b)) for a, b in zip(found, gold, strict=True))
    assert right / sum(map(len, gold)) > 0.97
    assert right / sum(map(len, found)) > 0.97


def by_hand(sources, targets, iterations, tension):
    """One direction by dictionaries, with a tension that stays."""
    pairs = {(e, f) for s, t in zip(sources, targets, strict=True) for f in t for e in [None, *s]}
    kinds = {e: sum(e == other for other, _ in pairs) for e, _ in pairs}
    probability = dict.fromkeys(pairs, 1.0)

    def shares(source, target, i):
        m, n = len(target), len(source)
        prior = [math.exp(-tension * abs((i + 1) / m - (j + 1) / n)) for j in range(n)]
        weights = [NULL * probability[None, target[i]]]
        weights += [
            (1 - NULL) * p / sum(prior) * probability[e, target[i]]
            for e, p in zip(source, prior, strict=True)
        ]
        return [w / sum(weights) for w in weights]

    for _ in range(iterations):
        counts = dict.fromkeys(pairs, 0.0)
        for source, target in zip(sources, targets, strict=True):
            for i, f in enumerate(target):
                for e, share in zip([None, *source], shares(source, target, i), strict=True):
                    counts[e, f] += share
        total = dict.fromkeys(kinds, 0.0)
        for (e, _), count in counts.items():
            total[e] += count
        probability = {
            (e, f): math.exp(digamma(count + ALPHA) - digamma(total[e] + ALPHA * kinds[e]))
            for (e, f), count in counts.items()
        }
    return [
        [int(np.argmax(shares(source, target, i))) - 1 for i in range(len(target))]
        for source, target in zip(sources, targets, strict=True)
    ]


def test_a_direction_is_the_model_of_the_paper(monkeypatch):
    monkeypatch.setattr(word_aligner._Prior, "fitted", lambda *_: TENSION)
    sources, targets, _ = corpus(60, 12, seed=1)
    random = np.random.default_rng(2)
    targets = [[w for w in t if random.random() < 0.8] or t[:1] for t in targets]
    ids = word_aligner.numbered(sources), word_aligner.numbered(targets)
    found = word_aligner.directed(*ids, iterations=3)
    expected = by_hand(sources, targets, 3, TENSION)
    for source, ours, theirs in zip(sources, found, expected, strict=True):
        # Of a word that stands twice, places may be equally near to the diagonal.
        words = [*source, None]
        assert [words[j] for j in ours] == [words[j] for j in theirs]


@pytest.mark.parametrize("true", [1.0, 6.0])
def test_the_tension_becomes_that_of_the_text(true):
    random = np.random.default_rng(0)
    sources, targets = [], []
    for _ in range(500):
        n = 12
        source = random.permutation(200)[:n]
        weights = np.exp(-true * np.abs(np.arange(1, n + 1)[:, None] - np.arange(1, n + 1)) / n)
        places = [random.choice(n, p=row / row.sum()) for row in weights]
        sources.append([f"s{w}" for w in source])
        targets.append([f"t{source[j]}" for j in places])
    seen = []
    fitted = word_aligner._Prior.fitted
    with pytest.MonkeyPatch.context() as patch:
        spy = lambda *a: seen.append(fitted(*a)) or seen[-1]  # noqa: E731
        patch.setattr(word_aligner._Prior, "fitted", spy)
        list(align(sources, targets))
    assert seen[4] == pytest.approx(true, rel=0.15, abs=0.3)


def test_looking_at_less_at_a_time_changes_nothing(monkeypatch):
    sources, targets, _ = corpus(80)
    whole = list(align(sources, targets))
    monkeypatch.setattr(word_aligner, "CANDIDATES", 600)
    assert list(align(sources, targets)) == whole


def test_long_text_is_read_and_aligned_in_blocks(monkeypatch):
    sources, targets, _ = corpus(300)
    sources[40:40], targets[40:40] = [[]] * 60, [["t"]] * 60  # at the end of the first block
    sizes = [(len(s) + 1) * (len(t) + 1) + 20 for s, t in zip(sources, targets, strict=True)]
    block = sum(sizes[:90])  # reached exactly
    monkeypatch.setattr(word_aligner, "PAIR_COST", 20)
    monkeypatch.setattr(word_aligner, "BLOCK", block)
    ends, size = [0], 0
    for number, own in enumerate(sizes, 1):
        size += own
        if size >= block:
            ends.append(number)
            size = 0
    assert ends[1] == 90 and len(ends) > 4 and 0 < size < block
    ends[-1] = len(sources)  # what is left belongs to the last block
    read = []

    def sentences():
        for source in sources:
            read.append(source)
            yield source

    found = align(sentences(), iter(targets))
    for start, stop in itertools.pairwise(ends):
        own = list(itertools.islice(found, stop - start))
        assert own == list(align(sources[start:stop], targets[start:stop]))
        assert start or len(read) == ends[2]
    assert not list(found)


def test_blocks_may_be_without_words_and_an_error_comes_after_earlier_blocks(monkeypatch):
    monkeypatch.setattr(word_aligner, "BLOCK", 2 * word_aligner.PAIR_COST)
    sources, targets = [["a"]] * 4 + [[]] * 6, [["x"]] * 10
    assert list(align(sources, targets)) == [[(0, 0)]] * 4 + [[]] * 6
    found = align([*sources, *sources, "a b"], targets * 3)
    expected = [[(0, 0)]] * 4 + [[]] * 6 + [[(0, 0)]] * 4 + [[]] * 4
    assert list(itertools.islice(found, 18)) == expected
    with pytest.raises(ValueError, match="source sentence 21 is a string"):
        list(found)


def grown_place_by_place(forward, backward, size):
    """grow-diag-final-and by a look at every place of the matrix of links, row by row."""
    links, union = set(forward) & set(backward), set(forward) | set(backward)

    def is_free(link):
        return all(link[0] != s for s, _ in links) or all(link[1] != t for _, t in links)

    grown = True
    while grown:
        grown = False
        for s, t in itertools.product(range(size), repeat=2):
            if (s, t) in links:
                for near in [(s + a, t + b) for a, b in word_aligner.NEIGHBOURS]:
                    if near in union - links and is_free(near):
                        links.add(near)
                        grown = True
    for link in [*sorted(forward), *sorted(backward)]:
        if all(link[0] != s and link[1] != t for s, t in links):
            links.add(link)
    return sorted(links)


def test_links_grow_as_they_do_place_by_place():
    random = np.random.default_rng(0)
    for _ in range(100):
        n = int(random.integers(1, 14))
        forward = [(int(random.integers(n)), t) for t in range(n) if random.random() < 0.8]
        backward = [(s, int(random.integers(n))) for s in range(n) if random.random() < 0.8]
        backward += [link for link in forward if random.random() < 0.4]
        assert symmetrize(forward, backward) == grown_place_by_place(forward, backward, n)


def test_links_grow_from_those_of_both_directions():
    both = [(0, 0), (2, 2)]
    forward = [*both, (1, 1), (5, 5), (9, 2)]
    backward = [*both, (2, 3), (5, 6)]
    assert symmetrize(forward, backward) == [(0, 0), (1, 1), (2, 2), (2, 3), (5, 5)]
    assert symmetrize([], [(0, 1)]) == [(0, 1)] and symmetrize([], []) == []


def test_empty_sentences_have_no_links_and_bad_input_is_named():
    found = list(align([np.array(["a", "b"]), [], ["a"]], [["x", "y"], ["x"], []]))
    assert found[0] and found[1:] == [[], []]
    sources, targets, _ = corpus(40)
    random = np.random.default_rng(0)
    alone = [[f"s{random.integers(60)}"] for _ in range(200)]
    more = list(align([*alone, *sources, *[[]] * 200], [*[[]] * 200, *targets, *alone]))
    assert more[200:240] == list(align(sources, targets))
    with pytest.raises(
        ValueError, match="the target sentences end after 1, and the source ones go on"
    ):
        list(align([["a"], ["b"]], [["x"]]))
    for empty in ([[]], []):
        with pytest.raises(ValueError, match="no pair of sentences has words"):
            list(align(empty, [["x"]] * len(empty)))
    with pytest.raises(ValueError, match="target sentence 2 is a string"):
        list(align([["a"], ["b"]], [["x"], "the house"]))
    with pytest.raises(ValueError, match="source sentence 1 has 5,000 words"):
        list(align([["a"] * 5000], [["x"]]))
    with pytest.raises(ValueError, match="iterations=0"):
        list(align([["a"]], [["x"]], iterations=0))
