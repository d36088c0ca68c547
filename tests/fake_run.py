"""A workdir with plausible numbers, as a run leaves it, for the tests of the reports."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax.experiments.fake_english import published
from xling_jax.runs import results

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
    paper = published.find(published.EXPERIMENT, "0" if row in published.SEARCH_ROWS else row)
    ends = {name: value.mean for name, value in paper.cells.items()} if paper else {"mu": 0.5}
    worse = how_much_worse(row)
    risen = 1 / (1 + np.exp(-10 * (share - 0.35))) / worse
    metrics = {}
    for name, end in ends.items():
        name = name.replace("_deep", "_3")
        if name.startswith("perplexity"):
            fit = worse * (1 + 30 * np.exp(-7 * share))
            metrics[name] = float(end * fit * random.uniform(0.97, 1.03))
        elif name != "mu":
            late = 1.0 if name.startswith("alignment") else risen
            metrics[name] = float(np.clip(0.8 * end * late + random.normal(0, 0.02), 0, 1))
    four = [metrics[f"{n}_{k}"] for n in ("retrieval", "translation") for k in (0, 3) if paper]
    metrics["mu"] = float(np.mean(four)) if four else 0.5 * float(risen)
    return {**metrics, "retrieval_3_p5": min(1.0, 1.2 * metrics["mu"]), "retrieval_candidates": 2e3,
            "retrieval_cut": 0.0125}  # fmt: skip


def how_much_worse(row: str) -> float:
    """The factor by which a row of the search is worse than the value that was chosen."""
    tried = published.tried(published.SEARCH_ROWS.get(row, ""))
    return 1 + abs(float(np.log(tried[1] / published.CHOSEN[tried[0]]))) if tried else 1.0


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
    paper = published.find(published.EXPERIMENT, row)
    return paper.description if paper else published.SEARCH_ROWS.get(row, "another setting")


def steps_of(row: str) -> int:
    """The updates that a row makes: 90 an epoch, 100 epochs unless it says otherwise."""
    own = re.search(r"epochs\[([\d.]+)(x?)\]", _description(row))
    if row in ("18", "19"):
        return 0
    return round((STEPS if own[2] else 90) * float(own[1])) if own else STEPS


def fake_run(
    folder: Path, names: Sequence[str] = ("0", "1", "3"), seeds: Sequence[int] = (0, 42),
    share: float | Mapping[str, float] = 1.0, pieces: int = 64, dimension: int = 8,
    positions: int = 16, diverged: Mapping[str, Sequence[int]] | None = None,
) -> Path:  # fmt: skip
    """A workdir as a run leaves it after a share of its training (1: it has ended).

    `share` may tell rows apart; `diverged` names the seeds of a row that did, half way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shares = dict.fromkeys(names, share) if isinstance(share, float) else share
    (folder / "config.json").write_text(json.dumps(_config(names, seeds, pieces)))
    lines, ended = [], []
    for name in names:
        total, reached = steps_of(name), int(shares[name] * steps_of(name))
        for seed in seeds:
            lost = seed in (diverged or {}).get(name, ())
            until = total // 2 if lost else reached
            lines += _lines(name, seed, total, until)
            if lost:
                ended.append(replica(name, seed, {}, until, diverged=until))
            elif shares[name] == 1.0:
                ended.append(replica(name, seed, fake_metrics(name, seed, 1.0), total))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if ended:
        results.write_results(folder / "results.json", ended)
    (folder / "arrays").mkdir(exist_ok=True)
    for name in names:
        if shares[name] > 0:
            path = folder / "arrays" / f"row{name}_seed{seeds[0]}.npz"
            np.savez(path, **fake_arrays(name, pieces, dimension, positions))
    return folder


def _config(names: Sequence[str], seeds: Sequence[int], pieces: int) -> dict[str, Any]:
    texts = [("embedded", "english", 17_000, 230_000), ("embedded", "fake", 17_000, 230_000)]
    return {
        "experiment": "fake_english", "fingerprint": "5f2d01c9", "scale": "laptop",
        "versions": {"jax": "0.7.0", "numpy": "2.4.6"},
        "rows": {name: _description(name) for name in names},
        "texts": [
            {"source": s, "language": k, "sentences": n, "words": w, "sha256": 8 * "0a1b2c3d"}
            for s, k, n, w in texts
        ],
        "config": {
            "models": {"layers": 4, "hidden": 64},
            "training": {"epochs": STEPS // 90, "learning_rate": 2e-3},
        },
        "groups": [[[name, seed] for name in names] for seed in seeds],
        "steps": {name: steps_of(name) for name in names},
        "vocabulary": {"size": 2 * pieces},
    }  # fmt: skip


def _lines(name: str, seed: int, total: int, until: int) -> list[dict[str, Any]]:
    """What a replica logs until a step of its training."""
    lines: list[dict[str, Any]] = []
    for step in range(90, until + 1, 90):
        at = {"step": step, "epoch": step / 90, "row": name, "seed": seed}
        loss = 2.2 + 6 * float(np.exp(-step / 1500)) + 0.01 * (seed % 7)
        lines.append({"kind": "train", **at, "loss": loss, "tokens_per_second": 21_000.0})
        if any(round(share * total / 90) * 90 == step for share in POINTS):
            metrics = fake_metrics(name, seed, step / total)
            lines.append({"kind": "evaluation", **at, "metrics": metrics})
    if not total:
        at = {"step": 0, "epoch": 0.0, "row": name, "seed": seed}
        metrics = fake_metrics(name, seed, 1.0)
        lines.append({"kind": "evaluation", **at, "metrics": metrics})
    return lines


def replica(
    row: str, seed: int, metrics: Mapping[str, float], step: int = 1, diverged: int | None = None
) -> results.Replica:
    """A replica of the fake run's experiment."""
    return results.Replica("fake_english", row, _description(row), seed, step, metrics, diverged)


def add_line(workdir: Path, **line: Any) -> None:
    """Appends an object to a workdir's metrics."""
    with open(workdir / "metrics.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
