"""Similarity experiments from a config to results: rows, texts, growing, bad input."""

import dataclasses
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import test_maps
from bilingual_run import UNMEASURED
from bilingual_run import config as train_config
from bilingual_run import run as train
from ml_collections import ConfigDict
from small_run import ROOT, config_of, on_devices

from xling_jax import records
from xling_jax.corpora import dictionaries
from xling_jax.experiments.similarity import measures, pairs
from xling_jax.experiments.similarity.experiment import Experiment
from xling_jax.experiments.similarity.texts import LanguageTexts, TextReader
from xling_jax.models import stored
from xling_jax.runs import encoders, results, texts
from xling_jax.vocabulary.static_vectors import CONTEXTS, SkipGram


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Bilingual models and one of each language alone, at a size that trains in seconds."""
    workdir = tmp_path_factory.mktemp("models") / "trained"
    train(workdir, "row=pairs+alone,pair=en-far", **UNMEASURED)
    return workdir


def test_models_of_one_language_each_do_not_begin_alike(trained):
    """A dozen updates leave them near to where they began."""
    models = [stored.load(trained / "models" / f"row{x}_seed0" / x) for x in ("en", "far")]
    kernels = [model.params["layers"]["0"]["intermediate"]["kernel"] for model in models]
    assert abs(np.corrcoef(*[kernel.ravel() for kernel in kernels])[0, 1]) < 0.1


def config(workdir, options="", **changes):
    made = config_of(
        ROOT / "configs" / "similarity.py",
        f"pair=en-far,run={workdir}{options}",
        {
            "sentences.learned": 60,
            "sentences.tested": 40,
            "sentences.contexts": 100,
            "skip_gram.dimension": 8,
            "skip_gram.buckets": 100,
            "skip_gram.min_count": 2,
            **changes,
        },
    )
    return made


def run(models, workdir, options="", **changes):
    with on_devices(1):
        table = Experiment(config(models, options, **changes), workdir).run()
    return table, {r.row: r.metrics for r in results.read_results(workdir / "results.json")}


@pytest.fixture(scope="module")
def finished(trained, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("similarity") / "whole"
    return workdir, *run(trained, workdir)


def test_every_row_has_every_measure_at_every_layer(finished):
    _, table, metrics = finished
    assert metrics.keys() == {"bilingual_en", "bilingual_far", "monolingual_far", "random_far"}
    for row, found in metrics.items():
        assert row in table
        layers = [found[f"cka_{layer}"] for layer in range(3)]
        assert found["cka"] == pytest.approx(np.mean(layers)) and all(0 < x < 1 for x in layers)
        if row == "bilingual_en":  # both read the same sentences
            assert not any(name.startswith(("sentences", "words", "context")) for name in found)
            continue
        for layer in range(3):
            for name in ("sentences", "unmapped"):
                assert 0 <= found[f"{name}_{layer}"] <= found[f"{name}_{layer}_p10"] <= 1
        for layer in range(3):
            assert 0 <= found[f"context_{layer}_p1"] <= found[f"context_{layer}_p10"] <= 1
        assert found["words_covered"] <= found["words_words"] and found["words_first"] > 5
        for name in ("static", "context_static"):
            assert 0 <= found[f"{name}_p1"] <= found[f"{name}_p10"] <= 1
        assert found["context_static_covered"] == found["context_0_covered"]
        assert found["static_covered"] == found["words_covered"] <= found["words_words"]
        assert -1 <= found.get("pearson", 0) <= 1
        assert 0 < found["retrieval_cut"] < 1


def test_a_rotation_of_a_model_is_found_in_the_layer_that_is_rotated():
    first, turned = test_maps.models()
    pairs = [(word, word) for word in test_maps.WORDS]
    train, test = (dictionaries.from_pairs(own, "en", "xx") for own in (pairs, pairs[:4]))
    lines = test_maps.texts()
    same = list(zip(lines, lines, strict=True))
    given = LanguageTexts(same[:200], same[200:], (lines, lines), train, test, {}, {})
    own = ConfigDict({"layers": (), "words": {"most": 100}, "skip_gram": {}})

    found = measures.compare((first, turned), given, True, own)
    assert found["cka_0"] == pytest.approx(1, abs=1e-4)
    for name in ("sentences_0", "context_0_p1", "words_p1"):
        assert found[name] > 0.99
    assert found["unmapped_0"] < 0.5
    for name in ("cka_2", "sentences_2", "context_2_p1"):
        assert found[name] < 0.9
    by_layer = ([found[f"{name}_{layer}"] for layer in range(3)] for name in ("cka", "sentences"))
    assert found["pearson"] == pytest.approx(np.corrcoef(*by_layer)[0, 1], abs=1e-4)

    embeddings = dict(turned.params["embeddings"])
    embeddings["tokens"] = np.ones_like(embeddings["tokens"])
    alike = dataclasses.replace(turned, params=turned.params | {"embeddings": embeddings})
    assert measures.compare((first, alike), given, True, own)["words_p1"] < 0.5


def test_no_map_is_learned_from_what_it_is_tested_on(capsys):
    models = test_maps.models()
    pairs = [(word, word) for word in test_maps.WORDS]
    lines = test_maps.texts(60)
    same = list(zip(lines, lines, strict=True))
    own = ConfigDict({"layers": (0,), "words": {"most": 100}, "skip_gram": {}})

    def found(learned, train, test):
        known = [dictionaries.from_pairs(words, "en", "xx") for words in (train, test)]
        given = LanguageTexts(learned, same[40:], (lines, lines), *known, {}, {})
        return measures.compare(models, given, True, own)

    apart, both = found(same[:40], pairs[4:], pairs[:4]), found(same, pairs, pairs[:4])
    assert {**both, "cka": 0, "cka_0": 0} == {**apart, "cka": 0, "cka_0": 0}
    assert apart["retrieval_candidates"] == 20 and "context_0_p1" in apart
    assert "not learned from 20 of 60 pairs" in (said := capsys.readouterr().err)
    assert "not learned from 4 of 20 pairs of words" in said
    none = found(same, pairs[:4], pairs[:4])
    assert not any(name.startswith(("context", "words")) for name in none)
    assert "no other word has a translation" in capsys.readouterr().err


def test_a_random_encoder_has_the_pieces_of_the_trained_one(trained):
    folders = {"far": str(trained / "models/rowfar_seed0/far")}
    sides = [
        pairs.load(encoders.Encoder("far", True), place, folders, "far", 0) for place in (0, 1)
    ]
    kernels = [m.params["layers"]["0"]["output"]["kernel"] for m in sides]
    assert not np.allclose(*kernels)
    model, drawn = pairs.load(encoders.Encoder("far", False), 1, folders, "far", 0), sides[1]
    assert model.pieces.sha256 == drawn.pieces.sha256 and model.config == drawn.config
    tables = [np.asarray(m.params["embeddings"]["tokens"]) for m in (model, drawn)]
    assert tables[0].shape == tables[1].shape and not np.allclose(*tables)


def test_single_pieces_are_words_with_a_row_of_their_own(trained):
    model = stored.load(trained / "models/rowen_seed0/en")
    found = model.single_pieces()
    assert len(found) > 5
    for word, row in found.items():
        assert model.encode_words([word])[0][0].tolist() == [row]
    some = list(found)[:3]
    assert list(model.single_pieces([*some, "unheardof"])) == some


def test_files_serve_as_texts_and_vectors_are_compared_on_the_same_words(
    trained, finished, tmp_path
):
    far = stored.load(trained / "models/rowfar_seed0/far")
    en = stored.load(trained / "models/rowen_seed0/en")
    known = [list(measures.single_pieces(model, None)) for model in (en, far)]
    number = min(20, *map(len, known))
    fields = {}
    for name, own in zip(("en", "far"), known, strict=True):
        random = np.random.default_rng(0)  # the same vectors on both sides
        lines = [f"{w} {' '.join(f'{x:.4f}' for x in random.normal(size=8))}" for w in own[:number]]
        (tmp_path / f"{name}.vec").write_text("\n".join([f"{number} 8", *lines]) + "\n")
        fields[f"texts.{name}.vectors"] = str(tmp_path / f"{name}.vec")
    lines = [f"{a}\t{b}" for a, b in zip(*(own[:number] for own in known), strict=True)]
    for name, some in (("dictionary", lines[::2]), ("test_dictionary", lines[1::2])):
        (tmp_path / name).write_text("\n".join(some) + "\n")
        fields[f"texts.far.{name}"] = str(tmp_path / name)
    fields |= dict.fromkeys(("texts.en.contexts", "texts.far.contexts"), "")
    _, found = run(trained, tmp_path / "files", ",row=monolingual_far", **fields)
    metrics = found["monolingual_far"]
    assert metrics["static_p1"] == 1 and metrics["words_first"] == number
    assert not any(name.startswith("context") for name in metrics)
    with (tmp_path / "far.vec").open("a") as file:
        file.write("a line too many\n")
    with pytest.raises(ValueError, match=r"texts\.far\.vectors: .*far\.vec"):
        run(trained, tmp_path / "broken", ",row=monolingual_far", **fields)
    assert metrics["cka"] == pytest.approx(finished[2]["monolingual_far"]["cka"], rel=1e-5)


def test_vectors_trained_on_contexts_know_what_stands_beside_a_word():
    words = [f"word{n}" for n in range(10)]
    a, b, *others = words
    text = [" ".join([word, other] * 3) for word in (a, b) for other in others[:4]]
    text += [" ".join([*others[4:8]] * 3)] * 20
    settings = ConfigDict(dataclasses.asdict(SkipGram(16, sample=0.1, epochs=200, buckets=100)))
    given = SimpleNamespace(vectors={"en": CONTEXTS}, trained={})
    found = measures._static_vectors("en", [a, others[5], b, "unheard"], text, given, settings)
    assert found.keys() == {a, b, others[5]}
    unit = {word: vector / np.linalg.norm(vector) for word, vector in found.items()}
    assert unit[a] @ unit[b] > unit[a] @ unit[others[5]] + 0.1
    again = measures._static_vectors("en", [a], text, given, settings)
    assert len(given.trained) == 1 and again[a] is found[a]
    with pytest.raises(ValueError, match=r"texts\.en\.contexts: no word .* occurs 5 times: give"):
        measures._static_vectors("en", ["unheard"], text, given, settings)


def test_a_word_with_capitals_in_a_file_of_vectors_stands_for_the_lower_case_one(tmp_path):
    path = tmp_path / "de.vec"
    path.write_text("Haus 1 2\nNATO 3 4\nUnd 5 6\nund 7 8\n猫 9 9\n")
    given = SimpleNamespace(vectors={"de": str(path)})
    wanted = ["und", "haus", "猫", "nato", "fehlt"]
    found = measures._static_vectors("de", wanted, [], given, ConfigDict())
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "haus": [1, 2], "nato": [3, 4], "und": [7, 8], "猫": [9, 9],
    }  # fmt: skip


def test_a_text_of_the_first_languages_own_stands_for_all_purposes(trained, tmp_path):
    (tmp_path / "en").write_text("a b .\nc d .\n")
    (tmp_path / "again").write_text("b a .\nd c .\n")
    fields = {"tested_first": "en", "tested": "again"}
    own = {f"texts.en.{name}": str(tmp_path / path) for name, path in fields.items()}
    given = dict.fromkeys(("texts.en.learned", "texts.en.learned_first"), "")
    same = TextReader(config(trained)).read("en")
    assert same.learned and same.tested and all(a == b for a, b in same.learned)
    found = TextReader(config(trained, **given, **own)).read("en")
    assert found.learned is None and found.tested == [("a b .", "b a ."), ("c d .", "d c .")]

    for path in fields.values():
        (tmp_path / path).write_text("a b .\n")
    with pytest.raises(ValueError, match=r"texts\.en\.tested: it has one sentence"):
        TextReader(config(trained, **given, **own)).read("en")


def test_a_dictionary_in_the_wrong_direction_is_refused(trained, tmp_path):
    pairs = texts.of_run(str(trained), ("en", "far")).pair("far").dictionary()
    (tmp_path / "far-en").write_text("".join(f"{b}\t{a}\n" for a, b in pairs))
    fields = {"texts.far.test_dictionary": str(tmp_path / "far-en")}
    with pytest.raises(ValueError, match=r"texts\.far\.test_dictionary: .* wrong language alone"):
        run(trained, tmp_path / "run", ",row=monolingual_far", **fields)


def test_every_seed_has_its_models():
    models = {"en": "run/en_{seed}", "other": "run/en_{next_seed}", "fixed": "run/fr"}
    assert encoders.folders(models, (3, 5)) == {
        3: {"en": "run/en_3", "other": "run/en_5", "fixed": "run/fr"},
        5: {"en": "run/en_5", "other": "run/en_3", "fixed": "run/fr"},
    }
    assert encoders.folders(models, (3,)) == {
        3: {"en": "run/en_3", "other": "run/en_4", "fixed": "run/fr"}
    }


def test_seeds_are_compared_one_after_another_and_meaned(trained, finished, tmp_path):
    workdir = tmp_path / "seeds"
    models = {
        f"models.{name}": f"{trained}/models/row{name}_seed0/{name}" for name in ("en", "far")
    }
    run(trained, workdir, ",row=random_far", **models)
    table, _ = run(trained, workdir, ",row=random_far,seeds=0+1", **models)
    both = results.read_results(workdir / "results.json")
    assert [entry.seed for entry in both] == [0, 1]
    found = [entry.metrics["cka"] for entry in both]  # of other random encoders
    assert found[0] == finished[2]["random_far"]["cka"] != found[1]
    assert f"{np.mean(found):.3f}"[1:] in table
    with pytest.raises(FileNotFoundError, match="rowen_seed7/en"):
        run(trained, tmp_path / "none", ",row=monolingual_far,seeds=0+7")


def test_neighbouring_seeds_are_compared_once(trained, tmp_path):
    for seed in (0, 1):
        shutil.copytree(trained / "models" / "rowen_seed0" / "en", tmp_path / f"en{seed}")
    models = {
        "models.en": f"{tmp_path}/en{{seed}}",
        "models.en_other": f"{tmp_path}/en{{next_seed}}",
    }
    for seeds in ("0+1", "1+0"):
        run(trained, tmp_path / "run", f",row=other_seed,seeds={seeds}", **models)
    ended = results.read_results(tmp_path / "run" / "results.json")
    assert [(each.row, each.seed) for each in ended] == [("other_seed", 0)]
    shutil.copytree(tmp_path / "en1", tmp_path / "en5")
    run(trained, tmp_path / "run", ",row=other_seed,seeds=0+5", **models)  # 0 stays as it is
    run(trained, tmp_path / "run", ",row=other_seed,seeds=1+5", **models)
    stored_there = json.loads((tmp_path / "run" / "config.json").read_text())["compared"]
    compared = {seed: [Path(path).name for path, *_ in sides] for _, seed, sides in stored_there}
    assert compared == {0: ["en0", "en1"], 1: ["en1", "en5"], 5: ["en0", "en5"]}


def test_models_that_are_the_same_for_every_seed_are_compared_once(trained, tmp_path):
    folder = str(trained / "models" / "rowen_seed0" / "en")
    models = {"models.en": folder, "models.en_other": folder}
    for seeds in ("42", "0+42"):
        run(trained, tmp_path / "run", f",row=other_seed,seeds={seeds}", **models)
    ended = results.read_results(tmp_path / "run" / "results.json")
    assert [each.seed for each in ended] == [42]


def test_a_table_grows_and_finished_rows_are_kept(trained, finished, tmp_path):
    workdir = tmp_path / "grown"
    shutil.copytree(finished[0], workdir)
    before = json.loads((workdir / "results.json").read_text())
    again = "en|en @en"
    _, found = run(trained, workdir, f",row=random_far+{again}")
    after = json.loads((workdir / "results.json").read_text())
    assert [entry for entry in after if entry in before] == before and len(after) == len(before) + 1
    assert found[again]["cka"] == pytest.approx(1, abs=1e-4)
    assert "words_p1" not in found[again]


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        (
            ",row=en|fr @far",
            {},
            "there is no model 'fr' among en, en_far_en, en_far_far, en_other, en_twin_en, "
            "en_twin_twin, far",
        ),
        (",row=en|far @de", {}, "there is no text of 'de': choose from en, far"),
        (",row=far|en @far", {}, "models.far: .* is a model of far, and is to read en"),
        (",row=monolingual_far+far|en @far", {}, "models.far: .* is a model of far, and is to"),
        ("", {"texts.far.dictionary": ""}, "texts.far.dictionary and .*test_dictionary: give both"),
        ("", {"texts.en.contexts": ""}, "texts.en.contexts is empty, and texts.far.contexts is"),
        (
            "",
            {"texts.en.contexts": "", "texts.far.contexts": ""},
            r"texts.en.vectors=contexts: give texts.en.contexts",
        ),
        (",row=en,far", {}, "unknown option 'far'"),
        (",row=en|far", {}, "not of the form"),
        ("", {"models.far": "nowhere"}, "models.far: nowhere/model.json: no such file"),
        ("", {"texts.far.tested": ""}, "texts.far.tested and texts.far.tested_first: give both"),
        (
            "",
            {"texts.far.learned": str(ROOT / "LICENSE")},
            "texts.far.learned_first and texts.far.learned: give files for both",
        ),
        ("", {"texts.far.learned": "no.txt"}, "texts.far.learned: no.txt: no such file"),
        (
            "",
            {"texts.en.dictionary": "en-far.txt"},
            "texts.en.dictionary: a dictionary is from en to another language: give it for far",
        ),
        ("", {"run": "nowhere"}, "there is no nowhere/config.json.*configs/bilingual.py"),
        ("", {"layers": (9,)}, r"layers=\(9,\): the model has layers 0..2"),
    ],
)
def test_bad_input_is_named(trained, tmp_path, options, changes, message):
    with pytest.raises((ValueError, FileNotFoundError), match=re.compile(message, re.DOTALL)):
        run(trained, tmp_path, options, **changes)
    assert not any((tmp_path / name).exists() for name in ("config.json", "results.json"))


def test_models_of_different_depths_are_compared_at_layers_that_are_named():
    models = [SimpleNamespace(config=SimpleNamespace(layers=depth)) for depth in (2, 3)]
    with pytest.raises(ValueError, match="models of 2 and 3 layers: name those to compare with"):
        measures.layers_of(models, SimpleNamespace(layers=()))
    assert measures.layers_of(models, SimpleNamespace(layers=(0, 2))) == [[0, 2], [0, 2]]


def test_embedded_texts_of_another_run_are_told_apart(tmp_path):
    described, found = train_config("row=default,pair=en-far"), []
    for words_there_are in (300, 301):
        described.corpora.synthetic.word_types = words_there_are
        content = {"experiment": "bilingual", "config": described.to_dict()}
        (tmp_path / "config.json").write_text(json.dumps(records.sealed(content)))
        found.append([TextReader(config(tmp_path)).manifest() for _ in range(2)])
    assert found[0][0] == found[0][1] != found[1][0]
    assert {entry["field"] for entry in found[0][0]} == {"run"}


def test_another_model_is_refused_in_the_same_workdir(trained, finished, tmp_path):
    workdir, other = tmp_path / "same", tmp_path / "models"
    shutil.copytree(finished[0], workdir)
    shutil.copytree(trained / "models/rowfar_seed0/far", other)
    with pytest.raises(ValueError, match="models.far"):
        run(trained, workdir, **{"models.far": str(other)})
