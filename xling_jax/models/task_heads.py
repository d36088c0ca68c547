"""The head on the encoder in a labelled task: a classifier, or a biaffine parser.

A head sees one hidden state for each labelled item: that of the first token for a pair of
sentences, that of the first piece for a word (W&C §3.2).
"""

import dataclasses
import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.batches import hashing
from xling_jax.batches.labelled import CLASSIFIER
from xling_jax.models.bert import gelu
from xling_jax.models.dropout import dropout

INITIAL_VALUES = 2  # tells these random numbers from others of the same seed
TASK_HEAD = 1001  # stands for a layer in the bits of dropout
INPUT, ARCS, RELATIONS = 10, (11, 12), (13, 14)  # uses of dropout; of dependents and of heads
FAR_BELOW = -1e9  # the score of what cannot be chosen
CLASSIFIER_SD = 0.02  # of initial kernels


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """The shape of a head.

    Attributes:
      kind: CLASSIFIER or PARSER.
      labels: how many there are.
      dropout: the rate on the head's input.
      arcs, relations: in a parser, the sizes of the vectors of heads and dependents that arcs and
        relations are scored by (Dozat & Manning 2017, Table 1).
      parser_dropout: the rate on these vectors (same table).
    """

    kind: str
    labels: int
    dropout: float = 0.1
    arcs: int = 500
    relations: int = 100
    parser_dropout: float = 0.33


def _drop(x: jax.Array, rate: float, bits: jax.Array | None, use: int) -> jax.Array:
    """Dropout on [..., D] from uint32 bits [...]; None turns it off."""
    if bits is None or rate == 0:
        return x
    salted = bits ^ hashing.combine(hashing.combine(jnp.uint32(0), TASK_HEAD), use)
    return dropout(x, hashing.count(salted[..., None], jnp.arange(x.shape[-1])), rate)


class Classifier(nn.Module):
    """Dropout and one linear layer."""

    config: HeadConfig

    @nn.compact
    def __call__(self, states: jax.Array, bits: jax.Array | None = None) -> jax.Array:
        """Returns logits [..., labels], float32, of states [..., D]."""
        x = _drop(states.astype(jnp.float32), self.config.dropout, bits, INPUT)
        return nn.Dense(self.config.labels, name="output")(x)


class Biaffine(nn.Module):
    """The scores [x; 1] U [y; 1] of pairs, for each output. Without `of_both` only x gets the 1:
    before a softmax over all y, terms that depend on x alone change nothing."""

    outputs: int
    of_both: bool = True

    @nn.compact
    def __call__(self, x: jax.Array, y: jax.Array, is_paired: bool = False) -> jax.Array:
        """Scores of dependents x [B, W, D] with heads y: of all pairs, [B, W, V, outputs], for y
        [B, V, D]; if paired, of each x with its own y only, [B, W, outputs], for y [B, W, D]."""

        def with_one(z):
            return jnp.concatenate([z, jnp.ones((*z.shape[:-1], 1), z.dtype)], axis=-1)

        x, y = with_one(x), with_one(y) if self.of_both else y
        shape = (x.shape[-1], self.outputs, y.shape[-1])
        weights = self.param("kernel", nn.initializers.zeros, shape)
        # x first: where x and y are paired, einsum of all three takes three times as long on CPUs.
        of_x = jnp.einsum("bwi,ioj->bwoj", x, weights)
        return jnp.einsum("bwoj,bwj->bwo" if is_paired else "bwoj,bvj->bwvo", of_x, y)


class Parser(nn.Module):
    """The deep biaffine parser (Dozat & Manning 2017) on an encoder's states."""

    config: HeadConfig

    @nn.compact
    def __call__(
        self,
        states_BxWxD: jax.Array,
        bits_BxW: jax.Array | None = None,
        heads_BxW: jax.Array | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Returns the scores of each word's possible heads, float32 [B, W, 1 + W], and those of the
        relations to the given heads, [B, W, labels]; without given heads, the best relation to each
        possible head, int32 [B, W, 1 + W].

        Head 0 is the root, whose state is a parameter. Without bits dropout is turned off.
        """
        config = self.config
        x_BxWxD = _drop(states_BxWxD.astype(jnp.float32), config.dropout, bits_BxW, INPUT)
        count, _, width = x_BxWxD.shape
        root = self.param("root", nn.initializers.zeros, (width,))
        root = jnp.broadcast_to(root, (count, 1, width))
        heads_BxVxD = jnp.concatenate([root, x_BxWxD], axis=1)
        of_heads = bits_BxW
        if bits_BxW is not None:
            of_heads = jnp.concatenate([hashing.combine(bits_BxW[:, :1], 0), bits_BxW], axis=1)

        def vectors(name: str, size: int, uses: tuple[int, int]) -> tuple[jax.Array, jax.Array]:
            dependent = gelu(nn.Dense(size, name=f"{name}_dependent")(x_BxWxD))
            head = gelu(nn.Dense(size, name=f"{name}_head")(heads_BxVxD))
            rate = config.parser_dropout
            return _drop(dependent, rate, bits_BxW, uses[0]), _drop(head, rate, of_heads, uses[1])

        of_arcs = Biaffine(1, of_both=False, name="arc_scores")
        arcs = of_arcs(*vectors("arc", config.arcs, ARCS))[..., 0]
        dependent, head = vectors("relation", config.relations, RELATIONS)
        scores = Biaffine(config.labels, name="relation_scores")
        if heads_BxW is not None:
            chosen = jnp.take_along_axis(head, heads_BxW[..., None], axis=1)
            return arcs, scores(dependent, chosen, is_paired=True)
        return arcs, scores(dependent, head).argmax(-1).astype(jnp.int32)


def module(config: HeadConfig) -> Classifier | Parser:
    """The head that a config describes."""
    return Classifier(config) if config.kind == CLASSIFIER else Parser(config)


def initial_params(config: HeadConfig, width: int, seed: int):
    """The parameters of an untrained head on states of the given width, as NumPy arrays.

    A classifier's kernel is normal with standard deviation `CLASSIFIER_SD` (Devlin et al. 2019). A
    parser's kernels are normal with variance 1 / inputs, except that biaffine ones are 0 (Dozat &
    Manning 2017), and its root is standard normal, like a normalised state. Biases are 0.
    """
    states, heads = jnp.zeros((1, 1, width)), jnp.zeros((1, 1), jnp.int32)
    given = (states,) if config.kind == CLASSIFIER else (states, None, heads)
    shapes = jax.eval_shape(lambda: module(config).init(jax.random.key(0), *given)["params"])
    leaves, tree = jax.tree_util.tree_flatten_with_path(shapes)
    drawn = []
    for number, (path, leaf) in enumerate(leaves):
        if path[-1].key == "bias" or path[0].key.endswith("_scores"):
            drawn.append(np.zeros(leaf.shape, np.float32))
        else:
            is_kernel = path[-1].key == "kernel"
            sd = 1 / math.sqrt(leaf.shape[0]) if is_kernel else 1.0
            sd = CLASSIFIER_SD if config.kind == CLASSIFIER else sd
            random = np.random.default_rng([INITIAL_VALUES, seed, number])
            drawn.append(random.normal(0, sd, leaf.shape).astype(np.float32))
    return jax.tree.unflatten(tree, drawn)


def losses(config: HeadConfig, params, states_BxWxD, is_word_BxW, labels_BxWxK, bits_BxW):
    """The losses (nats) of labelled items, [B, W]: a classifier's cross-entropy of the class; a
    parser's of the head plus that of the relation, given the head.

    Args:
      is_word_BxW: bool; the loss is 0 elsewhere.
      labels_BxWxK: int32, see `labelled.KINDS`.
      bits_BxW: uint32, of dropout; None turns it off.
    """
    labels = jnp.maximum(labels_BxWxK, 0)
    if config.kind == CLASSIFIER:
        logits = module(config).apply({"params": params}, states_BxWxD, bits_BxW)
        found = _cross_entropy(logits, labels[..., 0])
    else:
        arcs, relations = module(config).apply(
            {"params": params}, states_BxWxD, bits_BxW, labels[..., 0]
        )
        arcs = without_filling(arcs, is_word_BxW)
        found = _cross_entropy(arcs, labels[..., 0]) + _cross_entropy(relations, labels[..., 1])
    return jnp.where(is_word_BxW, found, 0.0)


def _cross_entropy(logits, label: jax.Array) -> jax.Array:
    right = jnp.take_along_axis(logits, label[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - right


def without_filling(arcs_BxWxV: jax.Array, is_word_BxW: jax.Array) -> jax.Array:
    """The scores of heads, with those of padding far below all others."""
    is_head = jnp.pad(is_word_BxW, ((0, 0), (1, 0)), constant_values=True)
    return jnp.where(is_head[:, None, :], arcs_BxWxV, FAR_BELOW)
