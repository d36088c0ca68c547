"""A fine-tuned encoder with its head as a folder that `transformers` reads.

Wherever it comes from, the encoder is written as a BERT. Words are classified by
BertForTokenClassification, pairs of sentences by BertForSequenceClassification. The latter has a
dense layer and tanh below the classifier, which our model lacks: the dense layer is written with
weights so small that tanh changes nothing but the rounding, and the classifier's are scaled up to
compensate. `transformers` has no parser: the encoder is written as BertModel, and the head in a
file of its own, under our names.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from flax import traverse_util

from xling_jax.batches.labelled import CLASSIFIER
from xling_jax.files import write_beside
from xling_jax.models.hugging_face import config as hf
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.models.hugging_face import text, tokenizer, xlm_text
from xling_jax.models.hugging_face.text import HuggingFaceModel
from xling_jax.models.hugging_face.xlm_text import XlmModel
from xling_jax.models.stored import StoredModel
from xling_jax.models.task_heads import HeadConfig
from xling_jax.models.text_model import TextModel
from xling_jax.vocabulary.pieces import PAD

PARSER = "parser.safetensors"
POOLER = "bert.pooler.dense"
SHRUNK = 2.0**-12  # tanh(x / 4096) is x / 4096 to a millionth for any usual x of a layer norm


def save(
    folder: Path,
    model: TextModel,
    encoder: Mapping[str, Any],
    config: HeadConfig,
    head: Mapping[str, Any],
    labels: Sequence[str],
    of_words: bool,
    like: Path | None = None,
) -> None:
    """Writes the weights, the config and, if one can be written, the tokenizer.

    Args:
      model: the model that was fine-tuned, with its present size, and how it reads text.
      encoder, head: plain parameters.
      labels: of the classes or relations, in their order.
      of_words: whether words have labels, not pairs of sentences.
      like: the folder of a model with the same weights, which shares its file of them.
    """
    flat = traverse_util.flatten_dict(dict(encoder))
    leaves = {path: np.asarray(leaf, np.float32) for path, leaf in flat.items()}
    tensors = hugging_face.tensors_of(hf.BERT, leaves)
    size = len(leaves["embeddings", "tokens"])
    fields = hf.fields(dataclasses.replace(model.config, head="bert", vocabulary_size=size))
    kind = "BertModel"
    if config.kind == CLASSIFIER:
        kind = "BertForTokenClassification" if of_words else "BertForSequenceClassification"
        scale, width = 1.0 if of_words else SHRUNK, model.config.hidden
        if not of_words:
            tensors[f"{POOLER}.weight"] = scale * np.eye(width, dtype=np.float32)
            tensors[f"{POOLER}.bias"] = np.zeros(width, np.float32)
        tensors["classifier.weight"] = np.asarray(head["output"]["kernel"]).T / scale
        tensors["classifier.bias"] = np.asarray(head["output"]["bias"])
    else:
        named = traverse_util.flatten_dict(dict(head), sep="/")
        own = {name: np.ascontiguousarray(leaf, np.float32) for name, leaf in named.items()}
        write_beside(folder / PARSER, safetensors.numpy.save(own))
    fields |= {
        "architectures": [kind],
        "classifier_dropout": config.dropout,
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    pad = _save_tokenizer(folder, model, of_words)
    hugging_face.write(folder, tensors, fields | {"pad_token_id": pad}, like)


def why_without_tokenizer(model: TextModel) -> str:
    """Why no tokenizer can be written for a model; "" if one can."""
    try:
        if isinstance(model, StoredModel):
            tokenizer.require(model)
    except ValueError as error:
        return str(error)
    return ""


def _put_blanks_before(given: Any) -> None:
    """Makes a tokenizer of bytes read each word, or text, as if a blank stood before it, whichever
    of its parts makes the bytes."""
    from tokenizers import Regex, normalizers

    blank = normalizers.Prepend(" "), normalizers.Replace(Regex("^  "), " ")  # one, not two
    others = [given.normalizer] if given.normalizer else []
    given.normalizer = normalizers.Sequence([*blank, *others])


def _save_tokenizer(folder: Path, model: TextModel, of_words: bool) -> int:
    """Writes the tokenizer of a model, if one can be written; returns the id of the padding.
    `of_words` says whether the tokenizer will be given single words."""
    has_types = model.config.token_types > 1
    if isinstance(model, StoredModel):
        if not why_without_tokenizer(model):
            tokenizer.save(folder, model, has_types)
        return int(model.ids[PAD])
    if isinstance(model, HuggingFaceModel):
        same = type(model.tokenizer).from_str(model.tokenizer.to_str())
        if model.has_blanks and of_words:
            _put_blanks_before(same)
        pads = [n for n in map(same.token_to_id, text.PADS) if n is not None]
        pad = pads[0] if pads else None
        given = {"pad_token": pad, "unk_token": model.unknown, "mask_token": model.mask_id}
        others = {name: same.id_to_token(n) for name, n in given.items() if n is not None}
        tokenizer.write(folder, same, model, others, has_types)
        return pad or 0
    assert isinstance(model, XlmModel)
    xlm_text.save(folder, model)
    return model.vocabulary.get(xlm_text.PAD, 0)
