"""Each language's model of a trained row, in a folder of its own."""

import dataclasses
from pathlib import Path

from xling_jax.corpora.normalize import Normalization
from xling_jax.experiments.bilingual.rows import Row
from xling_jax.files import plain_name
from xling_jax.models import partition, stored
from xling_jax.models.bert import BertConfig
from xling_jax.vocabulary.sharing import LanguageVocabulary

MODELS = "models"  # the folder of a workdir that has them


def folder_of(workdir: Path, row: str, seed: int) -> Path:
    """That of a row and seed, with a folder of each language's model in it."""
    return workdir / MODELS / f"row{plain_name(row)}_seed{seed}"


def export(
    folder: Path,
    row: Row,
    model: BertConfig,
    params,
    vocabulary: LanguageVocabulary,
    normalization: Normalization,
) -> None:
    """Writes each language's model below a folder, named by the language.

    Args:
      folder: see `folder_of`.
      row: that was trained.
      model: its size.
      params: partitioned.
      vocabulary: of the languages.
      normalization: how their text is written.
    """
    for number, name in enumerate(vocabulary.languages):
        own = partition.languages(params) and vocabulary.way == "separate"
        rows = vocabulary.sizes[number] if own else vocabulary.size
        stored.save(
            folder / name,
            stored.StoredModel(
                config=dataclasses.replace(model, vocabulary_size=rows),
                params=partition.export(params, number, rows),
                language=row.text_of(name),
                pieces=vocabulary.pieces[number],
                ids=vocabulary.ids[number],
                normalization=normalization,
                own=partition.paths(params),
            ),
        )
