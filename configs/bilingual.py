"""Wu, Conneau et al. 2020, Table 1: what makes a bilingual masked language model multilingual.

    python -m xling_jax.main --config=configs/bilingual.py:row=sep_emb_l1_3,pair=en-near

Options: row (an entry of ROWS, several joined by +, modifications joined by ;, or a set: `all` of
Table 1; `alone`, each language by itself; `pairs`, the first language with each other one and with
its twin, which is the same text with a vocabulary and embeddings of its own), pair (two languages
or more joined by -, the first being the one that others are compared with; near, middle and far are
embedded languages), scale (laptop, paper), seeds (joined by +).

Real text: a file with a sentence a line, several joined by +, or a TFDS name, for each language:

    python -m xling_jax.main --config=configs/bilingual.py:row=default,pair=en-fr \\
        --config.corpora.en.train=EN.txt --config.corpora.en.dev=EN.dev.txt \\
        --config.corpora.fr.train=FR.txt --config.corpora.fr.dev=FR.dev.txt \\
        --config.corpora.fr.test_first=EN.test.txt --config.corpora.fr.test=FR.test.txt \\
        --config.corpora.fr.dictionary=en-fr.txt --config.corpora.fr.test_dictionary=en-fr.test.txt

scale=laptop: 8 layers of 64, 9,000 updates of 48 windows of 24 that begin with a sentence; 10 to 15
minutes a row on one of two CPU cores (`--config.devices.cpu=1`), and 6 to 9 on one with AMX
(`--config.models.dtype=bfloat16_products`). On `en` and `near` the default row finds .91 of the
sentences and .74 of the words, no_anchors .95 and .64, sep_emb .92 and .61 (three seeds). On `en`
and `middle` the same three rows find .57 and .49, .54 and .39, .40 and .33 (two seeds). The paper's
rows cost 0, 1.1 and 4.5 points of XNLI. Real text is cut at clauses too, and read in 8,000 updates
of 128 windows of 24, 17 to 20 minutes a row on two cores; on English and French Bibles no_anchors
finds .03 of the verses, and .10 with models 128 wide and twice the pieces (docs/results.md).

These numbers depend on the setting, which was searched for (docs/small_models.md): windows begin
with a sentence, so that positions mean something; two fifths of the pieces are selected to be
predicted; weight decay is .1; separate parts start alike; predictions choose among the language's
pieces in every row; most words are one piece, whether vocabularies are joint or not; the embedded
languages' words are as unequal in frequency (zipf_exponent=1) and as selective about their
neighbours (collocation=3) as those of real text; and two fifths of them, function words aside, are
names (name_types=0.4), so that no single name decides how many are found after fine-tuning.
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
from xling_jax.runs import config_files

ROWS = {
    "default": "default",
    "wiki_cc": "wiki-cc",
    "no_anchors": "no-anchors",
    "default_anchors": "default-anchors",
    "extra_anchors": "extra-anchors",
    "sep_emb": "sep-emb;shared-special",
    "sep_l1_3": "default-anchors;sep[layers/0..2]",
    "sep_l1_6": "default-anchors;sep[layers/0..5]",
    "sep_emb_l1_3": "sep-emb;shared-special;sep[layers/0..2]",
    "sep_emb_l1_6": "sep-emb;shared-special;sep[layers/0..5]",
}
CC = "tfds:c4/multilingual:{}#text"  # text of another domain


def paper(languages: tuple[str, ...]) -> ConfigDict:
    """The settings of the paper (§3.1), with our readings of what the text leaves open."""
    is_embedded = are_embedded(languages)
    corpora = {
        "languages": languages,
        "synthetic": dataclasses.asdict(LanguageConfig()),
        "train_sentences": 0,
        "dev_sentences": 0,
        "test_sentences": 10_000,
        "split_sentences": True,
        "split_clauses": False,
        "punctuation": True,
        "tokenize": "moses",
        "processes": 1,
    }
    config_files.require_free("corpora", languages, corpora)
    for name in languages:
        sources = ("synthetic",) * 3
        if not is_embedded:
            train, dev = tfds.wiki40b(name)
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
                "begin": "anywhere",
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
                "remat": False,
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
                "masking_rate": 0.15,
                "steps_per_call": 20,
                "save_every": 0,
                "start_alike": False,
                "start_from": "",
            },
            "evaluators": {
                "names": ("retrieval", "mrr", "mapped", "cka", "words"),
                "layers": (),
                "sentences": 256,
                "row_lengths": (48, 96),
                "curve": (5, 10, 20, 40, 60, 80, 100),
            },
            "every_row": "",
            **config_files.machine_fields(),
        }
    )


def laptop(languages: tuple[str, ...]) -> ConfigDict:
    """The same at a size that takes minutes, on the embedded languages or some thousand sentences
    of real ones."""
    config = paper(languages)
    config.corpora.update(test_sentences=1000)
    config.models.update(hidden=64, intermediate=256, heads=2, dropout=0.0, dtype="float32")
    config.training.update(steps_per_call=100)
    config.evaluators.update(row_lengths=(48,))
    # Models of this size learn word order only in short windows that begin with a sentence.
    config.batches.update(begin="sentence", parts=4, sequences=12, length=24)
    config.models.update(positions=64, head="bert")
    config.training.update(learning_rate=2e-3, warmup_steps=600, decay="linear", weight_decay=0.1)
    # With a higher rate and equal initial values separate parts meet. A softmax for all languages
    # keeps them apart (docs/small_models.md).
    config.training.update(masking_rate=0.4, start_alike=True)
    config.every_row = "language-softmax;random-inside"
    if config.corpora[languages[-1]].train == "synthetic":
        config.corpora.update(train_sentences=20_000, dev_sentences=1000, split_sentences=False)
        config.corpora.synthetic = dataclasses.asdict(FEW_WORDS)
        # So that names have about as many pieces in both kinds of rows (docs/small_models.md): near
        # adds few words to those of en, and middle and far, whose words are the same, add more.
        added = 300 * ("near" in languages) + 600 * (not {"middle", "far"}.isdisjoint(languages))
        config.vocabulary.update(own_size=800, joint_size=800 + added)
        config.training.update(epochs=30, steps_per_epoch=300)
    else:
        config.corpora.split_clauses = True
        config.batches.update(parts=8, sequences=16)
        config.vocabulary.update(joint_size=4000, own_size=2000)
        config.training.update(epochs=20, steps_per_epoch=400)
    return config


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses rows, languages, scale and seeds."""
    options = config_files.parse_options(
        argument, {"row": "default", "pair": "en-near", "scale": "laptop", "seeds": "0"}
    )
    languages = config_files.languages("pair", options["pair"])
    scales = {"laptop": laptop, "paper": paper}
    config = config_files.choose("scale", options["scale"], scales)(languages)
    config.name, config.scale = "bilingual", options["scale"]
    first, others = languages[0], languages[1:]
    pairs = {f"{first}_{name}": f"only[{first}|{name}]" for name in others}
    pairs[f"{first}_twin"] = "sep-emb;shared-special;twin"
    own = pairs | {name: f"only[{name}]" for name in languages}
    config.sets = {"all": tuple(ROWS), "alone": languages, "pairs": tuple(pairs)}
    config_files.require_free("rows", own, [*ROWS, *config.sets])
    config.rows, config.row = ROWS | own, options["row"]
    config.seeds = config_files.integers("seeds", options["seeds"])
    name = f"bilingual-{options['scale']}-{options['pair']}-{options['row']}"
    config.workdir = config_files.default_workdir(name)
    return config
