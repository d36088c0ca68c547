"""The fields of the config, in its order."""

from xling_jax.runs import fields

FIELDS = fields.read(__file__)
