"""Wu, Conneau et al. 2020, §5: are monolingual models alike? Figures 4, 6 and 7.

    python -m xling_jax.main --config=configs/bilingual.py:row=pairs+alone,pair=en-near
    python -m xling_jax.main --config=configs/similarity.py:pair=en-near

The first command trains a bilingual model, one of the first language with its twin, and one of each
language alone; the second compares them: how alike their layers are (linear CKA), and how well
words and sentences find their translations after an orthogonal map learned from others. Comparing
two models takes 20 to 30 seconds on one CPU core. Models of `en` alone and of `near` alone have a
mean CKA of .81 (one of them and a random encoder .61, the two sides of one bilingual model .97),
and a map finds .98 of the sentences; with `middle` CKA is .73 (.55, .80), and a map finds .85. The
paper's Figures 6 and 7, which have no numbers, have the same order. Seven of its ten findings hold
(docs/results.md).

Options: row (an entry of `rows`, several joined by +, all by default, or MODEL|MODEL @LANGUAGE with
names of `models`), pair (two languages or more joined by -, the first compared with the others),
run (the workdir of the run that has the models; by default where the first command puts it), seeds
(of the models, joined by +; {seed} in a folder of `models` stands for each of them, {next_seed} for
the next one in the list, where the first follows the last, or for the seed plus one if there is
only one).

Real text; files that belong together translate each other line by line:

    python -m xling_jax.main --config=configs/similarity.py:pair=en-fr,run=runs/bilingual-… \\
        --config.texts.fr.learned_first=EN.txt --config.texts.fr.learned=FR.txt \\
        --config.texts.fr.tested_first=TATOEBA.en --config.texts.fr.tested=TATOEBA.fr \\
        --config.texts.en.contexts=EN.txt --config.texts.fr.contexts=FR.txt \\
        --config.texts.fr.dictionary=en-fr.0-5000.txt \\
        --config.texts.fr.test_dictionary=en-fr.5000-6500.txt \\
        --config.texts.en.vectors=wiki.en.vec --config.texts.fr.vectors=wiki.fr.vec

Every text is optional: a measure without its text is left out (and without contexts so is word
translation by embeddings, if most words of the smaller vocabulary are in the other one too). Static
vectors may be trained on `contexts` instead, by fastText's skip-gram
(`--config.texts.LANGUAGE.vectors=contexts`, and the fields of `skip_gram`), as those of embedded
languages are; words that occur fewer than min_count times are then not translated at all. Other
models are compared by putting their folders in the place of the config's, as in
`--config.models.fr=OTHER/models/rowfr_seed{seed}/fr`: models trained here, or a BERT, RoBERTa,
XLM-R or XLM of `transformers` (an XLM with language embeddings needs the languages' names in its
lang2id). The row `other_seed` needs a second model of the first language
(`:row=en,pair=en-near,seeds=0+1` of configs/bilingual.py in the same workdir). With `bilingual_en`,
a model of the first language and its twin, it makes the two columns en–en′ of Figure 7. Both sides
of these rows read the same sentences, unless `--config.texts.en.learned_first=EN.txt` and
`--config.texts.en.learned=BACK.txt` give a back-translation (and `tested_first` and `tested`
another).
"""

import dataclasses

from ml_collections import ConfigDict

from xling_jax.corpora.embedded.config import are_embedded
from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.runs import config_files
from xling_jax.vocabulary.static_vectors import CONTEXTS, SkipGram


def get_config(argument: str | None = None) -> ConfigDict:
    """The experiment; `argument` chooses rows, languages, the run that has the models, and
    seeds."""
    options = config_files.parse_options(
        argument, {"row": "all", "pair": "en-near", "run": "", "seeds": "0"}
    )
    languages = config_files.languages("pair", options["pair"])
    first, others = languages[0], languages[1:]
    default = f"runs/bilingual-laptop-{options['pair']}-pairs+alone"
    run = options["run"] or default
    models = {name: f"{run}/models/row{name}_seed{{seed}}/{name}" for name in languages}
    config_files.require_free("models", [f"{first}_other"], models)
    models[f"{first}_other"] = f"{run}/models/row{first}_seed{{next_seed}}/{first}"
    rows = {}
    for name in others:
        both = f"{first}_{name}"
        own = {
            f"{both}_{one}": f"{run}/models/row{both}_seed{{seed}}/{one}" for one in (first, name)
        }
        config_files.require_free("models", own, models)
        models |= own
        rows |= {
            f"bilingual_{name}": f"{both}_{first}|{both}_{name} @{name}",
            f"monolingual_{name}": f"{first}|{name} @{name}",
            f"random_{name}": f"{first}|random[{name}] @{name}",
        }
    twin = f"{first}_twin"
    own = {f"{twin}_{one}": f"{run}/models/row{twin}_seed{{seed}}/{one}" for one in (first, "twin")}
    config_files.require_free("models", own, models)
    models |= own
    rows[f"bilingual_{first}"] = f"{twin}_{first}|{twin}_twin @{first}"
    sets = {"all": tuple(rows)}
    rows["other_seed"] = f"{first}|{first}_other @{first}"
    given = SYNTHETIC if are_embedded(languages) else ""
    texts = {}
    for name in languages:
        texts[name] = {
            "learned_first": given,
            "learned": given,
            "tested_first": given,
            "tested": given,
            "contexts": given,
            "dictionary": given if name != first else "",
            "test_dictionary": given if name != first else "",
            "vectors": CONTEXTS if given else "",
        }
    config = ConfigDict(
        {
            "name": "similarity",
            "languages": languages,
            "run": run,
            "models": models,
            "rows": rows,
            "sets": sets,
            "row": options["row"],
            "seeds": config_files.integers("seeds", options["seeds"]),
            "texts": texts,
            "sentences": {"learned": 10_000, "tested": 1000, "contexts": 500_000},
            "words": {"most": 20_000},
            "skip_gram": dataclasses.asdict(SkipGram()),
            "layers": (),
            "devices": {"cpu": 0},
        }
    )
    if given:
        # With few words each is a large share of a text, and they have few n-grams.
        config.skip_gram.update(sample=1e-3, buckets=20_000)
    name = f"similarity-{options['pair']}-{options['row']}"
    config.workdir = config_files.default_workdir(name)
    return config
