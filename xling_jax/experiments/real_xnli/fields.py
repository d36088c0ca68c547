"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.experiments.zero_shot import fields as zero_shot
from xling_jax.runs import fields
from xling_jax.schema import EACH, Section, choice, several, table, text
from xling_jax.tasks import TASKS

FIELDS: Section = {
    **fields.COMMON,
    **fields.SCALE,
    "corpora": {
        "languages": several(
            "names of languages; fine-tuning reads the first",
            text("a language", "a name", is_needed=True),
            2,
            apart=True,
        ),
        "synthetic": LanguageConfig.fields(),
        **fields.SENTENCES,
        **fields.SPLITTING,
        **fields.NORMALIZATION,
        EACH: {
            **table("""
                train  files  text to train on
                dev    files  held-out text
            """),
            "second": SecondConfig.fields(),
        },
    },
    "vocabulary": {**fields.PIECES, **fields.SAMPLE, "neighbours": fields.NEIGHBOURS},
    "batches": fields.PACKED,
    "models": fields.MODELS,
    "training": {**fields.EPOCHS, **fields.TRAINING},
    "evaluators": fields.CURVE,
    "transfer": {
        **zero_shot.FIELDS,
        "tasks": several("what is learned", choice("a task", *TASKS), apart=True),
    },
    "devices": fields.DEVICES,
    **fields.PROFILE,
}
