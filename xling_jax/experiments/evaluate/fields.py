"""The fields of the config, in its order."""

from xling_jax.evaluators import registry
from xling_jax.runs import fields
from xling_jax.schema import Section, choice, several, table

_NAMES = choice("a metric", *registry.OF_ENCODERS)
FIELDS: Section = {
    **fields.COMMON,
    **table("seeds  seed+  seeds of the models, and of random weights"),
    **fields.LANGUAGES,
    **table("""
        run                      folder?      workdir whose embedded languages or held-out text are
                                              read
        models.*                 folder       folder of a model, {language} for what it reads and
                                              {seed} for its seed
        texts.*                  source?      sentences; those of all languages translate each other
                                              line by line
        dictionaries.*           dictionary?  words of a pair's first language and translations
        links.*                  file?        gold word links of a pair's first sentences
        sentences                2..10000     sentences that are read, at most
        perplexity.masked_every  2..4096      one of so many pieces is masked in a pass
        perplexity.passes        1..4096      passes; as many as masked_every mask every piece once
    """),
    "evaluators": {
        "names": several("what is measured", _NAMES, apart=True),
        **fields.LAYERS,
    },
    "devices": {"cpu": fields.DEVICES["cpu"]},
}
