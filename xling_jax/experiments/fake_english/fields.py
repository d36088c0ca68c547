"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.evaluators import registry
from xling_jax.runs import fields
from xling_jax.schema import Section, table

FIELDS: Section = {
    **fields.COMMON,
    **fields.SCALE,
    "corpora": {
        **table("""
            train      source    the text to train on
            dev        source    held-out text
            languages  name{2}!  the name of the text's language, and of the one made of it
        """),
        **fields.SPLITTING,
        **table("""
            train_sentences  0..  sentences of train; 0: all, of the embedded language as many as
                                  the paper
            dev_sentences    0..  sentences of dev; 0: all, of the embedded language as many as the
                                  paper
        """),
        "synthetic": LanguageConfig.fields(),
    },
    "vocabulary": {**fields.PIECES, "neighbours": fields.NEIGHBOURS},
    "batches": fields.PACKED,
    "models": fields.MODELS,
    "overparam": {
        **{name: fields.MODELS[name] for name in ("hidden", "intermediate", "heads")},
        "learning_rate": fields.TRAINING["learning_rate"],
        **table("epochs  0..1000000  passes over the text; 0: as training.epochs"),
    },
    "training": {**fields.EPOCHS, **fields.TRAINING},
    "evaluators": {
        **fields.measured(registry.SENTENCES, registry.PIECES, registry.TOKENS),
        **fields.LAYERS,
        **fields.CURVE,
    },
    "devices": fields.DEVICES,
    **fields.PROFILE,
}
