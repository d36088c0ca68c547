"""Named entities as BIO tags (W&C §3.2).

Chinese files may have characters instead of words, which is told by how few of their words have
several. The model then reads the words of a segmenter, with tags made from the characters' tags,
and entities are counted in these words, as in the paper. Predictions are also given back to the
characters, in which entities are counted separately.
"""

import collections
import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xling_jax import schema
from xling_jax.corpora import normalize, sources
from xling_jax.corpora.embedded.concepts import Concept
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.language import Language
from xling_jax.tasks.task import Predictions, Scores, WordTask, numbered

SEED = 0  # of the tags drawn for the chance baseline
OUTSIDE = "O"
FEW = 10  # of words of characters, fewer than one in so many has several
_BLANKS = re.compile(" +")  # a word may hold others, or be one, such as U+00A0
_TAG = re.compile(r"O|[BI]-\S+")
_LANGUAGE = re.compile(r"[a-z]{2,6}(?:-[a-z]+)*:")  # WikiAnn puts it before a word
_DOCUMENT = "-DOCSTART-"
_CHINESE = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")  # a character


class Tagged(NamedTuple):
    """A sentence: its words, and a tag for each."""

    words: list[str]
    tags: list[str]


class Span(NamedTuple):
    """An entity: the place of its first word, the place after its last, and its type."""

    start: int
    end: int
    kind: str


def read(path: str | os.PathLike[str]) -> list[Tagged]:
    """Reads sentences, with one word per line and blank lines between sentences.

    A line has columns between tabs (PAN-X, WikiAnn) or blanks (CoNLL 2002 and 2003): the first is
    the word, the last its tag. Tags become BIO, also those of CoNLL 2003, in which `I` begins a
    span and `B` only separates neighbours. A language before the word, such as WikiAnn's
    `fr:Paris`, is removed.

    ValueError, naming the line if it is about one: the file is not UTF-8 or has no sentence; a line
    has no word, no BIO tag, or other columns than the first; or a language stands before most
    words, but not the same before all, or before no word; or the first column numbers the words.
    """
    sentences: list[Tagged] = []
    words: list[str] = []
    tags: list[str] = []
    form = ""  # of the lines before
    for number, line in itertools.chain(sources.numbered(path), [(0, "")]):
        has_tabs = "\t" in line
        columns = line.split("\t") if has_tabs else _BLANKS.split(line.strip(" "))
        columns = [*(x.strip(" ") for x in columns[:-1]), columns[-1].strip()]
        if not line.strip() or columns[0] == _DOCUMENT:
            if words:
                sentences.append(Tagged(words, bio(tags)))
            words, tags = [], []
            continue
        if len(columns) < 2 or not columns[0] or not _TAG.fullmatch(columns[-1]):
            raise sources.wrong(
                path, number, f"{line.strip()!r} is not a word and a tag such as O, B-PER or I-PER"
            )
        own = f"{len(columns)} columns between {'tabs' if has_tabs else 'blanks'}"
        form = form or own
        if form != own:
            raise sources.wrong(
                path, number, f"{own}, and the lines before have {form}: {line.strip()!r}"
            )
        words.append(columns[0])
        tags.append(columns[-1])
    if not sentences:
        raise ValueError(f"{path} has no tagged words")
    longer = [each for each in sentences if len(each.words) > 1] or sentences
    if 2 * sum(_are_numbered(each.words) for each in longer) > len(longer):
        raise ValueError(
            f"{path}: the first column numbers the words: leave only words and tags, for example "
            "columns 2 and 3"
        )
    return _without_language(sentences, path)


def _are_numbered(words: Sequence[str]) -> bool:
    """Whether words are 0 1 2 … or 1 2 3 …"""
    return any(list(words) == [str(start + n) for n in range(len(words))] for start in (0, 1))


def _without_language(sentences: list[Tagged], path: str | os.PathLike[str]) -> list[Tagged]:
    """The sentences without the name of a language, if it stands before most of their words; for
    errors see `read`."""
    words = [word for s in sentences for word in s.words]
    named = collections.Counter(match[0] for word in words if (match := _LANGUAGE.match(word)))
    if 2 * named.total() <= len(words):
        return sentences
    name = named.most_common(1)[0][0]
    if others := [word for word in words if not word.startswith(name)]:
        raise ValueError(
            f"{path}: the name of a language stands before most words, but not {name!r} before "
            f"{others[0]!r}: give words of one language, with its name before all or before none"
        )
    if name in words:
        raise ValueError(
            f"{path}: {name!r} stands before all words, and once before nothing: leave that line "
            "out"
        )
    start = len(name)
    return [Tagged([word[start:] for word in s.words], s.tags) for s in sentences]


def repair(tags: Sequence[str]) -> list[str]:
    """The tags made valid (W&C §3.2): an `I` that continues nothing becomes a `B`, and the type of
    a span's last tag becomes that of the whole span: `B-X I-Y I-Z` becomes `B-Z I-Z I-Z`."""
    repaired = list(tags)
    end = len(repaired)
    while end:
        end -= 1
        if repaired[end] == OUTSIDE:
            continue
        start, kind = end, repaired[end][2:]
        while repaired[start][0] == "I" and start and repaired[start - 1] != OUTSIDE:
            start -= 1
        repaired[start : end + 1] = [f"B-{kind}", *[f"I-{kind}"] * (end - start)]
        end = start
    return repaired


def spans(tags: Sequence[str]) -> list[Span]:
    """The entities of tags, as conlleval counts them: an entity ends before `O`, before a `B`, and
    before an `I` of another type, which begins a new one."""
    found: list[Span] = []
    start, kind = 0, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        continues = tag[0] == "I" and tag[2:] == kind
        if kind and not continues:
            found.append(Span(start, place, kind))
            kind = ""
        if tag != OUTSIDE and not continues:
            start, kind = place, tag[2:]
    return found


def bio(tags: Sequence[str]) -> list[str]:
    """BIO tags of the same entities (see `spans`): each begins with `B`."""
    found = [OUTSIDE] * len(tags)
    for start, end, kind in spans(tags):
        found[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
    return found


def span_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Scores:
    """`precision`, `recall` and `f1` of whole entities over all sentences, as in conlleval, 0 where
    there is nothing to divide by. ValueError: numbers or lengths of sentences differ."""
    right = wanted = found = 0
    for one, other in zip(gold, predicted, strict=True):
        if len(one) != len(other):
            raise ValueError(f"{len(one)} gold tags of a sentence, {len(other)} predicted")
        true, ours = set(spans(one)), set(spans(other))
        right, wanted, found = right + len(true & ours), wanted + len(true), found + len(ours)
    precision, recall = right / max(found, 1), right / max(wanted, 1)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


class TaggedWords(NamedTuple):
    """A sentence.

    Attributes:
      gold: the sentence as in the file.
      words: as the model reads it.
      sizes: how many of the file's words make up each of these.
    """

    gold: Tagged
    words: list[str]
    sizes: list[int]


def whole(sentence: Tagged) -> TaggedWords:
    """The sentence, with its words read by the model as they are."""
    return TaggedWords(sentence, sentence.words, [1] * len(sentence.words))


def _has_characters(sentences: Sequence[Tagged]) -> bool:
    """Whether the Chinese words of a file are characters: few of them have several."""
    sizes = [len(_CHINESE.findall(word)) for own in sentences for word in own.words]
    return sum(size > 1 for size in sizes) * FEW < sum(size > 0 for size in sizes)


def _written(words: Sequence[str]) -> str:
    """Chinese text of these words: blanks stand between words in other scripts."""
    parts = [*words[:1]]
    for one, other in itertools.pairwise(words):
        is_apart = len(one) + len(other) > 2 and not _CHINESE.search(one[-1] + other[0])
        parts += [" " * is_apart, other]
    return "".join(parts)


def segmented(sentence: Tagged) -> TaggedWords:
    """The sentence, its characters joined to words by a segmenter; a word ends where both a word of
    the segmenter and one of the file end. The segmenter reads `Tim` and `Burton` with a blank
    between them, and `T`, `i` and `m`, as PAN-X has them, without."""
    text = "".join(sentence.words)
    found = normalize.segment_chinese(_written(sentence.words))
    if "".join(found) != text:  # a word of the file is a blank, which the segmenter has dropped
        return whole(sentence)
    ends = np.cumsum([len(unit) for unit in sentence.words])
    is_end = np.isin(ends, np.cumsum([len(word) for word in found]))
    sizes = np.diff(np.flatnonzero(is_end) + 1, prepend=0).tolist()
    units = iter(sentence.words)
    words = ["".join(itertools.islice(units, size)) for size in sizes]
    return TaggedWords(sentence, words, sizes)


def of_words(item: TaggedWords) -> tuple[list[str], int]:
    """The tags of the model's words, each that of its first part, as BIO; and the number of words
    with parts that disagree, because an entity begins after the first part or ends before the last.
    """
    every = iter(item.gold.tags)
    parts = [list(itertools.islice(every, size)) for size in item.sizes]
    conflicts = sum(own != of_parts(own[:1], [len(own)]) for own in parts)
    return bio([own[0] for own in parts]), conflicts


def of_parts(tags: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """The tags of the words' parts, from those of the words."""
    found: list[str] = []
    for tag, size in zip(tags, sizes, strict=True):
        inside = OUTSIDE if tag == OUTSIDE else f"I-{tag[2:]}"
        found += [tag, *[inside] * (size - 1)]
    return found


def names_in(derivation: Constituent) -> set[Concept]:
    """The names of a sentence of an embedded language; of persons, first and second names apart."""
    return {x.concept for x in derivation.nodes() if x.concept.category == "PROPN"}


def half_of_names(language: Language, of_training: bool) -> set[Concept]:
    """Half the names of each kind in a first embedded language, whose names are in the order of
    frequency: those of training, or the others, which are about as frequent."""
    found, ranks = set[Concept](), collections.Counter[str]()
    for name in language.concepts.content():
        if name.category != "PROPN":
            continue
        # The first and last of every four, so that neither half has all that are more frequent.
        if (ranks[name.meaning] % 4 in (0, 3)) == of_training:
            found.add(name)
        ranks[name.meaning] += 1
    return found


@dataclasses.dataclass(frozen=True)
class NamedEntities(WordTask[TaggedWords]):
    """Entities as BIO tags of words."""

    name, title, column = "ner", "NER", "ner"
    metric, measure = "f1", "span F1"
    note = (
        "F1 of spans; an entity counts if its first and last word and its type are right, after "
        "tags that begin or go on wrongly are repaired as in the paper (§3.2); Chinese characters "
        "are joined to a segmenter's words"
    )
    options = {
        "new_names": schema.flag(
            "of embedded languages, only sentences with names, and none of those in train also in "
            "dev or test"
        ),
    }

    new_names: bool = False

    @classmethod
    def described(cls, options: Mapping[str, Any]) -> str:
        said = "; in embedded languages no name of the tests is in the training sentences"
        return cls.note + (said if options.get("new_names") else "")

    def read(self, path: str, language: str) -> list[TaggedWords]:
        found = read(path)
        is_chinese = normalize.rules_for(language) == normalize.CHINESE
        return list(map(segmented if is_chinese and _has_characters(found) else whole, found))

    def derivations(self, language: Language, part: str) -> Iterator[Constituent]:
        found = super().derivations(language, part)
        if not self.new_names:
            return found
        own = half_of_names(language, of_training=part == "train")
        return (each for each in found if (names := names_in(each)) and names <= own)

    def gold(self, language: Language, derivation: Constituent) -> TaggedWords:
        return whole(Tagged(*language.tagged(derivation)))

    def labels(self, items: Sequence[TaggedWords]) -> tuple[str, ...]:
        """`O`, and `B` and `I` of every type in the examples."""
        kinds = sorted({tag[2:] for item in items for tag in item.gold.tags if tag != OUTSIDE})
        return (OUTSIDE, *(f"{part}-{kind}" for kind in kinds for part in "BI"))

    def targets(self, items: Sequence[TaggedWords], labels: Sequence[str]) -> list[np.ndarray]:
        number = numbered(labels)
        return [np.array([[number[tag]] for tag in of_words(item)[0]], np.int32) for item in items]

    def scores(
        self, items: Sequence[TaggedWords], predictions: Predictions, labels: Sequence[str]
    ) -> Scores:
        """`precision`, `recall` and `f1` of entities in the model's words, after `repair`. If some
        of these are several words of the file, which are characters, also `character_f1` and so on
        in the file's words."""
        predicted = [repair([labels[number] for number in found]) for (found,) in predictions]
        scores = span_f1([of_words(item)[0] for item in items], predicted)
        if any(item.sizes != [1] * len(item.words) for item in items):
            parts = [of_parts(own, x.sizes) for own, x in zip(predicted, items, strict=True)]
            found = span_f1([item.gold.tags for item in items], parts)
            scores |= {f"character_{name}": value for name, value in found.items()}
        return scores

    def counted(self, items: Sequence[TaggedWords]) -> Scores:
        """`conflicts`: the number of the model's words with parts that disagree, see `of_words`."""
        return {"conflicts": float(sum(of_words(item)[1] for item in items))}

    def baselines(self, known: Sequence[TaggedWords], items: Sequence[TaggedWords]) -> Scores:
        """The F1 of giving all words the one tag that does best on the known sentences, and of
        tags drawn with the known frequencies."""
        gold, asked = ([of_words(item)[0] for item in some] for some in (known, items))

        def f1(wanted: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
            return span_f1(wanted, list(map(repair, found)))["f1"]

        pool = [tag for own in gold for tag in own]
        best = max(sorted(set(pool)), key=lambda tag: f1(gold, [[tag] * len(own) for own in gold]))
        random = np.random.default_rng(SEED)
        drawn = [[pool[n] for n in random.integers(len(pool), size=len(own))] for own in asked]
        return {
            "majority": f1(asked, [[best] * len(own) for own in asked]),
            "chance": f1(asked, drawn),
        }
