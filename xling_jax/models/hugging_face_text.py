"""A model of `transformers` with its tokenizer, as a reader of text.

Beside `config.json` and `model.safetensors` the folder holds `tokenizer.json`, which the package
`tokenizers` reads.
"""

import dataclasses
import functools
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax.corpora.normalize import Normalizer
from xling_jax.models import hugging_face
from xling_jax.models.bert import BertConfig
from xling_jax.models.text_model import BLANK, NO_WORD, Encoded

TOKENIZER = "tokenizer.json"
CONTINUED = "##"  # with which WordPiece marks what does not begin a word
END = "</w>"  # with which byte pairs mark the end of a word (Sennrich et al. 2016)
BYTES_BLANK = "Ġ"  # a blank in vocabularies of bytes


def require(folder: Path) -> Path:
    """The tokenizer's file.

    Raises:
      FileNotFoundError: there is none.
      ValueError: `tokenizers`, which reads it, is not installed.
    """
    path = folder / TOKENIZER
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file; AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER) of "
            "transformers writes it (and for an XLM vocab.json and merges.txt instead)"
        )
    if importlib.util.find_spec("tokenizers") is None:
        raise ValueError(f"{path}: to read it, pip install tokenizers")
    return path


def require_room(path: Path, pieces: int, config: BertConfig) -> None:
    """ValueError if the tokenizer in a file has more pieces than the model."""
    if pieces > config.vocabulary_size:
        raise ValueError(
            f"{path} has {pieces} pieces, and the model {config.vocabulary_size}: they do not "
            "belong together"
        )


@dataclasses.dataclass(frozen=True)
class HuggingFaceModel:
    """A model and its tokenizer; `language` says how words are told apart in text."""

    config: BertConfig
    params: Mapping[str, Any]
    language: str
    tokenizer: Any

    inverted = False

    @classmethod
    def load(cls, folder: Path, language: str) -> "HuggingFaceModel":
        """Reads a folder that `transformers` wrote, see `hugging_face.load`.

        Of a model with language embeddings only the language's own is kept.

        Raises:
          FileNotFoundError: a file is missing.
          ValueError: one cannot be read, the model has language embeddings and none of this
            language, or `tokenizers` is not installed.
        """
        path = require(folder)
        import tokenizers  # imported late: few runs need it

        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises nothing more precise
            raise ValueError(f"{path} cannot be read: {error}") from error
        if any(name.startswith(BYTES_BLANK) for name in tokenizer.get_vocab()):
            raise ValueError(
                f"{path} cuts text into bytes, as GPT-2's and RoBERTa's does, which does not tell "
                "words apart: choose a BERT or an XLM-R"
            )
        tokenizer.no_padding()
        tokenizer.no_truncation()
        config, params = hugging_face.load(folder, language)
        require_room(path, tokenizer.get_vocab_size(), config)
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
        names, special = self.tokenizer.get_vocab(), self._special
        if words is None:
            if any(name.startswith(BLANK) for name in names):
                words = [name.removeprefix(BLANK) for name in names if name.startswith(BLANK)]
            elif any(name.endswith(END) for name in names):
                words = [name.removesuffix(END) for name in names if name.endswith(END)]
            else:
                words = [name for name in names if not name.startswith(CONTINUED)]
        given = [word for word in words if word]
        return {
            word: int(ids[0])
            for word, (ids, _) in zip(given, self.encode_words(given), strict=True)
            if len(ids) == 1 and int(ids[0]) not in special
        }

    @functools.cached_property
    def _special(self) -> set[int]:
        """The ids that stand for no text: special tokens, and what the vocabulary cannot write."""
        added = {n for n, x in self.tokenizer.get_added_tokens_decoder().items() if x.special}
        unknown = getattr(self.tokenizer.model, "unk_token", None)
        if unknown is None:  # Unigram has a number instead of a name
            fields = json.loads(self.tokenizer.to_str())["model"]
            return added | {fields.get("unk_id")} - {None}
        return added | {self.tokenizer.token_to_id(unknown)}
