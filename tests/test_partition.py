"""partition: patterns, splitting and joining, conversion, freezing."""

import chex
import jax
import numpy as np
import pytest

from xling_jax.models import heads, partition
from xling_jax.models.bert import BertConfig

CONFIG = BertConfig(vocabulary_size=20, layers=4, hidden=8, intermediate=16, heads=2, positions=16)
SEP_EMB_L1_3 = ("embeddings/tokens", "embeddings/positions", "mlm/bias", "layers/0..2")


def models(number=3):
    return [heads.initial_params(CONFIG, 0, language) for language in range(number)]


def paths(tree):
    return {
        "/".join(key.key for key in path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)
    }


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("layers/0..2", "layers/2/output/bias", True),
        ("layers/0..2", "layers/3/output/bias", False),
        ("layers/1", "layers/10/output/bias", False),
        ("layers/*/attention", "layers/3/attention/output/bias", True),
        ("*/norm", "embeddings/norm/scale", True),
        ("embeddings/", "embeddings/tokens", True),
        ("embeddings/tokens/deeper", "embeddings/tokens", False),
        ("*", "mlm/bias", True),
    ],
)
def test_a_pattern_covers_what_lies_under_it(pattern, path, expected):
    assert partition.is_under(path, pattern) is expected


def test_what_a_pattern_names_gets_a_language_axis_and_nothing_else_does():
    params = partition.split(models(), SEP_EMB_L1_3)
    own = paths(params["language"])
    assert own == {
        p
        for p in paths(models()[0])
        if p.startswith(("layers/0/", "layers/1/", "layers/2/")) or p in SEP_EMB_L1_3
    }
    assert own.isdisjoint(paths(params["shared"]))
    assert all(leaf.shape[0] == 3 for leaf in jax.tree.leaves(params["language"]))


def test_a_language_gets_its_own_part_and_the_shared_one_back():
    plain = models()
    params = partition.split(plain, SEP_EMB_L1_3)
    for language in range(3):
        found = partition.select(params, language)
        chex.assert_trees_all_equal(found["layers"]["1"], plain[language]["layers"]["1"])
        chex.assert_trees_all_equal(found["layers"]["3"], plain[0]["layers"]["3"])
        assert jax.tree.structure(found) == jax.tree.structure(plain[0])


@pytest.mark.parametrize("own", [partition.PIECES, partition.SPECIAL])
def test_special_tokens_and_pieces_can_be_apart_from_each_other(own):
    plain = models()
    params = partition.split(plain, (own, "layers/0"))
    tables = [model["embeddings"]["tokens"] for model in plain]
    for language in range(3):
        found = partition.select(params, language)
        assert jax.tree.structure(found) == jax.tree.structure(plain[0])
        first, second = (0, language) if own == partition.PIECES else (language, 0)
        expected = np.concatenate([tables[first][:5], tables[second][5:]])
        np.testing.assert_array_equal(found["embeddings"]["tokens"], expected)
    assert partition.paths(params) >= {partition.TOKENS}
    assert partition.PIECES not in partition.paths(params)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(found))
    again = partition.convert(params, (own, "layers/0"), 3)
    chex.assert_trees_all_equal(again, params)
    whole = partition.split(plain, (partition.PIECES, partition.SPECIAL))
    chex.assert_trees_all_equal(whole, partition.split(plain, (partition.TOKENS,)))


def test_everything_apart_are_the_models_themselves():
    params = partition.split(models(), partition.EVERYTHING)
    assert params["shared"] == {}
    for language, model in enumerate(models()):
        chex.assert_trees_all_equal(partition.select(params, language), model)


def test_nothing_apart_is_one_model():
    params = partition.split(models())
    assert params["language"] == {} and partition.languages(params) is None
    chex.assert_trees_all_equal(partition.select(params, 2), models()[0])


def test_separate_layers_can_start_from_shared_ones_and_go_back():
    shared = partition.split(models())
    apart = partition.convert(shared, ("layers/0..1",), 3)
    for language in range(3):
        chex.assert_trees_all_equal(partition.select(apart, language), models()[0])
    chex.assert_trees_all_equal(partition.convert(apart, (), 3), shared)
    with pytest.raises(ValueError, match="of 3 languages, not of 2"):
        partition.convert(apart, (), 2)


def test_a_pattern_without_parameters_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match=r"'layers/9'; there are embeddings/norm, .*layers/0"):
        partition.split(models(), ("layers/9",))


def test_an_exported_model_has_its_own_rows_only():
    params = partition.split(models(2), SEP_EMB_L1_3)
    found = partition.export(params, 1, 12)
    plain = models(2)[1]
    np.testing.assert_array_equal(found["embeddings"]["tokens"], plain["embeddings"]["tokens"][:12])
    assert found["mlm"]["bias"].shape == (12,)
