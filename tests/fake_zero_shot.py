"""Workdirs as runs of `zero_shot` leave them, with the paper's numbers or others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from xling_jax.experiments.zero_shot import scores as wc
from xling_jax.runs import results
from xling_jax.tasks import PAPER

METRICS = {"nli": ("accuracy",), "ner": ("f1", "precision"), "parsing": ("las", "uas"),
           "pos": ("accuracy",)}  # fmt: skip
ROWS = tuple(line.row for line in wc.LINES)
PAIRS = ("en-fr", "en-ru", "en-zh")
TASKS = PAPER
EPOCHS, STEPS = 4, 40
DESCRIBED = {"mine": "alone;first[4];map"}
MAJORITY = {"nli": 33.3, "ner": 0.0, "parsing": 5.0, "pos": 20.0}
Scores = Callable[[str, str, str], float]  # of a row, a task and a language, in percent


def printed(row: str, task: str, language: str) -> float:
    """The paper's number; of the first language and of other ones something plausible."""
    paper = wc.printed(row, task)
    if language in paper:
        return paper[language].mean
    return {"en": 85.0, "dev": 86.0}.get(language, 50.0)


def changed(changes: Mapping[tuple[str, str], float]) -> Scores:
    """The paper's numbers, but other ones in every language for some rows and tasks."""

    def scores(row: str, task: str, language: str) -> float:
        is_other = (row, task) in changes and language not in ("en", "dev")
        return changes[row, task] if is_other else printed(row, task, language)

    return scores


def metrics_of(
    pair: str, row: str, task: str, scores: Scores, extra: float = 0.0
) -> dict[str, float]:
    """What a setting stores, `extra` points above the scores."""
    found = {}
    for language in ("dev", *pair.split("-")):
        for name in METRICS[task]:
            found[f"{name}_{language}"] = (scores(row, task, language) + extra) / 100
        if language != "dev":
            found[f"majority_{language}"] = MAJORITY[task] / 100
            found[f"chance_{language}"] = MAJORITY[task] / 200
            found[f"examples_{language}"] = 1000.0
        found[f"cut_{language}"] = 0.0
    return {**found, "cut_train": 12.0, "best_epoch": 3.0}


def fake_run(
    folder: Path,
    rows: Sequence[str] = ROWS,
    tasks: Sequence[str] = TASKS,
    pairs: Sequence[str] = PAIRS,
    seeds: Sequence[int] = (0,),
    extras: Sequence[float] = (0.0,),
    scores: Scores = printed,
    waiting: Sequence[tuple[str, int]] = (),
    going: Sequence[tuple[str, int]] = (),
    diverged: Sequence[tuple[str, int]] = (),
    more: Mapping[str, Any] | None = None,
) -> Path:
    """Writes config, results and evaluations, and returns the folder.

    Args:
      folder: the workdir.
      rows, tasks, pairs, seeds: what is run.
      extras: one setting each, so many points above the scores.
      scores: the others'.
      waiting, going, diverged: settings, by how their names begin, and seeds that have not
        begun, are in training or diverged.
      more: fields of the nested config.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs = {
        f"{pair}/{row}/{task}": (pair, row, task)
        for pair in pairs for row in rows for task in tasks
    }  # fmt: skip
    replicas = [(f"{job}/16/{n + 1}e-05/0.002", seed, job, extra)
                for job in jobs for n, extra in enumerate(extras) for seed in seeds]  # fmt: skip
    config = {
        "experiment": "zero_shot", "fingerprint": "f00", "versions": {"jax": "0.7.0"},
        "texts": [{"source": "/a/fr.conllu", "language": "fr", "field": "test", "sha256": "1"}],
        "rows": {job: DESCRIBED.get(row, row) for job, (_, row, _) in jobs.items()},
        "groups": [[[name, seed]] for name, seed, *_ in replicas],
        "config": {"best": 2, "settings": {task: {"epochs": EPOCHS} for task in tasks},
                   "parsing": {"subtypes": False, "punctuation": True}, **(more or {})},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    ended, lines = [], []
    for name, seed, job, extra in replicas:

        def among(chosen: Sequence[tuple[str, int]], name: str = name, seed: int = seed) -> bool:
            return any(name.startswith(start) and seed == own for start, own in chosen)

        if among(waiting):
            continue
        metrics = metrics_of(*jobs[job], scores, extra + seed)
        for epoch in range(1, 2 if among(going) else EPOCHS + 1):
            at = {"step": epoch * STEPS, "epoch": float(epoch), "row": name, "seed": seed}
            shown = {k: v * epoch / EPOCHS for k, v in metrics.items()}
            lines.append({"kind": "train", **at, "loss": 1.0})
            lines.append({"kind": "evaluation", **at, "metrics": shown})
        if not among(going):
            at_step = STEPS if among(diverged) else None
            ended.append(
                results.Replica("zero_shot", name, jobs[job][1], seed, EPOCHS * STEPS, metrics,
                                at_step)
            )  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if ended:
        results.write_results(folder / "results.json", ended)
    return folder
