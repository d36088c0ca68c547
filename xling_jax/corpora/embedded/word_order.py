"""Word orders of second languages."""

from collections.abc import Mapping

from xling_jax.corpora.embedded.linearization import ENGLISH_ORDER
from xling_jax.corpora.embedded.second import SecondConfig

# What an order puts elsewhere than English does. Clauses follow their verb in every order, as in
# Persian and Hindi, since speakers avoid them in its middle (Dryer 1980).
_CLAUSE_ORDERS: Mapping[str, Mapping[str, int]] = {
    "svo": {},
    "sov": {
        "obl": -58,
        "obl:agent": -56,
        "obj": -54,
        "obl:arg": -52,
        "xcomp": -50,
        "advmod": -49,
        "aux:second": 7,
        "aux": 8,
    },
    # After what belongs to a noun, which may be the predicate.
    "vso": {"nsubj": 8, "nsubj:pass": 8},
}
_ADPOSITIONS = {"before": {}, "after": {"case": 3}}
_ADJECTIVES = {"before": {}, "after": {"flat": 1, "amod": 2}}


def word_order(config: SecondConfig) -> Mapping[str, int]:
    """Places of dependents, with the keys of `ENGLISH_ORDER`, where a second language has them."""
    return {
        **ENGLISH_ORDER,
        **_CLAUSE_ORDERS[config.order],
        **_ADPOSITIONS[config.adpositions],
        **_ADJECTIVES[config.adjectives],
    }
