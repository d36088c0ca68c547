"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LANGUAGE_FIELDS
from xling_jax.evaluators import registry
from xling_jax.runs import fields

MEASURED = fields.measured(registry.SENTENCES, registry.PIECES, registry.TOKENS)
FIELDS = fields.read(__file__, language=LANGUAGE_FIELDS, measured=MEASURED)


def is_used(_: str, description: str, field: str) -> bool:
    """Whether a row uses a field: those of neighbours are for knn-replace alone."""
    return not field.startswith("vocabulary.neighbours.") or "knn-replace" in description
