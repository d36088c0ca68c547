"""The fields of the config, in its order."""

from collections.abc import Sequence

from xling_jax.runs import fields
from xling_jax.schema import LARGEST, choice, each_of, number, several
from xling_jax.tasks import TASKS

DEV = "dev"
PARTS = ("train", DEV, "test")
RATES = each_of("of encoder and head", *[number("a rate", 0, LARGEST)] * 2)
FIELDS = fields.read(
    __file__,
    tasks=several("what is learned", choice("a task", *TASKS), 1, apart=True),
    rates=several("peak learning rates of the encoder and the head that are tried", RATES, 1),
    options={name: task.options for name, task in TASKS.items() if task.options},
)


def divided(job: str) -> tuple[str, str, str]:
    """A job's pair, row and task; the row is empty if the name is no job's."""
    pair, _, rest = job.partition("/")
    row, _, task = rest.rpartition("/")
    return pair, row, task


def row_of(job: str) -> str:
    """The row of a job."""
    return divided(job)[1]


def parts(languages: Sequence[str]) -> list[tuple[str, str]]:
    """The languages and parts of a task's examples that a pair reads."""
    first, *others = languages
    return [(first, part) for part in PARTS] + [(language, "test") for language in others]


def is_used(job: str, description: str, field: str) -> bool:
    """Whether a job uses a field, given by its whole name: one of the job's own task and languages,
    or one that is of no task or language."""
    pair, _, task = divided(job)
    languages = pair.split("-")
    match field.split("."):
        case ["settings", of, *_]:
            return of == task
        case ["texts", of, language, part]:
            return of == task and (language, part) in parts(languages)
        case ["texts_of_pair", of, *rest]:
            return of == "_".join(languages) and is_used(
                job, description, ".".join(["texts", *rest])
            )
        case ["parallel", language, _]:
            return language in languages[1:]
        case [section, *_] if section in TASKS:
            return section == task
    return True
