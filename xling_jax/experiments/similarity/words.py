"""The words of two models, and the vectors that stand for them.

Words are lower-case throughout, as MUSE's dictionaries are: a capitalised one in text, or a
capitalised piece where there is no other, stands for the lower-case one.
"""

import collections
from collections.abc import Iterable, Sequence

import jax.numpy as jnp
import numpy as np

from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.evaluators.dictionary_induction import Pairs, induce
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.models.text_model import TextModel
from xling_jax.vocabulary import static_vectors

STATIC = 200_000  # vectors of a file that are looked at (W&C §5.1.1)

Counts = collections.Counter[str]


def counts(written: Iterable[str]) -> Counts:
    """How often each word occurs in sentences that a model wrote."""
    return collections.Counter(word for text in written for word in text.lower().split())


def as_written(dictionary: Dictionary, models: Sequence[TextModel]) -> Dictionary:
    """A dictionary written as the models' text is."""
    first, second = models
    return dictionary.map(lambda x: first.write(x).lower(), lambda x: second.write(x).lower())


def translate(
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


def by_embeddings(
    models: Sequence[TextModel],
    known: Sequence[Counts] | None,
    train: Dictionary,
    test: Dictionary,
    vectors: Sequence[str] | None,
) -> dict[str, float]:
    """Translates words that are one piece by the models' embeddings (W&C §5.1.1).

    Args:
      known: the words that occur in each language.
      train, test: dictionaries, written as the models' text.
      vectors: `.vec` files of both languages. With them only words count that have a vector.

    Returns:
      `words_p1`, …, see `dictionary_induction.induce`; `words_first` and `words_second`, how many
      words of each language there are; with vectors `static_p1`, …, what they give for the same
      words.

    Raises:
      ValueError: see `translate`; or a file cannot be read.
    """
    found = [single_pieces(m, known[k] if known else None) for k, m in enumerate(models)]
    words, static = [list(own) for own in found], None
    if vectors is not None:
        read = [
            static_vectors.read(path, {word: n for n, word in enumerate(own)}, STATIC)
            for path, own in zip(vectors, words, strict=True)
        ]
        words = [[own[n] for n in r.words] for own, r in zip(words, read, strict=True)]
        static = [r.vectors for r in read]
    tables = [np.asarray(m.params["embeddings"]["tokens"]) for m in models]
    rows = [
        table[[own[word] for word in some]]
        for table, own, some in zip(tables, found, words, strict=True)
    ]
    metrics = translate("words", words, rows, train, test)
    metrics |= {"words_first": float(len(words[0])), "words_second": float(len(words[1]))}
    if static is not None:
        metrics |= translate("static", words, static, train, test)
    return metrics


def in_context(
    encoders: Sequence[TextEncoder],
    written: Sequence[Sequence[str]],
    known: Sequence[Counts],
    most: int,
    train: Dictionary,
    test: Dictionary,
) -> dict[str, float]:
    """Translates words by the means of their states at each layer (W&C §5.1.1).

    Args:
      written: the text that words are met in, as the models write it.
      known: the words that occur in each language.
      most: how many of the most frequent ones to take, besides those of the dictionaries.
      train, test: dictionaries, written as the models' text.

    Returns:
      `context_L_p1`, … for each layer L.
    """
    words, states = [], []
    for side, encoder in enumerate(encoders):
        chosen = dict.fromkeys(word for word, _ in known[side].most_common(most))
        for dictionary in (train, test):
            for word, translations in dictionary.entries.items():
                chosen |= dict.fromkeys([word] if side == 0 else [t for t, _ in translations])
        own = [word for word in chosen if word in known[side]]
        vectors, number = encoder.words(written[side], own)
        there = number > 0
        words.append([word for word, is_there in zip(own, there, strict=True) if is_there])
        states.append(vectors[:, there])
    metrics: dict[str, float] = {}
    for n, layer in enumerate(encoders[0].layers):
        of_layer = [found[n] for found in states]
        metrics |= translate(f"context_{layer}", words, of_layer, train, test)
    return metrics
