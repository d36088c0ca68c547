"""Tagging of named entities as a task (W&C §3.2).

Where the file has characters instead of words, as Chinese ones have, the model reads words of a
segmenter: their tags come from the characters', and what is predicted goes back to them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xling_jax.batches import labelled
from xling_jax.batches.labelled import Encoded
from xling_jax.corpora import normalize
from xling_jax.corpora.embedded.pair import Pair
from xling_jax.models.task_heads import CLASSIFIER
from xling_jax.models.text_model import TextModel
from xling_jax.tasks import ner
from xling_jax.tasks.ner import OUTSIDE, Tagged
from xling_jax.tasks.task import Prediction, numbered, pieces_of_words

SEGMENTED = "zh"  # the language whose words a segmenter finds
SEED = 0  # of the tags that are drawn by chance


class TaggedWords(NamedTuple):
    """A sentence as the file has it, and what the model reads.

    sizes: how many of the file's words each word of the model is.
    """

    gold: Tagged
    words: list[str]
    sizes: list[int]


def segmented(sentence: Tagged) -> TaggedWords:
    """A sentence of characters as words of a segmenter.

    A word ends where one of the segmenter's and one of the file's do.
    """
    text = "".join(sentence.words)
    found = normalize.segment_chinese(text)
    if "".join(found) != text:  # the segmenter drops blanks
        return _whole(sentence)
    shared = _ends(found) & _ends(sentence.words)
    words, sizes, end = [], [], 0
    begins = True
    for unit in sentence.words:
        if begins:
            words.append("")
            sizes.append(0)
        words[-1] += unit
        sizes[-1] += 1
        end += len(unit)
        begins = end in shared
    return TaggedWords(sentence, words, sizes)


def _ends(words: Sequence[str]) -> set[int]:
    """Where words end in the text that they are."""
    return set(np.cumsum([len(word) for word in words]).tolist())


def of_words(item: TaggedWords) -> tuple[list[str], int]:
    """A tag for each of the model's words, and for how many words their parts disagree.

    A word has the tag of its first part. Parts disagree if another begins an entity, or one ends
    before the word does.
    """
    tags, conflicts, start = [], 0, 0
    for size in item.sizes:
        own = item.gold.tags[start : start + size]
        inside = OUTSIDE if own[0] == OUTSIDE else f"I-{own[0][2:]}"
        conflicts += own[1:] != [inside] * (size - 1)
        tags.append(own[0])
        start += size
    return tags, conflicts


def of_parts(tags: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """The tags of words given back to their parts."""
    found = []
    for tag, size in zip(tags, sizes, strict=True):
        inside = OUTSIDE if tag == OUTSIDE else f"I-{tag[2:]}"
        found += [tag, *[inside] * (size - 1)]
    return found


class NamedEntities:
    """See `Task`."""

    name, head, metric = "ner", CLASSIFIER, "f1"

    def read(self, path: str, language: str) -> list[TaggedWords]:
        """See `ner.read`."""
        sentences = ner.read(path)
        if language == SEGMENTED:
            return [segmented(sentence) for sentence in sentences]
        return [_whole(sentence) for sentence in sentences]

    def make(
        self, pair: Pair, number: int, seed: int
    ) -> tuple[list[TaggedWords], list[TaggedWords]]:
        """See `Task`."""
        first, second = pair.languages
        derivations = first.derivations(seed)
        both: tuple[list[TaggedWords], list[TaggedWords]] = ([], [])
        for _, derivation in zip(range(number), derivations, strict=False):
            for language, found in zip((first, second), both, strict=True):
                found.append(_whole(Tagged(*language.tagged(derivation))))
        return both

    def labels(self, items: Sequence[TaggedWords]) -> tuple[str, ...]:
        """O, and B and I of every type there is."""
        kinds = sorted({tag[2:] for item in items for tag in item.gold.tags if tag != OUTSIDE})
        return (OUTSIDE, *(f"{part}-{kind}" for kind in kinds for part in "BI"))

    def encode(self, items: Sequence[TaggedWords], model: TextModel, longest: int) -> list[Encoded]:
        """See `Task`; a sentence that is too long goes on in further rows."""
        pieces = pieces_of_words(model, [item.words for item in items])
        return [
            labelled.sentence(own, model.special_ids, longest, model.inverted) for own in pieces
        ]

    def targets(self, items: Sequence[TaggedWords], labels: Sequence[str]) -> list[np.ndarray]:
        """See `Task`."""
        number = numbered(labels)
        return [np.array([[number[tag]] for tag in of_words(item)[0]], np.int32) for item in items]

    def scores(
        self,
        items: Sequence[TaggedWords],
        predictions: Sequence[Prediction],
        labels: Sequence[str],
    ) -> dict[str, float]:
        """`precision`, `recall` and `f1` of entities in the file's words, after `ner.repair`."""
        predicted = [
            of_parts(ner.repair([labels[number] for number in found]), item.sizes)
            for item, (found,) in zip(items, predictions, strict=True)
        ]
        return ner.span_f1([item.gold.tags for item in items], predicted)

    def counted(self, items: Sequence[TaggedWords]) -> dict[str, float]:
        """`conflicts`: words of the model whose parts have tags that disagree."""
        return {"conflicts": float(sum(of_words(item)[1] for item in items))}

    def baselines(
        self, known: Sequence[TaggedWords], items: Sequence[TaggedWords]
    ) -> dict[str, float]:
        """The F1 of the one tag for all words that does best on the known sentences, and of tags
        that are drawn as often as they are known."""
        gold = [item.gold.tags for item in known]
        tags = sorted({tag for own in gold for tag in own})
        best = max(tags, key=lambda tag: _f1(gold, [[tag] * len(own) for own in gold]))
        asked = [item.gold.tags for item in items]
        pool = [tag for own in gold for tag in own]
        random = np.random.default_rng(SEED)
        drawn = [[pool[n] for n in random.integers(len(pool), size=len(own))] for own in asked]
        return {
            "majority": _f1(asked, [[best] * len(own) for own in asked]),
            "chance": _f1(asked, drawn),
        }


def _f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    return ner.span_f1(gold, [ner.repair(tags) for tags in predicted])["f1"]


def _whole(sentence: Tagged) -> TaggedWords:
    """A sentence whose words the model reads as they are."""
    return TaggedWords(sentence, sentence.words, [1] * len(sentence.words))
