"""The words of two models, and the vectors that stand for them."""

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


def counts(model: TextModel, sentences: Iterable[str]) -> collections.Counter[str]:
    """How often each word occurs in text, written as the model writes it."""
    found: collections.Counter[str] = collections.Counter()
    for sentence in sentences:
        found.update(model.write(sentence).split())
    return found


def as_written(dictionary: Dictionary, models: Sequence[TextModel]) -> Dictionary:
    """A dictionary written as the models' text is."""
    return dictionary.map(models[0].write, models[1].write)


def translate(
    words: Sequence[Sequence[str]],
    vectors: Sequence[np.ndarray],
    train: Dictionary | None,
    test: Dictionary,
) -> dict[str, float]:
    """Word translation by vectors of these words, see `dictionary_induction.induce`.

    Raises:
      ValueError: no pair of a dictionary is among the words.
    """
    rows = [{word: n for n, word in enumerate(own)} for own in words]
    learned = Pairs.of(train, *rows) if train else None
    first, second = map(jnp.asarray, vectors)
    return induce(first, second, learned, Pairs.of(test, *rows))


def by_embeddings(
    models: Sequence[TextModel],
    known: Sequence[collections.Counter[str]] | None,
    train: Dictionary | None,
    test: Dictionary,
    vectors: Sequence[str] | None,
) -> dict[str, float]:
    """Translates words that are one piece by the models' embeddings (W&C §5.1.1).

    Args:
      models: of both languages.
      known: the words that occur in each language.
      train, test: dictionaries, written as the models' text.
      vectors: `.vec` files of both languages. With them only words count that have a vector, and
        `static_p1` and so on are what these vectors give for the same words.

    Returns:
      `words_p1`, …, see `dictionary_induction.induce`; `words_first` and `words_second`, how many
      words of each language there are.
    """
    found = [m.single_pieces(known[k] if known else None) for k, m in enumerate(models)]
    given = None
    if vectors is not None:
        read = [
            static_vectors.read(path, {word: n for n, word in enumerate(own)}, STATIC)
            for path, own in zip(vectors, found, strict=True)
        ]
        kept = [[list(own)[n] for n in r.words] for own, r in zip(found, read, strict=True)]
        found = [{w: own[w] for w in words} for own, words in zip(found, kept, strict=True)]
        given = [r.vectors for r in read]
    tables = [np.asarray(m.params["embeddings"]["tokens"]) for m in models]
    rows = [table[list(own.values())] for table, own in zip(tables, found, strict=True)]
    words = [list(own) for own in found]
    metrics = {f"words_{k}": v for k, v in translate(words, rows, train, test).items()}
    metrics |= {"words_first": float(len(words[0])), "words_second": float(len(words[1]))}
    if given is not None:
        metrics |= {f"static_{k}": v for k, v in translate(words, given, train, test).items()}
    return metrics


def in_context(
    encoders: Sequence[TextEncoder],
    contexts: Sequence[Sequence[str]],
    known: Sequence[collections.Counter[str]],
    most: int,
    train: Dictionary | None,
    test: Dictionary,
) -> dict[str, float]:
    """Translates words by the means of their states at each layer (W&C §5.1.1).

    Args:
      encoders: of both languages.
      contexts: the text that words are met in.
      known: the words that occur in each language.
      most: how many of the most frequent ones to take, besides those of the dictionaries.
      train, test: dictionaries, written as the models' text.

    Returns:
      `context_L_p1`, … for each layer L.
    """
    words, states = [], []
    for side, encoder in enumerate(encoders):
        chosen = dict.fromkeys(word for word, _ in known[side].most_common(most))
        for dictionary in filter(None, (train, test)):
            for word, translations in dictionary.entries.items():
                chosen |= dict.fromkeys([word] if side == 0 else [t for t, _ in translations])
        own = [word for word in chosen if word in known[side]]
        vectors, number = encoder.words(contexts[side], own)
        there = number > 0
        words.append([word for word, is_there in zip(own, there, strict=True) if is_there])
        states.append(vectors[:, there])
    metrics: dict[str, float] = {}
    for n, layer in enumerate(encoders[0].layers):
        found = translate(words, [own[n] for own in states], train, test)
        metrics |= {f"context_{layer}_{name}": value for name, value in found.items()}
    return metrics
