"""Everything that is measured of one pair of models (W&C §5)."""

import math
from collections.abc import Mapping, Sequence

import ml_collections

from xling_jax.evaluators.similarity import layer_cka, layer_correlation, sentence_translation
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.experiments.similarity import words
from xling_jax.experiments.similarity.texts import LanguageTexts
from xling_jax.models.text_model import TextModel
from xling_jax.training.metrics import say

CKA, SENTENCES, UNMAPPED = "cka", "sentences", "unmapped"


def _sentences(encoders: Sequence[TextEncoder], texts: LanguageTexts) -> dict[str, float]:
    """Retrieval of tested sentences, as they are and after a map learned on others."""
    assert texts.tested is not None
    metrics: dict[str, float] = {}
    for name, learned in ((UNMAPPED, None), (SENTENCES, texts.learned)):
        if name == SENTENCES and not learned:
            continue
        found = sentence_translation(encoders[0], encoders[1], learned, texts.tested)
        for layer, values in zip(encoders[0].layers, found, strict=True):
            metrics |= {f"{name}_{layer}{end}": value for end, value in values.items()}
    return metrics


def _words(
    models: Sequence[TextModel],
    encoders: Sequence[TextEncoder],
    texts: LanguageTexts,
    config: ml_collections.ConfigDict,
) -> dict[str, float]:
    """Word translation by embeddings, static vectors and states in context.

    A measure for which no word of a dictionary is covered is left out.
    """
    assert texts.train is not None and texts.test is not None
    train, test = (words.as_written(each, models) for each in (texts.train, texts.test))
    written, known = None, None
    if texts.contexts:
        written = [
            list(map(model.write, side)) for model, side in zip(models, texts.contexts, strict=True)
        ]
        known = [words.counts(side) for side in written]
        say(f"words in {len(written[0]):,} and {len(written[1]):,} sentences")
    metrics: dict[str, float] = {}
    try:
        metrics |= words.by_embeddings(models, known, train, test, texts.vectors)
    except ValueError as error:
        say(f"word translation by embeddings left out: {error}")
    if written and known:
        try:
            metrics |= words.in_context(encoders, written, known, config.words.most, train, test)
        except ValueError as error:
            say(f"word translation in context left out: {error}")
    return metrics


def _say_cut(encoders: Sequence[TextEncoder], texts: LanguageTexts) -> None:
    """Says how many different sentences are longer than each model."""
    for side, encoder in enumerate(encoders):
        different = {pair[side] for pairs in (texts.learned, texts.tested) for pair in pairs or ()}
        different.update(texts.contexts[side] if texts.contexts else ())
        if cut := encoder.number_cut(list(different)):
            say(
                f"cut to the model's {encoder.model.config.positions} places: {cut:,} of "
                f"{len(different):,} different sentences"
            )


def layers_of(models: Sequence[TextModel], config: ml_collections.ConfigDict) -> list[list[int]]:
    """The layers of two models that are compared, 0 the embeddings.

    Raises:
      ValueError: a model lacks one, or has another number of them than the other.
    """
    depths = [model.config.layers for model in models]
    found = [list(config.layers) or list(range(depth + 1)) for depth in depths]
    for layers, depth in zip(found, depths, strict=True):
        if not all(0 <= layer <= depth for layer in layers):
            raise ValueError(f"layers={tuple(layers)}: the model has layers 0..{depth}")
    if len(found[0]) != len(found[1]):
        raise ValueError(f"models of {depths[0]} and {depths[1]} layers: name as many with layers=")
    return found


def compare(
    models: Sequence[TextModel],
    texts: LanguageTexts,
    is_translated: bool,
    config: ml_collections.ConfigDict,
) -> Mapping[str, float]:
    """What can be measured of two models with the texts there are; of one language (not
    `is_translated`) there is nothing to translate.

    Returns:
      `cka_L` for each layer L and `cka`, their mean, on the parallel sentences of `learned`, or of
      `tested` where there are none; `sentences_L` and `unmapped_L`, retrieval of the tested
      sentences with a map and without; `words_p1`, `static_p1` and `context_L_p1`, word
      translation; `pearson`, the correlation over layers of CKA and `sentences_L`, where both vary.
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
