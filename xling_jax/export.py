"""Writes a trained model as a folder for `transformers`: `python -m xling_jax.export`.

    python -m xling_jax.export --model=WORKDIR/models/rowdefault_seed0/en --to=FOLDER

Then AutoModelForMaskedLM.from_pretrained(FOLDER) computes the model's logits, and AutoTokenizer
its ids for text that is already normalised (see `models.hugging_face.tokenizer`). A run stores a
folder for each language, so this writes the model of one language.
"""

import os
from pathlib import Path

from absl import app, flags

from xling_jax import errors, files
from xling_jax.models import stored
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.models.hugging_face import tokenizer as hugging_face_tokenizer
from xling_jax.vocabulary.pieces import SPECIALS

MODEL = flags.DEFINE_string(
    "model", None, "The folder of a language's model, such as WORKDIR/models/rowdefault_seed0/en."
)
TO = flags.DEFINE_string("to", None, "The folder that is written.")


def export(folder: str | os.PathLike[str], to: str | os.PathLike[str]) -> stored.StoredModel:
    """Reads a stored model and writes its weights and its tokenizer; returns the model. ValueError
    also if `transformers` has no such model or tokenizer, or if `to` is not a new folder."""
    to = Path(to).expanduser()
    files.require_new(to, "--to")
    model = stored.load(folder)
    hugging_face_tokenizer.require(model)
    special = model.ids[:SPECIALS].tolist()
    hugging_face.save(to, model.config, model.params, special)
    hugging_face_tokenizer.save(to, model)
    return model


def main(_: list[str]) -> None:
    """Exports what the flags say."""
    folder, to = (flag.value or "" for flag in (MODEL, TO))
    model = export(folder, to)
    print(
        f"{to}: a model of {model.language} for transformers. Its tokenizer takes text that is "
        f"normalised already ({model.normalization.in_words})"
    )


if __name__ == "__main__":
    for flag in (MODEL, TO):
        flags.register_validator(flag, bool, "name a folder")
    with errors.in_one_line():
        app.run(main, flags_parser=errors.parse_flags)
