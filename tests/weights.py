"""Random weights, sentences and their logits, to compare with those of transformers."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from xling_jax.models import heads
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.models.hugging_face import model as hugging_face

OFFSET, TOLERANCE = 128, 1e-4


def randomized(config: BertConfig, seed: int = 0, spread: float = 0.15):
    """Parameters among which none is zero or one, so that no mix-up goes unseen."""
    random = np.random.default_rng(seed)
    shapes = heads.param_shapes(config)

    def draw(path, leaf):
        mean = 1.0 if path[-1].key == "scale" else 0.0
        return jnp.asarray(mean + spread * random.normal(size=leaf.shape), jnp.float32)

    return jax.tree.map_with_path(draw, shapes)


def randomize_theirs(model, spared: str = "") -> None:
    """The same for a model of transformers, but for parameters with `spared` in their names."""
    import torch  # where it is not installed there is no such model

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if spared and spared in name:
                continue
            is_scale = "norm" in name.lower() and name.endswith("weight")
            parameter.normal_(1.0 if is_scale else 0.0, 0.15)


def saved_again(folder, config: BertConfig, kind: str):
    """Folders of a random model as we save it, and as a class of transformers saves that again."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    ours, theirs = folder / "ours", folder / "theirs"
    hugging_face.save(ours, config, randomized(config))
    getattr(transformers, kind).from_pretrained(ours).save_pretrained(theirs)
    return ours, theirs


def some_sentences(config: BertConfig) -> list[tuple[np.ndarray, int]]:
    """Token ids and the language of 24 sentences of 3 to 30 tokens."""
    random = np.random.default_rng(1)
    lengths = random.integers(3, 31, 24)
    return [(random.integers(0, config.vocabulary_size, n), i % 2) for i, n in enumerate(lengths)]


def padded(sentences):
    """Tokens, positions, token types and mask, [N, T]; language 1 with its own positions."""
    shape = len(sentences), max(len(ids) for ids, _ in sentences)
    tokens, positions, types, mask = (np.zeros(shape, np.int32) for _ in range(4))
    for row, (ids, language) in enumerate(sentences):
        n = len(ids)
        tokens[row, :n], types[row, :n], mask[row, :n] = ids, language, 1
        positions[row, :n] = np.arange(n) + OFFSET * language
    return tokens, positions, types, mask


def logits_alone(config: BertConfig, params, sentences) -> np.ndarray:
    """Our logits of all tokens, one sentence a row."""
    tokens, positions, types, mask = padded(sentences)

    @jax.jit
    def logits(params):
        (hidden,) = Bert(config).apply(
            {"params": params}, tokens, positions, mask - 1, types, layers=(config.layers,)
        )
        return heads.masked_language_logits(config, params, hidden.reshape(-1, config.hidden))

    return np.asarray(logits(params))[mask.reshape(-1) > 0]


def their_logits(model, sentences, types: str = "token_type_ids") -> np.ndarray:
    """What transformers computes for all tokens; `types` names its argument for the languages, if
    they are given."""
    torch = pytest.importorskip("torch")
    names = "input_ids", "position_ids", types, "attention_mask"
    given = {x: torch.tensor(values, dtype=torch.long)
             for x, values in zip(names, padded(sentences), strict=True) if x}  # fmt: skip
    with torch.no_grad():
        logits = model.eval()(**given).logits
    return logits[given["attention_mask"] > 0].numpy()


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest, in units of the largest logit."""
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def change_tensors(folder, change) -> None:
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    tensors = {name: x.copy() for name, x in tensors.items()}
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def change_config(folder, **fields) -> None:
    path = folder / "config.json"
    stored = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({k: v for k, v in stored.items() if v is not None}))


def require_equal(first, second) -> None:
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, first, second)))


def serialized(tensors) -> bytes:
    """The safetensors format by hand: the numpy interface writes no bfloat16."""
    names = {"float64": "F64", "float16": "F16", "bfloat16": "BF16"}
    header, data = {}, b""
    for name, x in tensors.items():
        end = len(data) + len(x["data"])
        header[name] = {
            "dtype": names[x["dtype"]],
            "shape": x["shape"],
            "data_offsets": [len(data), end],
        }
        data += x["data"]
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data
