"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.evaluators import registry
from xling_jax.runs import fields

FIELDS = fields.read(
    __file__,
    language=LanguageConfig.fields(),
    second=SecondConfig.fields(),
    measured=fields.measured(registry.SENTENCES, registry.DICTIONARY),
)
