"""Dufter & Schütze 2020, Table 3: the ablations on natural languages, and transfer to them.

    python -m xling_jax.main --config=configs/real_xnli.py:scale=laptop

Pretrains each row on three languages, each with its own vocabulary, fine-tunes it on inference in
the first, and tests it on all three. By default the languages are embedded ones, of which `near`
and `middle` take the places of the paper's German and Hindi.

Options: languages (joined by -; row 3 inverts the second), row (an entry of ROWS,
several joined by +, `all`, or modifications joined by ;), scale (laptop, paper), seeds (joined by
+; by default 0, and the paper's three at scale=paper), tasks (nli, or none for pretraining alone).

Real text, a sentence a line or a TFDS name (by default Wikipedia's), and XNLI's own format:

    python -m xling_jax.main --config=configs/real_xnli.py:languages=en-de-hi,scale=paper \\
        --config.transfer.texts.nli.en.train=en.train.tsv \\
        --config.transfer.texts.nli.en.dev=en.dev.tsv \\
        --config.transfer.texts.nli.en.test=en.test.tsv \\
        --config.transfer.texts.nli.de.test=de.test.tsv \\
        --config.transfer.texts.nli.hi.test=hi.test.tsv

Translations show how multilingual the pretrained models are: corpora.LANGUAGE.test, files whose
lines say the same in every language, and corpora.LANGUAGE.words, dictionaries from the first
language to each other one. For the embedded languages both are made; for real ones each is
optional, and without both only perplexity is measured.

scale=laptop on the embedded languages, `--config.devices.cpu=1`, on one of two CPU cores: 3 to 8
minutes a row and 1 to 2 more for its fine-tuning, and once 3 or more for row 30's neighbours.
Accuracy in English, `near` and `middle`, in percent, means over five seeds: row 0 70, 63 and 50,
row 3 71, 37 and 44, row 8 71, 36 and 36, row 30 71, 65 and 57 (the paper's English, German and
Hindi: 75, 57 and 45; 75, 41 and 46; 74, 37 and 38; 74, 61 and 54).
"""

import dataclasses

from ml_collections import ConfigDict

from xling_jax.corpora import tfds
from xling_jax.corpora.embedded.config import (
    EMBEDDED,
    FEW_WORDS,
    LanguageConfig,
    SecondConfig,
    are_embedded,
)
from xling_jax.experiments.real_xnli import fields
from xling_jax.runs import config_files
from xling_jax.vocabulary.static_vectors import SkipGram

ROWS = {
    "0": "original",
    "3": "inv-order[{second}]",
    "8": "lang-pos;shift-special;no-random",
    "30": "knn-replace",
}
PAPER_SEEDS = "1+42+100"


def paper(languages: tuple[str, ...]) -> ConfigDict:
    """The settings of the paper (§5): BERT-base, 140,000 updates in two epochs."""
    is_embedded = are_embedded(languages)
    corpora = {
        "languages": languages,
        "synthetic": dataclasses.asdict(LanguageConfig()),
        "train_sentences": 0 if is_embedded else 9_000_000,  # about as many as the paper's
        "dev_sentences": 10_000,
        "test_sentences": 10_000,
        "split_sentences": True,
        "split_clauses": False,
        "punctuation": False,
        "tokenize": "none",
        "processes": 1,
    }
    config_files.require_free("corpora", languages, corpora)
    for name in languages:
        train, dev = ("synthetic", "synthetic") if is_embedded else tfds.wiki40b(name)
        second = dataclasses.asdict(EMBEDDED.get(name, SecondConfig()))
        corpora[name] = {"train": train, "dev": dev, "test": "", "words": "", "second": second}
    return ConfigDict(
        {
            "corpora": corpora,
            "vocabulary": {
                "size": 20_000,
                "model_type": "bpe",
                "sentences": 2_000_000,
                "neighbours": {
                    "number": 5,
                    "seed": 0,
                    "tries": 1,
                    "vectors": (),
                    # 600 MB a language; 20,000 pieces have 100,000 n-grams
                    "skip_gram": dataclasses.asdict(SkipGram(buckets=500_000)),
                },
            },
            "batches": {
                "sentences": 256,
                "max_length": 128,
                "row_lengths": (48,),
                "attend_padding": False,
            },
            "models": {
                "layers": 12,
                "hidden": 768,
                "intermediate": 3072,
                "heads": 12,
                "positions": 512,
                "token_types": len(languages),
                "dropout": 0.1,
                "dtype": "bfloat16",
                "remat": False,
            },
            "training": {
                "epochs": 2,
                "learning_rate": 1e-4,
                "warmup_steps": 3000,
                "weight_decay": 0.01,
                "epsilon": 1e-6,
                "clip": 1.0,
                "masking_rate": 0.15,
                "steps_per_call": 30,
                "save_every": 0,
            },
            "evaluators": {
                "names": ("retrieval", "mrr", "translation"),
                "layers": (),
                "curve": (5, 10, 20, 40, 60, 80, 100),
            },
            **config_files.machine_fields(),
        }
    )


def laptop(languages: tuple[str, ...]) -> ConfigDict:
    """The same at a size that takes minutes, on the embedded languages or some thousand sentences
    of real ones."""
    config = paper(languages)
    config.corpora.update(test_sentences=1000)
    config.models.update(layers=4, hidden=64, intermediate=256, heads=1, positions=192)
    config.models.update(dropout=0.0, dtype="float32")
    config.batches.update(sentences=64, max_length=64, row_lengths=(40,))
    config.training.update(learning_rate=2e-3, warmup_steps=50, steps_per_call=100)
    # With so few pieces each is a large share of the text, and fastText's 1e-4 leaves little of it.
    config.vocabulary.neighbours.skip_gram.update(sample=1e-3, buckets=50_000)
    if are_embedded(languages):
        # Their words have no parts that mean something (max_n). With the other fields pieces of
        # `middle` find their translations too.
        config.vocabulary.neighbours.skip_gram.update(max_n=0, sample=3e-3, negative=15)
        config.vocabulary.neighbours.tries = 8
        config.corpora.update(train_sentences=8000, dev_sentences=500, split_sentences=False)
        config.corpora.synthetic = dataclasses.asdict(FEW_WORDS)
        config.vocabulary.update(size=600)
        config.training.update(epochs=35)
    else:
        config.corpora.update(train_sentences=10_000, dev_sentences=500)
        config.vocabulary.update(size=2200)
        config.training.update(epochs=60)
    return config


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses languages, rows, scale, seeds and tasks."""
    defaults = {"languages": "en-near-middle", "row": "all", "scale": "laptop", "seeds": ""}
    options = config_files.parse_options(argument, defaults | {"tasks": "nli"})
    languages = config_files.languages("languages", options["languages"])
    scales = {"laptop": laptop, "paper": paper}
    config = config_files.choose("scale", options["scale"], scales)(languages)
    is_paper = options["scale"] == "paper"
    config.name, config.scale, config.row = "real_xnli", options["scale"], options["row"]
    config.rows = {name: text.format(second=languages[1]) for name, text in ROWS.items()}
    config.sets = {"all": tuple(ROWS)}
    seeds = options["seeds"] or (PAPER_SEEDS if is_paper else "0")
    config.seeds = config_files.integers("seeds", seeds)
    search = "dufter" if is_paper else "one"
    pair = f"task=nli,pair={options['languages']},search={search}"
    config.transfer = config_files.config_beside(__file__, "zero_shot.py", pair)
    tasks: dict[str, tuple[str, ...]] = {"nli": ("nli",), "none": ()}
    config.transfer.tasks = config_files.choose("tasks", options["tasks"], tasks)
    for field in fields.WHOLE + fields.SET:
        del config.transfer[field]
    config.transfer.models.train_own = True
    config.transfer.settings.nli.embeddings = True
    config.transfer.nli.update(most_words=0, replaced=0.0)
    if not is_paper and are_embedded(languages):
        # Enough pairs for rows to differ by what they were pretrained with.
        config.transfer.sentences.train, config.transfer.settings.nli.epochs = 32_000, 2
    length = min(config.transfer.models.length, config.batches.max_length)
    config.transfer.models.length = length  # later positions were never trained
    name = f"real_xnli-{options['scale']}-{options['languages']}-row{options['row']}"
    config.workdir = config_files.default_workdir(name)
    return config
