"""A model of `transformers` with its tokenizer, as a reader of text.

Beside `config.json` and `model.safetensors` the folder holds `tokenizer.json`, which the package
`tokenizers` reads.
"""

import dataclasses
import functools
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax.corpora.normalize import Normalizer
from xling_jax.models import hugging_face
from xling_jax.models.bert import BertConfig
from xling_jax.models.text_model import NO_WORD, Encoded

TOKENIZER = "tokenizer.json"
BLANK, CONTINUED = "▁", "##"  # how SentencePiece marks a word's begin, and WordPiece its rest


@dataclasses.dataclass(frozen=True)
class HuggingFaceModel:
    """A model and its tokenizer; `language` says how words are told apart in text."""

    config: BertConfig
    params: Mapping[str, Any]
    language: str
    tokenizer: Any

    @classmethod
    def load(cls, folder: Path, language: str) -> "HuggingFaceModel":
        """Reads a folder that `transformers` wrote, see `hugging_face.load`.

        Raises:
          FileNotFoundError: a file is missing.
          ValueError: one cannot be read, or `tokenizers` is not installed.
        """
        if importlib.util.find_spec("tokenizers") is None:
            raise ValueError(
                f"{folder} is a model of transformers, whose text needs: pip install tokenizers"
            )
        import tokenizers  # imported late: few runs need it

        path = folder / TOKENIZER
        if not path.exists():
            raise FileNotFoundError(
                f"{path}: no such file; AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)"
                " of transformers writes it"
            )
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises nothing more precise
            raise ValueError(f"{path} cannot be read: {error}") from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        config, params = hugging_face.load(folder)
        if tokenizer.get_vocab_size() > config.vocabulary_size:
            raise ValueError(
                f"{path} has {tokenizer.get_vocab_size()} pieces, and the model "
                f"{config.vocabulary_size}: they do not belong together"
            )
        return cls(config, params, language, tokenizer)

    @functools.cached_property
    def frame(self) -> tuple[int, int]:
        """The ids that the tokenizer puts before and behind a sentence."""
        ids = self.tokenizer.encode("").ids
        if len(ids) != 2:
            raise ValueError(
                f"the tokenizer puts {len(ids)} special tokens around a sentence, not one before "
                "and one behind it"
            )
        return ids[0], ids[1]

    @functools.cached_property
    def write(self) -> Normalizer:
        """Puts blanks between words, as Moses or a segmenter does."""
        return Normalizer(self.language)

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """See `TextModel`; the text stays as it is."""
        found = self.tokenizer.encode_batch(list(sentences), add_special_tokens=False)
        return [np.array(each.ids, np.int32) for each in found]

    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        """See `TextModel`."""
        found = self.tokenizer.encode_batch(
            [sentence.split() for sentence in written],
            is_pretokenized=True,
            add_special_tokens=False,
        )
        return [
            (
                np.array(each.ids, np.int32),
                np.array([NO_WORD if n is None else n for n in each.word_ids], np.int32),
            )
            for each in found
        ]

    def single_pieces(self, words: Iterable[str] | None = None) -> dict[str, int]:
        """See `TextModel`."""
        if words is None:
            names = self.tokenizer.get_vocab()
            if any(name.startswith(BLANK) for name in names):
                words = [name.removeprefix(BLANK) for name in names if name.startswith(BLANK)]
            else:
                words = [name for name in names if not name.startswith(CONTINUED)]
        given = [word for word in words if word]
        encoded = self.encode_words(given)
        return {w: int(ids[0]) for w, (ids, _) in zip(given, encoded, strict=True) if len(ids) == 1}
