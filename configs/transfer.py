"""Wu, Conneau et al. 2020, Table 1: fine-tuned on one language, tested on others.

    python -m xling_jax.main --config=configs/bilingual.py:row=all,pair=en-near
    python -m xling_jax.main --config=configs/transfer.py:task=all,pair=en-near

The first command pretrains the rows, the second fine-tunes each on English inference, named
entities and parsing, and tests it on both languages. Rows of `aligned` need models of each
language alone too: `row=all+alone,pair=en-near` with the same
`--workdir=runs/bilingual-laptop-en-near-all`.

Options: task (nli, ner, parsing, several joined by +, or all), pair (two languages or more joined
by -, the first being that which is fine-tuned on; several pairs joined by +), from (the workdir of
each pair's pretraining, joined by +; by default where the first command puts it), row (an entry of
`rows`, several joined by +, `all` of Table 1, or `aligned`: as in §5.1.2 the first layers of
monolingual models with a map between them, or of the bilingual one, under four new layers), search
(`one` setting a task, the `paper`'s, or that of D&S, `dufter`), seeds (of pretraining and of
fine-tuning, joined by +). A field of note: settings.TASK.select (best: the epoch that is best on
the first language is tested; last).

Real data, in the formats of WikiAnn, CoNLL-U and XNLI:

    python -m xling_jax.main \\
        --config=configs/transfer.py:task=ner,pair=en-fr,from=RUN,row=default \\
        --config.texts.ner.en.train=en.train.tsv --config.texts.ner.en.dev=en.dev.tsv \\
        --config.texts.ner.en.test=en.test.tsv --config.texts.ner.fr.test=fr.test.tsv

search=one on the embedded languages, task=all,pair=en-near+en-far: 61 minutes beyond pretraining on
two CPU cores, as two processes, a pair each, with `--config.devices.cpu=1`. Accuracy, span F1 and
LAS in near and far, in percent, seed 0; the mean difference to the default row, ours and the
paper's (languages fr, ru, zh):

    row                NLI          NER       parsing     all: ours  paper
    default          49.3 33.2   65.8 32.3   71.0  8.3         0.0    0.0
    wiki_cc          53.3 32.6   40.4 45.2   72.9 16.7        +0.2   -3.4
    no_anchors       46.2 33.4   16.9  2.5   56.8 22.3       -13.6   -1.5
    default_anchors  46.2 37.2   66.7 14.2   71.6  3.4        -3.5   -1.1
    extra_anchors    51.2 35.2   62.7 43.7   73.7 30.1        +6.1   +0.5
    sep_emb          34.1 33.3    9.0  0.5   13.6  8.0       -26.9   -3.5
    sep_l1_3         42.8 33.3   44.8 15.4   64.9 15.8        -7.2   -3.8
    sep_l1_6         35.1 32.2   46.9  4.9   45.6 11.5       -14.0  -26.4
    sep_emb_l1_3     29.1 33.7    1.4  2.3    7.8  3.4       -30.4   -7.4
    sep_emb_l1_6     31.7 33.3    2.6  0.0   12.5  2.7       -29.5  -36.7
    majority         33.4 33.4    2.5  2.8   19.0  7.5
    chance           33.3 33.3    1.5  1.8    0.7  0.9

The models of sep_l1_3 and sep_l1_6, here and below, were trained on random words of both languages;
now those of a language are its own.

In English all rows reach 60 to 67 (62 is what the sentences' negations alone give), 90 to 100 and
80 to 96. Of the paper's 14 claims 6 hold: among them that extra anchors help, that with separate
embeddings and six separate layers nothing is transferred, and that a distant language gets less. Of
separate layers six cost twice as much as three. As before fine-tuning (`configs/bilingual.py`),
models of this size need anchors: without any, names are not found, and with separate embeddings
nothing is.

Real data: the models of `configs/bilingual.py` that read 7,300 verses of each language, fine-tuned
on 5,000 sentences of WikiAnn, 4,300 of UD English and 9,000 pairs of XNLI's kind with
`settings.ner.epochs=4`, `settings.parsing.epochs=4` and `settings.nli.epochs=2`: 36 minutes a pair
on one of two busy cores. English, then the other language:

    row             inference                     names
                    en   fr   en   ru   en   zh   en   fr   en   ru   en   zh
    default       37.7 35.3 34.3 34.0 43.3 33.9 52.4 42.1 51.7 22.7 51.6  6.6
    no_anchors    43.3 34.9 41.6 32.3 43.1 33.0 47.3 11.5 48.2  4.2 50.7  2.2
    sep_emb       34.9 32.6 40.4 32.1 38.8 32.9 43.5  0.0 41.3  1.6 42.7  0.0
    sep_l1_3      43.1 33.8 41.6 33.1 43.4 33.7 49.5 19.3 46.1 13.3 48.7  3.4
    sep_emb_l1_6  33.3 33.1 33.6 33.3 33.5 33.3 25.8  0.5 27.6  0.6 28.7  0.0
    majority      33.3 33.3 33.3 33.3 33.3 33.3  9.5 11.5  9.5  6.2  9.5  6.0

    row             parsing
                    en   fr   en   ru   en   zh
    default       51.4 10.4 48.6 10.2 45.8  4.0
    no_anchors    45.9  8.6 46.3  4.6 47.9  2.7
    sep_emb       44.7  1.8 43.7  3.6 44.9  1.1
    sep_l1_3      46.0 11.1 43.6  5.1 46.8  2.6
    sep_emb_l1_6  33.6  1.0 36.8  1.0 35.3  0.7
    majority       4.2 13.3  4.2  1.1  4.2  0.7

Names go over to French and Russian where pieces are shared, trees a little to Russian and less to
Chinese; inference is hardly learned by models of this size and text.

From random weights, in English alone, 4 layers of 128 and 4,000 pieces: the tagger on WikiAnn
(5,000 sentences, 20 epochs) reaches a span F1 of 49 on the test set, BertForTokenClassification of
transformers at the same size 45, spaCy's convolutions with a million parameters 62. The parser on
UD English (4,276 sentences, 10 epochs) reaches 68 UAS and 61 LAS, a biaffine parser in PyTorch on
transformers' BertModel of the same size 65 and 58 (the best head of each word, without a tree), and
spaCy's parser 80 and 75; after 30 epochs ours has 73 and 67.
"""

import re

from ml_collections import ConfigDict

from xling_jax import config_files
from xling_jax.corpora.synthetic.pair import are_embedded

TASKS = ("nli", "ner", "parsing")
ROWS = (
    "default",
    "wiki_cc",
    "no_anchors",
    "default_anchors",
    "extra_anchors",
    "sep_emb",
    "sep_l1_3",
    "sep_l1_6",
    "sep_emb_l1_3",
    "sep_emb_l1_6",
)
LAYERS = 8  # of the models of configs/bilingual.py


def paper() -> dict[str, dict]:
    """The searches of the paper (§3.2), with the readings that the text leaves open."""
    tagging = {
        "batches": (16, 32),
        "rates": ((2e-5, 2e-5), (3e-5, 3e-5), (5e-5, 5e-5)),
        "epochs": 10,
        "examples": 0,
        "warmup": 0.1,
        "decay": "linear",
        "select": "best",
    }
    rates = [(x, y) for x in (1.25e-6, 2.5e-6, 5e-6) for y in (5e-6, 2.5e-5, 1.25e-4)]
    nli = {
        "batches": (4, 8),
        "rates": tuple(rates),
        "epochs": 200,
        "examples": 20_000,
        "warmup": 0.0,
        "decay": "constant",
        "select": "best",
    }
    return {"nli": nli, "ner": tagging, "parsing": dict(tagging)}


def dufter() -> dict[str, dict]:
    """The setting of D&S §5, of whose three epochs the last is tested."""
    found = paper()
    for section in found.values():
        section.update(
            batches=(32,), rates=((2e-5, 2e-5),), epochs=3, examples=0, warmup=0.0, decay="linear"
        )
        section.update(select="last")
    return found


def one() -> dict[str, dict]:
    """One setting a task, for models of the laptop's size."""
    found = paper()
    for section in found.values():
        section.update(
            batches=(16,), rates=((5e-4, 2e-3),), epochs=3, examples=0, warmup=0.1, decay="linear"
        )
    found["nli"].update(rates=((5e-4, 1e-3),), epochs=5)
    return found


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses tasks, pairs, rows and the runs that have the models."""
    options = config_files.parse_options(
        argument,
        {
            "task": "ner",
            "pair": "en-near",
            "from": "",
            "row": "all",
            "search": "one",
            "seeds": "0",
        },
    )
    pairs = {pair: config_files.languages("pair", pair) for pair in options["pair"].split("+")}
    if len(pairs) < options["pair"].count("+") + 1:
        raise ValueError(f"pair={options['pair']}: a pair is named twice")
    runs = options["from"].split("+") if len(pairs) > 1 else [options["from"]]
    runs = [run for run in runs if run]
    if runs and len(runs) != len(pairs):
        raise ValueError(f"from={options['from']}: give a workdir for each of {', '.join(pairs)}")
    searches = {"one": one, "paper": paper, "dufter": dufter}
    settings = config_files.choose("search", options["search"], searches)()
    rows = {name: name for name in ROWS}
    for layer in range(LAYERS + 1):
        rows[f"monolingual_{layer}"] = f"alone;first[{layer}];map"
        rows[f"bilingual_{layer}"] = f"default;first[{layer}]"
        rows[f"bilingual_map_{layer}"] = f"default;first[{layer}];map"
    parallel: dict[str, dict] = {}
    texts: dict[str, dict] = {task: {} for task in TASKS}
    if len({are_embedded(languages) for languages in pairs.values()}) > 1:
        raise ValueError(
            f"pair={options['pair']}: embedded languages and others have no text in common; run "
            "them apart"
        )
    for languages in pairs.values():
        config_files.require_free("texts", languages, ("dev", "train"))
        given = "synthetic" if are_embedded(languages) else ""
        for name in languages[1:]:
            parallel[name] = {"first": given, "second": given, "links": ""}
        for task in TASKS:
            for name in languages:
                parts = ("train", "dev", "test") if name == languages[0] else ("test",)
                texts[task][name] = texts[task].get(name, {}) | dict.fromkeys(parts, given)
    defaults = [f"runs/bilingual-laptop-{pair}-all" for pair in pairs]
    config = ConfigDict(
        {
            "name": "zero_shot",
            "runs": dict(zip(pairs, runs or defaults, strict=True)),
            "tasks": TASKS if options["task"] == "all" else tuple(options["task"].split("+")),
            "rows": rows,
            "sets": {"all": ROWS, "aligned": tuple(name for name in rows if name not in ROWS)},
            "row": options["row"],
            "seeds": config_files.integers("seeds", options["seeds"]),
            "texts": texts,
            "sentences": {"train": 8000, "dev": 500, "test": 1000, "parallel": 10_000},
            "parallel": parallel,
            "word_order": False,
            "settings": settings,
            "parsing": {"subtypes": False, "punctuation": True},
            "models": {
                "length": 128,
                "added": 4,
                "train_own": False,  # what a language has for itself (W&C freeze it)
                "dropout": 0.1,
                "arcs": 500,
                "relations": 100,
                "parser_dropout": 0.33,
                "remat": False,
            },
            "training": {
                "weight_decay": 0.0,
                "epsilon": 1e-8,
                "clip": 5.0,
                "steps_per_call": 100,
                "kept_checkpoints": 2,
            },
            "best": 2,
            "devices": {
                "cpu": 0,
                "side_by_side": 0,
                "replica_axis_at_most": 0,
                "shard_parameters": False,
            },
            "profile": False,
        }
    )
    if options["search"] == "one":
        config.models.update(arcs=100, relations=50)
    if options["search"] == "dufter":
        config.models.train_own = True
        config.training.clip = 1.0
    name = "-".join(["transfer", *(options[x] for x in ("pair", "task", "row", "search"))])
    config.workdir = re.sub(r"[^\w+.-]", "_", name)
    return config
