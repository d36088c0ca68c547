"""Dufter & Schütze 2020, Tables 1 and 2: what makes BERT multilingual?

    python -m xling_jax.main --config=configs/fake_english.py:row=0,scale=laptop

Options: row (an entry of ROWS, several joined by +, or modifications joined by ;), scale (laptop,
paper), seeds (joined by +), epochs.

scale=laptop: the embedded language, 640 pieces, 8,000 sentences, 4 layers, 35 epochs. 5 minutes a
seed on two CPU cores. Retrieval among 1,000 held-out sentences, layers 0 and 3:

    row  seed   mu   F1    retr. transl. | F1    retr. transl. | perplexity train, dev
    0    0     .73   1.00  .43   .80     | 1.00  .99   .71     | 3.4  3.7
    0    42    .69   1.00  .48   .71     | 1.00  .97   .63     | 3.3  3.6
    3    0     .01   .05   .02   .01     | .03   .01   .00     | 3.6  4.0
    3    42    .01   .04   .03   .00     | .03   .03   .00     | 3.7  4.1

scale=paper: BERT-small as published. Any text:

    python -m xling_jax.main --config=configs/fake_english.py:row=0,scale=paper \\
        --config.corpora.train=TRAIN.txt --config.corpora.dev=DEV.txt

On the New Testament in Basic English (11,532 sentences; 9,100 updates in 100 epochs, where the
paper's text has 13,400) and the King James Old Testament's first 10,000 sentences, retrieval among
all of these, layers 0 and 8; 47 minutes on two CPU cores that had other work too:

    row   epoch   mu   F1    retr. transl. | F1    retr. transl. | perplexity train, dev
    0, ours   5  .01   .68   .00   .01     | .55   .01   .01     | 191   707
             10  .07   .91   .01   .05     | .91   .17   .06     |  65   372
             20  .27   .99   .02   .26     | 1.00  .54   .25     |  27   254
             40  .51   1.00  .06   .64     | 1.00  .82   .51     |  16   274
             60  .58   1.00  .10   .77     | 1.00  .92   .54     |  12   302
            100  .64   1.00  .12   .82     | 1.00  .95   .65     |  10   303
    0, paper     .70   1.00  .16   .88     | 1.00  .97   .79     |   9   217
"""

import dataclasses

from ml_collections import ConfigDict

from xling_jax import experiment
from xling_jax.corpora.synthetic.config import LanguageConfig

ROWS = {
    "0": "original",
    "1": "lang-pos",
    "2": "shift-special",
    "4": "no-random",
    "5": "lang-pos;shift-special",
    "6": "lang-pos;no-random",
    "7": "shift-special;no-random",
    "8": "lang-pos;shift-special;no-random",
    "15": "overparam",
    "16": "lang-pos;overparam",
    "17": "lang-pos;shift-special;no-random;overparam",
    "3": "inv-order",
    "9": "lang-pos;inv-order;shift-special;no-random",
    "18": "untrained",
    "19": "untrained;lang-pos",
    "21": "no-parallel",
    "21b": "lang-pos;no-parallel",
}


def paper() -> ConfigDict:
    """The settings of the paper (§2.1, Table 9)."""
    return ConfigDict(
        {
            "corpora": {
                "train": "synthetic",
                "dev": "synthetic",
                "languages": ("en", "fake"),
                "split_sentences": True,
                "train_sentences": 0,
                "dev_sentences": 10_000,
                "synthetic": dataclasses.asdict(LanguageConfig()),
            },
            "vocabulary": {"size": 2048, "model_type": "bpe"},
            "batches": {
                "sentences": 256,
                "max_length": 128,
                "row_lengths": (48,),
                "attend_padding": False,
            },
            "models": {
                "layers": 12,
                "hidden": 64,
                "intermediate": 256,
                "heads": 1,
                "positions": 512,
                "token_types": 2,
                "dropout": 0.1,
                "dtype": "float32",
            },
            "overparam": {
                "hidden": 768,
                "intermediate": 3072,
                "heads": 12,
                "learning_rate": 1e-4,
            },
            "training": {
                "epochs": 100,
                "learning_rate": 2e-3,
                "warmup_steps": 50,
                "weight_decay": 0.01,
                "epsilon": 1e-6,
                "clip": 1.0,
                "steps_per_call": 30,
                "save_every": 0,
            },
            "evaluators": {"layers": (), "curve": (5, 10, 20, 40, 60, 80, 95, 100)},
            "devices": {"cpu": 0, "side_by_side": 0},
        }
    )


def laptop() -> ConfigDict:
    """The same in minutes, on the embedded language."""
    config = paper()
    config.corpora.update(train_sentences=8000, dev_sentences=1000)
    config.corpora.synthetic.update(word_types=600, zipf_exponent=0.5)
    config.vocabulary.update(size=640, model_type="unigram")
    config.batches.update(sentences=64, row_lengths=(40,))
    config.models.update(
        layers=4, dropout=0.0
    )  # this text is larger than the model: no overfitting
    config.training.update(epochs=35, steps_per_call=100)
    return config


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses among rows, scales and seeds, as `row=0+3,seeds=0+42`."""
    options = experiment.parse_options(
        argument, {"row": "0", "scale": "laptop", "seeds": "0", "epochs": ""}
    )
    config = experiment.choose("scale", options["scale"], {"laptop": laptop, "paper": paper})()
    config.name, config.scale = "fake_english", options["scale"]
    config.rows, config.row = ROWS, options["row"]
    config.seeds = experiment.integers("seeds", options["seeds"])
    if options["epochs"]:
        config.training.epochs = experiment.integer("epochs", options["epochs"])
    config.workdir = f"fake_english-{options['scale']}-row{options['row']}"
    return config
