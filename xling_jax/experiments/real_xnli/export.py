"""Each language's model of a replica whose languages share one table of pieces."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from xling_jax.batches.assembly import SPECIALS
from xling_jax.corpora.normalize import Normalization
from xling_jax.models import stored
from xling_jax.models.bert import BertConfig
from xling_jax.runs.store import models_of
from xling_jax.training.loop import Replica
from xling_jax.vocabulary.pieces import CLS, SEP
from xling_jax.vocabulary.sharing import ShiftedVocabulary

TABLES = "positions", "token_types"  # of which a language has a part of its own with lang-pos


def export(
    workdir: Path,
    replica: Replica,
    model: BertConfig,
    params: Mapping[str, Any],
    vocabulary: ShiftedVocabulary,
    normalization: Normalization,
) -> None:
    """Writes the models of a replica, from plain parameters, below `models/` of a workdir.

    All have the whole table of pieces, so that what is learned of one language's tokens and of the
    special tokens is learned for all that use them (D&S §5). A row with lang-pos has other
    positions and a token type of its own in each: a language's part of the tables stands where the
    others have theirs. With shift-special the ids around a sentence are the language's own.
    """
    setting = replica.setting
    shift, length = int(setting.special_shift), int(setting.position_offset)
    folder = models_of(workdir, replica.row, replica.seed)
    params = jax.device_get(params)
    for number, name in enumerate(vocabulary.languages):
        tables = {key: params["embeddings"][key] for key in TABLES}
        if length:
            tables["positions"] = tables["positions"][number * length : (number + 1) * length]
            tables["token_types"] = tables["token_types"][number : number + 1]
        ids = np.arange(vocabulary.shift)
        ids = np.where(ids < SPECIALS, ids + number * shift, ids + number * vocabulary.shift)
        places, types = (len(tables[key]) for key in TABLES)
        stored.save(
            folder / name,
            stored.StoredModel(
                config=dataclasses.replace(model, positions=places, token_types=types),
                params={**params, "embeddings": {**params["embeddings"], **tables}},
                language=name,
                pieces=vocabulary.pieces[number],
                ids=ids.astype(np.int32),
                normalization=normalization,
                special_ids=(CLS + number * shift, SEP + number * shift),
                inverted=bool(np.asarray(setting.inverted)[number]),
                own=frozenset(f"embeddings/{key}" for key in TABLES if length),
            ),
            like=folder / vocabulary.languages[0] if number and not length else None,
        )
