"""The fields of every experiment's config, in the order in which the configs have them.

`python -m xling_jax.runs.fields > docs/fields.md` writes the page of the documentation.
"""

from collections.abc import Iterator, Mapping

import ml_collections

from xling_jax import schema
from xling_jax.batches import streams
from xling_jax.corpora.embedded import config as first_language
from xling_jax.corpora.embedded import second as second_language
from xling_jax.descriptions import MOST_EPOCHS
from xling_jax.evaluators import registry
from xling_jax.schema import EACH, Section

SOURCE = "a text file, or tfds:NAME[/CONFIG][:SPLIT][#FIELD]"
FILES = "files joined by +, or tfds:NAME[/CONFIG][:SPLIT][#FIELD]"

_DEVICES: Section = {
    "cpu": schema.whole(
        "parts that the CPU is split into, one device each; 0: a power of two, as many as cores",
        0,
        256,
    ),
    "side_by_side": schema.whole(
        "replicas trained in one program; 0: as many as pay and fit in memory", 0, 10_000
    ),
    "replica_axis_at_most": schema.whole(
        "devices that replicas are divided among, at most; 0: as many as divide both numbers", 0
    ),
    "shard_parameters": schema.flag(
        "divide parameters and moments among the devices that share a batch"
    ),
}

_MODELS: Section = {
    "layers": schema.whole("transformer layers", most=1000),
    "hidden": schema.whole("width of the hidden states; a multiple of heads", most=2**16),
    "intermediate": schema.whole("width between the two feed-forward products", most=2**18),
    "heads": schema.whole("attention heads", most=2**10),
    "positions": schema.whole("rows of the position table", most=2**17),
    "token_types": schema.whole("rows of the token-type table", most=2**10),
    "dropout": schema.number("share of values dropped", 0, 0.99),
    "dtype": schema.choice("of the computation; parameters are float32", "float32", "bfloat16"),
    "remat": schema.flag("compute layers again in the backward pass, to save memory"),
}

_TRAINING: Section = {
    "learning_rate": schema.number("peak, after the warm-up", 0, schema.LARGEST, above=True),
    "warmup_steps": schema.whole("updates in which the learning rate rises", 0),
    "weight_decay": schema.share("decoupled, in units of the learning rate"),
    "epsilon": schema.number("of Adam", 0, 1, above=True),
    "clip": schema.number("norm that the gradient is shortened to", 0, schema.LARGEST, above=True),
    "steps_per_call": schema.whole("updates in one call of the compiled program", most=100_000),
    "save_every": schema.whole("updates between checkpoints; 0: one an epoch", 0),
}

_OPTIMIZER: Section = {name: _TRAINING[name] for name in ("weight_decay", "epsilon", "clip")}

_CURVE = schema.several(
    "when the model is evaluated, in percent of the training",
    schema.number("percent of the training", 0, 100),
)
_LAYERS = schema.several(
    "layers that are evaluated, 0 being the embeddings; none: the experiment's own choice",
    schema.whole("a layer", 0, 1000),
    apart=True,
)


def _names(*of: str) -> schema.Field:
    known = schema.choice("a metric", *registry.names(*of))
    return schema.several("what is measured besides perplexity", known, apart=True)


_ROW_LENGTHS = schema.several(
    "places of a row that sentences are packed into; longer sentences have longer rows",
    schema.whole("places", 4, 2**16),
    1,
)
_MODEL_TYPE = schema.choice("how SentencePiece learns pieces", "bpe", "unigram")
_VOCABULARY_SIZE = schema.whole("pieces, special tokens included", 6, 10**7)
_SAMPLE = schema.whole("sentences that a vocabulary is learned from, at most")
_PROFILE = schema.flag("write a trace of the second training call below the workdir")

_NEIGHBOURS: Section = {
    "number": schema.whole("neighbours of a piece among which one is drawn", most=1000),
    "seed": schema.seed("of the vectors and of their map"),
    "vectors": schema.several(
        "a .vec file for each language, instead of vectors trained on the text",
        schema.text("a .vec file", "a file", is_needed=True),
    ),
    "skip_gram": {
        "dimension": schema.whole("of a vector", most=10_000),
        "learning_rate": schema.number("at first; it falls to 0", 0, schema.LARGEST, above=True),
        "window": schema.whole("pieces to either side that are predicted", most=1000),
        "min_count": schema.whole("occurrences below which a piece has no vector"),
        "negative": schema.whole("wrong pieces drawn for a right one", most=1000),
        "sample": schema.share("pieces of a larger share of the text are thinned out"),
        "epochs": schema.whole("passes over the text", most=10_000),
        "min_n": schema.whole("characters of the shortest n-grams of a piece", most=100),
        "max_n": schema.whole("characters of the longest n-grams; 0: no n-grams", 0, 100),
        "buckets": schema.whole("vectors that n-grams share by their hash", most=10**8),
        "threads": schema.whole(
            "for each language; with more than one, training again does not give the same bits",
            most=1000,
        ),
    },
}

_LANGUAGE = schema.text("a language", "a name", is_needed=True)
_SPLITTING: Section = {
    "split_sentences": schema.flag("cut lines into sentences, by the rules of their language"),
    "split_clauses": schema.flag("cut sentences after ; and : too"),
}

_EPOCHS = schema.whole("passes over the text", most=MOST_EPOCHS)
_DECAY = schema.choice(
    "of the learning rate after the warm-up", "linear", "inverse_sqrt", "constant"
)

_COMMON: Section = {
    "name": schema.text("of the experiment", "a name", is_needed=True),
    "workdir": schema.text("name of the run's folder below runs/", "a name", is_needed=True),
    "row": schema.text("rows or sets of rows joined by +, or a description", is_needed=True),
    "rows": {EACH: schema.text("what a row changes", "a description", is_needed=True)},
    "sets": {
        EACH: schema.several(
            "the rows of a set", schema.text("a row", "a row's name", is_needed=True)
        )
    },
    "seeds": schema.several("a replica of each row for each seed", schema.seed("a seed"), 1),
}
_SCALE: Section = {"scale": schema.text("whose sizes the config has", "a name", is_needed=True)}

_FAKE_ENGLISH: Section = {
    **_COMMON,
    **_SCALE,
    "corpora": {
        "train": schema.text("the text to train on", SOURCE, is_needed=True),
        "dev": schema.text("held-out text", SOURCE, is_needed=True),
        "languages": schema.several(
            "the name of the text's language, and of the one made of it",
            _LANGUAGE,
            2,
            2,
            apart=True,
        ),
        **_SPLITTING,
        "train_sentences": schema.whole(
            "sentences of train; 0: all, of the embedded language as many as the paper", 0
        ),
        "dev_sentences": schema.whole(
            "sentences of dev; 0: all, of the embedded language as many as the paper", 0
        ),
        "synthetic": first_language.FIELDS,
    },
    "vocabulary": {
        "size": _VOCABULARY_SIZE,
        "model_type": _MODEL_TYPE,
        "neighbours": _NEIGHBOURS,
    },
    "batches": {
        "sentences": schema.whole("sentences of a step", most=2**20),
        "max_length": schema.whole("places of a sentence, [CLS] and [SEP] included", 3, 2**16),
        "row_lengths": _ROW_LENGTHS,
        "attend_padding": schema.flag(
            "a sentence a row, and attention to [PAD], as the published code has it"
        ),
    },
    "models": _MODELS,
    "overparam": {
        **{name: _MODELS[name] for name in ("hidden", "intermediate", "heads")},
        "learning_rate": _TRAINING["learning_rate"],
        "epochs": schema.whole("passes over the text; 0: as training.epochs", 0, MOST_EPOCHS),
    },
    "training": {"epochs": _EPOCHS, **_TRAINING},
    "evaluators": {
        "names": _names(registry.SENTENCES, registry.PIECES, registry.TOKENS),
        "layers": _LAYERS,
        "curve": _CURVE,
    },
    "devices": _DEVICES,
    "profile": _PROFILE,
}

_NORMALIZATION: Section = {
    "punctuation": schema.flag("one form for quotes, dashes and full-width marks (Moses)"),
    "tokenize": schema.choice("blanks between words and punctuation", "moses", "none"),
}

_LANGUAGES = schema.several(
    "names of languages, of which the first is the one that others are compared with",
    _LANGUAGE,
    1,
    apart=True,
)

_SENTENCES: Section = {
    "train_sentences": schema.whole(
        "sentences of a language to train on; 0: all, unless the language is embedded", 0
    ),
    "dev_sentences": schema.whole(
        "held-out sentences of a language; 0: all, unless it is embedded", 0
    ),
}

_BILINGUAL: Section = {
    **_COMMON,
    **_SCALE,
    "corpora": {
        "languages": _LANGUAGES,
        "synthetic": first_language.FIELDS,
        **_SENTENCES,
        "test_sentences": schema.whole("parallel sentences to find, at most; 0: none", 0),
        **_SPLITTING,
        **_NORMALIZATION,
        "processes": schema.whole("processes that prepare text", most=10_000),
        EACH: {
            "train": schema.text("text to train on", FILES, is_needed=True),
            "other": schema.text("text of another domain (wiki_cc)", FILES),
            "dev": schema.text("held-out text", FILES, is_needed=True),
            "test": schema.text("sentences to find, in this language", SOURCE),
            "test_first": schema.text("the same sentences in the first language", SOURCE),
            "dictionary": schema.text(
                "translations from the first language, for extra_anchors", "a dictionary"
            ),
            "test_dictionary": schema.text("translations to test with", "a dictionary"),
            "second": second_language.FIELDS,
            "other_domain": schema.share("of an embedded language: see second.domain"),
        },
    },
    "vocabulary": {
        "joint_size": _VOCABULARY_SIZE,
        "own_size": _VOCABULARY_SIZE,
        "model_type": _MODEL_TYPE,
        "sentences": _SAMPLE,
    },
    "batches": {
        "parts": schema.whole("parts of a step, each of one language", most=2**16),
        "sequences": schema.whole("windows of a part", most=2**20),
        "length": schema.whole("places of a window", 2, 2**17),
        "begin": schema.choice("where windows begin", streams.ANYWHERE, streams.SENTENCE),
        "alpha": schema.number("exponent of a language's share of the sentences", 0, 100),
        "accumulate": schema.whole("pieces that a step is worked through in", most=2**16),
        "resident_tokens": schema.whole(
            "tokens up to which text is kept on the device", 0, 2**31 - 1
        ),
    },
    "code_switch": {
        "seed": schema.seed("of the words that are replaced"),
        "probability": schema.share("with which a word of the dictionary is replaced"),
        "most": schema.share("of the words of a text or window that may be replaced"),
    },
    "models": {
        **_MODELS,
        "head": schema.choice("of masked language modelling", "bert", "linear"),
    },
    "training": {
        "epochs": schema.whole("number of epochs", most=MOST_EPOCHS),
        "steps_per_epoch": schema.whole("updates of an epoch"),
        **_TRAINING,
        "decay": _DECAY,
        "start_from": schema.text("folder of the best checkpoint to begin with", "a folder"),
    },
    "evaluators": {
        "names": _names(registry.SENTENCES, registry.DICTIONARY),
        "layers": _LAYERS,
        "sentences": schema.whole("sentences encoded at once", most=2**20),
        "row_lengths": _ROW_LENGTHS,
        "curve": _CURVE,
    },
    "devices": _DEVICES,
    "profile": _PROFILE,
}

_SIMILARITY: Section = {
    **_COMMON,
    "seeds": schema.several(
        "seeds of the models, and of random encoders", schema.seed("a seed"), 1
    ),
    "languages": _LANGUAGES,
    "run": schema.text("workdir of the run that has the models of embedded languages", "a folder"),
    "models": {
        EACH: schema.text("folder of a model, {seed} for its seed", "a folder", is_needed=True)
    },
    "texts": {
        EACH: {
            "learned_first": schema.text("sentences of the first language, for maps", SOURCE),
            "learned": schema.text("their translations into this one", SOURCE),
            "tested_first": schema.text("sentences of the first language to find", SOURCE),
            "tested": schema.text("their translations into this one", SOURCE),
            "contexts": schema.text("text in which words are met", SOURCE),
            "dictionary": schema.text("translations that maps are learned from", "a dictionary"),
            "test_dictionary": schema.text("translations to test with", "a dictionary"),
            "vectors": schema.text("static vectors of words", "a .vec file"),
        }
    },
    "sentences": {
        "learned": schema.whole("parallel sentences that maps are learned on, at most"),
        "tested": schema.whole("parallel sentences to find, at most"),
        "contexts": schema.whole("sentences in which words are met, at most"),
    },
    "words": {"most": schema.whole("words that are candidates for a translation, at most")},
    "layers": _LAYERS,
    "devices": {"cpu": _DEVICES["cpu"]},
}

_SETTINGS: Section = {
    "batches": schema.several(
        "sizes of a batch that are tried", schema.whole("examples of a step", most=2**16), 1
    ),
    "rates": schema.several(
        "peak learning rates of the encoder and the head that are tried",
        schema.each_of(
            "of encoder and head",
            schema.number("of the encoder", 0, schema.LARGEST),
            schema.number("of the head", 0, schema.LARGEST),
        ),
        1,
    ),
    "epochs": schema.whole("epochs", most=MOST_EPOCHS),
    "examples": schema.whole("examples of an epoch; 0: all", 0),
    "warmup": schema.share("of the updates, in which the learning rate rises"),
    "decay": _DECAY,
    "select": schema.choice(
        "the epoch that is tested: best on held-out examples, or the last", "best", "last"
    ),
}

_TASK = schema.choice("a task", "nli", "ner", "parsing")

_ZERO_SHOT: Section = {
    **_COMMON,
    "runs": {EACH: schema.text("workdir of the pretraining, by pair", "a folder", is_needed=True)},
    "tasks": schema.several("what is learned", _TASK, 1, apart=True),
    "texts": {
        EACH: {EACH: {EACH: schema.text("labelled examples, by task, language and part", "a file")}}
    },
    "sentences": {
        name: schema.whole(f"of an embedded language's examples: {what}")
        for name, what in (
            ("train", "to train on"),
            ("dev", "to select on"),
            ("test", "to test on"),
            ("parallel", "translations that maps are learned from, at most"),
        )
    },
    "parallel": {
        EACH: {
            "first": schema.text("sentences of the first language", SOURCE),
            "second": schema.text("their translations", SOURCE),
            "links": schema.text("their word links, in Pharaoh's format", "a file"),
        }
    },
    "word_order": schema.flag("measure how alike the order of words is (D&S appendix B.2)"),
    "settings": dict.fromkeys(("nli", "ner", "parsing"), _SETTINGS),
    "parsing": {
        "subtypes": schema.flag("keep what follows the colon of a relation"),
        "punctuation": schema.flag("score punctuation too"),
    },
    "models": {
        "length": schema.whole("places of a row of tokens", 8, 2**17),
        "added": schema.whole("new layers on kept ones (W&C §5.1.2)", most=1000),
        "train_own": schema.flag("train what the first language has for itself"),
        "dropout": _MODELS["dropout"],
        "arcs": schema.whole("width of the parser's states for arcs", most=2**16),
        "relations": schema.whole("width of the parser's states for relations", most=2**16),
        "parser_dropout": schema.number("share of the parser's states dropped", 0, 0.99),
        "remat": _MODELS["remat"],
    },
    "training": {
        **_OPTIMIZER,
        "steps_per_call": _TRAINING["steps_per_call"],
    },
    "best": schema.whole("settings of a search whose scores are averaged"),
    "devices": _DEVICES,
    "profile": _PROFILE,
}

_REAL_XNLI: Section = {
    **_COMMON,
    **_SCALE,
    "corpora": {
        "languages": schema.several(
            "names of languages; fine-tuning reads the first",
            _LANGUAGE,
            2,
            apart=True,
        ),
        "synthetic": first_language.FIELDS,
        **_SENTENCES,
        **_SPLITTING,
        **_NORMALIZATION,
        EACH: {
            "train": schema.text("text to train on", FILES, is_needed=True),
            "dev": schema.text("held-out text", FILES, is_needed=True),
            "second": second_language.FIELDS,
        },
    },
    "vocabulary": {
        "size": _VOCABULARY_SIZE,
        "model_type": _MODEL_TYPE,
        "sentences": _SAMPLE,
        "neighbours": _NEIGHBOURS,
    },
    "batches": _FAKE_ENGLISH["batches"],
    "models": _MODELS,
    "training": {"epochs": _EPOCHS, **_TRAINING},
    "evaluators": {"curve": _CURVE},
    "transfer": {**_ZERO_SHOT, "tasks": schema.several("what is learned", _TASK, apart=True)},
    "devices": _DEVICES,
    "profile": _PROFILE,
}

EXPERIMENTS: Mapping[str, Section] = {
    "fake_english": _FAKE_ENGLISH,
    "bilingual": _BILINGUAL,
    "similarity": _SIMILARITY,
    "zero_shot": _ZERO_SHOT,
    "real_xnli": _REAL_XNLI,
}


def of_experiment(name: object) -> Section:
    """The fields of an experiment's config; ValueError if there is no such experiment."""
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise ValueError(f"config.name={name!r}: choose from {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def check(config: ml_collections.ConfigDict) -> None:
    """Raises ValueError, naming the field and what it may be, unless a config can be used.

    Fields are checked each by itself; what they have to do with texts, models and devices is up to
    the experiment.
    """
    values = config.to_dict()
    schema.check(values, of_experiment(values.get("name")))
    for name in ("models", "overparam"):
        section = values.get(name, {})
        if "heads" in section and section["hidden"] % section["heads"]:
            raise ValueError(
                f"{name}.hidden={section['hidden']} is not divisible by {name}.heads="
                f"{section['heads']}: choose a multiple"
            )
    skip_gram = values.get("vocabulary", {}).get("neighbours", {}).get("skip_gram", {})
    if 0 < skip_gram.get("max_n", 0) < skip_gram.get("min_n", 0):
        raise ValueError(
            f"vocabulary.neighbours.skip_gram.max_n={skip_gram['max_n']}: give min_n="
            f"{skip_gram['min_n']} or more, or 0 for no n-grams"
        )


def described(config: ml_collections.ConfigDict) -> Iterator[str]:
    """A line for every field of a config: its name and value, what it may be, what it means."""
    for name, value, field in schema.described(config.to_dict(), of_experiment(config.get("name"))):
        yield f"--config.{name}={value}\n    {field.meaning} ({field.form})"


def page() -> str:
    """Every experiment's fields as Markdown."""
    lines = [
        "# The fields of the configs",
        "",
        "Set any of them with `--config.FIELD=VALUE`. A `*` stands for names of your own: a "
        "language, a pair, a row. `python -m xling_jax.main --config=configs/NAME.py --help` lists "
        "the fields of a config with their values.",
    ]
    known: dict[int, str] = {}
    for name, section in EXPERIMENTS.items():
        lines += ["", f"## {name}", "", "| field | what it may be | meaning |", "|---|---|---|"]
        for path, field in schema.listed(section, known, name):
            own = path.removeprefix(f"{name}.")
            if isinstance(field, str):
                lines.append(f"| `{own}.…` | | the fields of `{field}` |")
            else:
                lines.append(f"| `{own}` | {field.form} | {field.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
