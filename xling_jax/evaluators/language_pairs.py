"""How multilingual an encoder is: every pair of languages, at every layer, with intervals.

    from xling_jax import evaluate
    scores = evaluate("FOLDER", {"en": english, "de": german, "fr": french})
    scores.query("metric == 'retrieval' and layer == 8")

Sentences with the same number translate each other. Two languages are measured by the same
functions as in the experiments; `intervals` says what their intervals are.
"""

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import cast

import numpy as np
import pandas as pd

from xling_jax import errors
from xling_jax.corpora import dictionaries as dictionary_files
from xling_jax.corpora import word_links
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.word_links import GoldLinks
from xling_jax.evaluators import registry, text_encoder
from xling_jax.evaluators.dictionary_induction import Pairs
from xling_jax.evaluators.intervals import (
    Score,
    compare_links,
    compare_sentences,
    compare_words,
    pseudo_perplexity,
)
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.evaluators.word_alignment import link_counts
from xling_jax.linalg.points import as_array, require_count
from xling_jax.models import folders
from xling_jax.models.hugging_face.text import HuggingFaceModel
from xling_jax.models.text_model import TextModel

MASKED_EVERY = 7  # one piece in so many, about the share that BERT is trained with
COLUMNS = ("metric", "languages", "layer", "part", "value", "low", "high")
NAMES = registry.OF_ENCODERS
BY_DICTIONARY = ("words", "translation", "mu")
NEEDED = dict.fromkeys(BY_DICTIONARY, "dictionaries") | {
    "alignment_f1": "links",
    "pseudo_perplexity": "texts",
}

Pair = tuple[str, str]
Model = str | os.PathLike[str] | TextModel
Models = Model | Mapping[str, Model] | Callable[[str], TextModel]
States = Mapping[str, np.ndarray]
Words = Dictionary | str | os.PathLike[str] | Mapping[str, str] | Iterable[tuple[str, str]]


# Metric, languages, layer and part, as in `report.frame.Metric`.
Key = tuple[str, str, int | str, str]
Scores = dict[Key, Score]


def _finite(language: str, layers: Sequence[int], states_LxNxD: np.ndarray) -> np.ndarray:
    """The vectors; ValueError if one is a NaN or infinite."""
    is_bad = ~np.isfinite(states_LxNxD).all(axis=(1, 2))
    if is_bad.any():
        raise ValueError(
            f"layer {layers[is_bad.argmax()]} of {language}: a state is a NaN, infinite or too "
            "large for float32. Give a model that has not diverged, or scale given states down"
        )
    return states_LxNxD


@dataclasses.dataclass
class _Encoded:
    """The vectors that models give texts, by language.

    Attributes:
      layers: the L layers that the vectors are from.
      depth: the number of the models' last layer.
      sentences: vectors [L, n, D].
      words: of the dictionaries' words, the row of each and the vectors [L, W, D]. Words that are
        written alike, such as Bank and bank by a model without capitals, have one row.
    """

    layers: tuple[int, ...] = ()
    depth: int = 0
    sentences: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    words: dict[str, tuple[dict[str, int], np.ndarray]] = dataclasses.field(default_factory=dict)

    def add(
        self, language: str, encoder: TextEncoder, sentences: Sequence[str], words: Sequence[str]
    ) -> None:
        """Encodes a language's sentences, and those of its words that the model can write."""
        if self.layers and (self.layers, self.depth) != (
            encoder.layers,
            encoder.model.config.layers,
        ):
            raise ValueError(
                f"the model of {language} has {encoder.model.config.layers} layers, others have "
                f"{self.depth}: compare models of one depth"
            )
        self.layers, self.depth = encoder.layers, encoder.model.config.layers
        self.sentences[language] = _finite(language, encoder.layers, encoder.sentences(sentences))
        textless = encoder.model.textless
        ids = zip(words, encoder.model.encode_alone(words), strict=True)
        written = {word: own for word, own in ids if len(own) and textless.isdisjoint(own.tolist())}
        different = {own.tobytes(): own for own in written.values()}
        numbers = {each: number for number, each in enumerate(different)}
        rows = {word: numbers[own.tobytes()] for word, own in written.items()}
        self.words[language] = rows, encoder.means(list(different.values()))

    def of_words(self, dictionary: Dictionary) -> tuple[Pairs, np.ndarray, np.ndarray, int] | None:
        """A dictionary's pairs, the vectors of their words on both sides, and how many words are
        spelled like one of their translations; None if there is no pair that both models can
        write."""
        languages = dictionary.source_language, dictionary.target_language
        (first, first_LxWxD), (second, second_LxWxD) = (self.words[x] for x in languages)
        known = dictionary.map(
            lambda x: x if x in first else "", lambda y: y if y in second else ""
        )
        if not known.entries:
            return None
        sides = (first, known.entries), (second, known.reverse().entries)
        chosen = [np.unique([rows[word] for word in own]) for rows, own in sides]
        places = [
            {word: int(np.searchsorted(every, rows[word])) for word in own}
            for (rows, own), every in zip(sides, chosen, strict=True)
        ]
        return (
            Pairs.of(known, *places),
            first_LxWxD[:, chosen[0]],
            second_LxWxD[:, chosen[1]],
            sum(word in dict(translations) for word, translations in known.entries.items()),
        )


class _Reader:
    """The model that reads each language; of those loaded here only the last stays in memory."""

    def __init__(self, model: Models):
        self._given = model
        self._last: dict[str, TextModel] = {}

    def __call__(self, language: str) -> TextModel:
        given = self._given
        if isinstance(given, Mapping):
            if language not in given:
                raise ValueError(f"model: there is none for {language}, which has a text")
            given = given[language]
        if not isinstance(given, TextModel):
            if language not in self._last:
                self._last = {}  # before the next one is read
                self._last[language] = (
                    given(language)
                    if callable(given)
                    else folders.load(folders.of_language(given, language), language)
                )
            given = self._last[language]
        if isinstance(given, HuggingFaceModel) and given.normalization is None:
            return dataclasses.replace(given, language=language)  # it reads all of them alike
        if given.language != language:
            raise ValueError(
                f"model: one that reads {given.language} is given for {language}: give a folder, "
                "or a model for each language"
            )
        return given


def _is_model(given: object) -> bool:
    return isinstance(given, str | os.PathLike | TextModel)


def _require_layers_of_mu(names: Collection[str], layers: Collection[int], depth: int) -> None:
    """Raises ValueError if mu is asked for by name, and not at the layers that it is made of."""
    needed = registry.paper_layers(depth)
    if "mu" in names and set(names) != set(NAMES) and not set(needed) <= set(layers):
        raise ValueError(
            f"layers={tuple(layers)}: mu is of layers {needed[0]} and {needed[1]}: add them, or "
            "leave mu out"
        )


def _require(texts: Mapping[str, Sequence], names: Iterable[str], kind: type = str) -> None:
    """Raises ValueError for an unknown name, or unless there are at least two languages with the
    same number of sentences, two or more, each of type `kind` and none empty."""
    if unknown := sorted(set(names) - set(NAMES)):
        raise ValueError(f"names: {unknown[0]!r} is not measured: choose from {', '.join(NAMES)}")
    for language, own in texts.items():
        if isinstance(own, str | os.PathLike):
            raise ValueError(f"texts: {language} is {own!r}: give a list of sentences, not a file")
    numbers = {language: len(own) for language, own in texts.items()}
    if len(numbers) < 2 or len(set(numbers.values())) > 1 or min(numbers.values()) < 2:
        raise ValueError(
            f"texts of {numbers} sentences: give as many of each of at least two languages, two or "
            "more, where those with the same number translate each other"
        )
    for language, own in texts.items():
        for number, sentence in enumerate(own, 1):
            if not isinstance(sentence, kind):
                raise ValueError(f"texts: sentence {number} of {language} is {sentence!r}, no text")
            if isinstance(sentence, str) and not sentence.strip():
                raise ValueError(
                    f"texts: sentence {number} of {language} is empty: leave it out, and its "
                    "translations"
                )


def _of_states(states: States, layers: Sequence[int] | None) -> _Encoded:
    form = "real numbers [layers, n, d]"
    with np.errstate(over="ignore"):  # what overflows is refused below
        given = {name: as_array(f"states of {name}", own, form).astype(np.float32)
                 for name, own in states.items()}  # fmt: skip
    shapes = {language: own.shape for language, own in given.items()}
    depths = {shape[0] if len(shape) == 3 else 0 for shape in shapes.values()}
    if len(depths) > 1 or not min(depths, default=0):
        raise ValueError(f"states {shapes}: give [layers, n, d] of each language, as many layers")
    (depth,) = depths
    layers = tuple(range(depth) if layers is None else layers)
    if len(layers) != depth or len(set(layers)) < depth or min(layers) < 0:
        raise ValueError(
            f"layers={layers}, and there are states of {depth}: give each of them a number of its "
            "own, 0 or higher"
        )
    own = {name: _finite(name, layers, each) for name, each in given.items()}
    return _Encoded(layers, max(layers), own)


def _in_order(pair: Pair, what: str, languages: Sequence[str], known: Iterable[Pair]) -> Pair:
    """A pair in the order of `languages`; ValueError for a language without a text, one that is
    named twice, or a pair that is already known."""
    if unknown := [language for language in pair if language not in languages]:
        raise ValueError(f"{what} of {pair}: there is no text of {unknown[0]}")
    first, second = sorted(pair, key=list(languages).index)
    if first == second or (first, second) in known:
        raise ValueError(f"{what} of {pair}: give one for two languages, in either direction")
    return first, second


def _dictionaries(given: Mapping[Pair, Words], languages: Sequence[str]) -> dict[Pair, Dictionary]:
    """Dictionaries by pairs in the order of `languages`, turned round where necessary; ValueError
    for one of other languages than its pair's."""
    found: dict[Pair, Dictionary] = {}
    for pair, words in given.items():
        ordered = _in_order(pair, "dictionaries", languages, found)
        if isinstance(words, str | os.PathLike):
            words = dictionary_files.read(words, *pair)
        elif not isinstance(words, Dictionary):
            words = words.items() if isinstance(words, Mapping) else words
            with errors.in_field(f"dictionaries of {pair}"):
                words = dictionary_files.from_pairs(words, *pair)
        if (words.source_language, words.target_language) != tuple(pair):
            raise ValueError(
                f"dictionaries of {pair}: it translates {words.source_language} into "
                f"{words.target_language}: name these languages"
            )
        found[ordered] = words if ordered == tuple(pair) else words.reverse()
    return found


def _links(
    given: Mapping[Pair, Sequence[GoldLinks]], texts: Mapping[str, Sequence[str]]
) -> dict[Pair, list[GoldLinks]]:
    """Gold links by pairs in the order of `texts`, turned round where necessary; ValueError if a
    pair has none or more than there are sentences, or if words do not stand between plain
    blanks."""
    found: dict[Pair, list[GoldLinks]] = {}
    for pair, links in given.items():
        ordered = _in_order(pair, "links", tuple(texts), found)
        if not 1 <= len(links) <= len(texts[pair[0]]):
            raise ValueError(
                f"links of {pair}: they are of {len(links)} sentences, and the texts have "
                f"{len(texts[pair[0]])}: give them for the first ones, or for all"
            )
        if wrong := next((own for own in links if not isinstance(own, GoldLinks)), None):
            raise ValueError(
                f"links of {pair}: {wrong!r} is none: give a GoldLinks for each sentence, as "
                "word_links.read does"
            )
        for language in pair:
            for number, sentence in enumerate(texts[language][: len(links)], 1):
                with errors.in_field(f"links of {pair}, sentence {number} of {language}"):
                    word_links.require_plain_blanks(sentence)
        if ordered != tuple(pair):
            links = [GoldLinks([link[::-1] for link in own.sure],
                               [link[::-1] for link in own.possible]) for own in links]  # fmt: skip
        found[ordered] = list(links)
    return found


def _words_of(language: str, known: Mapping[Pair, Dictionary]) -> list[str]:
    """All words of a language in the dictionaries, each once."""
    words: dict[str, None] = {}
    for pair, dictionary in known.items():
        if language == pair[0]:
            words |= dict.fromkeys(dictionary.entries)
        if language == pair[1]:
            words |= dict.fromkeys(dictionary.reverse().entries)
    return list(words)


def _means(scores: Scores, numbers: Mapping[str, int]) -> Scores:
    """The means over languages or pairs, where a metric has as many scores as `numbers` says."""
    every: dict[Key, list[Score]] = {}
    for (metric, _, layer, part), score in scores.items():
        every.setdefault((metric, "", layer, part), []).append(score)
    return {
        key: Score.mean(own, geometric=key[0] == "pseudo_perplexity")
        for key, own in every.items()
        if len(own) == numbers[key[0]]
    }


def evaluate(
    model: Models | States,
    texts: Mapping[str, Sequence[str]] | None = None,
    *,
    names: Sequence[str] = NAMES,
    layers: Sequence[int] | None = None,
    dictionaries: Mapping[Pair, Words] | None = None,
    links: Mapping[Pair, Sequence[GoldLinks]] | None = None,
    masked_every: int = MASKED_EVERY,
    passes: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> pd.DataFrame:
    """Measures how multilingual an encoder is.

    Args:
      model: the folder of a model, ours or of `transformers`, where `{language}` stands for the
        language that a model reads; or a model or folder for each language, or a function that
        gives it; or, without texts, the vectors of each language's sentences, [layers, n, d].
      texts: n sentences of each of at least two languages; those with the same number translate
        each other.
      names: the metrics, of those in `evaluators.registry`; by default all that it has of encoders.
      layers: default all, 0 being the embeddings.
      dictionaries: words of the first language of a pair with their translations into the second: a
        file, as `corpora.dictionaries.read` takes it, a `Dictionary`, or a mapping or pairs of
        words. Words are encoded one by one.
      links: gold links between the words of a pair's first sentences.
      masked_every, passes: of pseudo-perplexity, see `TextEncoder.masked_losses`.
      say: is told what is being done.

    Returns:
      A line for each number, with the columns

      * metric. Besides the names asked for, and only where they are not 0: `retrieval_cut`, the
        share of a language's sentences that are longer than the model (what is cut off is not read,
        and gold links of it count as not found), and `retrieval_repeated`, the share that repeats
        another one (of equal sentences retrieval finds the first).
      * languages: "en-de", "en" for pseudo-perplexity, or "" for the mean over all pairs (of
        `words`, `translation` and `mu` all with a dictionary, of `alignment_f1` all with links) or,
        for pseudo-perplexity, the geometric mean over all languages. There is none where one of
        them lacks the number: no word of its dictionary can be written, its vectors differ in
        width, or a model has no head.
      * layer, "" where the metric has none.
      * part: "p5", "forward", …; "" for the metric itself. `words` also has the numbers of "words"
        in the dictionary, of those that are "covered", since both models can write the word and a
        translation, and of covered ones that are spelled "alike" in both languages.
      * value, low and high, the limits of the interval, NaN where there is none.

    Raises:
      ValueError, FileNotFoundError: a model cannot be read, texts, dictionaries or links do not fit
        together, or a metric that is asked for by name lacks what it needs.
    """
    if isinstance(names, str):
        raise ValueError(f"names={names!r}: give a list of names")
    names = tuple(names)
    require_count("masked_every", masked_every)
    require_count("passes", passes)
    if texts is None and (dictionaries or links):
        raise ValueError("dictionaries, links: give texts too, and a model that reads them")
    given = {"texts": texts, "dictionaries": dictionaries, "links": links}
    for name in names if set(names) != set(NAMES) else ():
        if name in NEEDED and not given[NEEDED[name]]:
            raise ValueError(f"names: {name} needs {NEEDED[name]}: give some, or leave it out")
    needed = {*names, *(("retrieval", "translation") if "mu" in names else ())}
    scores: Scores = {}
    of_texts: Scores = {}
    known: dict[Pair, Dictionary] = {}
    gold: Mapping[Pair, Sequence[GoldLinks]] = {}
    if texts is None:
        if not isinstance(model, Mapping) or any(map(_is_model, model.values())):
            raise ValueError("texts: give sentences that the model is to read")
        encoded = _of_states(cast(States, model), layers)
        _require_layers_of_mu(names, encoded.layers, encoded.depth)
        _require({name: own[0] for name, own in encoded.sentences.items()}, names, np.ndarray)
    else:
        if isinstance(model, Mapping) and not all(map(_is_model, model.values())):
            raise ValueError("texts: leave them out where states are given, or give models")
        _require(texts, names)
        known, gold = _dictionaries(dictionaries or {}, tuple(texts)), _links(links or {}, texts)
        reader, encoded = _Reader(cast(Models, model)), _Encoded()
        for language, sentences in texts.items():
            say(f"{language}: {len(sentences):,} sentences")
            encoder = TextEncoder(reader(language), layers)
            _require_layers_of_mu(names, encoder.layers, encoder.model.config.layers)
            if cut := text_encoder.number_cut(encoder.model, sentences):
                say(text_encoder.said_cut(encoder.model, cut, len(sentences)))
                of_texts["retrieval_cut", language, "", ""] = Score(cut / len(sentences))
            if repeated := len(sentences) - len(set(sentences)):
                say(f"{language}: {repeated:,} sentences repeat others")
                share = Score(repeated / len(sentences))
                of_texts["retrieval_repeated", language, "", ""] = share
            encoded.add(language, encoder, sentences, _words_of(language, known))
            if "pseudo_perplexity" in names and encoder.has_head:
                say(f"{language}: pseudo-perplexity, {passes} of {masked_every} passes")
                score = pseudo_perplexity(encoder, sentences, masked_every, passes)
                scores |= {("pseudo_perplexity", language, "", ""): score} if score else {}
            del encoder  # before the next model is read
        for pair, own in gold.items() if "alignment_f1" in names else ():
            say(f"{'-'.join(pair)}: words in {len(own):,} sentences with gold links")
            encoders = TextEncoder(reader(pair[0]), layers), TextEncoder(reader(pair[1]), layers)
            if encoders[0].model.config.hidden == encoders[1].model.config.hidden:
                counts = link_counts(encoders, (texts[pair[0]], texts[pair[1]]), own)
                for layer, of_layer in zip(encoded.layers, counts, strict=True):
                    scores["alignment_f1", "-".join(pair), layer, ""] = compare_links(of_layer)
            del encoders
    for pair in itertools.combinations(encoded.sentences, 2):
        say(f"{'-'.join(pair)}: compared at {len(encoded.layers)} layers")
        scores |= _pair_scores(pair, encoded, known.get(pair), needed, say)
    wanted = {key: score for key, score in scores.items() if key[0] in names}
    every = len(encoded.sentences)
    numbers = dict.fromkeys(names, math.comb(every, 2)) | dict.fromkeys(BY_DICTIONARY, len(known))
    numbers |= {"alignment_f1": len(gold), "pseudo_perplexity": every}
    return frame(wanted | _means(wanted, numbers) | of_texts)


def _pair_scores(
    pair: Pair,
    encoded: _Encoded,
    dictionary: Dictionary | None,
    names: Iterable[str],
    say: Callable[[str], None],
) -> Scores:
    """What can be measured of two languages from their vectors."""
    scores: Scores = {}
    languages = "-".join(pair)
    words = dictionary and encoded.of_words(dictionary)
    if dictionary and "words" in names:
        total = len(dictionary.entries)
        covered, alike = (words[0].covered, words[3]) if words else (0, 0)
        counts = {"words": total, "covered": covered, "alike": alike}
        scores |= {("words", languages, "", part): Score(n) for part, n in counts.items()}
        say(
            f"{languages}: {covered:,} of the dictionary's {total:,} words can be written, and a "
            f"translation; {alike:,} are spelled as theirs"
        )
    for place, layer in enumerate(encoded.layers):
        first, second = (encoded.sentences[language][place] for language in pair)
        found = compare_sentences(first, second, names)
        if words and first.shape == second.shape:
            pairs, one, other, _ = words
            found |= compare_words(one[place], other[place], pairs, names)
        scores |= {(name, languages, layer, part): own for (name, part), own in found.items()}
    of_mu = [
        (name, languages, layer, "")
        for name in ("retrieval", "translation")
        for layer in registry.paper_layers(encoded.depth)
    ]
    if "mu" in names and set(of_mu) <= set(scores):
        scores["mu", languages, "", ""] = Score.mean([scores[key] for key in of_mu])
    return scores


def frame(scores: Scores) -> pd.DataFrame:
    """See `evaluate`."""
    lines = [(*key, score.value, *score.limits) for key, score in scores.items()]
    return pd.DataFrame(lines, columns=list(COLUMNS))
