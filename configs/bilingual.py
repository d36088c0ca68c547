"""Wu, Conneau et al. 2020, Table 1: what makes a bilingual masked language model multilingual.

    python -m xling_jax.main --config=configs/bilingual.py:row=sep_emb_l1_3,pair=en-near

Options: row (an entry of ROWS, several joined by +, modifications joined by ;, or a set: `all`,
`alone`, each language by itself, `pairs`, the first with each other one and with its twin, the same
text with a vocabulary and embeddings of its own), pair (two languages or more joined by -, the
first being the one that others are compared with; near and far are embedded languages), scale
(laptop, paper), seeds (joined by +).

Real text: a file with a sentence a line, several joined by +, or a TFDS name, for each language:

    python -m xling_jax.main --config=configs/bilingual.py:row=default,pair=en-fr \\
        --config.corpora.en.train=EN.txt --config.corpora.en.dev=EN.dev.txt \\
        --config.corpora.fr.train=FR.txt --config.corpora.fr.dev=FR.dev.txt \\
        --config.corpora.fr.test_first=EN.test.txt --config.corpora.fr.test=FR.test.txt \\
        --config.corpora.fr.dictionary=en-fr.txt --config.corpora.fr.test_dictionary=en-fr.test.txt

scale=laptop: 8 layers of 64, 4,500 updates, of which the first 3,600 read windows of 16 (72 at
once) and the rest windows of 64 (16 at once); row=all of both pairs took 50 minutes on two CPU
cores, as two processes with `--config.devices.cpu=1`, 4.4 minutes a row. Seed 0, means over the
nine layers and both directions: P@1 of 1,000 sentences, of the second 500 after a map learned on
the first 500, and of 58 words; CKA; and the paper's difference to the default row in XNLI accuracy,
mean of three languages:

    row              ppl en near   sent. mapped  CKA  words | paper
    default             4.4  4.7   .208   .499  .72   .590 |   0.0
    wiki_cc             4.5  4.9   .181   .536  .77   .542 |  -1.4
    no_anchors          5.3  5.0   .015   .369  .76   .116 |  -1.1
    default_anchors     4.2  4.0   .111   .454  .77   .322 |  +0.1
    extra_anchors       4.3  4.4   .266   .625  .76   .607 |  +1.8
    sep_emb             6.8  5.2   .005   .250  .65   .045 |  -4.5
    sep_l1_3            4.5  4.4   .040   .374  .76   .239 |  -3.4
    sep_l1_6            5.0  4.6   .016   .310  .74   .131 | -22.6
    sep_emb_l1_3        5.8  4.9   .004   .250  .78   .034 |  -7.8
    sep_emb_l1_6        5.3  5.3   .001   .250  .67   .036 | -29.6

    row              ppl en  far   sent. mapped  CKA  words
    default             4.2  4.2   .012   .156  .50   .102
    wiki_cc             3.8  4.2   .013   .146  .40   .120
    no_anchors          4.7  4.6   .009   .171  .74   .028
    default_anchors     4.4  4.4   .008   .169  .57   .073
    extra_anchors       4.5  4.1   .020   .188  .62   .193
    sep_emb             5.5  5.3   .005   .115  .67   .031
    sep_l1_3            5.7  5.0   .001   .141  .73   .029
    sep_l1_6            5.1  5.3   .003   .142  .75   .035
    sep_emb_l1_3        6.4  5.0   .001   .133  .64   .025
    sep_emb_l1_6        5.4  4.7   .002   .139  .51   .020

These are the last step's scores, and sep_l1_3 and sep_l1_6 drew random words of both languages; now
the table has the selected step's, and each language's words are its own. The same is true of the
real text below.

As in the paper separate layers cost more the more there are (default_anchors, sep_l1_3, sep_l1_6),
another domain costs something (of near), and extra anchors help most. But anchors matter far more
here: without any (no_anchors, sep_emb and what has it) next to nothing is found, although the two
languages are as alike as before (CKA) and a map finds some of it. Of far, which shares 38 pieces
with English, the default row finds little.

Real text, scale=laptop: 8 layers of 64, 6,000 updates, of which the first 4,200 read windows of 16
and the rest windows of 64; 5.5 minutes a row where two run at once, as two processes with
`--config.devices.cpu=1`. Begun on short windows (of 24, for 1,050 updates of 2,304 tokens) en-fr
has a training loss of 4.7 after 1,500 updates; with windows of 64 alone (and positions that begin
as sines, which changes little) 5.4. The New Testament in each language: 7,300 verses, and 500 held
out, cut at ; and : too (`corpora.split_clauses=True`); MUSE dictionaries; zh with
`vocabulary.own_size=2200` where each language has a vocabulary. P@1 of 1,000 Tatoeba sentences, of
the second 500 after a map, and of MUSE's test words, means over layers and directions, before and
after training; CKA after; seed 0:

    pair   row             ppl       sentences   mapped      CKA   words
    en-fr  default          40   50   .055 .033   .053 .069   .40   .456 .456
    en-fr  no_anchors       45   47   .006 .008   .027 .044   .42   .001 .001
    en-fr  extra_anchors    53   69   .055 .062   .053 .091   .44   .456 .454
    en-fr  sep_emb          47   50   .001 .001   .025 .031   .29   .001 .001
    en-fr  sep_l1_3         46   46   .021 .010   .023 .044   .36   .151 .095
    en-fr  sep_emb_l1_6     77   62   .001 .001   .025 .037   .45   .000 .000
    en-ru  default          41  126   .009 .007   .032 .034   .36   .032 .033
    en-ru  no_anchors       54  143   .003 .002   .036 .033   .27   .001 .001
    en-ru  extra_anchors    51  140   .009 .013   .032 .041   .39   .032 .032
    en-ru  sep_emb          49  116   .001 .002   .036 .030   .32   .001 .001
    en-ru  sep_l1_3         47  114   .007 .003   .027 .034   .34   .001 .001
    en-ru  sep_emb_l1_6     62  166   .001 .001   .035 .023   .24   .001 .001
    en-zh  default          31   65   .012 .009   .027 .028   .24   .372 .373
    en-zh  no_anchors       40   18   .003 .002   .039 .026   .34   .002 .003
    en-zh  extra_anchors    31   64   .012 .012   .027 .035   .32   .372 .370
    en-zh  sep_emb          46   20   .000 .003   .024 .024   .31   .002 .002
    en-zh  sep_l1_3         43   19   .002 .004   .030 .031   .34   .002 .003
    en-zh  sep_emb_l1_6     59   19   .001 .002   .024 .020   .26   .003 .003

The sentences are of another kind than the text, and models of this size find few of them; most of
what the joint vocabulary finds it finds untrained, by equal pieces. For French extra anchors are
best and separate embeddings worst, as in the paper; other than there, the lack of anchors costs
nearly everything. Of Russian and Chinese, with few pieces in common with English, little but chance
is to be seen.
"""

import dataclasses
import re

from ml_collections import ConfigDict

from xling_jax import config_files
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
        "split_clauses": False,
        "punctuation": True,
        "tokenize": "moses",
        "processes": 1,
    }
    config_files.require_free("corpora", languages, corpora)
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
            "devices": {
                "cpu": 0,
                "side_by_side": 0,
                "replica_axis_at_most": 0,
                "shard_parameters": False,
            },
            "profile": False,
        }
    )


def laptop(languages: tuple[str, ...]) -> ConfigDict:
    """The same in minutes, on the embedded languages or some thousand sentences of real ones."""
    config = paper(languages)
    config.corpora.update(test_sentences=1000)
    config.models.update(hidden=64, intermediate=256, heads=2, dropout=0.0, dtype="float32")
    config.training.update(steps_per_call=100)
    config.evaluators.update(row_lengths=(48,))
    # Models of this size learn word order only in short windows that begin with a sentence.
    config.batches.update(begin="sentence", parts=4, sequences=12, length=24)
    config.models.update(positions=64, head="bert")
    config.training.update(learning_rate=2e-3, warmup_steps=600, decay="linear", weight_decay=0.01)
    if config.corpora[languages[-1]].train == "synthetic":
        config.corpora.update(train_sentences=20_000, dev_sentences=1000, split_sentences=False)
        config.corpora.synthetic.update(word_types=300, zipf_exponent=1.0, collocation=3.0, depth=1)
        config.vocabulary.update(joint_size=900, own_size=500)
        config.training.update(epochs=30, steps_per_epoch=300)
    else:
        config.vocabulary.update(joint_size=4000, own_size=2000)
        config.training.update(epochs=10, steps_per_epoch=600)
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
    pairs[f"{first}_twin"] = "sep-emb;twin"
    own = pairs | {name: f"only[{name}]" for name in languages}
    config.sets = {"all": tuple(ROWS), "alone": languages, "pairs": tuple(pairs)}
    config_files.require_free("rows", own, [*ROWS, *config.sets])
    config.rows, config.row = ROWS | own, options["row"]
    config.seeds = config_files.integers("seeds", options["seeds"])
    name = f"bilingual-{options['scale']}-{options['pair']}-{options['row']}"
    config.workdir = re.sub(r"[^\w+.-]", "_", name)
    return config
