"""D&S Table 3 at a size that trains in seconds."""

from small_run import ROOT, config_of, on_devices

from xling_jax.experiments.real_xnli.experiment import Experiment

SMALL = {
    "corpora.train_sentences": 400,
    "corpora.dev_sentences": 20,
    "corpora.test_sentences": 30,
    "corpora.synthetic.word_types": 200,
    "vocabulary.size": 160,
    "vocabulary.neighbours.skip_gram.dimension": 16,
    "vocabulary.neighbours.skip_gram.epochs": 1,
    "vocabulary.neighbours.skip_gram.buckets": 2000,
    "batches.sentences": 16,
    "models.layers": 2,
    "models.hidden": 16,
    "models.intermediate": 32,
    "training.epochs": 1,
    "training.steps_per_call": 25,
    "training.warmup_steps": 2,
    "evaluators.curve": (100,),
    "devices.shard_parameters": True,
    "devices.replica_axis_at_most": 1,
    "transfer.sentences.train": 40,
    "transfer.sentences.dev": 10,
    "transfer.sentences.test": 20,
    "transfer.settings.nli.epochs": 1,
}


def config(options="", **changes):
    """The config with the fields of `SMALL` and these."""
    return config_of(ROOT / "configs" / "real_xnli.py", options or None, {**SMALL, **changes})


def run(workdir, options="", **changes):
    """Runs it on two devices with a part of the parameters each; returns the table."""
    with on_devices(2):
        return Experiment(config(options, **changes), workdir).run()
