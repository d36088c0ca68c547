"""A model in a folder, ours or one in the format of `transformers`."""

import os
from pathlib import Path
from typing import Any

from xling_jax.files import sha256_once
from xling_jax.models import stored
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.models.hugging_face import text, xlm_text
from xling_jax.models.hugging_face.config import CONFIG
from xling_jax.models.hugging_face.text import HuggingFaceModel
from xling_jax.models.hugging_face.xlm_text import XlmModel
from xling_jax.models.text_model import TextModel


def files(folder: Path) -> list[Path]:
    """The files of a model; FileNotFoundError if the folder holds neither a stored model nor one of
    `transformers` with its tokenizer, ValueError if its weights are a pickle or `tokenizers`, which
    reads the tokenizer, is not installed."""
    if not (folder / CONFIG).exists():
        return stored.files(folder)
    _require_no_run(folder)
    found = [folder / CONFIG, hugging_face.require(folder)]
    if xlm_text.is_in(folder):
        return found + xlm_text.files(folder)
    return found + text.files(folder)


def _require_no_run(folder: Path) -> None:
    """FileNotFoundError for the folder of a run, which has models in folders of their own."""
    if rows := sorted((folder / "models").glob("*/*")):
        raise FileNotFoundError(f"{folder} is a run's folder: name one of its models, as {rows[0]}")


def of_language(folder: str | os.PathLike[str], language: str) -> Path:
    """A language's folder, whose path may be given with `{language}` in place of its name."""
    return Path(str(folder).replace("{language}", language)).expanduser()


def manifest(folder: Path) -> list[dict[str, Any]]:
    """A model's files and their hashes, for the manifest of a run; see `files`."""
    return [
        {"source": str(path), "language": "model", "sha256": sha256_once(path), "path": str(path)}
        for path in files(folder)
    ]


def load(folder: str | os.PathLike[str], language: str) -> TextModel:
    """The model in a folder as a reader of a language; ValueError if it is damaged, or of another
    language."""
    folder = Path(folder).expanduser()
    if (folder / CONFIG).exists():
        _require_no_run(folder)
        kind = XlmModel if xlm_text.is_in(folder) else HuggingFaceModel
        return kind.load(folder, language)
    model = stored.load(folder)
    if model.language != language:
        raise ValueError(
            f"{folder} is a model of {model.language}, and is to read {language}: where each "
            "language has a folder, write {language} for its name"
        )
    return model
