"""The part of the parameters that each language has for itself.

Trained parameters are `{"shared": tree, "language": tree}`. Leaves of the second have a leading
language axis; today every parameter is shared, and the second is empty.
"""

from typing import Any

Params = dict[str, Any]


def split(params: Params) -> Params:
    """The partitioned tree of a model's plain parameters."""
    return {"shared": params, "language": {}}


def select(params: Params) -> Params:
    """The plain parameters that the encoder and the heads are applied to."""
    return params["shared"]
