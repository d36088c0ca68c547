"""models.hugging_face: the same weights give the logits of transformers' BertForMaskedLM."""

import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from weights import (
    OFFSET,
    TOLERANCE,
    change_config,
    change_tensors,
    difference,
    logits_alone,
    randomize_theirs,
    randomized,
    require_equal,
    saved_again,
    serialized,
    some_sentences,
    their_logits,
)

from xling_jax.batches import packing
from xling_jax.models import heads, partition, tensor_files
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.models.hugging_face import model as hugging_face

SMALL = BertConfig(vocabulary_size=300)  # one head, 12 layers, as D&S
MANY_HEADS = BertConfig(
    vocabulary_size=211, layers=3, hidden=96, intermediate=160, heads=6, positions=300
)
SIZES = pytest.mark.parametrize("config", [SMALL, MANY_HEADS], ids=["small", "many_heads"])
TINY = BertConfig(vocabulary_size=17, layers=2, hidden=8, intermediate=12, heads=2, positions=10)


def logits_packed(config: BertConfig, params, sentences) -> np.ndarray:
    """The same, several sentences a row in rows of two lengths."""
    lengths = np.array([len(ids) for ids, _ in sentences])
    layout = packing.Layout(((6, 24), (8, 40)), len(sentences))  # 14 rows of 24 sentences
    plan = packing.planned([np.arange(len(sentences))], lengths, layout)
    owner, start = plan.owner[0, 0].astype(int), plan.start[0]
    sentence = plan.sentence[0][np.maximum(owner, 0)]
    place = np.where(owner < 0, 0, np.arange(len(owner)) - start[np.maximum(owner, 0)])
    assert len(set(owner[owner >= 0])) == len(sentences)
    language = np.array([language for _, language in sentences])[sentence]
    tokens = np.array([sentences[s][0][p] for s, p in zip(sentence, place, strict=True)])
    (hidden,) = Bert(config).apply(
        {"params": params},
        tokens,
        place + OFFSET * language,
        owner,
        language,
        rows=layout.rows,
        layers=(config.layers,),
    )
    logits = np.asarray(heads.masked_language_logits(config, params, hidden))
    order = np.lexsort((place, sentence))
    return logits[order[owner[order] >= 0]]


def require_same_logits(config: BertConfig, params, model) -> None:
    sentences = some_sentences(config)
    theirs = their_logits(model, sentences)
    assert difference(logits_alone(config, params, sentences), theirs) < TOLERANCE
    assert difference(logits_packed(config, params, sentences), theirs) < TOLERANCE
    # The test would see a mistake in any of the inputs.
    exchanged = [(ids, 1 - language) for ids, language in sentences]
    assert difference(logits_alone(config, params, exchanged), theirs) > 0.01


@SIZES
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_transformers_reads_our_folder_and_computes_our_logits(config, attention, tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    params = randomized(config)
    hugging_face.save(tmp_path, config, params)
    model, report = transformers.BertForMaskedLM.from_pretrained(
        tmp_path, attn_implementation=attention, output_loading_info=True
    )
    assert not any(report.values()), report
    require_same_logits(config, params, model)


@SIZES
def test_we_read_the_folder_of_transformers_and_compute_its_logits(config, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=config.vocabulary_size,
            hidden_size=config.hidden,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.intermediate,
            max_position_embeddings=config.positions,
        )
    )
    randomize_theirs(model)
    model.save_pretrained(tmp_path)
    loaded, params = hugging_face.load(tmp_path)
    assert loaded == config
    require_same_logits(config, params, model)


def test_both_write_the_same_tensors_and_fields(tmp_path):
    ours, theirs = saved_again(tmp_path, TINY, "BertForMaskedLM")
    contents = [(folder / "model.safetensors").read_bytes() for folder in (ours, theirs)]
    first, second = (dict(safetensors.deserialize(content)) for content in contents)
    assert first == second
    fields = json.loads((theirs / "config.json").read_text())
    for name, value in json.loads((ours / "config.json").read_text()).items():
        assert fields.get(name, value) == value, name


@pytest.fixture
def folder(tmp_path):
    """A saved model."""
    hugging_face.save(tmp_path, TINY, randomized(TINY))
    return tmp_path


@SIZES
def test_save_and_load_keep_every_bit(config, tmp_path):
    params = randomized(config)
    hugging_face.save(tmp_path / "a" / "b", config, params)
    loaded, again = hugging_face.load(tmp_path / "a" / "b")
    assert loaded == config
    require_equal(again, params)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(again)} == {"float32"}
    assert {file.name for file in (tmp_path / "a" / "b").iterdir()} == {
        "config.json",
        "model.safetensors",
    }


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_floating_types_become_float32(folder, dtype):
    content = (folder / "model.safetensors").read_bytes()
    stored = {}
    for name, tensor in safetensors.deserialize(content):
        values = np.frombuffer(tensor["data"], np.float32).reshape(tensor["shape"])
        stored[name] = np.asarray(values).astype(jnp.dtype(dtype))
    file = {
        name: {"dtype": dtype, "shape": x.shape, "data": x.tobytes()} for name, x in stored.items()
    }
    (folder / "model.safetensors").write_bytes(serialized(file))
    _, params = hugging_face.load(folder)
    rounded = jax.tree.map(
        lambda x: np.asarray(x).astype(jnp.dtype(dtype)).astype(np.float32), randomized(TINY)
    )
    require_equal(params, rounded)


def test_older_checkpoints_with_more_heads_are_read(folder):
    def change(tensors):
        for name in list(tensors):
            if "LayerNorm" in name:
                old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
                tensors[old.replace("LayerNorm.bias", "LayerNorm.beta")] = tensors.pop(name)
        tensors["bert.pooler.dense.weight"] = np.zeros((8, 8), np.float32)
        tensors["cls.seq_relationship.bias"] = np.zeros(2, np.float32)
        tensors["bert.embeddings.position_ids"] = np.arange(10)[None]
        tensors["cls.predictions.decoder.weight"] = tensors[
            "bert.embeddings.word_embeddings.weight"
        ]
        tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")

    change_tensors(folder, change)
    change_config(folder, max_position_embeddings=10, layer_norm_eps=None, dtype="float32")
    config, params = hugging_face.load(folder)
    assert config == TINY
    require_equal(params, randomized(TINY))


@pytest.mark.parametrize(
    "field, value",
    [
        ("model_type", "electra"),
        ("model_type", None),
        ("hidden_act", "gelu_new"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("tie_word_embeddings", False),
    ],
)
def test_other_architectures_are_refused_by_field(folder, field, value):
    change_config(folder, **{field: value})
    with pytest.raises(
        ValueError, match=rf"config.json: {field}(={value!r}| is missing): only .* loaded"
    ):
        hugging_face.load(folder)


def test_configs_that_mean_nothing_are_refused(folder):
    change_config(folder, attention_probs_dropout_prob=0.2)
    with pytest.raises(ValueError, match="attention_probs_dropout_prob=0.2.* make them equal"):
        hugging_face.load(folder)
    change_config(folder, attention_probs_dropout_prob=0.1, num_attention_heads=3)
    with pytest.raises(ValueError, match="config.json: .*hidden=8 is not divisible"):
        hugging_face.load(folder)
    change_config(folder, vocab_size=None)
    with pytest.raises(ValueError, match="config.json: vocab_size is missing"):
        hugging_face.load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json is not JSON"):
        hugging_face.load(folder)


@pytest.mark.parametrize(
    "content, message",
    [
        ("[]", r"config.json: \[\]: Input should be"),
        ("[" * 100_000, "config.json: its JSON is nested too deep"),
        ('{"hidden_size": 8, "hidden_size": 4}', "'hidden_size' twice"),
        ('{"x": "\xff"}', "config.json is not UTF-8"),
        ("", "config.json is not JSON .line 1"),
    ],
)
def test_a_config_that_is_no_object_is_refused(folder, content, message):
    (folder / "config.json").write_text(content, "latin-1")
    with pytest.raises(ValueError, match=message):
        hugging_face.load(folder)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("model_type", ["bert"], "only 'bert', "),
        ("vocab_size", "17", "Input should be"),
        ("vocab_size", 2**62, "Input should be"),
        ("hidden_size", 8.0, "Input should be"),
        ("hidden_size", 0, "Input should be"),
        ("hidden_size", -8, "Input should be"),
        ("num_attention_heads", 0, "Input should be"),
        ("num_hidden_layers", True, "Input should be"),
        ("intermediate_size", [12], "Input should be"),
        ("max_position_embeddings", 1, "Input should be"),
        ("type_vocab_size", 0, "Input should be"),
        ("layer_norm_eps", 0, "Input should be"),
        ("layer_norm_eps", -1, "Input should be"),
        ("layer_norm_eps", float("nan"), "Input should be"),
        ("layer_norm_eps", "1e-12", "Input should be"),
        ("hidden_dropout_prob", 1, "Input should be"),
        ("hidden_dropout_prob", float("inf"), "Input should be"),
        ("attention_probs_dropout_prob", {}, "Input should be"),
        ("initializer_range", 10**400, "Input should be"),
        ("lang2id", {"en": "0"}, "Input should be"),
        ("is_decoder", "no", "only False can be loaded"),
    ],
)
def test_fields_of_the_wrong_type_or_range_are_named(folder, field, value, message):
    change_config(folder, **{field: value})
    with pytest.raises(ValueError, match=rf"config.json: {field}(=|\.en=).*: {message}"):
        hugging_face.load(folder)


@pytest.mark.parametrize("field", ["layer_norm_eps", "vocab_size", "is_decoder", "model_type"])
def test_null_is_no_value(folder, field):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: None}))
    with pytest.raises(ValueError, match=f"config.json: {field}=None: "):
        hugging_face.load(folder)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("num_hidden_layers", 10_000_000, "has 42 tensors, but config.json wants 10000000 layers"),
        ("num_hidden_layers", 3, "tensor bert.encoder.layer.2.* is missing"),
        ("num_hidden_layers", 1, "tensor bert.encoder.layer.1.* is unknown"),
        ("hidden_size", 2**31 - 2, r"has the shape \(8,\), but config.json wants \(2147483646,\)"),
        (
            "vocab_size",
            2**31 - 1,
            r"has the shape \(17, 8\), but config.json wants \(2147483647, 8",
        ),
        ("intermediate_size", 2**31 - 1, "config.json wants .2147483647"),
        ("max_position_embeddings", 2**31 - 1, "config.json wants .2147483647"),
    ],
)
def test_sizes_that_the_tensors_contradict_are_refused_before_anything_is_read(
    folder, field, value, message, monkeypatch
):
    monkeypatch.setattr(tensor_files.TensorFile, "read", None)
    change_config(folder, **{field: value})
    with pytest.raises(ValueError, match=f"model.safetensors.*{message}"):
        hugging_face.load(folder)


KEY = "bert.encoder.layer.1.attention.self.key.weight"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t.pop(KEY), f"tensor {KEY} is missing"),
        (lambda t: t.update({KEY: t[KEY][:4]}), f"tensor {KEY} has the shape .4, 8.* wants .8, 8"),
        (lambda t: t.update({KEY: t[KEY].astype(np.int32)}), f"{KEY} is of type I32"),
        (lambda t: t.update({"bert.more": t[KEY]}), "tensor bert.more is unknown"),
        (
            lambda t: t.update({"bert.encoder.layer.2.output.dense.bias": t[KEY]}),
            "tensor bert.encoder.layer.2.output.dense.bias is unknown",
        ),
        (
            lambda t: t.update({"cls.predictions.decoder.weight": np.zeros((17, 8), np.float32)}),
            "tensor cls.predictions.decoder.weight differs",
        ),
        (lambda t: t.update({KEY.removeprefix("bert."): t[KEY]}), "there under two names"),
        (
            lambda t: t.pop("cls.predictions.bias"),
            "cls.predictions.* is missing. An encoder is needed",
        ),
        (lambda t: t.update({KEY: t[KEY] * np.nan}), f"64 of the 64 .* {KEY} are NaN or infinite"),
        (lambda t: t[KEY].__setitem__((0, 1), np.inf), f"1 of the 64 .* {KEY} are NaN or infinite"),
        (
            lambda t: t.update({KEY: np.full((8, 8), 1e39)}),
            f"tensor {KEY} are too large for float32",
        ),
    ],
)
def test_missing_unknown_and_misshapen_tensors_are_named(folder, change, message):
    change_tensors(folder, change)
    with pytest.raises(ValueError, match=f"model.safetensors: .*{message}"):
        hugging_face.load(folder)


def test_files_that_cannot_be_read_are_named(folder):
    (folder / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="model.safetensors is not a safetensors file"):
        hugging_face.load(folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="pytorch_model.bin is a pickle.*save_pretrained"):
        hugging_face.load(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(FileNotFoundError, match="model.safetensors: no such file"):
        hugging_face.load(folder)
    with pytest.raises(FileNotFoundError, match="nowhere/config.json: no such file"):
        hugging_face.load(folder / "nowhere")


@pytest.mark.parametrize(
    "change",
    [
        lambda x: b"",
        lambda x: x[:4],
        lambda x: x[:100],
        lambda x: x[:-1],
        lambda x: x + b"\0",
        lambda x: (2**63).to_bytes(8, "little") + x[8:],
        lambda x: (2**26).to_bytes(8, "little") + x[8:],
        lambda x: (10**5).to_bytes(8, "little") + b"[" * 10**5,
        lambda x: x.replace(b'"data_offsets":[0,', b'"data_offsets":[4,', 1),
        lambda x: x.replace(b'"dtype":"F32"', b'"dtype":"F99"', 1),
        lambda x: x.replace(b'"shape":[17]', b'"shape":[-1]', 1),
        lambda x: x.replace(b'"shape":[17]', b'"shape":[10]', 1),
    ],
)
def test_files_of_weights_that_are_torn_or_contradict_themselves_are_refused(folder, change):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(changed := change(content))
    assert changed != content
    with pytest.raises(ValueError, match="model.safetensors is not a safetensors file, or damaged"):
        hugging_face.load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_or_a_pipe_is_no_file(folder, name):
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(ValueError, match=f"{name} is a folder"):
        hugging_face.load(folder)
    (folder / name).rmdir()
    os.mkfifo(folder / name)
    with pytest.raises(ValueError, match=f"{name} is a pipe"):
        hugging_face.load(folder)


def test_params_of_another_shape_are_not_saved(tmp_path):
    params = randomized(TINY)
    with pytest.raises(ValueError, match="params/embeddings/tokens has the shape .17, 8.*18, 8"):
        hugging_face.save(tmp_path, BertConfig(18, 2, 8, 12, 2, 10), params)
    with pytest.raises(ValueError, match="give the plain params"):
        hugging_face.save(tmp_path, TINY, partition.split([params]))
    assert not list(tmp_path.iterdir())


def test_an_encoder_needs_no_head(folder):
    _, whole = hugging_face.load(folder)

    def bare(tensors):
        for name in list(tensors):
            value = tensors.pop(name)
            if name.startswith("bert."):
                tensors[name.removeprefix("bert.")] = value

    change_tensors(folder, bare)
    _, params = hugging_face.load(folder)
    assert params.keys() == whole.keys() - {"mlm"}
    require_equal(params, {name: own for name, own in whole.items() if name != "mlm"})
