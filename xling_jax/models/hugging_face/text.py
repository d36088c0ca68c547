"""A model of `transformers` with its tokenizer, as a reader of text.

Beside `config.json` and `model.safetensors` the folder holds `tokenizer.json`, which the package
`tokenizers` reads. A `tokenizer_config.json` must not contradict it. For a model of ours it also
says, in a field that `transformers` ignores, how text is normalised.
"""

import dataclasses
import functools
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.files import read_json, require_regular
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.models.text_model import NO_WORD, Encoded, TextModel, require_rows
from xling_jax.records import Count, typed
from xling_jax.vocabulary.pieces import BLANK

TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"
NORMALIZATION = "xling_jax_normalization"  # the field of `SETTINGS` for a model of ours
BYTE = "Ġ"  # a blank in pieces of bytes (Radford et al. 2019)
END = "</w>"  # marks the end of a word in byte-pair encoding (Sennrich et al. 2016)
MASKS = "[MASK]", "<mask>"
PADS = "[PAD]", "<pad>"
RESTORE = "restore the file, or save the tokenizer again"


def files(folder: Path) -> list[Path]:
    """The files that say how text is read; for errors see `require`. ValueError also if
    `tokenizer_config.json` is damaged."""
    path = require(folder)
    return [path] if _normalization(path) is None else [path, folder / SETTINGS]


def require(folder: Path) -> Path:
    """The tokenizer's file; FileNotFoundError if there is none, ValueError if it is not a regular
    file or `tokenizers`, which reads it, is not installed."""
    path = folder / TOKENIZER
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file; AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER) of "
            "transformers writes it (and for an XLM vocab.json and merges.txt instead)"
        )
    require_regular(path)
    if importlib.util.find_spec("tokenizers") is None:
        raise ValueError(f"{path}: to read it, pip install tokenizers")
    return path


@dataclasses.dataclass(frozen=True)
class HuggingFaceModel(TextModel):
    """A model and its tokenizer, of the package `tokenizers`.

    Attributes:
      unknown: the id of text that the vocabulary cannot write; None if it has all bytes.
      has_blanks: whether pieces are of bytes, as in RoBERTa, so that the blank before a word is
        part of its pieces. Words are then encoded with a blank, even the first of a sentence.
      normalization: of the text that a model of ours was trained on; None for others.
    """

    tokenizer: Any
    unknown: int | None
    has_blanks: bool = False
    normalization: Normalization | None = None

    @classmethod
    def load(cls, folder: Path, language: str) -> "HuggingFaceModel":
        """Reads a folder that `transformers` wrote, see `hugging_face.load`; ValueError also if the
        tokenizer is not the model's. Of language embeddings only the language's own is kept."""
        path = require(folder)
        tokenizer, unknown, has_blanks = _tokenizer(path)
        special_ids = _special_ids(path, tokenizer)
        config, params = hugging_face.load(folder, language)
        require_rows(path, tokenizer.get_vocab(), config.vocabulary_size)
        masks = (number for name in MASKS if (number := tokenizer.token_to_id(name)) is not None)
        return cls(
            config, params, language, tokenizer, unknown, has_blanks, _normalization(path),
            special_ids=special_ids, mask_id=next(masks, None),
        )  # fmt: skip

    @functools.cached_property
    def write(self) -> Normalizer:
        return Normalizer(self.language, self.normalization)

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Text is encoded as it is, without `write`, unless the model is one of ours."""
        written = sentences if self.normalization is None else map(self.write, sentences)
        found = self.tokenizer.encode_batch(list(written), add_special_tokens=False)
        return [np.array(each.ids, np.int32) for each in found]

    def encode_alone(self, words: Sequence[str]) -> list[np.ndarray]:
        return self.encode([self._blank + word for word in words])

    @property
    def _blank(self) -> str:
        return " " if self.has_blanks else ""

    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        found = self.tokenizer.encode_batch(
            [[self._blank + word for word in sentence.split()] for sentence in written],
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

    def words(self) -> list[str]:
        names = self.tokenizer.get_vocab()
        if self.has_blanks:
            words = (self.tokenizer.decode([n]) for name, n in names.items() if name[:1] == BYTE)
            return [word.strip() for word in words]
        model = self.tokenizer.model
        if end := getattr(model, "end_of_word_suffix", None):
            return [name.removesuffix(end) for name in names if name.endswith(end)]
        if mark := getattr(model, "continuing_subword_prefix", None):
            return [name for name in names if not name.startswith(mark)]
        begun = [name.removeprefix(BLANK) for name in names if name.startswith(BLANK)]
        return begun or list(names)

    @functools.cached_property
    def textless(self) -> set[int]:
        added = {n for n, x in self.tokenizer.get_added_tokens_decoder().items() if x.special}
        return added if self.unknown is None else added | {self.unknown}


@dataclasses.dataclass(frozen=True)
class _Model:
    """How a tokenizer treats text that its vocabulary cannot write."""

    unk_id: Count = -1  # given by a Unigram model instead of a name
    unk_token: str | None = None
    byte_fallback: bool = False


@dataclasses.dataclass(frozen=True)
class _File:
    model: _Model
    normalizer: Any = None
    pre_tokenizer: Any = None


_FILE, _OBJECT = TypeAdapter(_File), TypeAdapter(dict[str, Any])
_NORMALIZATION = TypeAdapter[Normalization | None](Normalization | None)
# Settings that `transformers` takes from `SETTINGS`, where `TOKENIZER` has them too, and the value
# of one that is missing (None: accents are stripped if text is put in lower case). Classes that
# read `TOKENIZER` as it is have no such values.
_SAID_TWICE = {
    "do_lower_case": ("normalizer", "BertNormalizer", "lowercase", True),
    "strip_accents": ("normalizer", "BertNormalizer", "strip_accents", None),
    "tokenize_chinese_chars": ("normalizer", "BertNormalizer", "handle_chinese_chars", True),
    "add_prefix_space": ("pre_tokenizer", "ByteLevel", "add_prefix_space", False),
}
_AS_IT_IS = "PreTrainedTokenizerFast", "TokenizersBackend"


def _settings(path: Path) -> dict[str, Any]:
    """What `tokenizer_config.json` beside a tokenizer's file says."""
    second = path.with_name(SETTINGS)
    return typed(_OBJECT, read_json(second), str(second), RESTORE) if second.exists() else {}


def _normalization(path: Path) -> Normalization | None:
    where = f"{path.with_name(SETTINGS)}: {NORMALIZATION}"
    return typed(_NORMALIZATION, _settings(path).get(NORMALIZATION), where, RESTORE)


def _require_agreement(path: Path, said: _File) -> None:
    """ValueError if `tokenizer_config.json`, or what it leaves to the tokenizer's class,
    contradicts a tokenizer's file."""
    second, given = path.with_name(SETTINGS), _settings(path)
    has_defaults = given.get("tokenizer_class") not in _AS_IT_IS
    for field, (part, kind, name, default) in _SAID_TWICE.items():
        own, value = getattr(said, part), given.get(field)
        if not isinstance(own, dict) or own.get("type") != kind:
            continue
        lowercase, written = own.get("lowercase"), own.get(name)
        stated = f"{field}={value}"
        if value is None and has_defaults:
            value = lowercase if default is None else default
            stated = f"{field} is missing, so it is {value}"
        if written is None:
            written = lowercase
        if value not in (None, written):
            raise ValueError(
                f"{second}: {stated}, but {path.name} has {part}.{name}={written}: set {field} as "
                "the model needs it, then save the tokenizer again, by AutoTokenizer"
                ".from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers"
            )


def _tokenizer(path: Path) -> tuple[Any, int | None, bool]:
    """The tokenizer in a file, its id of text that its vocabulary cannot write, if any, and whether
    its pieces are of bytes."""
    import tokenizers  # imported late: few runs need it

    said = typed(_FILE, read_json(path), str(path), RESTORE)
    _require_agreement(path, said)
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode("")  # damage of special tokens does not show before
    except BaseException as error:
        # What the package raises: nothing more precise, and where its Rust code panics, what is not
        # even an `Exception`.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ValueError(f"{path} cannot be read: {error}; {RESTORE}") from error
        raise
    model, vocabulary = said.model, tokenizer.get_vocab()
    if '"type": "ByteLevel"' in json.dumps([said.normalizer, said.pre_tokenizer]):
        return tokenizer, vocabulary.get(model.unk_token or ""), True
    if model.unk_id >= 0:
        return tokenizer, model.unk_id, False
    has_bytes = all(f"<0x{byte:02X}>" in vocabulary for byte in range(256))
    if model.unk_token is None and has_bytes and model.byte_fallback:
        return tokenizer, None, False
    if model.unk_token not in vocabulary:
        raise ValueError(
            f"{path}: model.unk_token={model.unk_token!r}: the vocabulary has no such piece; "
            f"{RESTORE}"
        )
    return tokenizer, vocabulary[model.unk_token], False


def _special_ids(path: Path, tokenizer: Any) -> tuple[int, int]:
    """The ids that a tokenizer puts before and after a sentence."""
    surrounded = tokenizer.encode("")
    if len(surrounded.ids) != 2:
        raise ValueError(
            f"{path} puts {len(surrounded.ids)} special tokens around a sentence, not one before "
            "and one behind it: take the tokenizer of a BERT or an XLM-R"
        )
    for name, number in zip(surrounded.tokens, surrounded.ids, strict=True):
        if tokenizer.token_to_id(name) != number:
            raise ValueError(
                f"{path} puts {name!r} of id {number} around a sentence, but its vocabulary gives "
                f"it {tokenizer.token_to_id(name)}: restore the file"
            )
    first, last = surrounded.ids
    return first, last
