"""The fields of the config, in its order."""

from xling_jax import schema
from xling_jax.evaluators import registry
from xling_jax.runs import fields

_METRIC = schema.choice("a metric", *registry.OF_ENCODERS)
FIELDS = fields.read(__file__, measures=schema.several("what is measured", _METRIC, apart=True))
