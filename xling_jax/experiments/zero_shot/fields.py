"""The fields of the config, in its order."""

from xling_jax import schema
from xling_jax.runs import fields
from xling_jax.schema import EACH, LARGEST, Section, table
from xling_jax.tasks import TASKS

_TASK = {
    **table("batches  1..65536+  sizes of a batch that are tried"),
    "rates": schema.several(
        "peak learning rates of the encoder and the head that are tried",
        schema.each_of("of encoder and head", *[schema.number("a rate", 0, LARGEST)] * 2),
        1,
    ),
    **table("""
        epochs    1..1000000  epochs
        examples  0..         examples of an epoch; 0: all
        warmup    share       of the updates, in which the learning rate rises
    """),
    **fields.DECAY,
    **table("""
        select  best|last  the epoch that is tested: best on held-out examples, or the last
    """),
}

FIELDS: Section = {
    **fields.COMMON,
    **table("runs.*  folder  workdir of the pretraining, by pair"),
    "tasks": schema.several("what is learned", schema.choice("a task", *TASKS), 1, apart=True),
    **table("""
        texts.*.*.*         file?              labelled examples, by task, language and part
        sentences.train     1..                of an embedded language's examples: to train on
        sentences.dev       1..                of an embedded language's examples: to select on
        sentences.test      1..                of an embedded language's examples: to test on
        sentences.parallel  1..                of an embedded language's examples: translations that
                                               maps are learned from, at most
        parallel.*.first    source?            sentences of the first language
        parallel.*.second   source?            their translations
        parallel.*.links    file?              their word links, in Pharaoh's format
        word_order          flag               measure how alike the order of words is (D&S appendix
                                               B.2)
    """),
    "settings": {EACH: _TASK},
    **{name: task.options for name, task in TASKS.items() if task.options},
    "models": {
        **table("""
            length     8..131072  places of a row of tokens
            added      1..1000    new layers on kept ones (W&C §5.1.2)
            train_own  flag       train what the first language has for itself
        """),
        "dropout": fields.MODELS["dropout"],
        **table("""
            arcs            1..65536   width of the parser's states for arcs
            relations       1..65536   width of the parser's states for relations
            parser_dropout  0.0..0.99  share of the parser's states dropped
        """),
        "remat": fields.MODELS["remat"],
    },
    "training": {
        name: fields.TRAINING[name]
        for name in ("weight_decay", "epsilon", "clip", "steps_per_call")
    },
    **table("best  1..  settings of a search whose scores are averaged"),
    "devices": fields.DEVICES,
    **fields.PROFILE,
}
