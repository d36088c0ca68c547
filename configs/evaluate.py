"""How multilingual are some encoders, at which layer and between which languages?

    python -m xling_jax.main --config=configs/fake_english.py
    python -m xling_jax.main --config=configs/evaluate.py

The first command trains a model, the second evaluates it beside one of the same size with random
weights. Any BERT, RoBERTa, XLM-R or XLM of `transformers` and any text whose lines translate each
other:

    python -m xling_jax.main --config=configs/evaluate.py:model=MBERT+XLMR,languages=en-de-fr-zh \\
        --config.texts.en=EN.txt --config.texts.de=DE.txt \\
        --config.texts.fr=FR.txt --config.texts.zh=ZH.txt

Of every two languages, at every layer: sentence retrieval by cosine, after the languages' means are
taken off, after an orthogonal map, and by CSLS; CKA; with `--config.dictionaries.en_de=FILE` word
translation and D&S's mu, and with `--config.links.en_de=FILE`, word links of the first sentences in
Pharaoh's format (0-0 1-2, or 1p2 for a possible one), word alignment. Of every language
pseudo-perplexity, where the model has a head: by default every seventh piece is masked in one pass
(`--config.perplexity.passes=7`: all are masked once).

Options: model (folders joined by +, where {language} stands for the language that a model reads and
{seed} for a seed; by default the models of `run`), languages (joined by -), run (the workdir whose
embedded languages, or whose held-out text, are read where `texts` names no files; by default that
of the first command), row (names of `rows` joined by +; by default all models, and the first one
with random weights), seeds (joined by +).

The default takes half a minute on two CPU cores; a model of 12 layers of 768 on 1,000 sentences in
five languages some 8 minutes.
"""

import itertools
import re
from pathlib import PurePath

from ml_collections import ConfigDict

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.evaluators.registry import OF_ENCODERS
from xling_jax.runs import config_files

RUN = "runs/fake_english-laptop-row0"


def model_name(folder: str) -> str:
    """What a model is called: the last part of its folder without a placeholder, the row's name of
    one of ours."""
    parts = [re.sub(r"^row(.+)_seed.+$", r"\1", part) for part in PurePath(folder).parts]
    name = next((part for part in reversed(parts) if "{" not in part), "model")
    name = re.sub(r"\W+", "_", name).strip("_")
    return name if name.isidentifier() else f"row{name}"


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses models, languages and where embedded ones are from."""
    options = config_files.parse_options(
        argument, {"model": "", "languages": "en-fake", "run": RUN, "row": "all", "seeds": "0"}
    )
    languages = config_files.languages("languages", options["languages"])
    given = options["model"] or f"{options['run']}/models/row0_seed{{seed}}/{{language}}"
    models: dict[str, str] = {}
    for folder in given.split("+"):
        name, number = model_name(folder), 2
        while name in models:
            name, number = f"{model_name(folder)}_{number}", number + 1
        models[name] = folder
    config_files.require_free("models", models, dir(ConfigDict))
    rows = {name: name for name in models}
    random = {f"random_{name}": f"random[{name}]" for name in models}
    pairs = ["_".join(pair) for pair in itertools.combinations(languages, 2)]
    text = "" if options["model"] and options["run"] == RUN else SYNTHETIC
    config = ConfigDict(
        {
            "name": "evaluate",
            "languages": languages,
            "run": options["run"],
            "models": models,
            "rows": rows | random,
            "sets": {"all": (*rows, next(iter(random))), "models": tuple(rows)},
            "row": options["row"],
            "seeds": config_files.integers("seeds", options["seeds"]),
            "texts": dict.fromkeys(languages, text),
            "dictionaries": dict.fromkeys(pairs, ""),
            "links": dict.fromkeys(pairs, ""),
            "sentences": 1000,
            "evaluators": {"names": OF_ENCODERS, "layers": ()},
            "perplexity": {"masked_every": 7, "passes": 1},
            "devices": {"cpu": 0},
        }
    )
    name = f"evaluate-{'+'.join(models)}-{options['languages']}"
    config.workdir = re.sub(r"[^\w+.-]", "_", name)
    return config
