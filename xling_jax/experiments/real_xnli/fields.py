"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LANGUAGE_FIELDS, SECOND_FIELDS
from xling_jax.evaluators import registry
from xling_jax.experiments.fake_english.fields import is_used as is_used
from xling_jax.experiments.zero_shot.fields import FIELDS as ZERO_SHOT
from xling_jax.runs import fields
from xling_jax.schema import choice, several

# Fields of zero_shot that the whole config has, and those that the experiment sets.
WHOLE = ("devices", "log", "profile")
SET = ("name", "workdir", "row", "rows", "sets", "seeds", "runs", "pretrained", "texts_of_pair")
FIELDS = fields.read(
    __file__,
    language=LANGUAGE_FIELDS,
    second=SECOND_FIELDS,
    measured=fields.measured(registry.SENTENCES, registry.PIECES),
    zero_shot={name: own for name, own in ZERO_SHOT.items() if name not in WHOLE + SET},
    tasks=several("what is learned", choice("a task", "nli"), apart=True),
)
