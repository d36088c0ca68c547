"""The fields of the config, in its order."""

from xling_jax.corpora.embedded.config import LANGUAGE_FIELDS, SECOND_FIELDS
from xling_jax.evaluators import registry
from xling_jax.experiments.bilingual.rows import OWN_VOCABULARY, SWITCHED
from xling_jax.runs import fields

FIELDS = fields.read(
    __file__,
    language=LANGUAGE_FIELDS,
    second=SECOND_FIELDS,
    measured=fields.measured(registry.SENTENCES, registry.DICTIONARY),
)


def is_used(_: str, description: str, field: str) -> bool:
    """Whether a row uses a field: dictionaries are for extra anchors alone, text of another domain
    for wiki-cc, and the size of a joint vocabulary for rows without vocabularies of their own."""
    names = {part.partition("[")[0].strip() for part in description.split(";")}
    match field.split("."):
        case ["corpora", _, "dictionary"] | ["code_switch", _]:
            return not names.isdisjoint(SWITCHED)
        case ["corpora", _, "other" | "other_domain"]:
            return "wiki-cc" in names
        case ["vocabulary", "joint_size"]:
            return bool(description) and names.isdisjoint(OWN_VOCABULARY)
    return True
