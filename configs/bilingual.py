"""Wu, Conneau et al. 2020, Table 1: what makes a bilingual masked language model multilingual.

    python -m xling_jax.main --config=configs/bilingual.py:row=sep_emb_l1_3,pair=en-near

Options: row (an entry of ROWS, several joined by +, modifications joined by ;, or a set: `all`,
`alone`, each language by itself, `pairs`, the first with each other one), pair (two languages or
more joined by -, the first being the one that others are compared with; near and far are embedded
languages), scale (laptop, paper), seeds (joined by +).

Real text: a file with a sentence a line, several joined by +, or a TFDS name, for each language:

    python -m xling_jax.main --config=configs/bilingual.py:row=default,pair=en-fr \\
        --config.corpora.en.train=EN.txt --config.corpora.en.dev=EN.dev.txt \\
        --config.corpora.fr.train=FR.txt --config.corpora.fr.dev=FR.dev.txt \\
        --config.corpora.fr.test_first=EN.test.txt --config.corpora.fr.test=FR.test.txt \\
        --config.corpora.fr.dictionary=en-fr.txt --config.corpora.fr.test_dictionary=en-fr.test.txt

scale=laptop: 8 layers of 64, 4,500 updates of 2,304 tokens in windows of 24; 5.5 minutes a row on
two CPU cores, row=all 55. en-near, seed 0, means over the nine layers and both directions: P@1 of
1,000 sentences, of the second 500 after a map learned on the first 500, and of 58 words; CKA; and
the paper's difference to the default row in XNLI accuracy, mean of three languages:

    row              ppl en near  sent.  mapped  CKA  words | paper
    default             5.0  4.6   .210    .615  .78   .505 |   0.0
    wiki_cc             4.6  4.5   .194    .587  .68   .473 |  -1.4
    no_anchors          6.8  6.7   .008    .382  .82   .054 |  -1.1
    default_anchors     4.8  4.7   .093    .463  .69   .290 |  +0.1
    extra_anchors       4.9  4.7   .222    .656  .81   .567 |  +1.8
    sep_emb             6.5  6.2   .001    .341  .74   .031 |  -4.5
    sep_l1_3            5.3  5.1   .060    .434  .76   .244 |  -3.4
    sep_l1_6            5.6  5.6   .029    .393  .76   .148 | -22.6
    sep_emb_l1_3        5.5  5.3   .001    .327  .74   .029 |  -7.8
    sep_emb_l1_6        4.7  5.0   .001    .346  .62   .014 | -29.6

As in the paper the more layers are apart the worse (default_anchors, sep_l1_3, sep_l1_6), another
domain costs something, and extra anchors help. But anchors matter far more here: without any
(no_anchors, sep_emb and what has it) next to nothing is found, although the two languages are as
alike as before (CKA) and a map finds much of it.
"""

import dataclasses
import re

from ml_collections import ConfigDict

from xling_jax import experiment
from xling_jax.corpora.synthetic.pair import (
    EMBEDDED,
    LanguageConfig,
    SecondConfig,
    are_embedded,
)

ROWS = {
    "default": "default",
    "wiki_cc": "wiki-cc",
    "no_anchors": "no-anchors",
    "default_anchors": "default-anchors",
    "extra_anchors": "extra-anchors",
    "sep_emb": "sep-emb",
    "sep_l1_3": "default-anchors;sep[layers/0..2]",
    "sep_l1_6": "default-anchors;sep[layers/0..5]",
    "sep_emb_l1_3": "sep-emb;sep[layers/0..2]",
    "sep_emb_l1_6": "sep-emb;sep[layers/0..5]",
}
WIKI = "tfds:wiki40b/{}:train#text", "tfds:wiki40b/{}:validation#text"
WIKI_NAMES = {"zh": "zh-cn"}  # where Wiki40B has another name for a language
CC = "tfds:c4/multilingual:{}#text"  # text of another domain


def paper(languages: tuple[str, ...]) -> ConfigDict:
    """The settings of the paper (§3.1), with the readings that the text leaves open."""
    is_embedded = are_embedded(languages)
    corpora = {
        "languages": languages,
        "synthetic": dataclasses.asdict(LanguageConfig()),
        "train_sentences": 0,
        "dev_sentences": 0,
        "test_sentences": 10_000,
        "split_sentences": True,
        "punctuation": True,
        "tokenize": "moses",
        "processes": 1,
    }
    for name in languages:
        sources = ("synthetic",) * 3
        if not is_embedded:
            train, dev = (source.format(WIKI_NAMES.get(name, name)) for source in WIKI)
            sources = (train, CC.format(name), dev)
        corpora[name] = {
            "train": sources[0],
            "other": sources[1],
            "dev": sources[2],
            "test": "",
            "test_first": "",
            "dictionary": "",
            "test_dictionary": "",
            "second": dataclasses.asdict(EMBEDDED.get(name, SecondConfig())),
            "other_domain": 1.0,
        }
    return ConfigDict(
        {
            "corpora": corpora,
            "vocabulary": {
                "joint_size": 80_000,
                "own_size": 40_000,
                "model_type": "bpe",
                "sentences": 2_000_000,
            },
            "batches": {
                "parts": 8,
                "sequences": 96,
                "length": 256,
                "short": {"updates": 0, "sequences": 0, "length": 0},
                "alpha": 0.7,
                "accumulate": 1,
                "resident_tokens": 2**28,
            },
            "code_switch": {"seed": 0, "probability": 0.3, "most": 0.15},
            "models": {
                "layers": 8,
                "hidden": 768,
                "intermediate": 3072,
                "heads": 12,
                "positions": 256,
                "token_types": 1,
                "dropout": 0.1,
                "dtype": "bfloat16",
                "head": "linear",
            },
            "training": {
                "epochs": 200,
                "steps_per_epoch": 2083,
                "learning_rate": 1e-4,
                "warmup_steps": 30_000,
                "decay": "inverse_sqrt",
                "weight_decay": 0.0,
                "epsilon": 1e-8,
                "clip": 5.0,
                "steps_per_call": 20,
                "save_every": 0,
                "start_from": "",
            },
            "evaluators": {
                "layers": (),
                "sentences": 256,
                "row_lengths": (48, 96),
                "curve": (5, 10, 20, 40, 60, 80, 100),
            },
            "devices": {"cpu": 0, "side_by_side": 0},
        }
    )


def laptop(languages: tuple[str, ...]) -> ConfigDict:
    """The same in minutes, on the embedded languages or some thousand sentences of real ones."""
    config = paper(languages)
    config.corpora.update(test_sentences=1000)
    config.models.update(hidden=64, intermediate=256, heads=2, dropout=0.0, dtype="float32")
    config.training.update(steps_per_call=100)
    config.evaluators.update(row_lengths=(48,))
    # In long windows a model of this size needs far longer to find out that neighbours matter.
    if config.corpora[languages[-1]].train == "synthetic":
        config.corpora.update(train_sentences=20_000, dev_sentences=1000, split_sentences=False)
        config.corpora.synthetic.update(word_types=300, zipf_exponent=0.5, depth=1)
        config.vocabulary.update(joint_size=520, own_size=300, model_type="unigram")
        config.batches.update(parts=4, sequences=24, length=24)
        config.models.update(positions=24)
        config.training.update(epochs=15, steps_per_epoch=300, learning_rate=1e-3, warmup_steps=300)
    else:
        config.vocabulary.update(joint_size=4000, own_size=2000)
        config.batches.update(parts=4, sequences=4, length=64)
        config.batches.short.update(updates=4200, sequences=18, length=16)
        config.models.update(positions=64)
        config.training.update(epochs=10, steps_per_epoch=600, learning_rate=2e-3, warmup_steps=600)
    return config


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses rows, languages, scale and seeds."""
    options = experiment.parse_options(
        argument, {"row": "default", "pair": "en-near", "scale": "laptop", "seeds": "0"}
    )
    languages = tuple(options["pair"].split("-"))
    scales = {"laptop": laptop, "paper": paper}
    config = experiment.choose("scale", options["scale"], scales)(languages)
    config.name, config.scale = "bilingual", options["scale"]
    first, others = languages[0], languages[1:]
    pairs = {f"{first}_{name}": f"only[{first}|{name}]" for name in others}
    rows = ROWS | pairs | {name: f"only[{name}]" for name in languages}
    config.rows, config.row = rows, options["row"]
    config.sets = {"all": tuple(ROWS), "alone": languages, "pairs": tuple(pairs)}
    config.seeds = experiment.integers("seeds", options["seeds"])
    name = f"bilingual-{options['scale']}-{options['pair']}-{options['row']}"
    config.workdir = re.sub(r"[^\w+.-]", "_", name)
    return config
