"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LANGUAGE_FIELDS, SECOND_FIELDS
from xling_jax.evaluators import registry
from xling_jax.runs import fields

FIELDS = fields.read(
    __file__,
    language=LANGUAGE_FIELDS,
    second=SECOND_FIELDS,
    measured=fields.measured(registry.SENTENCES, registry.DICTIONARY),
)
