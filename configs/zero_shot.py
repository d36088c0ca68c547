"""Wu, Conneau et al. 2020, Table 1: fine-tuned on one language, tested on others.

    python -m xling_jax.main --config=configs/bilingual.py:row=all,pair=en-near
    python -m xling_jax.main --config=configs/zero_shot.py:task=all,pair=en-near

The first command pretrains the rows, the second fine-tunes each on English inference, named
entities and parsing, and tests it on both languages. The rows of `aligned` also need models of each
language alone: `row=all+alone,pair=en-near` with the same
`--workdir=runs/bilingual-laptop-en-near-all`, or `row=default+en+near` for these rows only.

Options: task (nli, ner, parsing, pos, several joined by +; `all` is the paper's three, and all+pos
those and parts of speech), pair (two languages or more joined by -, of which the first is
fine-tuned on; several pairs joined by +), from (the workdir of each pair's pretraining, joined by
+; by default where the first command puts it), models (folders joined by +, instead of the rows of
a run: any BERT, RoBERTa, XLM-R or XLM of `transformers` or a model of ours; {language} stands for
the language that a model reads, {seed} for a seed), row (an entry of `rows`, several joined by +,
`all` of Table 1, or `aligned`: as in §5.1.2 the first layers of monolingual models with a map
between them, or of the bilingual one, under four new layers), search (`one` setting for each task,
for models of scale=laptop; `paper`, the paper's search; or `dufter`, the setting of D&S and, with
`models=` on real text, the default), seeds (of pretraining and of fine-tuning, joined by +). Fields
of note: settings.TASK.select (best: the epoch that is best on the first language is tested; last:
the last one), settings.TASK.embeddings (False: embeddings stay as they are, by default for
inference on embedded languages with search=one, but not with models=), ner.new_names (by default
True on embedded languages: no name that is tested is in training), keep_models (write each
fine-tuned model that is scored, in the format of `transformers`, below `models/` of the workdir; by
default True but for search=paper), word_order (True: D&S Table 4, how alike the languages' word
order is, beside the scores, and the correlation of the two).

Real data, in the formats of WikiAnn, CoNLL-U and XNLI:

    python -m xling_jax.main \\
        --config=configs/zero_shot.py:task=ner,pair=en-fr,from=RUN,row=default \\
        --config.texts.ner.en.train=en.train.tsv --config.texts.ner.en.dev=en.dev.tsv \\
        --config.texts.ner.en.test=en.test.tsv --config.texts.ner.fr.test=fr.test.tsv

search=one on the embedded languages: 5 to 9 minutes a row on one of two CPU cores. In `near`, mean
of accuracy, span F1 and LAS: default 83.6, no_anchors 84.4, sep_emb 84.0, sep_l1_6 75.1 (two or
three seeds). The differences from default are +0.8, +0.4 and -8.5 points; the paper's are -1.5,
-3.5 and -26.4 (docs/results.md has all rows). In `middle` the same rows have 74.6, 71.5, 73.4 and
39.4 (two seeds), and in `far` 74.9, 72.4, 73.0 and 33.6.
"""

import dataclasses

from ml_collections import ConfigDict

from xling_jax.corpora.embedded.config import are_embedded
from xling_jax.experiments.zero_shot import fields
from xling_jax.runs import config_files, encoders
from xling_jax.tasks import PAPER, TASKS

# Names of sets of rows, of models of one language each, and of modifications.
TAKEN = ("all", "aligned", "alone", "first", "map")
LAYERS = 8  # of the models of configs/bilingual.py


def paper(tasks: tuple[str, ...]) -> dict[str, dict]:
    """The searches of the paper (§3.2), with our readings of what the text leaves open; tasks that
    it does not have get the search of tagging and parsing."""
    tagging = {
        "batches": (16, 32),
        "rates": ((2e-5, 2e-5), (3e-5, 3e-5), (5e-5, 5e-5)),
        "epochs": 10,
        "examples": 0,
        "warmup": 0.1,
        "decay": "linear",
        "select": "best",
        "embeddings": True,
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
        "embeddings": True,
    }
    return {task: dict(nli if task == "nli" else tagging) for task in tasks}


def dufter(tasks: tuple[str, ...]) -> dict[str, dict]:
    """The setting of D&S §5; the last of three epochs is tested."""
    found = paper(tasks)
    for section in found.values():
        section.update(
            batches=(32,), rates=((2e-5, 2e-5),), epochs=3, examples=0, warmup=0.0, decay="linear"
        )
        section.update(select="last")
    return found


def one(tasks: tuple[str, ...]) -> dict[str, dict]:
    """One setting for each task, for models of scale=laptop."""
    found = paper(tasks)
    for section in found.values():
        section.update(
            batches=(16,), rates=((5e-4, 2e-3),), epochs=3, examples=0, warmup=0.1, decay="linear"
        )
    found["nli"].update(rates=((5e-4, 1e-3),), epochs=5)
    return found


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses tasks, pairs, models or the runs that have them, rows, the
    search and seeds."""
    options = config_files.parse_options(
        argument,
        {
            "task": "ner",
            "pair": "en-near",
            "from": "",
            "models": "",
            "row": "all",
            "search": "",
            "seeds": "0",
        },
    )
    pairs = {pair: config_files.languages("pair", pair) for pair in options["pair"].split("+")}
    if len(pairs) < options["pair"].count("+") + 1:
        raise ValueError(f"pair={options['pair']}: a pair is named twice")
    runs = encoders.split(options["from"]) if len(pairs) > 1 else [options["from"]]
    runs = [run for run in runs if run]
    if runs and len(runs) != len(pairs):
        raise ValueError(f"from={options['from']}: give a workdir for each of {', '.join(pairs)}")
    given = encoders.named(options["models"], TAKEN) if options["models"] else {}
    is_embedded, *mixed = {are_embedded(languages) for languages in pairs.values()}
    if mixed:
        raise ValueError(
            f"pair={options['pair']}: embedded languages and others have no text in common; run "
            "them apart"
        )
    searches = {"one": one, "paper": paper, "dufter": dufter}
    search = options["search"] or ("dufter" if given and not is_embedded else "one")
    asked = options["task"].split("+")
    chosen = tuple(task for name in asked for task in (PAPER if name == "all" else (name,)))
    known = tuple(dict.fromkeys([*PAPER, *chosen]))
    settings = config_files.choose("search", search, searches)(known)
    table = config_files.config_beside(__file__, "bilingual.py", "").sets["all"]
    rows = {name: name for name in given or table}
    sets = {"all": tuple(rows)}
    for layer in () if given else range(LAYERS + 1):
        rows[f"monolingual_{layer}"] = f"alone;first[{layer}];map"
        rows[f"bilingual_{layer}"] = f"default;first[{layer}]"
        rows[f"bilingual_map_{layer}"] = f"default;first[{layer}];map"
    if not given:
        sets["aligned"] = tuple(name for name in rows if name not in table)
    parallel: dict[str, dict] = {}
    texts: dict[str, dict] = {task: {} for task in known}
    for languages in pairs.values():
        config_files.require_free("texts", languages, ("dev", "train"))
        source = "synthetic" if is_embedded else ""
        for name in languages[1:]:
            parallel[name] = {"first": source, "second": source, "links": ""}
        for task in known:
            for name, part in fields.parts(languages):
                texts[task].setdefault(name, {})[part] = source
    of_pair: dict[str, dict] = {}
    if not is_embedded:
        for languages in pairs.values():
            of_pair["_".join(languages)] = {
                task: {
                    name: {part: "" for of, part in fields.parts(languages) if of == name}
                    for name in languages
                }
                for task in known
            }
    is_read = is_embedded or not given  # whether runs are: for models, or for embedded languages
    defaults = [f"runs/bilingual-laptop-{pair}-all" if is_read else "" for pair in pairs]
    config = ConfigDict(
        {
            "name": "zero_shot",
            "runs": dict(zip(pairs, runs or defaults, strict=True)),
            "tasks": chosen,
            "pretrained": given,
            "rows": rows,
            "sets": sets,
            "row": options["row"],
            "seeds": config_files.integers("seeds", options["seeds"]),
            "texts": texts,
            "texts_of_pair": of_pair,
            "sentences": {"train": 8000, "dev": 500, "test": 1000, "parallel": 10_000},
            "parallel": parallel,
            "word_order": False,
            "keep_models": search != "paper",
            "settings": settings,
            **{name: dataclasses.asdict(task()) for name, task in TASKS.items() if task.options},
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
            },
            "best": 2,
            **config_files.machine_fields(),
        }
    )
    if is_embedded:
        config.ner.new_names = True  # as most real names are
        if not given:
            config.nli.most_words = 16  # most pairs of so many words fit in 24 places
            config.nli.replaced = 0.7
    if search == "one":
        config.models.update(arcs=100, relations=50)
        if is_embedded:
            config.sentences.train = 24_000
            config.settings.nli.embeddings = bool(given)
            for task in set(known) - {"nli"}:
                config.settings[task].examples = 8000  # so three epochs have all of them
    if search == "dufter":
        config.models.train_own = True
        config.training.clip = 1.0
    row = "+".join(given) if given and options["row"] == "all" else options["row"]
    name = "-".join(["zero_shot", options["pair"], options["task"], row, search])
    config.workdir = config_files.default_workdir(name)
    return config
