"""Span F1 and attachment scores, against scorers written from the definitions alone."""

import numpy as np
import pytest

from xling_jax.tasks import ner
from xling_jax.tasks.parsing import (
    DependencyParsing,
    attachment_scores,
    not_punctuation,
    parse,
)

CASES = 1000
RELATIONS = ("nsubj", "nsubj:pass", "obl", "obl:agent", "obl:tmod", "punct", "root")
# A sentence that has every relation; the last is the root's.
ALL = "".join(
    f"{word}\tx\tx\tX\t_\t_\t{len(RELATIONS) if name != 'root' else 0}\t{name}\t_\t_\n"
    for word, name in enumerate(RELATIONS, 1)
)


def split(tag):
    return (tag[0], tag[2:]) if tag != "O" else ("O", "")


def ends(before, now):
    """Whether conlleval says that a chunk ends between two tags."""
    return before[0] in "BI" and (now[0] in "BO" or before[1] != now[1])


def begins(before, now):
    """Whether conlleval says that a chunk begins with the second of two tags."""
    return now[0] == "B" or (now[0] == "I" and (before[0] == "O" or before[1] != now[1]))


def conlleval(gold, predicted):
    """Precision, recall and F1, counted word by word; a blank line ends what is open."""
    stream = []
    for one, other in zip(gold, predicted, strict=True):
        stream += [*zip(map(split, one), map(split, other), strict=True), (("O", ""), ("O", ""))]
    right = wanted = found = 0
    is_equal_so_far = False
    true_before = ours_before = ("O", "")
    for true, ours in stream:
        ended = ends(true_before, true), ends(ours_before, ours)
        if is_equal_so_far and any(ended):
            right += all(ended)
            is_equal_so_far = False
        begun = begins(true_before, true), begins(ours_before, ours)
        wanted, found = wanted + begun[0], found + begun[1]
        if all(begun):
            is_equal_so_far = true[1] == ours[1]
        true_before, ours_before = true, ours
    precision, recall = (right / n if n else 0.0 for n in (found, wanted))
    both = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
    }


def random_tags(random, length, is_valid):
    """Tags drawn alone, and, of valid ones, an I only where its type goes on."""
    tags = []
    for _ in range(length):
        part = random.choice(["O", "B", "I"], p=[0.3, 0.25, 0.45])
        kind = random.choice(["LOC", "ORG", "PER"])
        before = tags[-1] if tags else "O"
        if part == "I" and is_valid:
            part, kind = ("I", before[2:]) if before != "O" else ("B", kind)
        tags.append("O" if part == "O" else f"{part}-{kind}")
    return tags


def changed(random, tags):
    """The tags with some others among them."""
    other = random_tags(random, len(tags), is_valid=False)
    return [x if random.random() < 0.8 else y for x, y in zip(tags, other, strict=True)]


def repaired_in_order(tags):
    """What W&C §3.2 say of predicted spans, read from the left."""
    runs = []
    for place, tag in enumerate(tags):
        if tag[0] == "I" and place and tags[place - 1] != "O":
            runs[-1].append(tag[2:])
        else:
            runs.append([tag[2:]])
    found = []
    for run in runs:
        kind = run[-1]
        found += [f"B-{kind}", *[f"I-{kind}" for _ in run[1:]]] if kind else ["O"]
    return found


def test_span_f1_is_that_of_conlleval():
    random = np.random.default_rng(0)
    most, scores = 0.0, []
    for case in range(CASES):
        lengths = random.integers(1, 12, size=random.integers(1, 6))
        gold = [random_tags(random, n, is_valid=case % 2 == 0) for n in lengths]
        predicted = [changed(random, tags) for tags in gold]
        repaired = [ner.repair(tags) for tags in predicted]
        assert repaired == [repaired_in_order(tags) for tags in predicted]
        for guess in (predicted, repaired):
            found, expected = ner.span_f1(gold, guess), conlleval(gold, guess)
            assert found.keys() == expected.keys()
            most = max(most, *(abs(found[name] - expected[name]) for name in expected))
        scores.append(expected["f1"])
    assert most < 1e-12
    assert np.quantile(scores, 0.1) < 0.3 and np.quantile(scores, 0.9) > 0.6  # cases differ


def random_tree(random, size):
    """Heads of a tree with one root, and relations."""
    order = random.permutation(np.arange(1, size + 1))
    heads = {int(order[0]): 0}
    for place in range(1, size):
        heads[int(order[place])] = int(order[random.integers(place)])
    names = random.choice(RELATIONS[:-1], size)
    return [
        (heads[word], "root" if not heads[word] else str(names[word - 1]))
        for word in range(1, size + 1)
    ]


def conllu_lines(random, tree):
    """A sentence with punctuation, multiword tokens and empty nodes."""
    end = 0  # of the last multiword token
    for word, (head, relation) in enumerate(tree, 1):
        if end < word < len(tree) and random.random() < 0.2:
            end = word + 1
            yield f"{word}-{end}" + "\tx" + "\t_" * 8
        tag = random.choice(["NOUN", "PUNCT", "VERB"]) if head else "VERB"
        yield f"{word}\tx\tx\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"
        if random.random() < 0.1:
            yield f"{word}.1\tx\tx\tVERB" + "\t_" * 6
    yield ""


def conll18(lines, predicted, subtypes, punctuation):
    """UAS and LAS as of CoNLL 2018 where words are given: right words over words, off the lines."""
    guesses = iter([guess for tree in predicted for guess in tree])
    right_heads, right, words = [], [], 0
    for line in lines:
        columns = line.split("\t")
        if not columns[0].isdigit():
            continue
        head, relation = next(guesses)
        if columns[3] == "PUNCT" and not punctuation:
            continue
        words += 1
        pair = columns[7], relation
        pair = pair if subtypes else tuple(name.partition(":")[0] for name in pair)
        right_heads.append(str(head) == columns[6])
        right.append(right_heads[-1] and len(set(pair)) == 1)
    return {"uas": sum(right_heads) / words, "las": sum(right) / words}


def scores_of(tree, labels, subtypes):
    """What a parser that is sure of a tree gives: scores of heads, and a relation to each."""
    arcs = np.full((len(tree), 1 + len(tree)), -9.0, np.float32)
    relations = np.zeros(arcs.shape, np.int32)
    for word, (head, name) in enumerate(tree):
        arcs[word, head] = 0.0
        relations[word, head] = labels.index(name if subtypes else name.split(":")[0])
    return arcs, relations


@pytest.mark.parametrize("subtypes", [False, True])
@pytest.mark.parametrize("punctuation", [False, True])
def test_attachment_scores_are_those_of_conll_2018(subtypes, punctuation):
    random = np.random.default_rng([subtypes, punctuation])
    task = DependencyParsing(subtypes=subtypes, punctuation=punctuation)
    most, scores = 0.0, []
    for _ in range(CASES):
        sizes = random.integers(1, 15, size=random.integers(1, 5))
        gold = [random_tree(random, n) for n in sizes]
        lines = [line for tree in gold for line in conllu_lines(random, tree)]
        # Heads and relations that need not be a tree, and what the decoder makes of a tree's.
        drawn = [
            [right if random.random() < 0.6 else guess for right, guess in zip(*both, strict=True)]
            for both in zip(gold, [random_tree(random, n) for n in sizes], strict=True)
        ]
        others = [tree if random.random() < 0.5 else random_tree(random, len(tree))
                  for tree in gold]  # fmt: skip
        items = parse(enumerate(lines, 1))
        given = [list(zip(tree.heads, tree.relations, strict=True)) for tree in items]
        counted = None if punctuation else not_punctuation(items)
        labels = task.labels(items + parse(enumerate(ALL.splitlines(), 1)))
        guesses = [scores_of(tree, labels, subtypes) for tree in others]
        for found, guess in [
            (attachment_scores(given, drawn, counted, with_subtypes=subtypes), drawn),
            (task.scores(items, guesses, labels), others),
        ]:
            expected = conll18(lines, guess, subtypes, punctuation)
            assert found.keys() == expected.keys()
            most = max(most, *(abs(found[name] - expected[name]) for name in expected))
            scores.append(expected["las"])
    assert most < 1e-12 and len(scores) == 2 * CASES
    assert np.quantile(scores, 0.1) < 0.4 and np.quantile(scores, 0.9) > 0.7  # cases differ
