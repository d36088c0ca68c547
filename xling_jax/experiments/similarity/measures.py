"""Everything that is measured of one pair of models (W&C §5).

Words are lower-case throughout, as MUSE's dictionaries are: a capitalised one in text, or a
capitalised piece where there is no other, stands for the lower-case one.
"""

import collections
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.evaluators import registry, text_encoder
from xling_jax.evaluators.dictionary_induction import Pairs, induce
from xling_jax.evaluators.similarity import layer_cka, layer_correlation, sentence_translation
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.experiments.similarity.texts import LanguageTexts, Sentences
from xling_jax.models.text_model import TextModel
from xling_jax.training.metrics import say
from xling_jax.vocabulary import static_vectors
from xling_jax.vocabulary.static_vectors import CONTEXTS

CKA, SENTENCES, UNMAPPED = "cka", "sentences", "unmapped"
STATIC = 200_000  # the first vectors of a file, which are used (W&C §5.1.1)

Counts = collections.Counter[str]


def _sentences(encoders: Sequence[TextEncoder], texts: LanguageTexts) -> dict[str, float]:
    """Retrieval of tested sentences, as they are and after a map learned on others; how many there
    are; and the shares that are cut and that repeat others, on the side where more are, unless they
    are 0."""
    assert texts.tested is not None
    tested = [list(side) for side in zip(*texts.tested, strict=True)]
    number, sides = len(texts.tested), zip(encoders, tested, strict=True)
    cut = max(text_encoder.number_cut(encoder.model, side) for encoder, side in sides)
    repeated = max(number - len(set(side)) for side in tested)
    metrics = {"retrieval_candidates": float(number)}
    metrics |= {"retrieval_cut": cut / number} if cut else {}
    metrics |= {"retrieval_repeated": repeated / number} if repeated else {}
    for name, learned in ((UNMAPPED, None), (SENTENCES, _apart(texts.learned or [], tested))):
        if name == SENTENCES and not learned:
            continue
        found = sentence_translation(encoders[0], encoders[1], learned, texts.tested)
        for layer, values in zip(encoders[0].layers, found, strict=True):
            metrics |= {f"{name}_{layer}{end}": value for end, value in values.items()}
    return metrics


def _apart(learned: Sentences, tested: Sequence[Sequence[str]]) -> Sentences:
    """The pairs of which neither sentence is tested, so that no map is learned from what it is
    tested on."""
    first, second = map(set, tested)
    found = [pair for pair in learned if pair[0] not in first and pair[1] not in second]
    if left_out := len(learned) - len(found):
        say(f"maps are not learned from {left_out:,} of {len(learned):,} pairs: one or both "
            "sentences are tested")  # fmt: skip
    if left_out and not found:
        say("retrieval after a map left out: no other pair is there to learn it from")
    return found


def _translate(
    prefix: str,
    words: Sequence[Sequence[str]],
    vectors: Sequence[np.ndarray],
    train: Dictionary,
    test: Dictionary,
) -> dict[str, float]:
    """Word translation by vectors of these words: `PREFIX_p1`, …, see
    `dictionary_induction.induce`, also for errors."""
    rows = [{word: n for n, word in enumerate(own)} for own in words]
    first, second = map(jnp.asarray, vectors)
    found = induce(first, second, Pairs.of(train, *rows), Pairs.of(test, *rows))
    return {f"{prefix}_{name}": value for name, value in found.items()}


def single_pieces(model: TextModel, known: Counts | None) -> dict[str, int]:
    """The words that are one piece, with its id; only those that occur, if `known` tells which."""
    found: dict[str, int] = {}
    # Lower-case pieces first: they are what their words are written with.
    for word, piece in sorted(model.single_pieces().items(), key=lambda x: x[0] != x[0].lower()):
        if known is None or word.lower() in known:
            found.setdefault(word.lower(), piece)
    return found


def _are_alike(first: Mapping[str, int], second: Mapping[str, int]) -> bool:
    """Whether most words of the smaller vocabulary are in the other one too."""
    return 2 * len(first.keys() & second.keys()) > min(len(first), len(second))


def _static_vectors(
    language: str,
    wanted: Sequence[str],
    written: Sequence[str],
    texts: LanguageTexts,
    settings: ConfigDict,
) -> dict[str, np.ndarray]:
    """The vectors of those words that have one, from a `.vec` file, in which a word may also have
    capitals, or trained on the written text; models that write the text alike share them.
    ValueError, naming the field, if no word has one."""
    if (source := texts.vectors[language]) != CONTEXTS:
        written_as = [write(word) for write in (str.upper, str.capitalize, str) for word in wanted]
        with errors.in_field(f"texts.{language}.vectors"):
            found = static_vectors.read(source, {x: n for n, x in enumerate(written_as)}, STATIC)
        by_case = sorted(zip(found.words.tolist(), found.vectors, strict=True), key=lambda x: x[0])
        return {wanted[n % len(wanted)]: vector for n, vector in by_case}  # lower case last
    text = hashlib.sha256("\n".join(written).encode()).hexdigest()
    if text not in texts.trained:
        size = f"{settings.dimension}-dimensional vectors of words in {len(written):,} sentences"
        say(f"{language}: training {size}")
        ids: dict[str, int] = {}
        sentences = [
            np.array([ids.setdefault(word, len(ids)) for word in line.lower().split()], np.int32)
            for line in written
        ]
        names = list(ids)
        with errors.in_field(f"texts.{language}.contexts"):
            made = static_vectors.train(settings.to_dict(), sentences, dict(enumerate(names)), 0)
        by_word = {names[n]: vector for n, vector in zip(made.words, made.vectors, strict=True)}
        texts.trained[text] = by_word
    if chosen := {word: x for word in wanted if (x := texts.trained[text].get(word)) is not None}:
        return chosen
    raise ValueError(
        f"texts.{language}.contexts: no word to translate occurs {settings.min_count} times: "
        f"give more text, lower skip_gram.min_count, or leave texts.{language}.vectors empty"
    )


def _by_embeddings(
    models: Sequence[TextModel],
    pieces: Sequence[Mapping[str, int]],
    static: Sequence[Mapping[str, np.ndarray]],
    train: Dictionary,
    test: Dictionary,
) -> dict[str, float]:
    """Translates words that are one piece by the models' embeddings (W&C §5.1.1): `words_p1`, …;
    `words_first` and `words_second`, how many words of each language there are.

    If there are static vectors, only words that have one count, and `static_p1`, … is translation
    of the same words by these vectors. For errors see `_translate`.
    """
    words = _with_vectors(pieces, static)
    rows = [
        np.asarray(model.params["embeddings"]["tokens"])[np.array([own[x] for x in some], int)]
        for model, own, some in zip(models, pieces, words, strict=True)
    ]
    metrics = _translate("words", words, rows, train, test)
    metrics |= {"words_first": float(len(words[0])), "words_second": float(len(words[1]))}
    if static:
        metrics |= _translate("static", words, _vectors(words, static), train, test)
    return metrics


def _with_vectors(
    words: Sequence[Iterable[str]], static: Sequence[Mapping[str, np.ndarray]]
) -> list[list[str]]:
    """Those words of each language that have a static vector; all if there are no vectors."""
    if not static:
        return [list(own) for own in words]
    return [[x for x in own if x in some] for own, some in zip(words, static, strict=True)]


def _vectors(
    words: Sequence[Sequence[str]], static: Sequence[Mapping[str, np.ndarray]]
) -> list[np.ndarray]:
    """The static vectors of each language's words, [n, d]."""
    return [np.stack([some[x] for x in own]) for own, some in zip(words, static, strict=True)]


def _frequent(side: int, known: Counts, most: int, dictionaries: Sequence[Dictionary]) -> list[str]:
    """The words of a language that are translated by their states in context: of those that occur,
    the `most` most frequent ones, and those of the dictionaries."""
    chosen = dict.fromkeys(word for word, _ in known.most_common(most))
    for dictionary in dictionaries:
        for word, translations in dictionary.entries.items():
            chosen |= dict.fromkeys([word] if side == 0 else [t for t, _ in translations])
    return [word for word in chosen if word in known]


def _in_context(
    encoders: Sequence[TextEncoder],
    written: Sequence[Sequence[str]],
    chosen: Sequence[Sequence[str]],
    static: Sequence[Mapping[str, np.ndarray]],
    train: Dictionary,
    test: Dictionary,
) -> dict[str, float]:
    """Translates the chosen words by the means of their states in the written text,
    `context_L_p1`, … for each layer L (W&C §5.1.1).

    If there are static vectors, only words that have one count, and `context_static_p1`, … is
    translation of the same words by these vectors. For errors see `_translate`.
    """
    words, states = [], []
    for encoder, text, own in zip(encoders, written, _with_vectors(chosen, static), strict=True):
        vectors, number = encoder.words(text, own)
        there = number > 0
        words.append([word for word, is_there in zip(own, there, strict=True) if is_there])
        states.append(vectors[:, there])
    metrics: dict[str, float] = {}
    for n, layer in enumerate(encoders[0].layers):
        of_layer = [found[n] for found in states]
        metrics |= _translate(f"context_{layer}", words, of_layer, train, test)
    if static:
        metrics |= _translate("context_static", words, _vectors(words, static), train, test)
    return metrics


def _words(
    models: Sequence[TextModel],
    encoders: Sequence[TextEncoder],
    texts: LanguageTexts,
    config: ConfigDict,
) -> dict[str, float]:
    """Word translation by embeddings, static vectors and states in context.

    A measure for which no word of a dictionary is covered is left out. ValueError: a language has
    no static vectors, or a file of them cannot be read.
    """
    assert texts.train is not None and texts.test is not None
    write, translate = ((lambda text, m=model: m.write(text).lower()) for model in models)
    train, test = (each.map(write, translate) for each in (texts.train, texts.test))
    every, train = list(train.triples), train.apart_from(test)
    if tested := len(every) - len(list(train.triples)):
        say(f"maps are not learned from {tested:,} of {len(every):,} pairs of words: one or both "
            "are tested")  # fmt: skip
    if tested == len(every):
        say("word translation left out: no other word has a translation")
        return {}
    written, known, chosen = [list[str](), []], None, [list[str](), []]
    if texts.contexts:
        sides = zip(models, texts.contexts, strict=True)
        written = [list(map(model.write, side)) for model, side in sides]
        known = [Counts(x for text in side for x in text.lower().split()) for side in written]
        most = config.words.most
        chosen = [_frequent(side, own, most, (train, test)) for side, own in enumerate(known)]
        say(f"words in {len(written[0]):,} and {len(written[1]):,} sentences")
    pieces = [single_pieces(m, known[k] if known else None) for k, m in enumerate(models)]
    wanted = [[*dict.fromkeys([*own, *some])] for own, some in zip(pieces, chosen, strict=True)]
    static = [
        _static_vectors(language, own, text, texts, config.skip_gram)
        for language, own, text in zip(texts.vectors, wanted, written, strict=False)
    ]
    metrics: dict[str, float] = {}
    left_out = "word translation by embeddings left out"
    if not known and _are_alike(*(static or pieces)):
        say(
            f"{left_out}: most words of the smaller vocabulary are in the other one too, so which "
            "language they belong to is not known: give texts.LANGUAGE.contexts"
        )
    else:
        try:
            metrics |= _by_embeddings(models, pieces, static, train, test)
        except ValueError as error:
            say(f"{left_out}: {error}")
    if known:
        try:
            metrics |= _in_context(encoders, written, chosen, static, train, test)
        except ValueError as error:
            say(f"word translation in context left out: {error}")
    return metrics


def _say_cut(encoders: Sequence[TextEncoder], texts: LanguageTexts) -> None:
    """Says how many sentences are too long for each model, each counted once."""
    for side, encoder in enumerate(encoders):
        different = {pair[side] for pairs in (texts.learned, texts.tested) for pair in pairs or ()}
        different.update(texts.contexts[side] if texts.contexts else ())
        if cut := text_encoder.number_cut(encoder.model, list(different)):
            say(text_encoder.said_cut(encoder.model, cut, len(different)))


def layers_of(models: Sequence[TextModel], config: ConfigDict) -> list[list[int]]:
    """The layers of two models that are compared (0: the embeddings), all unless the config names
    some; ValueError if a model lacks one, or all are compared and their numbers differ."""
    depths = [model.config.layers for model in models]
    found = [list(config.layers) or list(range(depth + 1)) for depth in depths]
    for layers, depth in zip(found, depths, strict=True):
        registry.require_layers(layers, depth, "layers")
    if len(found[0]) != len(found[1]):
        raise ValueError(
            f"models of {depths[0]} and {depths[1]} layers: name those to compare with layers="
        )
    return found


def compare(
    models: Sequence[TextModel], texts: LanguageTexts, is_translated: bool, config: ConfigDict
) -> Mapping[str, float]:
    """Everything that can be measured of two models with the given texts; if both read the same
    language (not `is_translated`), CKA alone.

    Returns:
      `cka_L` for each layer L and `cka`, their mean, on the parallel sentences of `learned`, or of
      `tested` where there are none; `sentences_L` and `unmapped_L`, retrieval of the tested
      sentences with a map and without; `words_p1`, `static_p1`, `context_L_p1` and
      `context_static_p1`, word translation; `pearson`, the correlation over layers of CKA and
      `sentences_L`, where both vary; `retrieval_candidates`, `retrieval_cut` and
      `retrieval_repeated`, see `_sentences`.
    """
    layers = layers_of(models, config)
    encoders = [TextEncoder(model, own) for model, own in zip(models, layers, strict=True)]
    metrics: dict[str, float] = {}
    has_maps = is_translated and models[0].config.hidden == models[1].config.hidden
    if is_translated and not has_maps:
        say("the models' hidden sizes differ: CKA alone is measured, no orthogonal map")
    if texts.tested and has_maps:
        metrics |= _sentences(encoders, texts)
    if pairs := texts.learned or texts.tested:
        say(f"CKA on {len(pairs):,} pairs of sentences")
        values = layer_cka(encoders[0], encoders[1], pairs).tolist()
        metrics |= {f"{CKA}_{n}": v for n, v in zip(encoders[0].layers, values, strict=True)}
        metrics[CKA] = sum(values) / len(values)
        if f"{SENTENCES}_{encoders[0].layers[0]}" in metrics:
            found = [metrics[f"{SENTENCES}_{layer}"] for layer in encoders[0].layers]
            correlation = layer_correlation(values, found)
            if math.isfinite(correlation):
                metrics["pearson"] = correlation
    if texts.test and has_maps:
        metrics |= _words(models, encoders, texts, config)
    _say_cut(encoders, texts)
    return metrics
