"""Bilingual experiments at a size that trains in seconds."""

from small_run import ROOT, config_of, on_devices

from xling_jax.experiments.bilingual.experiment import Experiment
from xling_jax.runs import results

SMALL = {
    "corpora.train_sentences": 400,
    "corpora.dev_sentences": 60,
    "corpora.test_sentences": 40,
    "corpora.synthetic.word_types": 200,
    "vocabulary.joint_size": 260,
    "vocabulary.own_size": 160,
    "batches.parts": 2,
    "batches.sequences": 4,
    "batches.length": 32,
    "models.layers": 2,
    "models.hidden": 16,
    "models.intermediate": 32,
    "models.positions": 48,
    "training.epochs": 3,
    "training.steps_per_epoch": 4,
    "training.steps_per_call": 2,
    "training.warmup_steps": 2,
    "evaluators.curve": (50, 100),
    "evaluators.layers": (1,),
    "evaluators.row_lengths": (16,),
    "evaluators.sentences": 40,
    "every_row": "",  # so that rows differ in softmaxes and random pieces, as in the paper
}


# For models that are needed and not measured: evaluators need not be compiled.
UNMEASURED = {"evaluators.names": (), "evaluators.curve": (100,)}


def config(options="", **changes):
    """The config with the fields of `SMALL` and these."""
    return config_of(ROOT / "configs" / "bilingual.py", options or None, {**SMALL, **changes})


def run(workdir, options="", devices=1, **changes):
    """Runs it to its end on some devices; returns the table, and the metrics by row and seed."""
    with on_devices(devices):
        table = Experiment(config(options, **changes), workdir).run()
    return table, {
        (r.row, r.seed): r.metrics for r in results.read_results(workdir / "results.json")
    }
