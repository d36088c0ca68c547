"""How multilingual are some encoders, at which layer and between which languages?

    python -m xling_jax.main --config=configs/fake_english.py:epochs=40
    python -m xling_jax.main --config=configs/evaluate.py

The first command trains a model, the second evaluates it beside one of the same size with random
weights. Any BERT, RoBERTa, XLM-R or XLM of `transformers` and any text whose lines translate each
other:

    python -m xling_jax.main --config=configs/evaluate.py:model=MBERT+XLMR,languages=en-de-fr-zh \\
        --config.texts.en=EN.txt --config.texts.de=DE.txt \\
        --config.texts.fr=FR.txt --config.texts.zh=ZH.txt

For every two languages, at every layer: sentence retrieval by cosine, after subtracting each
language's mean, after an orthogonal map, and by CSLS; CKA; with `--config.dictionaries.en_de=FILE`
word translation and D&S's mu, and with `--config.links.en_de=FILE`, word links of the first
sentences in Pharaoh's format (0-0 1-2, or 1p2 for a possible one), word alignment. For every
language pseudo-perplexity, if the model has a head: by default every seventh piece is masked in one
pass (`--config.perplexity.passes=7`: all are masked once).

Options: model (folders joined by +, where {language} stands for the language that a model reads and
{seed} for a seed; by default that of row 0 of `run`), languages (joined by -), run (the workdir
whose embedded languages, or Fake-English's held-out text, are read where `texts` names no files; if
no model is named, by default that of the first command), row (names of `rows` joined by +; or
`all`, the models and the first one with random weights; or `models` alone), seeds (joined by +).

The default takes half a minute on two CPU cores: of row 0 of Fake-English after 40 epochs .766 of
the sentences are found at layer 3 of 4 (random weights: .009), and mu of words is .50. A model of
12 layers of 768 on 1,000 sentences in five languages takes 8 minutes, and 3 GB.
"""

import itertools

from ml_collections import ConfigDict

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.evaluators.registry import OF_ENCODERS
from xling_jax.runs import config_files, encoders

RUN = "runs/fake_english-laptop-epochs40-row0"
SETS = ("all", "models")


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses models, languages, the run whose text is read, rows and
    seeds."""
    options = config_files.parse_options(
        argument, {"model": "", "languages": "en-fake", "run": "", "row": "all", "seeds": "0"}
    )
    languages = config_files.languages("languages", options["languages"])
    run = options["run"] or ("" if options["model"] else RUN)
    default = f"{run}/models/row0_seed{{seed}}/{{language}}"
    models = encoders.named(options["model"] or default, SETS)
    rows = {name: name for name in models}
    random = {f"random_{name}": f"random[{name}]" for name in models}
    if both := sorted(set(rows) & set(random)):
        raise ValueError(f"model: {both[0]} is what random weights are called: rename the folder")
    pairs = ["_".join(pair) for pair in itertools.combinations(languages, 2)]
    config = ConfigDict(
        {
            "name": "evaluate",
            "languages": languages,
            "run": run,
            "models": models,
            "rows": rows | random,
            "sets": dict(zip(SETS, ((*rows, next(iter(random))), tuple(rows)), strict=True)),
            "row": options["row"],
            "seeds": config_files.integers("seeds", options["seeds"]),
            "texts": dict.fromkeys(languages, SYNTHETIC if run else ""),
            "dictionaries": dict.fromkeys(pairs, ""),
            "links": dict.fromkeys(pairs, ""),
            "sentences": 1000,
            "measures": OF_ENCODERS,
            "layers": (),
            "perplexity": {"masked_every": 7, "passes": 1},
            "devices": {"cpu": 0},
        }
    )
    name = f"evaluate-{'+'.join(models)}-{options['languages']}"
    config.workdir = config_files.default_workdir(name)
    return config
