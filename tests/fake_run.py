"""A workdir with plausible numbers, as a run leaves it, for the tests of the reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax.reports import papers, results

STEPS = 9_000
POINTS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
WORDS = (
    "the and you that they will was with for people lord said him his not are from have all her "
    "king god who were when them this man then your land son came day house one went israel city "
    "out there before made because must took hand did gave told".split()
)


def fake_metrics(row: str, seed: int, share: float) -> dict[str, float]:
    """Plausible numbers at a share of the training: the paper's scores, approached late."""
    random = np.random.default_rng([seed, sum(map(ord, row)), round(100 * share)])
    paper = papers.find(papers.EXPERIMENT, row)
    ends = {name: value.mean for name, value in paper.metrics.items()} if paper else {"mu": 0.5}
    risen = 1 / (1 + np.exp(-10 * (share - 0.35)))
    metrics = {}
    for name, end in ends.items():
        name = name.replace("_8", "_3")
        if name.startswith("perplexity"):
            metrics[name] = float(end * (1 + 30 * np.exp(-7 * share)) * random.uniform(0.97, 1.03))
        elif name != "mu":
            late = 1.0 if name.startswith("alignment") else risen
            metrics[name] = float(np.clip(0.8 * end * late + random.normal(0, 0.02), 0, 1))
    four = [metrics[f"{n}_{k}"] for n in ("retrieval", "translation") for k in (0, 3) if paper]
    metrics["mu"] = float(np.mean(four)) if four else 0.5 * float(risen)
    return {**metrics, "retrieval_3_p5": min(1.0, 1.2 * metrics["mu"]), "retrieval_candidates": 2e3}


def fake_arrays(row: str, pieces: int, dimension: int, positions: int) -> dict[str, Any]:
    """Two languages of `pieces` pieces; alike in row 0, somewhat in row 1, not at all else."""
    random = np.random.default_rng(len(row))
    noise = {"0": 0.25, "1": 0.6}.get(row, 5.0)
    scale = 3 / np.sqrt(1 + np.arange(dimension))
    english = random.normal(size=(pieces, dimension)) * scale
    english[:, 0] += np.linspace(3, -2, pieces)
    other = english + noise * random.normal(size=english.shape) * scale
    names = [f"▁{word}" for word in WORDS][:pieces]
    names += [("▁", "")[n % 2] + f"x{n}" for n in range(pieces - len(names))]
    walk = np.cumsum(random.normal(size=(positions, dimension)), axis=0) / 4
    far = walk + 20 * noise * random.normal(size=walk.shape) / np.sqrt(dimension)
    separate = "lang-pos" in _description(row)
    return {
        "token_embeddings": np.concatenate([english, other]).astype(np.float32),
        "token_languages": np.repeat([0, 1], pieces),
        "token_names": np.array(names + [f"::{name}" for name in names]),
        "token_counts": np.tile(100_000 // (1 + np.arange(pieces)), 2),
        "position_embeddings": np.concatenate([walk, far]).astype(np.float32),
        "position_offset": positions if separate else 0,
    }


def _description(row: str) -> str:
    paper = papers.find(papers.EXPERIMENT, row)
    return paper.description if paper else "another setting"


def fake_run(
    folder: Path, names: Sequence[str] = ("0", "1", "3"), seeds: Sequence[int] = (0, 42),
    share: float = 1.0, pieces: int = 64, dimension: int = 8, positions: int = 16,
) -> Path:  # fmt: skip
    """A workdir as a run leaves it after a share of its training (1: it has ended)."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [("embedded", "english", 17_000, 230_000), ("embedded", "fake", 17_000, 230_000)]
    config: dict[str, Any] = {
        "experiment": "fake_english", "fingerprint": "5f2d01c9", "scale": "laptop",
        "versions": {"jax": "0.7.0", "numpy": "2.4.6"},
        "rows": {name: _description(name) for name in names},
        "texts": [
            {"source": s, "language": k, "sentences": n, "words": w, "sha256": 8 * "0a1b2c3d"}
            for s, k, n, w in texts
        ],
        "config": {"models": {"layers": 4, "hidden": 64}, "training": {"epochs": STEPS // 90}},
        "groups": [[[name, seed] for name in names] for seed in seeds],
        "vocabulary": {"size": 2 * pieces},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    lines: list[dict[str, Any]] = []
    for step in range(90, int(share * STEPS) + 1, 90):
        for name in names:
            for seed in seeds:
                at = {"step": step, "epoch": step / 90, "row": name, "seed": seed}
                loss = 2.2 + 6 * float(np.exp(-step / 1500)) + 0.01 * (seed % 7)
                lines.append({"kind": "train", **at, "loss": loss, "tokens_per_second": 21_000.0})
                if step / STEPS in POINTS:
                    metrics = fake_metrics(name, seed, step / STEPS)
                    lines.append({"kind": "evaluation", **at, "metrics": metrics})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if share == 1.0:
        ended = [replica(n, s, fake_metrics(n, s, 1.0), STEPS) for n in names for s in seeds]
        results.write_results(folder / "results.json", ended)
    (folder / "arrays").mkdir(exist_ok=True)
    for name in names if share > 0 else ():
        path = folder / "arrays" / f"row{name}_seed{seeds[0]}.npz"
        np.savez(path, **fake_arrays(name, pieces, dimension, positions))
    return folder


def replica(
    row: str, seed: int, metrics: Mapping[str, float], step: int = 1, diverged: int | None = None
) -> results.Replica:
    """A replica of the fake run's experiment."""
    return results.Replica("fake_english", row, _description(row), seed, step, metrics, diverged)


def add_line(workdir: Path, **line: Any) -> None:
    """Appends an object to a workdir's metrics."""
    with open(workdir / "metrics.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
