"""The experiments by name, and the fields that their configs have in common; those of one
experiment are in its `fields.py`.

`python -m xling_jax.runs.fields > docs/fields.md` writes the page of the documentation.
"""

import importlib
from collections.abc import Iterator
from typing import Any

import ml_collections

from xling_jax import schema
from xling_jax.evaluators import registry
from xling_jax.schema import Section, table

# Each is a package below `xling_jax/experiments/`, and its config file has the same name.
EXPERIMENTS = ("fake_english", "bilingual", "similarity", "zero_shot", "real_xnli", "evaluate")

COMMON = table("""
    name     name          of the experiment
    workdir  name          name of the run's folder below runs/
    row      text          rows or sets of rows joined by +, or a description
    rows.*   description   what a row changes
    sets.*   row*          the rows of a set
    seeds    seed+         a replica of each row for each seed
""")
SCALE = table("scale  name  whose sizes the config has")
PROFILE = table("profile  flag  write a trace of the second training call below the workdir")
DEVICES = table("""
    cpu                   0..256     parts that the CPU is split into, one device each; 0: a power
                                     of two, as many as cores
    side_by_side          0..10000   replicas trained in one program; 0: as many as pay and fit in
                                     memory
    replica_axis_at_most  0..        devices that replicas are divided among, at most; 0: as many
                                     as divide both numbers
    shard_parameters      flag       divide parameters and moments among the devices that share a
                                     batch
""")
MODELS = table("""
    layers        1..1000           transformer layers
    hidden        1..65536          width of the hidden states; a multiple of heads
    intermediate  1..262144         width between the two feed-forward products
    heads         1..1024           attention heads
    positions     1..131072         rows of the position table
    token_types   1..1024           rows of the token-type table
    dropout       0.0..0.99         share of values dropped
    dtype         float32|bfloat16  of the computation; parameters are float32
    remat         flag              compute layers again in the backward pass, to save memory
""")
TRAINING = table("""
    learning_rate   >0.0..3.4e38  peak, after the warm-up
    warmup_steps    0..           updates in which the learning rate rises
    weight_decay    share         decoupled, in units of the learning rate
    epsilon         >0.0..1.0     of Adam
    clip            >0.0..3.4e38  norm that the gradient is shortened to
    steps_per_call  1..100000     updates in one call of the compiled program
    save_every      0..           updates between checkpoints; 0: one an epoch
""")
EPOCHS = table("epochs  1..1000000  passes over the text")
DECAY = table("""
    decay  linear|inverse_sqrt|constant  of the learning rate after the warm-up
""")


def measured(*of: str) -> Section:
    """The names of what is measured of these kinds, see `evaluators.registry`."""
    known = schema.choice("a metric", *registry.names(*of))
    return {"names": schema.several("what is measured besides perplexity", known, apart=True)}


CURVE = table("curve  0.0..100.0*  when the model is evaluated, in percent of the training")
LAYERS = table("""
    layers  0..1000*!  layers that are evaluated, 0 being the embeddings; none: the experiment's
                       own choice
""")
ROW_LENGTHS = table("""
    row_lengths  4..65536+  places of a row that sentences are packed into; longer sentences have
                            longer rows
""")
PACKED: Section = {
    **table("""
        sentences   1..1048576  sentences of a step
        max_length  3..65536    places of a sentence, [CLS] and [SEP] included
    """),
    **ROW_LENGTHS,
    **table("""
        attend_padding  flag  a sentence a row, and attention to [PAD], as the published code has it
    """),
}
PIECES = table("""
    size        6..10000000  pieces, special tokens included
    model_type  bpe|unigram  how SentencePiece learns pieces
""")
SAMPLE = table("sentences  1..  sentences that a vocabulary is learned from, at most")
NEIGHBOURS = table("""
    number                   1..1000       neighbours of a piece among which one is drawn
    seed                     seed          of the vectors and of their map
    vectors                  vectors*      a .vec file for each language, instead of vectors trained
                                           on the text
    skip_gram.dimension      1..10000      of a vector
    skip_gram.learning_rate  >0.0..3.4e38  at first; it falls to 0
    skip_gram.window         1..1000       pieces to either side that are predicted
    skip_gram.min_count      1..           occurrences below which a piece has no vector
    skip_gram.negative       1..1000       wrong pieces drawn for a right one
    skip_gram.sample         share         pieces of a larger share of the text are thinned out
    skip_gram.epochs         1..10000      passes over the text
    skip_gram.min_n          1..100        characters of the shortest n-grams of a piece
    skip_gram.max_n          0..100        characters of the longest n-grams; 0: no n-grams
    skip_gram.buckets        1..100000000  vectors that n-grams share by their hash
    skip_gram.threads        1..1000       for each language; with more than one, training again
                                           does not give the same bits
""")
SPLITTING = table("""
    split_sentences  flag  cut lines into sentences, by the rules of their language
    split_clauses    flag  cut sentences after ; and : too
""")
NORMALIZATION = table("""
    punctuation  flag        one form for quotes, dashes and full-width marks (Moses)
    tokenize     moses|none  blanks between words and punctuation
""")
LANGUAGES = table("""
    languages  name+!  names of languages, of which the first is the one that others are compared
                       with
""")
SENTENCES = table("""
    train_sentences  0..  sentences of a language to train on; 0: all, unless the language is
                          embedded
    dev_sentences    0..  held-out sentences of a language; 0: all, unless it is embedded
""")


def _of_experiment(name: object, module: str) -> Any:
    """A module of an experiment, imported when it is asked for, so that reports and the help of the
    command come quickly; ValueError if there is no such experiment."""
    if name not in EXPERIMENTS:
        raise ValueError(f"config.name={name!r}: choose from {', '.join(EXPERIMENTS)}")
    return importlib.import_module(f"xling_jax.experiments.{name}.{module}")


def of_name(name: object) -> Section:
    """What the config of an experiment may be."""
    return _of_experiment(name, "fields").FIELDS


def experiment(name: object) -> Any:
    """The class that runs an experiment: made from a config and a workdir; `run` returns the
    tables."""
    return _of_experiment(name, "experiment").Experiment


def check(config: ml_collections.ConfigDict) -> None:
    """Raises ValueError, naming the field and what it may be, unless a config can be used.

    Fields are checked each by itself; what they have to do with texts, models and devices is up to
    the experiment.
    """
    values = config.to_dict()
    schema.check(values, of_name(values.get("name")))
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
    section = of_name(config.get("name"))
    for name, value, field in schema.described(config.to_dict(), section):
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
    for name in EXPERIMENTS:
        lines += ["", f"## {name}", "", "| field | what it may be | meaning |", "|---|---|---|"]
        for path, field in schema.listed(of_name(name), known, name):
            own = path.removeprefix(f"{name}.")
            if isinstance(field, str):
                lines.append(f"| `{own}.…` | | the fields of `{field}` |")
            else:
                lines.append(f"| `{own}` | {field.form} | {field.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
