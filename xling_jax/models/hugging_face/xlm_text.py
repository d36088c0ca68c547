"""An XLM of `transformers` with its tokenizer, as a reader of text.

An XLM has no `tokenizer.json`. Beside `config.json` and `model.safetensors` the folder holds
`vocab.json`, `merges.txt` and `tokenizer_config.json`, as XLMTokenizer saves them.
"""

import dataclasses
import functools
import itertools
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from xling_jax.corpora import normalize, text
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.files import read_json, require_regular, write_beside
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.models.hugging_face.text import END, RESTORE, SETTINGS, TOKENIZER
from xling_jax.models.text_model import Encoded, TextModel, require_rows
from xling_jax.records import Count, typed

VOCABULARY, MERGES = "vocab.json", "merges.txt"
FIRST, LAST, UNKNOWN, MASK, PAD = "<s>", "</s>", "<unk>", "<special1>", "<pad>"
REMEMBERED = 1 << 18  # words whose ids are cached, in some 100 MB

Ranks = Mapping[tuple[str, str], int]


@dataclasses.dataclass(frozen=True)
class _Settings:
    do_lowercase_and_remove_accent: bool = True  # False for XLM-17 and XLM-100


_IDS, _SETTINGS = TypeAdapter(dict[str, Count]), TypeAdapter(_Settings)


def is_in(folder: Path) -> bool:
    """Whether a folder has an XLM's tokenizer, and none that the package `tokenizers` reads."""
    return (folder / VOCABULARY).exists() and not (folder / TOKENIZER).exists()


def files(folder: Path) -> list[Path]:
    """The tokenizer's files; FileNotFoundError if one is missing, ValueError if one is not a
    regular file."""
    if not (folder / MERGES).exists():
        raise FileNotFoundError(
            f"{folder / MERGES}: no such file; AutoTokenizer.from_pretrained(NAME).save_pretrained("
            "FOLDER) of transformers writes it"
        )
    settings = folder / SETTINGS
    found = [folder / VOCABULARY, folder / MERGES, *([settings] if settings.exists() else [])]
    for path in found:
        require_regular(path)
    return found


def read_merges(path: Path) -> Ranks:
    """The learned pairs of a file, each with its rank, the number of its line; see `split`.

    A line has a pair, and maybe how often it was seen; the first line may name a version. As in
    XLMTokenizer, whitespace of any kind ends a piece, and a pair with a piece that is whitespace is
    skipped. ValueError, naming the line, if it has no pair, or one that an earlier line has.
    """
    try:
        *lines, rest = path.read_text("utf-8").split("\n")  # other than splitlines at U+2028
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start + 1}): {RESTORE}") from None
    if rest:
        raise ValueError(f"{path}, line {len(lines) + 1}: the last line has no end: {RESTORE}")
    ranks: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines):
        pair, written = line.split()[:2], [part for part in line.split(" ") if part][:2]
        if len(pair) < 2:
            if len(written) == 2:
                continue
            raise ValueError(f"{path}, line {number + 1}: {line!r} is no pair of pieces: {RESTORE}")
        if (pair[0], pair[1]) in ranks and pair == written:
            raise ValueError(f"{path}, line {number + 1}: {line!r} is there twice: {RESTORE}")
        ranks[pair[0], pair[1]] = number
    return ranks


def split(word: str, ranks: Ranks) -> list[str]:
    """The pieces of a word, which must not be empty, by byte-pair encoding (Sennrich et al. 2016,
    §3.2): as long as a pair is known, the one learned first is joined wherever it occurs. The last
    piece ends with `END`."""
    pieces = [*word[:-1], word[-1] + END]
    while len(pieces) > 1:
        best = min(itertools.pairwise(pieces), key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        joined: list[str] = []
        place = 0
        while place < len(pieces):
            is_pair = tuple(pieces[place : place + 2]) == best
            joined.append("".join(best) if is_pair else pieces[place])
            place += 2 if is_pair else 1
        pieces = joined
    return pieces


@dataclasses.dataclass(frozen=True)
class XlmModel(TextModel):
    """An XLM and its tokenizer; its language decides how Moses tokenizes text, and which language
    embedding is used if there are any.

    Attributes:
      vocabulary: the id of each piece.
      ranks: see `read_merges`.
      is_plain: whether text is put in lower case and loses its accents.
    """

    vocabulary: Mapping[str, int]
    ranks: Ranks
    is_plain: bool

    @classmethod
    def load(cls, folder: Path, language: str) -> "XlmModel":
        """Reads a folder that `transformers` wrote, see `hugging_face.load`; ValueError also if the
        tokenizer is not an XLM's. Of language embeddings only the language's own is kept."""
        vocabulary_path, merges_path, *settings = files(folder)
        vocabulary = typed(_IDS, read_json(vocabulary_path), str(vocabulary_path), RESTORE)
        ranks = read_merges(merges_path)
        read = [typed(_SETTINGS, read_json(path), str(path), RESTORE) for path in settings]
        is_plain = all(each.do_lowercase_and_remove_accent for each in read)
        missing = [name for name in (FIRST, LAST, UNKNOWN) if name not in vocabulary]
        if missing or not any(name.endswith(END) for name in vocabulary):
            raise ValueError(
                f"{vocabulary_path} is not an XLM's: it needs the pieces {FIRST}, {LAST} and "
                f"{UNKNOWN}, and others that end with {END}. Other models need {TOKENIZER}"
            )
        config, params = hugging_face.load(folder, language)
        require_rows(vocabulary_path, vocabulary, config.vocabulary_size)
        special_ids = vocabulary[FIRST], vocabulary[LAST]
        return cls(
            config, params, language, vocabulary, ranks, is_plain,
            special_ids=special_ids, mask_id=vocabulary.get(MASK),
        )  # fmt: skip

    @functools.cached_property
    def write(self) -> Callable[[str], str]:
        """Tokenizes a sentence by Moses, like the text that XLM was trained on. Chinese is
        segmented instead, and only its punctuation is normalised."""
        if normalize.rules_for(self.language) != normalize.CHINESE:
            return Normalizer(self.language, exact=True)
        punctuation = Normalizer(self.language, Normalization(tokenize="none"), exact=True)
        return lambda sentence: punctuation(
            " ".join(normalize.segment_chinese(text.clean(sentence)))
        )

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Text is first cleaned (`text.clean`), so that blanks of all kinds are alike. XLM's own
        steps for Romanian, Japanese and Thai are left out."""
        return [ids for ids, _ in self.encode_words(list(map(self.write, sentences)))]

    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        found = []
        for sentence in written:
            of_words = [self._ids(word) for word in sentence.split()]
            lengths = [len(ids) for ids in of_words]
            found.append(
                (
                    np.array(list(itertools.chain.from_iterable(of_words)), np.int32),
                    np.repeat(np.arange(len(of_words), dtype=np.int32), lengths),
                )
            )
        return found

    @functools.cached_property
    def _ids(self) -> Callable[[str], tuple[int, ...]]:
        """Gives the ids of a word's pieces; there may be none for a word of nothing but accents."""
        # The cache must not refer to `self`: the cycle would keep the parameters in memory after
        # the model is gone.
        vocabulary, ranks, is_plain = self.vocabulary, self.ranks, self.is_plain
        unknown = vocabulary[UNKNOWN]

        @functools.lru_cache(REMEMBERED)
        def ids(word: str) -> tuple[int, ...]:
            written = _without_accents(word) if is_plain else word
            pieces = split(written, ranks) if written else []
            return tuple(vocabulary.get(piece, unknown) for piece in pieces)

        return ids

    def words(self) -> list[str]:
        return [name.removesuffix(END) for name in self.vocabulary if name.endswith(END)]

    @property
    def textless(self) -> set[int]:
        return {self.vocabulary[UNKNOWN]}


def save(folder: Path, model: XlmModel) -> None:
    """Writes the files of the tokenizer, for an encoder that is written as a BERT and so has no
    language embeddings."""
    merges = sorted(model.ranks, key=model.ranks.__getitem__)
    settings = {
        "tokenizer_class": "XLMTokenizer",
        "do_lowercase_and_remove_accent": model.is_plain,
        "model_max_length": model.config.positions,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    write_beside(folder / VOCABULARY, json.dumps(dict(model.vocabulary)) + "\n")
    write_beside(folder / MERGES, "".join(f"{first} {second}\n" for first, second in merges))
    write_beside(folder / SETTINGS, json.dumps(settings, indent=2) + "\n")


def _without_accents(word: str) -> str:
    """A word in lower case and without marks of Unicode category Mn."""
    apart = unicodedata.normalize("NFD", word.lower())
    return "".join(x for x in apart if unicodedata.category(x) != "Mn").lower()
