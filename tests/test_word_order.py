"""Word order: Kendall's tau of links, and links by the best matching."""

import math

import numpy as np
import pytest

from xling_jax.evaluators import word_order


def test_the_same_order_is_one_and_the_opposite_is_none():
    assert word_order.kendall([(i, i) for i in range(6)]) == 1
    assert word_order.kendall([(i, 5 - i) for i in range(6)]) == 0


def test_one_exchange_of_neighbours_is_one_discordant_pair():
    links = [(0, 1), (1, 0), (2, 2), (3, 3)]
    assert word_order.kendall(links) == pytest.approx(1 - math.sqrt(1 / 6))


def test_it_does_not_depend_on_the_order_of_links_or_on_gaps():
    links = [(0, 4), (2, 1), (7, 9), (5, 3)]
    squeezed = [(0, 2), (1, 0), (3, 3), (2, 1)]
    assert word_order.kendall(links) == word_order.kendall(squeezed)
    assert word_order.kendall(links[::-1]) == word_order.kendall(links)


def test_two_links_of_one_word_are_in_order():
    assert word_order.kendall([(0, 2), (0, 1), (1, 3)]) == 1


def test_a_sentence_with_one_link_does_not_count():
    assert word_order.kendall([(0, 3)]) is None
    assert word_order.similarity([[(0, 3)], [(0, 1), (1, 0)], [(0, 0), (1, 1)]]) == 0.5
    assert math.isnan(word_order.similarity([[]]))
    assert (
        word_order.similarity([[(0, 0), (1, 1)], [(0, 1), (1, 0)], [(0, 0), (1, 0)]], True) == 2 / 3
    )


def test_a_matching_is_the_best_of_all():
    random = np.random.default_rng(0)
    order = random.permutation(7)
    similarity = np.eye(7)[order] + 0.3 * random.random((7, 7))
    assert word_order.match(similarity) == [(i, int(j)) for i, j in enumerate(order)]
    greedy_is_wrong = np.array([[0.9, 0.8], [0.8, 0.1]])
    assert word_order.match(greedy_is_wrong) == [(0, 1), (1, 0)]
    assert len(word_order.match(random.random((3, 8)))) == 3
