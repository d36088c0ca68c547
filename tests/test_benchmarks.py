"""The benchmarks count what they say, and docs/scaling.md has what they print."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.batches import packing
from xling_jax.batches.corruption import MASKING_RATE
from xling_jax.batches.streams import StreamLayout
from xling_jax.models import heads
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.training.utilisation import needed_flops

ROOT = Path(__file__).parent.parent


@pytest.fixture
def benchmark_module(monkeypatch):
    """Imports a module of benchmarks/."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda x: x.stem)
def test_a_benchmark_finds_what_it_imports(benchmark_module, path):
    if path.stem == "torch_worker":
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
    module = benchmark_module(path.stem)
    assert module.__doc__
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of = getattr(module, node.value.id, None)
            assert not isinstance(of, ModuleType) or hasattr(of, node.attr), ast.unparse(node)


def page_on_scaling():
    """Its text."""
    return (ROOT / "docs" / "scaling.md").read_text("utf-8")


def test_needed_operations_are_those_counted_by_hand():
    model = BertConfig(vocabulary_size=10, layers=2, hidden=2, intermediate=3, heads=1)
    # Two sentences of 3 and 5 tokens. Multiplications a token: queries, keys, values and output
    # 4 * 4, feed-forward 2 * 6; a pair of tokens: 2 for its score, 2 for its part of the sum.
    layers = 2 * (8 * 28 + (9 + 25) * 4)
    head = 0.15 * 4 * (4 + 2 * 10)
    assert needed_flops(model, 8, 34, 0.15 * 4) == pytest.approx(3 * 2 * (layers + head))


@pytest.mark.parametrize("head", ["bert", "linear"])
def test_needed_operations_agree_with_those_that_xla_counts(head):
    sequences, length = 4, 64
    model = BertConfig(
        2000, layers=2, hidden=128, intermediate=512, heads=2, positions=length, head=head
    )
    predicted = round(MASKING_RATE * sequences * length)

    def loss(params, tokens, places):
        zeros = jnp.zeros_like(tokens)
        positions = jnp.broadcast_to(jnp.arange(length), tokens.shape)
        (hidden,) = Bert(model).apply(
            {"params": params}, tokens, positions, zeros, zeros, layers=(model.layers,)
        )
        chosen = hidden.reshape(-1, model.hidden)[places]
        return jax.nn.logsumexp(heads.masked_language_logits(model, params, chosen), axis=1).sum()

    tokens = jax.ShapeDtypeStruct((sequences, length), np.int32)
    places = jax.ShapeDtypeStruct((predicted,), np.int32)
    params = heads.param_shapes(model)
    compiled = jax.jit(jax.grad(loss)).lower(params, tokens, places).compile()
    counted = compiled.cost_analysis()["flops"]
    places = sequences * length
    needed = needed_flops(model, places, places * length, predicted)
    # XLA counts softmax, norms and GELU too.
    assert 1.0 < counted / needed < 1.1


def test_the_page_on_scaling_has_the_tables_that_the_script_prints(benchmark_module):
    scaling = benchmark_module("scaling")
    page = page_on_scaling()
    for table in scaling.TABLES:
        assert table() in page, (
            "put what `python benchmarks/scaling.py` prints into docs/scaling.md"
        )


def most_that_share(choose, candidates):
    """The largest number of devices for which `choose` finds a layout."""
    found = []
    for devices in candidates:
        try:
            choose(devices)
        except ValueError:
            continue
        found.append(devices)
    return max(found)


def test_as_many_devices_as_the_page_says_can_share_a_batch_of_streams(benchmark_module):
    scaling = benchmark_module("scaling")
    size, most = scaling.WU, scaling.RUNS["W&C, 417 thousand updates"].most

    def choose(devices):
        StreamLayout.choose(size.parts, size.batch // size.parts, size.length, devices, 1)

    for devices in scaling.DEVICES:
        choose(devices)
    assert most_that_share(choose, range(1, 2 * size.batch)) == most
    words = " ".join(page_on_scaling().split())
    assert f"up to {most} devices share W&C's batch" in words


def test_as_many_devices_as_the_page_says_can_share_a_batch_of_sentences(benchmark_module):
    scaling = benchmark_module("scaling")
    run = scaling.RUNS["D&S §5, sentences of 30 tokens"]
    lengths = np.full(2 * run.sequences, run.length)

    def choose(devices):
        everything = [np.arange(len(lengths))]
        packing.choose_layout(lengths, everything, run.sequences, [run.length], devices)

    assert most_that_share(choose, [1, 2, 4, 8, 16, 32, 256]) == run.most
    words = " ".join(page_on_scaling().split())
    assert f"rows that divide among {run.most} devices at most" in words


def test_turns_may_take_any_number_of_steps(benchmark_module):
    schedule = benchmark_module("training_turns").schedule(epoch=100, call=30)
    assert [schedule.next_stop(step) for step in (0, 90, 100)] == [30, 100, 130]
    assert 0 not in schedule.evaluations
    assert 30 in schedule.evaluations
    assert schedule.total >= 10_000_000


def test_random_text_has_the_form_that_workers_read(benchmark_module, tmp_path):
    sizes = benchmark_module("sizes")
    for size in sizes.SIZES.values():
        sizes.write(size, tmp_path / "text.npz")
        text = np.load(tmp_path / "text.npz")
        assert text["offsets"][-1] == len(text["tokens"])
        assert len(text["offsets"]) == len(text["languages"]) + 1
        language_of_token = np.repeat(text["languages"], np.diff(text["offsets"]))
        np.testing.assert_array_equal(text["tokens"] // text["shift"], language_of_token)
        assert (text["tokens"] % text["shift"] >= text["specials"]).all()
        assert text["tokens"].max() < size.model.vocabulary_size
        if size.length:
            assert (np.diff(text["offsets"]) == size.length - 2).all()


def test_tested_verses_are_in_no_training_text(benchmark_module, tmp_path, monkeypatch):
    """Nine chapters of two verses, of which one translation joins two and lacks the last chapter,
    and a verse of the Old Testament. In the training text "1" occurs 14 times, and "3" 4 times."""
    ids = [f"MAT {chapter}:{verse}" for chapter in range(1, 10) for verse in (1, 2)]
    written = {"parallel/ids.nt": ids}
    for language, word in (("en", "sea"), ("fr", "mer")):
        text = [f"{word} of {verse}" for verse in ids]
        written[f"parallel/{language}.nt"] = text
        for name, names in {"A": ["GEN 1:1", *ids], "B": ["MAT 1:1-2", *ids[2:-2]]}.items():
            written[f"bibles/{language}.{name}.ids"] = names
            written[f"bibles/{language}.{name}"] = [f"{word} of {verse}" for verse in names]
    written["muse/en-fr.0-5000"] = ["sea\tmer", "sea\tocéan"]
    written["muse/en-fr.5000-6500"] = ["of\tof", "1\t1", "3\t3"]
    for name, lines in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    places = {"bibles": "bibles", "parallel": "parallel", "dictionaries": "muse", "to": "to"}
    options = [f"--{option}={tmp_path / folder}" for option, folder in places.items()]
    monkeypatch.setattr("sys.argv", ["verses.py", *options])
    benchmark_module("verses").main()

    def lines(name):
        return (tmp_path / "to" / f"{name}.txt").read_text("utf-8").splitlines()

    tested, held_out = ("MAT 1:", "MAT 9:"), ("MAT 5:",)
    for language, word in (("en", "sea"), ("fr", "mer")):
        of = {part: lines(f"{language}.{part}") for part in ("train", "dev", "test", "parallel")}
        verses = {part: [line.removeprefix(f"{word} of ") for line in of[part]] for part in of}
        assert verses["test"] == [verse for verse in ids if verse.startswith(tested)]
        neither = [verse for verse in ids if not verse.startswith((*tested, *held_out))]
        assert verses["parallel"] == neither
        assert verses["train"] == ["GEN 1:1", *neither, *neither]
        assert verses["dev"] == 2 * [verse for verse in ids if verse.startswith(held_out)]
    assert lines("fr.dictionary") == ["of\tof", "1\t1"]
    assert lines("fr.words") == ["sea\tmer", "of\tof", "1\t1"]
