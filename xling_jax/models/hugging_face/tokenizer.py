"""A stored model's pieces as a tokenizer for `transformers`.

The package `tokenizers` has no Moses and no segmenter of Chinese. So the tokenizer takes text that
`StoredModel.write` has normalised; its ids are then those of `StoredModel.encode`, between the
special ids. There are three exceptions. The name of a special token in a text becomes that token,
while SentencePiece takes it for text. If a unigram model finds two ways to cut a word equally
likely, such as `aa aaa` and `aaa aa`, `tokenizers` and SentencePiece may choose differently. And
SentencePiece puts a blank before a text that begins with `▁` (U+2581), and drops any `▁` at a
text's end; `tokenizers` does neither.

How text is normalised stands in `tokenizer_config.json`, and `HuggingFaceModel` normalises it so,
by the rules of the language that it is read for.
"""

import dataclasses
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xling_jax.files import write_beside
from xling_jax.models.hugging_face.text import (
    NORMALIZATION,
    SETTINGS,
    TOKENIZER,
    HuggingFaceModel,
)
from xling_jax.models.stored import StoredModel
from xling_jax.vocabulary.pieces import BLANK, SPECIALS, UNK, Pieces


def require(model: StoredModel) -> None:
    """ValueError if no tokenizer can be written for a model."""
    if model.inverted:
        raise ValueError(
            "the model reads its pieces in reversed order, which no tokenizer does; "
            "models.hugging_face.model.save writes its weights alone"
        )
    special = model.ids[:SPECIALS].tolist()
    if not set(model.special_ids) <= set(special):
        raise ValueError(
            f"the model's special ids {list(model.special_ids)} are none of its special tokens "
            f"{special}; a tokenizer would find its names in text"
        )
    if importlib.util.find_spec("tokenizers") is None:
        raise ValueError(f"to write {TOKENIZER}, pip install tokenizers")


def save(folder: Path, model: StoredModel, has_types: bool = False) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json`; ValueError: see `require`. `has_types`
    gives the second of two sentences token type 1; an XLM would take token types for pieces."""
    require(model)
    names = row_names(model)
    pad, unknown, *_, mask = (names[number] for number in model.ids[:SPECIALS])
    others = {"pad_token": pad, "unk_token": unknown, "mask_token": mask}
    write(folder, _tokenizer(model, names), model, others, has_types)


def write(
    folder: Path,
    tokenizer: Any,
    model: StoredModel | HuggingFaceModel,
    others: Mapping[str, str],
    has_types: bool,
) -> None:
    """Writes a tokenizer that puts a model's special ids around sentences and pairs of them.
    `others` are the names of further special tokens; for `has_types` see `save`."""
    from tokenizers import processors

    first, last = (tokenizer.id_to_token(number) for number in model.special_ids)
    second = int(has_types)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:{second} {last}:{second}",
        special_tokens=list(zip((first, last), model.special_ids, strict=True)),
    )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **others,
        "cls_token": first,
        "sep_token": last,
        "model_max_length": model.config.positions,
        "model_input_names": ["input_ids", *["token_type_ids"] * has_types, "attention_mask"],
        "clean_up_tokenization_spaces": False,
    }
    if model.normalization is not None:
        settings[NORMALIZATION] = dataclasses.asdict(model.normalization)
    write_beside(folder / TOKENIZER, tokenizer.to_str(pretty=True) + "\n")
    write_beside(folder / SETTINGS, json.dumps(settings, indent=2) + "\n")


def row_names(model: StoredModel) -> list[str]:
    """The name of each row of the token embeddings. Rows of other languages have a name with a
    blank, which no text can match."""
    names = [f"row {number}" for number in range(model.config.vocabulary_size)]
    for name, number in zip(model.pieces.names, model.ids.tolist(), strict=True):
        names[number] = name
    return names


def merges(pieces: Pieces) -> list[tuple[str, str]]:
    """The pairs of pieces that are merged, in the order in which SentencePiece merges them.

    It merges any two pieces that make a third: first those that make the piece with the highest
    score, and among equal ones the leftmost.
    """
    own = pieces.names[SPECIALS:]
    known, found = set(own), []
    for name in own:
        cuts = range(1, len(name))
        pairs = [(name[:cut], name[cut:]) for cut in cuts]
        # "ab|a" comes before "a|ba", because in "ab a ba", where both are possible, it is on the
        # left: the part after its cut is also the beginning of the piece.
        pairs.sort(key=lambda pair: not (pair[0] + pair[1]).startswith(pair[1]))
        found += [pair for pair in pairs if known.issuperset(pair)]
    return found


def _tokenizer(model: StoredModel, names: list[str]) -> Any:
    import tokenizers  # imported late: few runs need it
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    pieces = model.pieces
    if pieces.is_bpe:
        algorithm: Any = models.BPE(
            vocab={name: number for number, name in enumerate(names)},
            merges=merges(pieces),
            unk_token=names[model.ids[UNK]],
            fuse_unk=True,
        )
    else:
        scores = [min(pieces.scores)] * len(names)
        for score, number in zip(pieces.scores, model.ids.tolist(), strict=True):
            scores[number] = score
        vocabulary = list(zip(names, scores, strict=True))
        algorithm = models.Unigram(vocabulary, unk_id=int(model.ids[UNK]), byte_fallback=False)
    tokenizer = tokenizers.Tokenizer(algorithm)
    # SentencePiece makes several blanks one, and drops those at both ends.
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(tokenizers.Regex(x), y) for x, y in (("^ +| +$", ""), (" {2,}", " "))]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(BLANK, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(BLANK, prepend_scheme="always")
    first, last = (names[number] for number in model.special_ids)
    special = [names[number] for number in model.ids[:SPECIALS]]
    tokenizer.add_special_tokens(
        [
            tokenizers.AddedToken(name, normalized=False)
            for name in dict.fromkeys([*special, first, last])
        ]
    )
    return tokenizer
