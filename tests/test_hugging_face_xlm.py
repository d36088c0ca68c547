"""models.hugging_face: models with a linear head are XLMs, with and without language embeddings."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from weights import (
    TOLERANCE,
    change_config,
    change_tensors,
    difference,
    logits_alone,
    randomize_theirs,
    randomized,
    saved_again,
    some_sentences,
    their_logits,
)

from xling_jax.models import heads
from xling_jax.models.bert import BertConfig
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.vocabulary.pieces import PAD

ONE = BertConfig(
    vocabulary_size=211, layers=3, hidden=48, intermediate=192, heads=4, positions=300,
    token_types=1, head="linear",
)  # fmt: skip
TWO = dataclasses.replace(ONE, token_types=2)
THREE = dataclasses.replace(ONE, token_types=3)
TYPES = pytest.mark.parametrize("config", [ONE, TWO, THREE], ids=["one", "two", "three"])


def in_language(sentences, language):
    return [(ids, language) for ids, _ in sentences]


def transformers_xlm(folder, config: BertConfig, **fields):
    """A random XLM of this size in a folder; returns it."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.XLMWithLMHeadModel(
        transformers.XLMConfig(
            vocab_size=config.vocabulary_size,
            emb_dim=config.hidden,
            n_layers=config.layers,
            n_heads=config.heads,
            max_position_embeddings=config.positions,
            **{"n_langs": config.token_types, **fields},
        )
    )
    randomize_theirs(model, spared="position" if fields.get("sinusoidal_embeddings") else "")
    model.save_pretrained(folder)
    return model


def same(config, params, sentences, theirs) -> bool:
    return difference(logits_alone(config, params, sentences), theirs) < TOLERANCE


@TYPES
def test_we_read_the_folder_of_transformers_and_compute_its_logits(config, tmp_path):
    model = transformers_xlm(tmp_path, config)
    loaded, params = hugging_face.load(tmp_path)
    assert loaded == config
    sentences = some_sentences(config)
    if config.token_types == 1:
        sentences = in_language(sentences, 0)
    theirs = their_logits(model, sentences, types="langs")
    assert same(config, params, sentences, theirs)
    # The test would see a mistake in any of the inputs.
    exchanged = [(ids, 1 - language) for ids, language in sentences]
    assert difference(logits_alone(config, params, exchanged), theirs) > 0.01


@pytest.mark.parametrize("fields", [{"sinusoidal_embeddings": True}, {"n_langs": 17}])
def test_sinusoidal_positions_and_languages_without_embeddings_are_read(fields, tmp_path):
    model = transformers_xlm(tmp_path, ONE, use_lang_emb=False, **fields)
    config, params = hugging_face.load(tmp_path, "xx")  # all languages are read alike
    assert config == ONE
    sentences = in_language(some_sentences(ONE), 0)
    assert same(ONE, params, sentences, their_logits(model, sentences, types="langs"))


@TYPES
def test_transformers_reads_our_folder_and_computes_our_logits(config, tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    params = randomized(config)
    hugging_face.save(tmp_path, config, params)
    model, report = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert type(model).__name__ == "XLMWithLMHeadModel" and not any(report.values()), report
    sentences = some_sentences(config)
    of_first = in_language(sentences, 0)
    theirs = their_logits(model, of_first, types="")
    assert same(config, params, of_first, theirs)
    for language in range(config.token_types):
        others = in_language(sentences, language)
        theirs = their_logits(model, others, types="langs")
        assert same(config, params, others, theirs)


@TYPES
def test_what_was_saved_computes_the_same_when_it_is_loaded(config, tmp_path):
    params = randomized(config)
    hugging_face.save(tmp_path, config, params)
    loaded, again = hugging_face.load(tmp_path)
    assert loaded == config
    sentences = [(ids, language % config.token_types) for ids, language in some_sentences(config)]
    expected = logits_alone(config, params, sentences)
    assert difference(logits_alone(config, again, sentences), expected) < 1e-5
    assert not np.asarray(again["embeddings"]["token_types"][0]).any()


def test_an_encoder_without_a_head_is_read(tmp_path):
    folders = saved_again(tmp_path, TWO, "AutoModel")
    whole, encoder = (hugging_face.load(folder)[1] for folder in folders)
    del whole["mlm"]
    jax.tree.map(np.testing.assert_array_equal, encoder, whole)


def test_both_write_the_same_tensors_and_fields(tmp_path):
    ours, theirs = saved_again(tmp_path, TWO, "AutoModelForMaskedLM")
    transformers = pytest.importorskip("transformers")
    assert (ours / "model.safetensors").stat().st_size == (
        theirs / "model.safetensors"
    ).stat().st_size
    assert transformers.AutoConfig.from_pretrained(ours).pad_index == PAD
    fields = json.loads((theirs / "config.json").read_text())
    written = json.loads((ours / "config.json").read_text())
    assert written["pad_index"] == written["pad_token_id"] == PAD
    for name, value in written.items():
        assert fields.get(name, value) == value, name


@pytest.fixture
def folder(tmp_path):
    """A saved model with two languages."""
    hugging_face.save(tmp_path, TWO, randomized(TWO))
    return tmp_path


def test_of_language_embeddings_the_languages_own_can_be_kept(folder):
    change_config(folder, lang2id={"en": 1, "fr": 0, "de": 7})
    config, every = hugging_face.load(folder)
    assert config == TWO
    alone, params = hugging_face.load(folder, "en")
    assert alone == ONE
    sentences = some_sentences(ONE)
    tokens = [(ids, 0) for ids, _ in sentences]
    kept = params["embeddings"]["token_types"]
    np.testing.assert_array_equal(kept, every["embeddings"]["token_types"][1:])
    assert difference(logits_alone(ONE, params, tokens), logits_alone(TWO, every, tokens)) > 0.01
    for name in ("es", "de"):
        with pytest.raises(ValueError, match=rf"lang2id names none for '{name}' \(it names de, en"):
            hugging_face.load(folder, name)


@pytest.mark.parametrize(
    "field, value",
    [
        ("gelu_activation", False),
        ("asm", True),
        ("causal", True),
        ("is_encoder", False),
        ("tie_word_embeddings", False),
    ],
)
def test_what_our_encoder_does_not_have_is_refused_by_field(folder, field, value):
    change_config(folder, **{field: value})
    with pytest.raises(ValueError, match=rf"config.json: {field}={value!r}: only .* loaded"):
        hugging_face.load(folder)


def test_early_configs_are_read_and_those_that_mean_nothing_refused(folder):
    change_config(folder, vocab_size=None, n_words=211, use_lang_emb=None)
    assert hugging_face.load(folder)[0] == TWO
    change_config(folder, attention_dropout=0.2)
    with pytest.raises(ValueError, match="dropout=0.1 and attention_dropout=0.2"):
        hugging_face.load(folder)
    change_config(folder, attention_dropout=0.1, emb_dim=None)
    with pytest.raises(ValueError, match="config.json: emb_dim is missing"):
        hugging_face.load(folder)
    change_config(folder, emb_dim=48, lang2id=[1])
    with pytest.raises(ValueError, match=r"config.json: lang2id=\[1\]: Input should be"):
        hugging_face.load(folder)
    for value in ("1", -1, 0.0, True):
        change_config(folder, lang2id={"en": value})
        with pytest.raises(ValueError, match="config.json: lang2id.en=.*: Input should be"):
            hugging_face.load(folder, "en")
    change_config(folder, lang2id=None, use_lang_emb="no")
    with pytest.raises(ValueError, match="config.json: use_lang_emb='no': Input should be"):
        hugging_face.load(folder)
    change_config(folder, use_lang_emb=True, n_langs=0)
    with pytest.raises(ValueError, match="config.json: n_langs=0: Input should be"):
        hugging_face.load(folder)


TYPE, KEY = "transformer.lang_embeddings.weight", "transformer.attentions.1.k_lin.weight"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t.pop(TYPE), f"tensor {TYPE} is missing"),
        (lambda t: t.update({TYPE: t[TYPE][:1]}), f"tensor {TYPE} has the shape .1, 48"),
        (lambda t: t.pop("transformer.layer_norm2.2.bias"), "layer_norm2.2.bias is missing"),
        (lambda t: t.update({"transformer.attentions.3.k_lin.weight": t[KEY]}), "is unknown"),
        (
            lambda t: t.update({"pred_layer.proj.weight": t.pop("pred_layer.proj.bias")}),
            "pred_layer.proj.bias is missing. An encoder",
        ),
        (
            lambda t: t.update({"pred_layer.proj.weight": np.zeros((211, 48), np.float32)}),
            "tensor pred_layer.proj.weight differs from transformer.embeddings.weight",
        ),
    ],
)
def test_missing_unknown_and_misshapen_tensors_are_named(folder, change, message):
    change_tensors(folder, change)
    with pytest.raises(ValueError, match=f"model.safetensors: .*{message}"):
        hugging_face.load(folder)


def test_language_embeddings_that_a_config_denies_are_unknown(folder):
    change_config(folder, use_lang_emb=False)
    with pytest.raises(ValueError, match=f"tensor {TYPE} is unknown"):
        hugging_face.load(folder)


def test_sizes_that_an_xlm_does_not_have_are_not_saved(tmp_path):
    config = dataclasses.replace(ONE, intermediate=100)
    with pytest.raises(ValueError, match="models.intermediate=100: an XLM.*4 times models.hidden"):
        hugging_face.save(tmp_path, config, heads.initial_params(config, 0))
    assert not list(tmp_path.iterdir())
