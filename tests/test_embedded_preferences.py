"""The words of the embedded language choose their partners, by class, topic and habit."""

import collections
import itertools

import numpy as np
import pytest
from embedded_language import derivations, sentences

from xling_jax.corpora.embedded.concepts import VERB_CLASSES


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
        for node in derivation.nodes()
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
        for verb in derivation.nodes():
            child = verb.child("obj")
            if verb.concept.category == "VERB" and child and child.concept.category == "NOUN":
                allowed = VERB_CLASSES[verb.concept.meaning].objects.split()
                wrong += child.concept.meaning not in allowed
                total += 1
    assert total > 1000
    assert wrong < 0.1 * total


def topics_of(derivation):
    return [node.concept.topic for node in derivation.nodes() if node.concept.topic >= 0]


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
