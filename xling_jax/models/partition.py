"""The part of the parameters that each language has for itself (W&C §4.3).

Trained parameters are `{"shared": tree, "language": tree}`. Both trees are parts of a model's
plain tree (`embeddings`, `layers`, `mlm`); the leaves of the second have a leading language axis.
If nothing is partitioned, all languages share one model; if everything is (`*`), each has its own.
The encoder sees only the plain parameters that `select` gives for a language.

The table of token embeddings is one leaf of a plain tree, but a partition may divide it into the
embeddings of special tokens, `embeddings/tokens/special`, and those of all other pieces,
`embeddings/tokens/pieces`.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from xling_jax.vocabulary.pieces import SPECIALS

Params = dict[str, Any]

SHARED, LANGUAGE = "shared", "language"
EVERYTHING = ("*",)
TOKENS = "embeddings/tokens"
SPECIAL, PIECES = f"{TOKENS}/special", f"{TOKENS}/pieces"
PADDED = (TOKENS, "mlm/bias")  # leaves with a row for each piece
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")


def _component_matches(pattern: str, name: str) -> bool:
    if limits := _RANGE.fullmatch(pattern):
        return name.isdigit() and int(limits[1]) <= int(name) <= int(limits[2])
    return fnmatch.fnmatchcase(name, pattern)


def is_under(path: str, pattern: str) -> bool:
    """Whether a leaf's path, such as `layers/0/output/bias`, lies under a pattern.

    A pattern is a path or the beginning of one. Its parts may have shell wildcards, or be a range
    of numbers: `layers/0..2` are the three bottom layers.
    """
    names, wanted = path.split("/"), pattern.strip("/").split("/")
    return len(wanted) <= len(names) and all(map(_component_matches, wanted, names))


def own_paths(plain: Params, patterns: Iterable[str]) -> frozenset[str]:
    """The paths of a plain tree's leaves that lie under the patterns: those that each language has
    for itself. If only a part of the token embeddings does, its path is SPECIAL or PIECES.
    ValueError for a pattern that no parameter lies under, or a range that ends beyond them."""
    leaves = [*(traverse_util.flatten_dict(plain, sep="/").keys() - {TOKENS}), SPECIAL, PIECES]
    own: set[str] = set()
    for pattern in patterns:
        found = {path for path in leaves if is_under(path, pattern)}
        last = _RANGE.sub(r"\2", pattern)  # such as layers/5 of layers/0..5
        missing = [x for x in (last, pattern) if not any(is_under(path, x) for path in leaves)]
        if missing:
            tops = sorted({"/".join(path.split("/")[:2]) for path in leaves})
            raise ValueError(
                f"partition: no parameter lies under {missing[0]!r}; there are {', '.join(tops)} "
                "and what is below them"
            )
        own |= found
    if own >= {SPECIAL, PIECES}:
        own = own - {SPECIAL, PIECES} | {TOKENS}
    return frozenset(own)


def with_tokens(plain: Params, tokens: Any) -> Params:
    """A plain tree with other token embeddings."""
    return plain | {"embeddings": plain["embeddings"] | {"tokens": tokens}}


def _with_divided_tokens(plain: Params) -> Params:
    """A plain tree whose token embeddings are divided into special tokens and pieces."""
    table_VxD = plain["embeddings"]["tokens"]
    tokens = {"special": table_VxD[:SPECIALS], "pieces": table_VxD[SPECIALS:]}
    return with_tokens(plain, tokens)


def split(models: Sequence[Params], patterns: Iterable[str] = ()) -> Params:
    """The partitioned tree of plain models, one per language; shared parameters are the first's.
    For the patterns of what each language has for itself, and the ValueError, see `own_paths`."""
    chex.assert_trees_all_equal_shapes(models[0], *models)
    own = own_paths(models[0], patterns)
    if own & {SPECIAL, PIECES}:
        models = list(map(_with_divided_tokens, models))
    divided = [divide(model, own) for model in models]

    each = [part for _, part in divided]
    stacked = jax.tree.map(lambda *leaves: _numpy_of(leaves).stack(leaves), *each)
    return {SHARED: divided[0][0], LANGUAGE: stacked}


def _numpy_of(leaves: Sequence[Any]) -> Any:
    """NumPy where all leaves are on the host, else JAX's."""
    return np if all(isinstance(leaf, np.ndarray) for leaf in leaves) else jnp


def divide(tree: Params, paths: Iterable[str]) -> tuple[Params, Params]:
    """The leaves of a tree that are not at the given paths, and those that are."""
    chosen = set(paths)
    parts: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for path, leaf in traverse_util.flatten_dict(tree, sep="/").items():
        parts[path in chosen][path] = leaf
    others, found = (traverse_util.unflatten_dict(part, sep="/") for part in parts)
    return others, found


def merge(shared: Params, own: Params) -> Params:
    """The plain tree of shared and own leaves, with the token embeddings in one table."""
    leaves = traverse_util.flatten_dict(shared, sep="/") | traverse_util.flatten_dict(own, sep="/")
    if SPECIAL in leaves:
        tables = leaves.pop(SPECIAL), leaves.pop(PIECES)
        leaves[TOKENS] = _numpy_of(tables).concatenate(tables)
    return traverse_util.unflatten_dict(leaves, sep="/")


def select(params: Params, language: jax.Array | int = 0) -> Params:
    """The plain parameters of one language, which the encoder and the heads are applied to."""
    if not params[LANGUAGE]:
        return params[SHARED]
    return merge(params[SHARED], jax.tree.map(lambda leaf: leaf[language], params[LANGUAGE]))


def languages(params: Params) -> int | None:
    """How many languages have parameters of their own; None where none has."""
    leaves = jax.tree.leaves(params[LANGUAGE])
    return leaves[0].shape[0] if leaves else None


def paths(params: Params) -> frozenset[str]:
    """The paths, in a plain tree, of the leaves that each language has for itself; the token
    embeddings count if a part of them is."""
    own = traverse_util.flatten_dict(params[LANGUAGE], sep="/")
    return frozenset(TOKENS if path in (SPECIAL, PIECES) else path for path in own)


def convert(params: Params, patterns: Iterable[str], number: int) -> Params:
    """The same models under another partition, for `number` languages.

    A language's own parameters start from its model so far, shared ones are the first language's.
    ValueError: a pattern without parameters, or `params` have parts for another number of
    languages.
    """
    had = languages(params)
    if had not in (None, number):
        raise ValueError(f"partition: the parameters are of {had} languages, not of {number}")
    return split([select(params, language) for language in range(number)], patterns)


def export(params: Params, language: int, rows: int) -> Params:
    """A language's plain parameters; those of `PADDED` are cut to their first `rows` rows."""
    flat = traverse_util.flatten_dict(select(params, language), sep="/")
    flat |= {path: flat[path][:rows] for path in PADDED}
    return traverse_util.unflatten_dict(flat, sep="/")
