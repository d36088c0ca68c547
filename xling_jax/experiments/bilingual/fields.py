"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.evaluators import registry
from xling_jax.runs import fields
from xling_jax.schema import EACH, Section, table

FIELDS: Section = {
    **fields.COMMON,
    **fields.SCALE,
    "corpora": {
        **fields.LANGUAGES,
        "synthetic": LanguageConfig.fields(),
        **fields.SENTENCES,
        **table("test_sentences  0..  parallel sentences to find, at most; 0: none"),
        **fields.SPLITTING,
        **fields.NORMALIZATION,
        **table("processes  1..10000  processes that prepare text"),
        EACH: {
            **table("""
                train            files        text to train on
                other            files?       text of another domain (wiki_cc)
                dev              files        held-out text
                test             source?      sentences to find, in this language
                test_first       source?      the same sentences in the first language
                dictionary       dictionary?  translations from the first language, for
                                              extra_anchors
                test_dictionary  dictionary?  translations to test with
            """),
            "second": SecondConfig.fields(),
            **table("other_domain  share  of an embedded language: see second.domain"),
        },
    },
    "vocabulary": {
        "joint_size": fields.PIECES["size"],
        "own_size": fields.PIECES["size"],
        "model_type": fields.PIECES["model_type"],
        **fields.SAMPLE,
    },
    "batches": table("""
        parts            1..65536           parts of a step, each of one language
        sequences        1..1048576         windows of a part
        length           2..131072          places of a window
        begin            anywhere|sentence  where windows begin
        alpha            0.0..100.0         exponent of a language's share of the sentences
        accumulate       1..65536           pieces that a step is worked through in
        resident_tokens  0..2147483647      tokens up to which text is kept on the device
    """),
    "code_switch": table("""
        seed         seed   of the words that are replaced
        probability  share  with which a word of the dictionary is replaced
        most         share  of the words of a text or window that may be replaced
    """),
    "models": {**fields.MODELS, **table("head  bert|linear  of masked language modelling")},
    "training": {
        **table("""
            epochs           1..1000000  number of epochs
            steps_per_epoch  1..         updates of an epoch
        """),
        **fields.TRAINING,
        **fields.DECAY,
        **table("start_from  folder?  folder of the best checkpoint to begin with"),
    },
    "evaluators": {
        **fields.measured(registry.SENTENCES, registry.DICTIONARY),
        **fields.LAYERS,
        **table("sentences  1..1048576  sentences encoded at once"),
        **fields.ROW_LENGTHS,
        **fields.CURVE,
    },
    "devices": fields.DEVICES,
    **fields.PROFILE,
}
