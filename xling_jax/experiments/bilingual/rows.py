"""The rows of W&C Table 1 as modifications of the default model."""

import dataclasses
from collections.abc import Sequence

from xling_jax import descriptions
from xling_jax.batches.windows import ANYWHERE, INSIDE
from xling_jax.models import partition
from xling_jax.training.stream_step import LANGUAGE_SOFTMAX, SHARED_SOFTMAX

DEFAULT = "default"
TWIN = "twin"
MODIFICATIONS = {
    "wiki-cc": "the languages but the first train on text of another domain (their field `other`)",
    "no-anchors": "a vocabulary for each language, and no piece in two of them",
    "default-anchors": "a vocabulary for each language; equal pieces are one",
    "extra-anchors": "words are replaced by translations, once",
    "extra-anchors-online": "words are replaced by translations, anew each time they are read",
    "sep-emb": "embeddings of tokens and positions, and the softmax, for each language",
    "shared-special": "with sep-emb: but the embeddings of special tokens are shared",
    "sep": "sep[PATHS]: these parameters for each language, as sep[layers/0..2]; joined by |",
    "language-softmax": "a prediction chooses among the language's pieces, as always with sep-emb",
    "random-inside": "random replacements are of the language, as in all rows with sep-emb or sep",
    "only": "only[NAMES]: without the other languages; joined by |",
    TWIN: "the first language alone, and once more as the language twin; with sep-emb",
}
WITH_ARGUMENT = ("sep", "only")
SEP_EMB = (partition.TOKENS, "embeddings/positions", "mlm/bias")
SHARED_SPECIAL = (partition.PIECES, *SEP_EMB[1:])  # the same with special tokens in common
OWN_VOCABULARY = {"sep-emb": "separate", "no-anchors": "prefixed", "default-anchors": "union"}
ONCE, ONLINE = "once", "online"
SWITCHED = {"extra-anchors": ONCE, "extra-anchors-online": ONLINE}
EXCLUDE = (  # of these a row has one at most
    tuple(OWN_VOCABULARY),
    tuple(SWITCHED),
    *((name, "sep-emb") for name in SWITCHED),
)
OF_SEVERAL = ("wiki-cc", *SWITCHED)  # need different languages


@dataclasses.dataclass(frozen=True)
class Row:
    """What a row's description says.

    Attributes:
      languages: those trained. TWIN is the first one's text once more, with a vocabulary of its own
        (the model en′ of W&C §5).
      partition: paths of the parameters that each language has for itself.
      sharing: see `sharing.make`.
      softmax, random_pieces: see `Vocabularies` and `PieceTables`.
      code_switch: ONCE, ONLINE or "".
      is_other_domain: whether all languages but the first have their `other` text.
    """

    name: str
    description: str
    languages: tuple[str, ...]
    partition: tuple[str, ...]
    sharing: str
    softmax: str
    random_pieces: str
    code_switch: str
    is_other_domain: bool

    def text_of(self, language: str) -> str:
        """The language whose text and rules a language of the row has: for TWIN the first one."""
        return self.languages[0] if language == TWIN else language


def _only(part: descriptions.Part, languages: Sequence[str]) -> list[str]:
    """The languages that a part names, in the experiment's order."""
    only = part.argument.split("|")
    trained = [other for other in languages if other in only]
    if len(trained) < len(only):
        raise ValueError(
            f"{part.text!r}: name languages among {', '.join(languages)}, each once, joined by |"
        )
    if len(trained) > 1 and trained[0] != languages[0]:
        raise ValueError(
            f"{part.text!r}: several languages are compared with {languages[0]}, so name it too"
        )
    return trained


def _require_meaning(names: set[str], trained: Sequence[str], languages: Sequence[str]) -> None:
    """Raises ValueError for modifications that exclude or lack each other, or a language."""
    if TWIN in names:
        if "sep-emb" not in names or "only" in names:
            raise ValueError(f"{TWIN} needs sep-emb, and cannot be combined with only[…]")
        if TWIN in languages:
            raise ValueError(f"{TWIN} is the name of a language too: give the language another one")
    if "shared-special" in names and "sep-emb" not in names:
        raise ValueError("shared-special needs sep-emb: otherwise special tokens are shared anyway")
    if (len(trained) == 1 or TWIN in names) and (wrong := sorted(names.intersection(OF_SEVERAL))):
        raise ValueError(f"{wrong[0]} needs two different languages or more")
    for several in EXCLUDE:
        if len(both := sorted(names.intersection(several))) > 1:
            raise ValueError(f"{' and '.join(both)} exclude each other")


def common_parts(every: str) -> list[descriptions.Part]:
    """Reads the modifications that every row has besides its own, joined by `;`, if any; raises
    what `descriptions.parts` raises."""
    return descriptions.parts(every, MODIFICATIONS, WITH_ARGUMENT) if every else []


def _paths(found: Sequence[descriptions.Part]) -> list[str]:
    """The paths of all `sep` parts; ValueError for one that is empty or there twice."""
    paths = [path for part in found if part.name == "sep" for path in part.argument.split("|")]
    if "" in paths or len(set(paths)) < len(paths):
        raise ValueError(f"sep[{'|'.join(paths)}]: name each path once, joined by one | each")
    return paths


def parse(
    name: str,
    description: str,
    languages: Sequence[str],
    common: Sequence[descriptions.Part] = (),
) -> Row:
    """Reads a description such as `sep-emb;sep[layers/0..2]`: names of `MODIFICATIONS` joined by
    `;`, or `default`. `common` (see `common_parts`) may repeat some of them.

    Raises:
      ValueError: see `descriptions.parts`; an unknown language, or modifications that exclude each
        other.
    """
    known = {DEFAULT: "nothing is changed"} | MODIFICATIONS
    found = descriptions.parts(description, known, WITH_ARGUMENT)
    if DEFAULT in (part.name for part in found) and len(found) > 1:
        raise ValueError(f"{DEFAULT} stands alone, for no modification")
    paths = list(dict.fromkeys([*_paths(found), *_paths(common)]))
    found += [part for part in common if part not in found]
    descriptions.only_once(found, "only")
    names = {part.name for part in found}
    only = [_only(part, languages) for part in found if part.name == "only"]
    trained = only[0] if only else [languages[0], TWIN] if TWIN in names else list(languages)
    _require_meaning(names, trained, languages)
    undone = [path for path in paths if partition.is_under(partition.SPECIAL, path)]
    if "shared-special" in names and undone:
        raise ValueError(f"sep[{undone[0]}] separates what shared-special shares: leave one out")
    own = SHARED_SPECIAL if "shared-special" in names else SEP_EMB if "sep-emb" in names else ()
    return Row(
        name=name,
        description=description,
        languages=tuple(trained),
        partition=(*own, *paths),
        sharing=next((way for key, way in OWN_VOCABULARY.items() if key in names), "joint"),
        softmax=LANGUAGE_SOFTMAX if names & {"sep-emb", "language-softmax"} else SHARED_SOFTMAX,
        # W&C §4.3: in every row with separate parameters, random pieces are the language's own.
        random_pieces=INSIDE if names & {"sep-emb", "sep", "random-inside"} else ANYWHERE,
        code_switch=next((when for key, when in SWITCHED.items() if key in names), ""),
        is_other_domain="wiki-cc" in names,
    )
