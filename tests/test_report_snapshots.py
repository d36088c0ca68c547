"""The reports of runs in every state say what they said before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fake_run as fake_english_run
import fake_zero_shot
import pytest
import test_bilingual_report as bilingual_run
import test_similarity_report as similarity_run
from snapshot import assert_as_before

from xling_jax.experiments.bilingual import report as bilingual
from xling_jax.experiments.fake_english import report as fake_english
from xling_jax.experiments.real_xnli import report as real_xnli
from xling_jax.experiments.similarity import report as similarity
from xling_jax.experiments.zero_shot import report as zero_shot
from xling_jax.runs import results

EVIL = "<script>alert('&\"')</script>|_$"
ROWS = {"0": "original", "3": "inv-order[near]", "8": "lang-pos;shift-special", "30": "knn-replace"}


def fine_tuned(folder: Path, rows: list[str]) -> Path:
    """Rows that were pretrained, the last one not to its end, some of them fine-tuned."""
    folder.mkdir()
    languages = ["en", "near", "far"]
    synthetic = dict.fromkeys(languages, {"train": "synthetic"})
    config = {
        "experiment": "real_xnli", "rows": ROWS, "groups": [[[row, 0] for row in ROWS]],
        "config": {"corpora": {"languages": languages, **synthetic}},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    for number, (row, description) in enumerate(list(ROWS.items())[:-1]):
        metrics = {f"perplexity_dev_{name}": 9.0 + number for name in languages}
        ended = results.Replica("real_xnli", row, description, 0, 9, metrics)
        results.add_result(folder / "results.json", ended)
    fake_zero_shot.fake_run(folder / "transfer", rows, ["nli"], ["en-near-far"], (0, 1))
    return folder


RUNS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], str]]] = {
    "fake_english-ended": (fake_english_run.fake_run, fake_english.report),
    "fake_english-search": (
        lambda folder: fake_english_run.fake_run(
            folder, ("0", "15", "17-250", "21", "lr1e-4", "lr2e-3", "lr2e-2", "ep10", "99"),
            diverged={"lr2e-2": (0, 42), "15": (42,)},
        ),
        fake_english.report,
    ),
    "fake_english-begun": (
        lambda folder: fake_english_run.fake_run(folder, ["0", "1"], share={"0": 0.25, "1": 0.0}),
        fake_english.report,
    ),
    "fake_english-logged": (
        lambda folder: fake_english_run.fake_run(folder, ["0"], share=0.03), fake_english.report,
    ),
    "bilingual-ended": (bilingual_run.fake_run, bilingual.write),
    "bilingual-going": (bilingual_run.going_run, bilingual.write),
    "bilingual-evil": (
        lambda folder: bilingual_run.fake_run(folder, [EVIL], [0], languages=(EVIL, EVIL + "2")),
        bilingual.write,
    ),
    "similarity-ended": (similarity_run.fake_run, similarity.write),
    "similarity-going": (similarity_run.going_run, similarity.write),
    "zero_shot-ended": (
        lambda folder: fake_zero_shot.fake_run(
            folder, ("default", "sep_l1_3", "mine"), ("ner", "parsing"), ("en-fr", "en-ru"), (0, 1)
        ),
        zero_shot.write,
    ),
    "zero_shot-going": (
        lambda folder: fake_zero_shot.fake_run(
            folder, ["default", "sep_emb", "sep_l1_3"], ["ner"], ["en-fr", "en-ru"],
            extras=(0.0, 1.0), going=[("en-fr/sep_emb/ner/16/2e-05", 0), ("en-ru/default", 0)],
            waiting=[("en-fr/sep_l1_3", 0), ("en-ru/sep", 0)],
            diverged=[("en-fr/default/ner/16/2e-05", 0)],
        ),
        zero_shot.write,
    ),
    "real_xnli-going": (lambda folder: fine_tuned(folder, ["0", "3"]), real_xnli.write),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_report_is_as_before(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, write = RUNS[name]
    workdir = make(tmp_path / name)
    assert_as_before(name, workdir, write(workdir))
