"""The fields of the config, in its order."""

from xling_jax.runs import fields
from xling_jax.schema import Section, table

FIELDS: Section = {
    **fields.COMMON,
    **table("seeds  seed+  seeds of the models, and of random encoders"),
    **fields.LANGUAGES,
    **table("""
        run                      folder?      workdir of the run that has the models of embedded
                                              languages
        models.*                 folder       folder of a model, {seed} for its seed
        texts.*.learned_first    source?      sentences of the first language, for maps
        texts.*.learned          source?      their translations into this one
        texts.*.tested_first     source?      sentences of the first language to find
        texts.*.tested           source?      their translations into this one
        texts.*.contexts         source?      text in which words are met
        texts.*.dictionary       dictionary?  translations that maps are learned from
        texts.*.test_dictionary  dictionary?  translations to test with
        texts.*.vectors          vectors?     static vectors of words
        sentences.learned        1..          parallel sentences that maps are learned on, at most
        sentences.tested         1..          parallel sentences to find, at most
        sentences.contexts       1..          sentences in which words are met, at most
        words.most               1..          words that are candidates for a translation, at most
    """),
    **fields.LAYERS,
    "devices": {"cpu": fields.DEVICES["cpu"]},
}
