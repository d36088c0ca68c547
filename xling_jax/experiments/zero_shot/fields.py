"""The fields of the config, in its order."""

from xling_jax.runs import fields
from xling_jax.schema import LARGEST, choice, each_of, number, several
from xling_jax.tasks import TASKS

RATES = each_of("of encoder and head", *[number("a rate", 0, LARGEST)] * 2)
FIELDS = fields.read(
    __file__,
    tasks=several("what is learned", choice("a task", *TASKS), 1, apart=True),
    rates=several("peak learning rates of the encoder and the head that are tried", RATES, 1),
    options={name: task.options for name, task in TASKS.items() if task.options},
)
