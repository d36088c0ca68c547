"""How multilingual an encoder is: every pair of languages, at every layer, with intervals.

    from xling_jax import evaluate
    scores = evaluate("FOLDER", {"en": english, "de": german, "fr": french})
    scores.query("metric == 'retrieval' and layer == 8")

Sentences with the same number translate each other. What is measured of two languages is what the
experiments measure of theirs, by the same functions. An interval holds the middle 95 % of what the
number is in samples of the sentences (or words), drawn with replacement as many as there are
(bootstrap); those that are chosen among stay all.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from xling_jax.corpora import dictionaries as dictionary_files
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.word_links import GoldLinks
from xling_jax.evaluators import registry
from xling_jax.evaluators.comparison import (
    Parallel,
    Ranks,
    centred_ranks,
    csls_ranks,
    map_learned_on_half,
    precision,
)
from xling_jax.evaluators.dictionary_induction import Pairs, hits
from xling_jax.evaluators.multilinguality import paper_layers
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.evaluators.word_alignment import f1, link_counts
from xling_jax.linalg import cka
from xling_jax.models import folders
from xling_jax.models.text_model import TextModel

SAMPLES, SEED = 1000, 0  # of an interval
INTERVAL = 2.5, 97.5  # percent
MASKED_EVERY = 7  # pieces, about the share that BERT is trained with
MOST_RESAMPLED = 5000  # sentences, for an interval of CKA takes matrices of n x n
COLUMNS = ("metric", "languages", "layer", "part", "value", "low", "high")
NAMES = registry.OF_ENCODERS

RANKS: Mapping[str, Callable[[Parallel], Ranks]] = {
    "retrieval": lambda pair: pair.ranks,
    "mapped": lambda pair: map_learned_on_half(pair).ranks,
    "centred": centred_ranks,
    "csls": csls_ranks,
}

Pair = tuple[str, str]
Model = str | os.PathLike[str] | TextModel
Models = Model | Mapping[str, Model] | Callable[[str], TextModel]
States = Mapping[str, np.ndarray]
Words = Dictionary | str | os.PathLike[str] | Iterable[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Score:
    """A number, and what it is in each of some samples, float64 [S], if anybody asked."""

    value: float
    samples: np.ndarray | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """The interval; NaN without samples."""
        if self.samples is None:
            return float("nan"), float("nan")
        low, high = np.percentile(self.samples, INTERVAL)
        return float(low), float(high)

    @classmethod
    def mean(cls, scores: Sequence["Score"], geometric: bool = False) -> "Score":
        """The mean of some, sample by sample."""

        def average(values: Sequence) -> np.ndarray:
            stacked = np.asarray(values, float)
            return np.exp(np.log(stacked).mean(0)) if geometric else stacked.mean(0)

        samples = [each.samples for each in scores if each.samples is not None]
        is_sampled = len(samples) == len(scores)
        value = float(average([each.value for each in scores]))
        return cls(value, average(samples) if is_sampled else None)


Key = tuple[
    str, str, int | str, str
]  # metric, languages, layer and part, as in `Metric` of reports
Scores = dict[Key, Score]


@functools.lru_cache(maxsize=4)
def _counts(number: int) -> np.ndarray:
    """How often each of `number` items is in each sample, float32 [S, n]."""
    random = np.random.default_rng([SEED, number])
    drawn = random.multinomial(number, np.full(number, 1 / number), size=SAMPLES)
    return drawn.astype(np.float32)


def _mean_score(values_N: np.ndarray) -> Score:
    values_N = np.asarray(values_N, np.float64)
    return Score(float(values_N.mean()), _counts(len(values_N)) @ values_N / len(values_N))


def _both_ways(hits: Sequence[np.ndarray]) -> Score:
    """The mean of two directions' shares, of items of their own."""
    return Score.mean([_mean_score(each) for each in hits])


@functools.partial(jax.jit, static_argnums=0)
def _ranks(names: tuple[str, ...], pair_2xNxD: jax.Array) -> dict[str, Ranks]:
    pair = Parallel(*pair_2xNxD)
    return {name: RANKS[name](pair) for name in names}


def _ranked(name: str, ranks: Ranks, with_mrr: bool) -> dict[tuple[str, str], Score]:
    """(metric, part) of what ranks say."""
    forward, backward = map(np.asarray, ranks)
    parts = {end.lstrip("_"): float(value) for end, value in precision(ranks).items()}
    found = {(name, part): Score(value) for part, value in parts.items() if part}
    # The same sentences are drawn for both directions.
    found[name, ""] = _mean_score(((forward < 1) * 1.0 + (backward < 1)) / 2)
    if with_mrr:
        found["mrr", ""] = _mean_score((1 / (1 + forward) + 1 / (1 + backward)) / 2)
    return found


def compare_sentences(
    first_NxD: np.ndarray, second_NxE: np.ndarray, names: Iterable[str]
) -> dict[tuple[str, str], Score]:
    """What can be measured of translations' vectors at one layer, by (metric, part).

    Vectors of different widths have CKA alone.
    """
    names = set(names)
    sides = jnp.asarray(first_NxD, jnp.float32), jnp.asarray(second_NxE, jnp.float32)
    found: dict[tuple[str, str], Score] = {}
    number = len(first_NxD)
    if sides[0].shape == sides[1].shape:
        ranked = names | ({"retrieval"} if "mrr" in names else set())
        asked = tuple(name for name in RANKS if name in ranked and (name != "mapped" or number > 1))
        for name, ranks in _ranks(asked, jnp.stack(sides)).items():
            found |= _ranked(name, ranks, name == "retrieval" and "mrr" in names)
    if "cka" in names:
        value, samples = float(cka.linear_cka(*sides)), None
        if number <= MOST_RESAMPLED:
            drawn = np.asarray(cka.resampled_cka(*sides, jnp.asarray(_counts(number))))
            samples = value + drawn - drawn.mean(dtype=np.float64)  # items drawn twice raise CKA
        found["cka", ""] = Score(value, samples)
    return {key: score for key, score in found.items() if key[0] in names}


def compare_words(
    first_NxD: np.ndarray, second_MxD: np.ndarray, pairs: Pairs, names: Iterable[str]
) -> dict[tuple[str, str], Score]:
    """Word translation at one layer, by (metric, part): `words` by CSLS among all, and, as D&S have
    it, `translation` by cosine among words that have one translation each."""
    found: dict[tuple[str, str], Score] = {}
    sides = jnp.asarray(first_NxD), jnp.asarray(second_MxD)
    if "words" in names:
        forward = hits(*sides, pairs.gold())
        backward = hits(*sides[::-1], pairs.reverse().gold())
        for k in registry.CUTOFFS:
            both = forward[k], backward[k]
            found["words", "" if k == 1 else f"p{k}"] = _both_ways(both)
            for way, own in zip(("forward", "backward"), both, strict=True):
                found["words", f"{way}_p{k}"] = Score(float(own.mean()))
    if "translation" in names:
        one, other = pairs.one_to_one().rows.T
        found |= _ranked("translation", Parallel(sides[0][one], sides[1][other]).ranks, False)
    return found


def compare_links(counts_NxC: np.ndarray) -> Score:
    """Word alignment at one layer, from `link_counts`."""
    samples = f1(_counts(len(counts_NxC)) @ counts_NxC)
    return Score(float(f1(counts_NxC.sum(0))), samples)


def pseudo_perplexity(encoder: TextEncoder, texts: Sequence[str], every: int, passes: int) -> Score:
    """exp of the mean loss of masked pieces; see `TextEncoder.masked_losses`."""
    losses_N, counts_N = encoder.masked_losses(texts, every, passes)
    drawn = _counts(len(texts))
    samples = np.exp((drawn @ losses_N) / np.maximum(drawn @ counts_N, 1))
    return Score(float(np.exp(losses_N.sum() / max(counts_N.sum(), 1))), samples)


@dataclasses.dataclass
class _Encoded:
    """What models make of texts, by language.

    sentences: vectors [L, n, D]. words: those of dictionaries, each with its row among [L, W, D].
    """

    layers: tuple[int, ...] = ()
    sentences: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    words: dict[str, tuple[dict[str, int], np.ndarray]] = dataclasses.field(default_factory=dict)

    def of_words(self, dictionary: Dictionary) -> tuple[Pairs, np.ndarray, np.ndarray]:
        """A dictionary's pairs, and the vectors of its words alone."""
        languages = dictionary.source_language, dictionary.target_language
        sides = [list(dictionary.entries), list(dictionary.reverse().entries)]
        places = [{word: number for number, word in enumerate(own)} for own in sides]
        vectors = []
        for language, own in zip(languages, sides, strict=True):
            rows, vectors_LxWxD = self.words[language]
            vectors.append(vectors_LxWxD[:, [rows[word] for word in own]])
        return Pairs.of(dictionary, *places), vectors[0], vectors[1]


class _Reader:
    """The model that reads each language; of folders only the last one is in memory."""

    def __init__(self, model: Models):
        self._given = model
        self._last: dict[str, TextModel] = {}

    def __call__(self, language: str) -> TextModel:
        given = self._given[language] if isinstance(self._given, Mapping) else self._given
        if isinstance(given, TextModel):
            return given
        if language not in self._last:
            self._last = {}  # before the next one is read
            self._last[language] = given(language) if callable(given) else load(given, language)
        return self._last[language]


def load(folder: str | os.PathLike[str], language: str) -> TextModel:
    """The model in a folder whose name may have `{language}` in it; errors as `folders.load`."""
    return folders.load(Path(str(folder).replace("{language}", language)).expanduser(), language)


def _require(texts: Mapping[str, Sequence], names: Sequence[str]) -> None:
    """ValueError unless there are sentences to compare, and something known to measure."""
    if unknown := sorted(set(names) - set(NAMES)):
        raise ValueError(f"names: {unknown[0]!r} is not measured: choose from {', '.join(NAMES)}")
    numbers = {language: len(own) for language, own in texts.items()}
    if len(numbers) < 2 or len(set(numbers.values())) > 1 or min(numbers.values()) < 2:
        raise ValueError(
            f"texts of {numbers} sentences: give as many of each of at least two languages, two or "
            "more, where those with the same number translate each other"
        )


def _of_states(states: States, layers: Sequence[int] | None) -> _Encoded:
    shapes = {language: np.shape(own) for language, own in states.items()}
    depths = {shape[0] if len(shape) == 3 else 0 for shape in shapes.values()}
    if len(depths) > 1 or not min(depths):
        raise ValueError(f"states {shapes}: give [layers, n, d] of each language, as many layers")
    (depth,) = depths
    layers = tuple(range(depth) if layers is None else layers)
    if len(layers) != depth:
        raise ValueError(f"layers={layers}, and there are states of {depth}: name each of them")
    return _Encoded(layers, {name: np.asarray(own) for name, own in states.items()})


def _dictionaries(
    given: Mapping[Pair, Words], texts: Mapping[str, object]
) -> dict[Pair, Dictionary]:
    found = {}
    for pair, words in given.items():
        if unknown := [language for language in pair if language not in texts]:
            raise ValueError(f"dictionaries of {pair}: there is no text of {unknown[0]}")
        if isinstance(words, str | os.PathLike):
            words = dictionary_files.read(words, *pair, lowercase=True)
        elif not isinstance(words, Dictionary):
            words = dictionary_files.from_pairs(list(words), *pair)
        found[pair] = words
    return found


def _words_of(language: str, known: Mapping[Pair, Dictionary]) -> list[str]:
    """All words that dictionaries have of a language, each once."""
    words: dict[str, None] = {}
    for pair, dictionary in known.items():
        if language == pair[0]:
            words |= dict.fromkeys(dictionary.entries)
        if language == pair[1]:
            words |= dict.fromkeys(dictionary.reverse().entries)
    return list(words)


def _means(scores: Scores) -> Scores:
    """The means over languages or pairs, where there are several."""
    every: dict[Key, list[Score]] = {}
    for (metric, _, layer, part), score in scores.items():
        every.setdefault((metric, "", layer, part), []).append(score)
    return {
        key: Score.mean(own, geometric=key[0] == "pseudo_perplexity") for key, own in every.items()
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
      names: what is measured, in `evaluators.registry`.
      layers: default all, 0 being the embeddings.
      dictionaries: words of the first language of a pair with their translations into the second: a
        file, as `corpora.dictionaries.read` takes it, or pairs. Words are encoded one by one.
      links: gold links between the words of a pair's first sentences.
      masked_every, passes: of pseudo-perplexity, see `TextEncoder.masked_losses`.
      say: is told what is being done.

    Returns:
      A line for each number: metric; languages ("en-de", "en" for pseudo-perplexity, "" for the
      mean over all pairs or languages, which is geometric for pseudo-perplexity); layer ("" where
      it has none); part ("p5", "forward", … of the metric, "" for the metric itself); value;
      low and high (NaN where there is no interval).

    Raises:
      ValueError, FileNotFoundError: a model cannot be read, or texts, dictionaries or links do not
        fit together.
    """
    scores: Scores = {}
    if texts is None:
        if not isinstance(model, Mapping):
            raise ValueError("texts: give sentences that the model is to read")
        _require({name: np.asarray(own)[0] for name, own in model.items()}, names)
        encoded, known = _of_states(cast(States, model), layers), {}
    else:
        _require(texts, names)
        known, encoded = _dictionaries(dictionaries or {}, texts), _Encoded()
        reader = _Reader(cast(Models, model))
        for language, sentences in texts.items():
            encoder = TextEncoder(reader(language), layers)
            if encoded.layers and encoded.layers != encoder.layers:
                raise ValueError(
                    f"the model of {language} has layers 0..{encoder.layers[-1]}, others "
                    f"0..{encoded.layers[-1]}: name with layers= those that are compared"
                )
            say(f"{language}: {len(sentences):,} sentences")
            encoded.layers = encoder.layers
            encoded.sentences[language] = encoder.sentences(sentences)
            if words := _words_of(language, known):
                say(f"{language}: {len(words):,} words of dictionaries")
                rows = {word: number for number, word in enumerate(words)}
                encoded.words[language] = rows, encoder.sentences(words)
            if "pseudo_perplexity" in names and encoder.has_head:
                say(f"{language}: pseudo-perplexity, {passes} of {masked_every} passes")
                score = pseudo_perplexity(encoder, sentences, masked_every, passes)
                scores["pseudo_perplexity", language, "", ""] = score
        for pair, gold in (links or {}).items() if "alignment_f1" in names else ():
            say(f"{'-'.join(pair)}: words in {len(gold):,} sentences with gold links")
            encoders = TextEncoder(reader(pair[0]), layers), TextEncoder(reader(pair[1]), layers)
            counts = link_counts(encoders, (texts[pair[0]], texts[pair[1]]), gold)
            for layer, of_layer in zip(encoded.layers, counts, strict=True):
                scores["alignment_f1", "-".join(pair), layer, ""] = compare_links(of_layer)
    for pair in itertools.combinations(encoded.sentences, 2):
        say(f"{'-'.join(pair)}: compared at {len(encoded.layers)} layers")
        dictionary = next((own for both, own in known.items() if set(both) == set(pair)), None)
        scores |= _pair_scores(pair, encoded, dictionary, names)
    return frame(scores | _means(scores))


def _pair_scores(
    pair: Pair, encoded: _Encoded, dictionary: Dictionary | None, names: Sequence[str]
) -> Scores:
    """Everything about two languages that vectors tell."""
    scores: Scores = {}
    languages = "-".join(pair)
    if dictionary:
        if dictionary.source_language != pair[0]:
            dictionary = dictionary.reverse()
        pairs, *words = encoded.of_words(dictionary)
    for place, layer in enumerate(encoded.layers):
        first, second = (encoded.sentences[language][place] for language in pair)
        found = compare_sentences(first, second, names)
        if dictionary:
            found |= compare_words(words[0][place], words[1][place], pairs, names)
        scores |= {(name, languages, layer, part): own for (name, part), own in found.items()}
    of_mu = [
        (name, languages, layer, "")
        for name in ("retrieval", "translation")
        for layer in paper_layers(encoded.layers[-1])
    ]
    if "mu" in names and set(of_mu) <= set(scores):
        scores["mu", languages, "", ""] = Score.mean([scores[key] for key in of_mu])
    return scores


def frame(scores: Scores) -> pd.DataFrame:
    """See `evaluate`."""
    lines = [(*key, score.value, *score.limits) for key, score in scores.items()]
    return pd.DataFrame(lines, columns=list(COLUMNS))
