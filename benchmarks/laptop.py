"""With which settings of scale=laptop do the phenomena of Wu, Conneau et al. 2020 appear?

python benchmarks/laptop.py --workdir=runs/laptop-search --row=no_anchors+default+sep_emb SETTING…

Pretrains rows of configs/bilingual.py on en-near with the fields of each setting, fine-tunes them
with configs/zero_shot.py, and prints a line for each row, as in the tables of
`docs/small_models.md`. A setting is named as in `SETTINGS`: `as-is` changes nothing, and the others
have words, pieces, training and fine-tuning as when they were tried. Runs that have ended are not
run again.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from xling_jax.files import plain_name
from xling_jax.tasks import PAPER, TASKS

ROOT = Path(__file__).parent.parent
LANGUAGES = "en", "near"
COLUMNS = "setting row seed ppl-en ppl sentences mapped CKA words"
ZIPF, COLLOCATION = "corpora.synthetic.zipf_exponent", "corpora.synthetic.collocation"


def windows(length: int, sequences: int) -> dict[str, float]:
    """Fields that cut the same number of tokens into windows of a length."""
    return {"batches.length": length, "batches.sequences": sequences}


# The first setting of docs/small_models.md: fewer words, fewer names, fewer common words, and the
# paper's masking rate, softmaxes and initial values.
_FIRST: dict[str, object] = {
    "corpora.synthetic.word_types": 300,
    "corpora.synthetic.name_types": 0.16,
    "corpora.near.second.anchors": 0.25,
    "vocabulary.own_size": 500,
    "vocabulary.joint_size": 900,
    "training.masking_rate": 0.15,
    "training.start_alike": False,
    "training.weight_decay": 0.01,
    "training.epochs": 60,
    "every_row": "",
}
_FIRST_TASKS = {
    "sentences.train": 8000,
    "settings.ner.examples": 0,
    "settings.parsing.examples": 0,
    "ner.new_names": False,
}
_HALF = {"training.epochs": 30}
_QUARTER = {"training.epochs": 15}
_FLAT = {ZIPF: 0.5, COLLOCATION: 2.0, **_QUARTER}  # words of nearly equal frequency and company
_STEEP = {ZIPF: 1.0, COLLOCATION: 2.0, **_QUARTER}
_RICH = {COLLOCATION: 4.0, "corpora.synthetic.habits": 2.0, **_QUARTER}
_NARROW = {"models.hidden": 32, "models.intermediate": 128}
_LARGE_BATCHES = {
    "batches.parts": 16,
    "training.steps_per_epoch": 75,
    "training.warmup_steps": 150,
    "models.dropout": 0.1,
}
_TRIED: dict[str, dict[str, object]] = {
    "full": {},
    "narrow, windows of 32": {**_NARROW, **windows(32, 9)},
    "narrow, weight decay .3": {**_NARROW, "training.weight_decay": 0.3},
    "narrow, 12 layers": {**_NARROW, "models.layers": 12},
    "narrow, large batches": {**_NARROW, **_LARGE_BATCHES},
    "narrow, many words": {
        **_NARROW,
        "corpora.synthetic.word_types": 1500,
        "corpora.train_sentences": 60_000,
        "vocabulary.own_size": 2000,
        "vocabulary.joint_size": 3500,
    },
    "half": _HALF,
    "half, narrow": {**_HALF, **_NARROW},
    "half, wide": {
        **_HALF,
        "models.hidden": 128,
        "models.intermediate": 512,
        "training.learning_rate": 0.001,  # with twice that nothing is learned
    },
    "half, windows of 16": {**_HALF, **windows(16, 18)},
    "half, windows of 32": {**_HALF, **windows(32, 9)},
    "half, windows of 40": {**_HALF, **windows(40, 7)},
    "half, windows of 48": {**_HALF, **windows(48, 6)},
    "half, steep": {**_STEEP, **_HALF},
    "quarter": _QUARTER,
    "flat": _FLAT,
    "flat, 12 parts of 4": {**_FLAT, "batches.parts": 12, "batches.sequences": 4},
    "flat, one head": {**_FLAT, "models.heads": 1},
    "flat, windows of 16": {**_FLAT, **windows(16, 18)},
    "flat, collocation 3": {**_FLAT, COLLOCATION: 3.0},
    "steep": _STEEP,
    "steep, one head": {**_STEEP, "models.heads": 1},
    "steep, windows of 16": {**_STEEP, **windows(16, 18)},
    "steeper, collocation 3": {ZIPF: 1.3, **_QUARTER},
    "collocation 4, habits 2": _RICH,
    "collocation 4, habits 2, windows of 16": {**_RICH, **windows(16, 18)},
}
AS_IS = "as-is"
SETTINGS = {AS_IS: {}} | {name: {**_FIRST, **fields} for name, fields in _TRIED.items()}


def main() -> None:
    """Runs what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    named = ", ".join(f'"{name}"' for name in SETTINGS)
    parser.add_argument("settings", nargs="+", choices=SETTINGS, metavar="SETTING", help=named)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--row", default="no_anchors+default+sep_emb")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--pretrain-only", action="store_true")
    arguments = parser.parse_args()
    titles = COLUMNS.split()
    if not arguments.pretrain_only:
        titles += [f"{task}{end}" for task in PAPER for end in ("-en", "")]
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|")
    for name in arguments.settings:
        print_setting(name, arguments)


def print_setting(name: str, arguments: argparse.Namespace) -> None:
    """Runs a setting and prints a line for each row and seed."""
    folder = arguments.workdir / plain_name(name)
    options = f"pair=en-near,seeds={arguments.seeds}"
    run("bilingual", f"row={arguments.row},{options}", folder / "bilingual", SETTINGS[name])
    found = {}
    if not arguments.pretrain_only:
        rows = "+".join(map(plain_name, arguments.row.split("+")))
        source = f"row={rows},{options},task=all,from={folder / 'bilingual'}"
        run("zero_shot", source, folder / "zero_shot", {} if name == AS_IS else _FIRST_TASKS)
        found = {(row, seed): scores for row, seed, scores in results(folder / "zero_shot")}
    for row, seed, scores in results(folder / "bilingual"):
        if not scores:
            print(f"| {name} | {row} | {seed} | diverged |", flush=True)
            continue
        shown = [f"{scores[f'perplexity_dev_{language}']:.1f}" for language in LANGUAGES]
        shown += [f"{scores[metric]:.3f}" for metric in ("retrieval", "mapped", "cka", "words")]
        for task in PAPER:
            for (job, job_seed), own in found.items():
                if job_seed != seed or job.split("/")[1:3] != [plain_name(row), task]:
                    continue
                pair = (own[f"{TASKS[task].metric}_{language}"] for language in LANGUAGES)
                shown += [f"{100 * value:.1f}" for value in pair]
        print(f"| {name} | {row} | {seed} | {' | '.join(shown)} |", flush=True)


def results(workdir: Path) -> list[tuple[str, int, dict[str, float]]]:
    """Row, seed and metrics of the replicas that have ended."""
    found = json.loads((workdir / "results.json").read_text("utf-8"))
    return [(each["row"], each["seed"], each["metrics"]) for each in found]


def run(config: str, options: str, workdir: Path, fields: Mapping[str, object]) -> None:
    """Runs an experiment with these fields to its end; messages go to a file beside the workdir."""
    command = [sys.executable, "-m", "xling_jax.main"]
    command += [f"--config={ROOT / 'configs' / config}.py:{options}", f"--workdir={workdir}"]
    command += [f"--config.{field}={value}" for field, value in fields.items()]
    command += ["--config.devices.cpu=1"]
    workdir.parent.mkdir(parents=True, exist_ok=True)
    with workdir.with_suffix(".log").open("a") as log:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, stdout=log, stderr=log, env=environment)


if __name__ == "__main__":
    main()
