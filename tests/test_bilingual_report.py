"""The report of a bilingual run shows what is stored, whole or half, and needs nothing else."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from test_report_page import files_of

from xling_jax import devices
from xling_jax.evaluators.translations import Translated, Translations
from xling_jax.experiments.bilingual import report as bilingual
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig
from xling_jax.models.heads import initial_params
from xling_jax.report.figures import over_training
from xling_jax.report.frame import Measure, Run
from xling_jax.runs import results

ROWS = {
    "default": "default",
    "wiki_cc": "wiki-cc",
    "no_anchors": "no-anchors",
    "sep_emb": "sep-emb",
    "mine": "default-anchors;sep[layers/0..2]",
    "far": "only[far]",
}
PAIR = ("en", "far")
LAYERS, STEPS = 3, 400
CURVE = (20, 100, 200, 400)


def metrics_of(row: str, seed: int, share: float, languages: Sequence[str]) -> dict[str, float]:
    """Plausible numbers at a share of the training."""
    random = np.random.default_rng([seed, sum(map(ord, row)), round(100 * share)])
    trained = ["far"] if row == "far" else list(languages)
    found = {f"perplexity_dev_{name}": 5 + 400 * np.exp(-5 * share) for name in trained}
    found = {name: float(value * random.uniform(0.95, 1.05)) for name, value in found.items()}
    found["perplexity_dev"] = float(np.mean(list(found.values())))
    found |= {f"fertility_{name}": 1.05 if row == "default" else 1.1 for name in trained}
    high = {"default": 0.7, "no_anchors": 0.5}.get(row, 0.3) * share
    for name in trained[1:]:
        for task in ("retrieval", "words"):
            for layer in range(LAYERS + 1):
                value = high * (1 - 0.1 * (layer - 2) ** 2) + random.uniform(0, 0.05)
                found[f"{task}_{name}_{layer}"] = value
            found[f"{task}_candidates_{name}"] = 1000.0 if task == "retrieval" else 150.0
        found[f"retrieval_{name}_2_p5"] = 0.9
    for task in ("retrieval", "words") if len(trained) > 1 else ():
        values = [found[f"{task}_{n}_{k}"] for n in trained[1:] for k in range(LAYERS + 1)]
        found[task] = float(np.mean(values))
    return found


def fake_run(
    folder: Path,
    names: Sequence[str] = ("default", "no_anchors", "far"),
    seeds: Sequence[int] = (0, 1),
    shares: Mapping[str, float] | None = None,
    diverged: Mapping[str, Sequence[int]] | None = None,
    languages: Sequence[str] = PAIR,
    texts: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """A workdir as a run leaves it; `shares` of the training for rows that have not ended."""
    folder.mkdir(parents=True, exist_ok=True)
    source = {"train": "train.txt" if texts else "synthetic"}
    config = {
        "experiment": "bilingual", "fingerprint": "f00", "scale": "laptop", "texts": list(texts),
        "versions": {"jax": "0.7.0"}, "rows": {name: ROWS.get(name, name) for name in names},
        "groups": [[[name, seed]] for name in names for seed in seeds],
        "steps": {name: STEPS for name in names},
        "config": {
            "corpora": {"languages": list(languages), "train_sentences": 40_000,
                        "dev_sentences": 1000, "test_sentences": 1000,
                        **{name: source for name in languages}},
            "vocabulary": {"joint_size": 1200}, "models": {"layers": LAYERS},
            "training": {"epochs": 20}, "every_row": "language-softmax;random-inside",
        },
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    ended = []
    for name in names:
        share = (shares or {}).get(name, 1.0)
        for seed in seeds:
            lost = seed in (diverged or {}).get(name, ())
            until = STEPS // 2 if lost else round(share * STEPS)
            log(folder, name, seed, until, languages)
            if lost:
                ended.append(replica(name, seed, {}, until, diverged=until))
            elif share == 1.0:
                own = metrics_of(name, seed, 1.0, languages)
                ended.append(replica(name, seed, {**own, "anchors": 27.0, "anchor_tokens": 0.3}))
    if ended:
        results.write_results(folder / "results.json", ended)
    return folder


def log(folder: Path, row: str, seed: int, until: int, languages: Sequence[str]) -> None:
    lines: list[dict[str, Any]] = []
    for step in range(20, until + 1, 20):
        at = {"step": step, "epoch": step / 20, "row": row, "seed": seed}
        lines.append({"kind": "train", **at, "loss": 5.0, "tokens_per_second": 2e4})
        if step in CURVE:
            metrics = metrics_of(row, seed, step / STEPS, languages)
            lines.append({"kind": "evaluation", **at, "metrics": metrics})
    with open(folder / "metrics.jsonl", "a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def replica(
    row: str, seed: int, metrics: Mapping[str, float], step: int = STEPS,
    diverged: int | None = None,
) -> results.Replica:  # fmt: skip
    scored = STEPS // 2 if seed and diverged is None else None
    described = ROWS.get(row, row)
    return results.Replica("bilingual", row, described, seed, step, metrics, diverged, scored)


def page_of(workdir: Path) -> str:
    bilingual.write(workdir)
    return (workdir / "report" / "report.html").read_text()


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, with its report."""
    workdir = fake_run(tmp_path_factory.mktemp("ended"))
    bilingual.write(workdir)
    return workdir


def going_run(folder: Path) -> Path:
    """Rows that ended, diverged, in part or whole, train and have not begun, of three languages."""
    return fake_run(
        folder, list(ROWS)[:-1], [0, 1, 2], {"no_anchors": 1.0, "sep_emb": 0.5, "mine": 0.0},
        {"wiki_cc": [0, 1, 2], "no_anchors": [1]}, languages=("en", "far", "near"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def going(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that goes on, with its report."""
    workdir = going_run(tmp_path_factory.mktemp("going"))
    bilingual.write(workdir)
    return workdir


def test_the_table_has_means_and_standard_deviations_over_seeds(ended: Path) -> None:
    with open(ended / "report" / "tables" / "table1.csv") as file:
        lines = {line["row"]: line for line in csv.DictReader(file)}
    values = [metrics_of("default", seed, 1.0, PAIR)["retrieval"] for seed in (0, 1)]
    assert float(lines["default"]["retrieval"]) == pytest.approx(np.mean(values), rel=1e-5)
    assert float(lines["default"]["retrieval_sd"]) == pytest.approx(np.std(values), rel=1e-4)
    assert lines["far"]["retrieval"] == lines["far"]["perplexity_dev_en"] == ""
    latex = (ended / "report" / "tables" / "table1.tex").read_text()
    assert r"no\_anchors & no-anchors" in latex and latex.count(r"\\") == 5


def test_a_row_keeps_its_colour_whatever_rows_there_are(going: Path) -> None:
    run = Run(going)
    numbers = {line.label: line.number for line in over_training(run, "{}")}
    assert numbers == {"default": 0, "no_anchors": 2, "sep_emb": 3}
    layers = bilingual.over_layers(run)
    assert list(layers) == ["far", "near"]
    assert [line.number for line in layers["near"]] == [0, 2, 3]


@pytest.mark.pictures
def test_a_language_alone_has_perplexities_and_nothing_else(tmp_path: Path) -> None:
    text = page_of(fake_run(tmp_path, ["far"], [0]))
    assert "One seed a row" in text and "retrieval" not in text and "Overview" not in text
    assert files_of(tmp_path, "figures") == {"training.svg", "training.png", "drawn.json"}


@pytest.mark.pictures
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_a_single_row_that_has_hardly_begun_has_a_page(tmp_path: Path, share: float) -> None:
    text = page_of(fake_run(tmp_path, ["default"], [0], {"default": share}))
    expected = {0.0: "Nothing has been logged yet: 0 of 1 rows done."}
    assert expected.get(share, "Not finished: 0 of 1 rows done, row default at step") in text
    assert ("not begun" in text) == (share == 0.0)


@pytest.mark.pictures
def test_nothing_but_diverged_rows_is_said_so(tmp_path: Path) -> None:
    text = page_of(
        fake_run(tmp_path, ["default", "sep_emb"], [0], diverged=dict.fromkeys(ROWS, [0]))
    )
    assert "2 of 2 replicas have ended, 2 of them diverged." in text
    assert text.count('<td class="message bad"') == 2 and "One seed" not in text


def test_texts_are_named_with_their_sizes_where_these_are_stored(tmp_path: Path) -> None:
    texts = [
        {"source": "/a/b/en.txt", "language": "en", "field": "train", "sha256": "0", "words": 7000},
        {"source": "tfds:wiki40b/fr:train#text", "language": "fr", "field": "train", "sha256": "1"},
        {"source": "/a/fr.dev", "language": "fr", "field": "dev", "sha256": "2"},
    ]
    text = page_of(fake_run(tmp_path, ["default"], [0], languages=("en", "fr"), texts=texts))
    assert (
        "Trained on en: en.txt (7,000 words); fr: tfds:wiki40b/fr:train#text, the first 40,000 "
        "sentences of a language." in text
    )
    assert "<td>dev</td>" in text and "made by the program" not in text


def test_notes_are_about_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"perplexity_dev": 5.0, "cka": 0.5, "cka_far_2": 0.5, "mrr": 0.5, "mrr_far_2": 0.5}
    monkeypatch.setitem(globals(), "metrics_of", lambda *_: found)
    notes = bilingual._texts_of(Run(fake_run(tmp_path, ["default"])))["Notes"]
    starts = [note.split(":")[0] for note in notes]
    assert "MRR" in starts and "CKA" in starts
    assert not {"Sentence retrieval", "After a map", "Word translation"} & set(starts)


def test_the_fertility_of_a_language_alone_is_explained(tmp_path: Path) -> None:
    notes = bilingual._texts_of(Run(fake_run(tmp_path, ["far"])))["Notes"]
    assert any(note.startswith("Fertility: ") for note in notes)


@pytest.mark.parametrize("row", ["default", "extra-anchors-online"])
def test_pieces_are_of_the_text_before_words_are_replaced_online(tmp_path: Path, row: str) -> None:
    notes = bilingual._texts_of(Run(fake_run(tmp_path, [row])))["Notes"]
    for start in ("Anchors: ", "Fertility: "):
        (note,) = (note for note in notes if note.startswith(start))
        assert ("before its words are replaced" in note) == (row != "default")


def test_notes_name_the_languages_in_which_a_task_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {
        "retrieval": 0.5, "retrieval_fr_2": 0.5, "retrieval_candidates_fr": 1000.0,
        "words": 0.1, "words_ru_2": 0.1, "words_candidates_ru": 900.0,
    }  # fmt: skip
    monkeypatch.setitem(globals(), "metrics_of", lambda *_: found)
    workdir = fake_run(tmp_path, ["default"], languages=("en", "fr", "ru"))
    notes = bilingual._texts_of(Run(workdir))["Notes"]
    sentences, words = (note for note in notes if "among" in note and "both directions" in note)
    assert sentences.startswith("Sentence retrieval between en and fr: ")
    assert words.startswith("Word translation between en and ru: ")
    assert "among 1,000 sentences (chance: about 0.001); mean of both" in sentences
    # A word may have several translations: chance does not follow from the number of words.
    assert "forward among 900 words, backward among the words" in words and "chance" not in words
    assert sentences.endswith("both directions and layer 2 alone.")


def test_chance_is_a_mean_over_languages_as_the_score_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {f"retrieval_{name}_2": 0.5 for name in ("fr", "ru")} | {
        "retrieval_candidates_fr": 1000.0, "retrieval_candidates_ru": 200.0,
    }  # fmt: skip
    monkeypatch.setitem(globals(), "metrics_of", lambda *_: found)
    workdir = fake_run(tmp_path, ["default"], languages=("en", "fr", "ru"))
    notes = "\n".join(bilingual._texts_of(Run(workdir))["Notes"])
    assert "1,000 sentences of fr and 200 sentences of ru (chance: about 0.003)" in notes


def test_a_twin_does_not_hide_that_texts_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"perplexity_dev_en": 5.0, "perplexity_dev_twin": 5.0}
    monkeypatch.setitem(globals(), "metrics_of", lambda *_: found)
    (text,) = bilingual._texts_of(Run(fake_run(tmp_path, ["sep-emb;twin"])))["Texts"]
    assert text.startswith("Texts made by the program: 40,000 sentences of each language")


def test_layers_are_told_from_candidates_and_cutoffs() -> None:
    one = Measure(0.5)
    names = ("retrieval_zh_2_0", "retrieval_zh_2_10", "words_zh_2_0", "retrieval_zh_2_0_p5")
    others = ("retrieval_candidates_zh_2", "words_candidates_3", "retrieval", "perplexity_dev_0")
    found = bilingual.curves_by_layer(dict.fromkeys(names + others, one))
    assert {name: sorted(tasks) for name, tasks in found.items()} == {
        "zh_2": ["retrieval", "words"]
    }
    assert found["zh_2"]["retrieval"].steps == [0, 10]


def test_scores_are_stored_with_the_number_of_their_candidates() -> None:
    model = BertConfig(
        vocabulary_size=16, layers=1, hidden=8, intermediate=8, positions=8, head="linear"
    )
    texts = [np.array([10 + n]) for n in range(3)]
    items = [
        Translated("zh_2", (0, 1), (texts, texts)),
        Translated("zh_2", (0, 1), (texts, texts[:2]), [[0], [1], [0, 1]]),
    ]
    evaluate = Translations(
        model, devices.make_mesh(1), items, names=("retrieval", "words"),
        layers=(0,), max_length=8, sentences=3, row_lengths=(8,),
    )  # fmt: skip
    plain = partition.split([initial_params(model, 0, 0)])
    (found,) = evaluate(jax.tree.map(lambda x: x[None], plain))
    assert found["retrieval_candidates_zh_2"] == 3 and found["words_candidates_zh_2"] == 2
    assert found["retrieval_zh_2_0"] == 1
