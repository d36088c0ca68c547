"""stored: a language's model in a folder, and what is wrong with others."""

import dataclasses
import json
import os

import chex
import jax
import numpy as np
import pytest
from weights import change_tensors

from xling_jax.corpora.normalize import Normalization
from xling_jax.models import folders, heads, stored
from xling_jax.models.bert import BertConfig
from xling_jax.vocabulary import pieces as vocabulary

TEXT = ["the dogs see a cat .", "a cat sees the dogs , and sleeps ."]
CONFIG = BertConfig(
    vocabulary_size=40, layers=1, hidden=8, intermediate=16, heads=1, positions=16, head="linear"
)


@pytest.fixture(scope="module")
def model():
    pieces = vocabulary.train(TEXT, 26)
    return stored.StoredModel(
        CONFIG,
        heads.initial_params(CONFIG, 0),
        "en",
        pieces,
        np.arange(26, dtype=np.int32) + np.arange(26) // 5,
        Normalization(),
    )


def test_what_was_saved_is_loaded(model, tmp_path):
    stored.save(tmp_path / "a", model)
    found = stored.load(tmp_path / "a")
    chex.assert_trees_all_equal(found.params, model.params)
    assert (found.config, found.language, found.normalization) == (CONFIG, "en", Normalization())
    np.testing.assert_array_equal(found.ids, model.ids)
    for a, b in zip(found.encode(["A dog, sees."]), model.encode(["A dog , sees ."]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_frame_and_an_order_of_its_own_are_kept_and_weights_shared(model, tmp_path):
    stored.save(tmp_path / "a", model)
    own = dataclasses.replace(model, special_ids=(7, 8), inverted=True)
    stored.save(tmp_path / "b", own, like=tmp_path / "a")
    weights = [(tmp_path / name / stored.WEIGHTS) for name in "ab"]
    assert weights[0].samefile(weights[1])
    found = stored.load(tmp_path / "b")
    assert found.special_ids == (7, 8) and found.inverted
    stored.save(tmp_path / "a", dataclasses.replace(model, params=jax.tree.map(
        lambda x: x + 1, model.params)))  # fmt: skip
    chex.assert_trees_all_equal(stored.load(tmp_path / "b").params, model.params)


def test_every_flipped_bit_is_refused_with_the_files_name(model, tmp_path):
    stored.save(tmp_path, model)
    random = np.random.default_rng(0)
    for path in stored.files(tmp_path):
        whole = path.read_bytes()
        value = json.loads(whole) if path.name == stored.CONFIG else None
        for _ in range(15):
            content = bytearray(whole)
            content[random.integers(len(whole))] ^= 1 << random.integers(8)
            if value and _json_or_none(content) == value:
                continue  # a blank became another one
            path.write_bytes(content)
            with pytest.raises(ValueError, match=path.name):
                stored.load(tmp_path)
        path.write_bytes(whole[: len(whole) * 3 // 4])
        with pytest.raises(ValueError, match=path.name):
            stored.load(tmp_path)
        path.write_bytes(whole)
    stored.load(tmp_path)


def _json_or_none(content):
    try:
        return json.loads(content)
    except ValueError:
        return None


def change_description(folder, **changes):
    """Changes fields, those of objects inside too, as `model__hidden=4`; None takes one out."""
    path = folder / stored.CONFIG
    fields = json.loads(path.read_text())
    for name, value in changes.items():
        *parents, last = name.split("__")
        place = fields
        for parent in parents:
            place = place[parent]
        place[last] = value
        if value is None:
            del place[last]
    path.write_text(json.dumps(fields))


@pytest.fixture
def old(model, tmp_path):
    """A folder as it was written before there were digests."""
    stored.save(tmp_path, model)
    later = dict.fromkeys(("sha256", "files", "frame", "inverted", "own"))
    change_description(tmp_path, format=1, **later)
    return tmp_path


def test_folders_without_digests_are_read(model, old):
    chex.assert_trees_all_equal(stored.load(old).params, model.params)
    assert stored.load(old).special_ids == model.special_ids and not stored.load(old).inverted
    change_description(old, format=2, frame=[7, 8], inverted=True)
    assert stored.load(old).special_ids == (7, 8) and stored.load(old).inverted
    assert stored.load(old).own is None
    change_description(old, format=3)
    with pytest.raises(ValueError, match=r"model\.json: files is missing"):
        stored.load(old)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"format": 7}, "format=7: this version reads 1 to 4"),
        ({"format": "1"}, "format='1': Input should be"),
        ({"language": 3}, "language=3: Input should be"),
        ({"language": ""}, "language='': String should have at least 1"),
        ({"inverted": "no"}, "inverted='no': Input should be"),
        ({"inverted": 0}, "inverted=0: Input should be"),
        (
            {"format": 4, "frame": [2, 3], "inverted": False, "own": "layers/0"},
            "own='layers/0': Input should be",
        ),
        ({"invertid": True}, "invertid=True: no such field is known"),
        ({"frame": [99, 3]}, r"frame=\[99, 3\]: the model has ids from 0 to 39"),
        ({"frame": [2]}, "frame.1 is missing"),
        ({"frame": [True, 3]}, "frame.0=True: Input should be"),
        ({"normalization": []}, r"normalization=\[\]: Input should be"),
        ({"normalization__tokenize": "x"}, "normalization.tokenize='x': Input should be"),
        ({"normalization__punctuation": 1}, "normalization.punctuation=1: Input should be"),
        ({"model": None}, "model is missing"),
        ({"model__hidden": 4}, r"model\.safetensors: tensor .* wants"),
        ({"model__hidden": 8.0}, "model.hidden=8.0: Input should be"),
        ({"model__heads": 0}, "model.heads=0: Input should be"),
        ({"model__heads": 3}, r"model\.json: .*not divisible by"),
        ({"model__layers": 10_000_000}, r"18 tensors, but model\.json wants 10000000 layers"),
        ({"model__layers": True}, "model.layers=True: Input should be"),
        ({"model__vocabulary_size": 2**40}, "model.vocabulary_size=1099511627776: Input should be"),
        ({"model__vocabulary_size": 2**31 - 1}, "wants .2147483647"),
        ({"model__positions": 2}, "model.positions=2: Input should be"),
        ({"model__norm_epsilon": -1}, "model.norm_epsilon=-1: Input should be"),
        ({"model__norm_epsilon": float("nan")}, "model.norm_epsilon=nan: Input should be"),
        ({"model__initial_sd": 10**400}, "model.initial_sd=1000.*: Input should be"),
        ({"model__dropout": 1}, "model.dropout=1: Input should be"),
        ({"model__dtype": "int8"}, "model.dtype='int8': Input should be"),
        ({"model__remat": "no"}, "model.remat='no': Input should be"),
        ({"model__hiden": 8}, "model.hiden=8: no such field is known"),
    ],
)
def test_a_field_of_the_wrong_type_or_range_is_named(old, changes, message):
    change_description(old, **changes)
    with pytest.raises(ValueError, match=message):
        stored.load(old)


def with_value(value, dtype=np.float32):
    def change(tensors):
        found = tensors["mlm/bias"].astype(dtype)
        found[3] = value
        tensors["mlm/bias"] = found

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (with_value(np.nan), "1 of the 40 values of tensor mlm/bias are NaN or infinite"),
        (with_value(-np.inf), "tensor mlm/bias are NaN or infinite"),
        (with_value(1e300, np.float64), "tensor mlm/bias are too large for float32"),
        (with_value(1, np.int32), "tensor mlm/bias is of type I32"),
        (lambda tensors: tensors.pop("mlm/bias"), "tensor mlm/bias is missing"),
        (lambda tensors: tensors.update(more=np.zeros(1)), "tensor more is unknown"),
    ],
)
def test_weights_that_are_no_models_are_refused(old, change, message):
    change_tensors(old, change)
    with pytest.raises(ValueError, match=rf"model\.safetensors: .*{message}"):
        stored.load(old)


@pytest.mark.parametrize(
    "ids, message",
    [
        (np.arange(26) - 1, r"piece '\[PAD\]' has the id -1, and the model has ids from 0 to 39"),
        (np.arange(26) + 15, "has the id 40"),
        (np.arange(26) // 2, r"the pieces '\[PAD\]' and '\[UNK\]' have the same id 0"),
        (np.arange(25), "no ids of the 26 pieces"),
        (np.arange(26, dtype=np.float32), "no ids of the 26 pieces"),
    ],
)
def test_ids_that_are_no_rows_are_refused(old, ids, message):
    ids = ids if ids.dtype == np.float32 else ids.astype(np.int32)
    np.save(old / stored.IDS, ids)
    with pytest.raises(ValueError, match=rf"ids\.npy: .*{message}"):
        stored.load(old)


@pytest.mark.parametrize(
    "name, change, message",
    [
        (stored.WEIGHTS, lambda x: x[: len(x) // 2], "is not a safetensors file, or damaged"),
        (stored.CONFIG, lambda x: x[:-9], "is not JSON"),
        (stored.CONFIG, lambda x: b"[" * 100_000, "nested too deep"),
        (stored.CONFIG, lambda x: b"[]", "Input should be"),
        (stored.IDS, lambda x: x[:-4], "is damaged"),
        (stored.IDS, lambda x: x.replace(b"(26,), }", b"(26,), ("), "is damaged"),
        (stored.PIECES, lambda x: x[:40], ""),
    ],
)
def test_a_damaged_file_is_named(old, name, change, message):
    path = old / name
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"{name}.*{message}"):
        stored.load(old)


@pytest.mark.parametrize("name", [stored.CONFIG, stored.WEIGHTS, stored.PIECES, stored.IDS])
def test_a_folder_or_a_pipe_is_no_file(old, name):
    (old / name).unlink()
    (old / name).mkdir()
    with pytest.raises(ValueError, match=f"{name} is a folder"):
        stored.load(old)
    (old / name).rmdir()
    os.mkfifo(old / name)
    with pytest.raises(ValueError, match=f"{name} is a pipe"):
        folders.manifest(old)


def test_a_folder_without_a_complete_model_is_refused(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.json: no such file"):
        stored.load(tmp_path)
