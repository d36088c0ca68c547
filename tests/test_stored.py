"""stored: a language's model in a folder, and what is wrong with others."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from xling_jax.corpora.normalize import Normalization
from xling_jax.models import heads, stored
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
    jax.tree.map(np.testing.assert_array_equal, found.params, model.params)
    assert (found.config, found.language, found.normalization) == (CONFIG, "en", Normalization())
    np.testing.assert_array_equal(found.ids, model.ids)
    for a, b in zip(found.encode(["A dog, sees."]), model.encode(["A dog , sees ."]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_frame_and_an_order_of_its_own_make_another_format(model, tmp_path):
    stored.save(tmp_path / "a", model)
    own = dataclasses.replace(model, frame=(7, 8), inverted=True)
    stored.save(tmp_path / "b", own, like=tmp_path / "a")
    weights = [(tmp_path / name / stored.WEIGHTS) for name in "ab"]
    assert weights[0].samefile(weights[1])
    found = stored.load(tmp_path / "b")
    assert found.frame == (7, 8) and found.inverted
    formats = [json.loads((tmp_path / name / stored.CONFIG).read_text())["format"] for name in "ab"]
    assert formats == [1, 2]
    stored.save(tmp_path / "a", dataclasses.replace(model, params=jax.tree.map(
        lambda x: x + 1, model.params)))  # fmt: skip
    jax.tree.map(np.testing.assert_array_equal, stored.load(tmp_path / "b").params, model.params)


def damage(folder, name, change):
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (stored.WEIGHTS, lambda x: x[: len(x) // 2], r"model\.safetensors is damaged"),
        (stored.CONFIG, lambda x: x.replace(b'"hidden": 8', b'"hidden": 4'), "are not those of"),
        (stored.CONFIG, lambda x: x[:-9], r"model\.json is damaged"),
        (
            stored.CONFIG,
            lambda x: x.replace(b'"format": 1', b'"format": 7'),
            "format 7, and 1 and 2",
        ),
        (stored.CONFIG, lambda x: x.replace(b"  2,", b"  99,"), "frame .99, 3. is outside the"),
        (stored.IDS, lambda x: x[:-4], r"ids\.npy is damaged"),
        (stored.PIECES, lambda x: x[:40], r"pieces\.model: "),
    ],
)
def test_a_damaged_file_is_named(model, tmp_path, name, change, message):
    stored.save(tmp_path, model)
    damage(tmp_path, name, change)
    with pytest.raises(ValueError, match=message):
        stored.load(tmp_path)


def test_a_folder_without_a_complete_model_is_refused(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.json: no such file"):
        stored.load(tmp_path)
