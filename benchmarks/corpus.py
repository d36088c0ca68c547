"""The text that all contestants train on, as ids in a file that needs no library but NumPy."""

import argparse
from pathlib import Path

import numpy as np

from xling_jax.batches.store import TokenStore
from xling_jax.corpora import text as corpora
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.language import generate
from xling_jax.corpora.splitting import Splitter
from xling_jax.vocabulary import pieces
from xling_jax.vocabulary.sharing import ShiftedVocabulary

SENTENCES = 17_178  # of the corpus of D&S §2.1
MAX_LENGTH = 128
LANGUAGES = ("en", "fake")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that say what to train on."""
    parser.add_argument(
        "--text",
        help="a UTF-8 file, cut into clauses (default: the embedded language)",
    )
    parser.add_argument(
        "--train-sentences", type=int, default=SENTENCES, help="of the embedded language"
    )
    parser.add_argument("--vocabulary", type=int, default=2048, help="pieces of a language")


def write(arguments: argparse.Namespace, path: Path) -> str:
    """Writes the ids of the text in English and Fake-English (D&S §2.1); returns a description.

    The .npz file holds the arrays of a `TokenStore`, `shift` (the ids of a language) and
    `specials` (how many of them are special tokens).
    """
    if arguments.text:
        text = corpora.read(
            arguments.text, LANGUAGES[0], split=Splitter(LANGUAGES[0], clauses=True)
        )
    else:
        language = LanguageConfig(word_types=2000, seed=0)
        sentences = generate(language, arguments.train_sentences, 1)
        text = corpora.from_sentences(sentences, LANGUAGES[0], "the embedded language")
    model = pieces.train(text.sentences, arguments.vocabulary)
    vocabulary = ShiftedVocabulary(LANGUAGES, (model,) * len(LANGUAGES), is_fake=True)
    ids = model.encode(text.sentences)
    store = TokenStore.from_languages(
        [vocabulary.shifted(ids, k, first=0) for k in range(len(LANGUAGES))],
        MAX_LENGTH,
    )
    np.savez(
        path,
        tokens=store.tokens,
        offsets=store.offsets,
        languages=store.languages,
        shift=vocabulary.shift,
        specials=len(pieces.SPECIAL_TOKENS),
    )
    return (
        f"{text.source}: {len(text.sentences):,} sentences in each of two languages, "
        f"{store.lengths.mean():.1f} tokens each, {vocabulary.size} pieces"
    )
