"""At which setting of scale=laptop are the phenomena of Wu, Conneau et al. 2020 there?

python benchmarks/laptop.py --workdir=runs/laptop-search --row=no_anchors+default+sep_emb SETTING…

Pretrains rows of configs/bilingual.py on en-near with the fields of each setting (`SETTINGS`, what
a setting is named by; `as-is` changes nothing), fine-tunes them with configs/transfer.py, and
prints a line of the table in `benchmarks/README.md` for each row. What has run is not run again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
TASKS = {"nli": "accuracy", "ner": "f1", "parsing": "las"}
_HALF = {"training.epochs": 15}
SETTINGS = {
    "as-is": {},
    "half": _HALF,
    "zipf-long": {"corpora.synthetic.zipf_exponent": 1.0},
    "zipf-sharp-long": {
        "corpora.synthetic.zipf_exponent": 1.0,
        "corpora.synthetic.collocation": 3.0,
    },
    "zipf": {**_HALF, "corpora.synthetic.zipf_exponent": 1.0},
    "zipf-window16": {
        **_HALF,
        "corpora.synthetic.zipf_exponent": 1.0,
        "batches.length": 16,
        "batches.sequences": 18,
    },
    "zipf-sharp": {
        **_HALF,
        "corpora.synthetic.zipf_exponent": 1.0,
        "corpora.synthetic.collocation": 3.0,
    },
    "zipf-one-head": {**_HALF, "corpora.synthetic.zipf_exponent": 1.0, "models.heads": 1},
    "sharp": {**_HALF, "corpora.synthetic.collocation": 3.0},
    "few-topics": {**_HALF, "corpora.synthetic.topicality": 0.0},
    "rate": {**_HALF, "training.learning_rate": 3e-3},
    "parts": {**_HALF, "batches.parts": 12, "batches.sequences": 4},
    "large-batch": {"training.epochs": 8, "batches.sequences": 24, "training.learning_rate": 4e-3},
    "small-batch": {"batches.sequences": 6},
    "narrow": {**_HALF, "models.hidden": 32, "models.intermediate": 128},
    "wide": {**_HALF, "models.hidden": 128, "models.intermediate": 512},
    "one-head": {**_HALF, "models.heads": 1},
    "window16": {**_HALF, "batches.length": 16, "batches.sequences": 18},
    "window48": {**_HALF, "batches.length": 48, "batches.sequences": 6, "models.positions": 48},
    "words200": {**_HALF, "corpora.synthetic.word_types": 200},
    "sharper": {
        **_HALF,
        "corpora.synthetic.zipf_exponent": 1.0,
        "corpora.synthetic.collocation": 4.0,
        "corpora.synthetic.habits": 2.0,
    },
    "sharper-window16": {
        **_HALF,
        "corpora.synthetic.zipf_exponent": 1.0,
        "corpora.synthetic.collocation": 4.0,
        "corpora.synthetic.habits": 2.0,
        "batches.length": 16,
        "batches.sequences": 18,
    },
    "steep": {
        **_HALF,
        "corpora.synthetic.zipf_exponent": 1.3,
        "corpora.synthetic.collocation": 3.0,
    },
    "linear-head": {**_HALF, "models.head": "linear"},
}


def main() -> None:
    """Runs what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="+", choices=SETTINGS, metavar="SETTING")
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--row", default="no_anchors+default+sep_emb")
    parser.add_argument("--pair", default="en-near")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--pretrain-only", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.settings:
        print_setting(name, arguments)


def print_setting(name: str, arguments: argparse.Namespace) -> None:
    """Runs a setting and prints a line for each row and seed."""
    folder = arguments.workdir / name
    options = f"row={arguments.row},pair={arguments.pair},seeds={arguments.seeds}"
    fields = [f"--config.{field}={value}" for field, value in SETTINGS[name].items()]
    began = time.monotonic()
    run("bilingual", options, folder / "bilingual", fields)
    minutes = (time.monotonic() - began) / 60
    found = {}
    if not arguments.pretrain_only:
        source = f"{options},task=all,from={folder / 'bilingual'}"
        run("transfer", source, folder / "transfer", [])
        found = {(row, seed): scores for row, seed, scores in results(folder / "transfer")}
    other = arguments.pair.removeprefix("en-")
    for row, seed, scores in results(folder / "bilingual"):
        shown = [f"{scores[f'perplexity_dev_{language}']:.1f}" for language in ("en", other)]
        shown += [f"{scores[metric]:.3f}" for metric in ("retrieval", "mapped", "cka", "words")]
        for task, metric in TASKS.items():
            for (job, job_seed), own in found.items():
                if job_seed != seed or job.split("/")[1:3] != [row, task]:
                    continue
                shown += [f"{100 * own[f'{metric}_{language}']:.1f}" for language in ("en", other)]
        print(f"| {name} | {row} | {seed} | {' | '.join(shown)} | {minutes:.0f} |", flush=True)


def results(workdir: Path) -> list[tuple[str, int, dict[str, float]]]:
    """Row, seed and metrics of what has ended."""
    found = json.loads((workdir / "results.json").read_text("utf-8"))
    return [(each["row"], each["seed"], each["metrics"]) for each in found]


def run(config: str, options: str, workdir: Path, fields: list[str]) -> None:
    """Runs an experiment to its end, its messages in a file beside the workdir."""
    command = [sys.executable, "-m", "xling_jax.main"]
    command += [f"--config={ROOT / 'configs' / config}.py:{options}", f"--workdir={workdir}"]
    command += ["--config.devices.cpu=1", *fields]
    workdir.parent.mkdir(parents=True, exist_ok=True)
    with workdir.with_suffix(".log").open("a") as log:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, stdout=log, stderr=log, env=environment)


if __name__ == "__main__":
    main()
