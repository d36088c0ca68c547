"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.evaluators import registry
from xling_jax.runs import fields

MEASURED = fields.measured(registry.SENTENCES, registry.PIECES, registry.TOKENS)
FIELDS = fields.read(__file__, language=LanguageConfig.fields(), measured=MEASURED)
