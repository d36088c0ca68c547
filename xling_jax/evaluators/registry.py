"""The metrics by name, with all that configs and reports must know of them. Imports no JAX.

A number is stored under the metric's name and, where it has them, a language, a layer and a part,
joined by _: `retrieval_8`, `retrieval_near_8`, `perplexity_dev_near`, `retrieval_8_forward`. The
language is the one that the first language is compared with, or a pair: `retrieval_near-far_8`.
`report/frame.py` reads such names. The functions that compare vectors are in
`comparison.COMPARISONS` under the same names, except `alignment_f1` and `words`, the only metrics
of their kinds, which evaluators compute themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# Kinds of things whose vectors are compared, and text, for metrics that compare nothing.
SENTENCES, PIECES, TOKENS, DICTIONARY = "sentences", "pieces", "tokens", "dictionary"
TEXT = "text"
DEEP = "deep"  # in names of metrics, in place of the number of the deeper layer
CUTOFFS = (1, 5, 10)  # numbers of nearest ones among which a translation is looked for
_LIMITS = ("low", "high")  # of an interval
_BOTH_WAYS = ("forward", "backward", *(f"p{k}" for k in CUTOFFS[1:]), *_LIMITS)
_COUNTS = ("words", "covered", "learned")
_INDUCED = tuple(f"{way}p{k}" for way in ("", "forward_", "backward_") for k in CUTOFFS)


@dataclass(frozen=True)
class Evaluator:
    """A metric.

    Attributes:
      title: name in figures and sentences.
      of: kind of things whose vectors are compared, `TEXT`, or "" for none.
      heading, short: heading of its column under `group`, and a shorter one for the terminal.
      paper: the same two as in D&S, empty if they do not measure it.
      note: what it is, where no template says so.
      unit: "score" (from 0 to 1), "perplexity" (above 1, on a logarithmic axis), "number", "loss".
      format: a name in `report.table.FORMATS`.
      more_is_better: whether the larger of two values is the better one.
      layers, languages: whether there is a value for each layer, for each language besides all.
      parts: the names of other numbers that are stored of it.
    """

    title: str
    of: str = ""
    heading: str = ""
    short: str = ""
    group: str = ""
    paper: tuple[str, str] = ("", "")
    note: str = ""
    unit: str = "score"
    format: str = "share"
    more_is_better: bool = True
    layers: bool = True
    languages: bool = False
    parts: tuple[str, ...] = ()


def _perplexity(text: str, *, languages: bool = False) -> Evaluator:
    return Evaluator(
        f"{text} perplexity", heading=text, unit="perplexity", format="perplexity",
        more_is_better=False, layers=False, languages=languages, parts=("batch_mean",),
    )  # fmt: skip


def _number(title: str, *, languages: bool = False, format: str = "whole") -> Evaluator:
    return Evaluator(title, unit="number", format=format, layers=False, languages=languages)


_FOUND = "translations found"
EVALUATORS = {
    "mu": Evaluator(
        "multilinguality score", format="score", layers=False, languages=True, parts=_LIMITS
    ),
    "perplexity_train": _perplexity("train"),
    "perplexity_dev": _perplexity("dev", languages=True),
    "pseudo_perplexity": Evaluator(
        "pseudo-perplexity", TEXT, "pseudo-perplexity", unit="perplexity", format="perplexity",
        more_is_better=False, layers=False, languages=True, parts=_LIMITS,
    ),
    "retrieval": Evaluator(
        "sentence retrieval", SENTENCES, "sentences", group=_FOUND, paper=("retrieval", "retr."),
        languages=True, parts=_BOTH_WAYS,
    ),
    "translation": Evaluator(
        "word translation", PIECES, "words", paper=("translation", "transl."), languages=True,
        parts=_BOTH_WAYS,
    ),
    "alignment_f1": Evaluator(
        "word alignment", TOKENS, "alignment", paper=("align. F1", "F1"), format="score",
        languages=True, parts=_LIMITS,
    ),
    "mrr": Evaluator(
        "mean reciprocal rank of sentences", SENTENCES, "MRR", group=_FOUND, languages=True,
        note="MRR: the mean reciprocal rank of a sentence's translation among all sentences of the "
        "other language, by cosine as in retrieval; mean of both directions.",
        parts=_LIMITS,
    ),
    "mapped": Evaluator(
        "sentence retrieval after a map", SENTENCES, "after a map", "mapped", _FOUND,
        note="After a map: sentence retrieval in the second half of the sentences, after an "
        "orthogonal map learned on the first half. Among half as many sentences each is found more "
        "easily, but with fewer sentences than the vectors have dimensions the map is not "
        "determined, and less is found after it.",
        languages=True, parts=_BOTH_WAYS,
    ),
    "centred": Evaluator(
        "sentence retrieval without the languages' means", SENTENCES, "centred", group=_FOUND,
        languages=True, parts=_BOTH_WAYS,
    ),
    "csls": Evaluator(
        "sentence retrieval by CSLS", SENTENCES, "CSLS", group=_FOUND, languages=True,
        parts=_BOTH_WAYS,
    ),
    "cka": Evaluator(
        "CKA of translations", SENTENCES, "CKA", group="similarity", languages=True, parts=_LIMITS
    ),
    "words": Evaluator(
        "word translation", DICTIONARY, "words", group=_FOUND, languages=True,
        parts=(*_INDUCED, *_COUNTS, "alike", "first", "second", *_BOTH_WAYS),
    ),
    "retrieval_candidates": _number("sentences to choose among", languages=True),
    "words_candidates": _number("words to choose among", languages=True),
    "retrieval_cut": _number("share of sentences that were cut", languages=True, format="share"),
    "retrieval_repeated": _number(
        "share of sentences that repeat others", languages=True, format="share"
    ),
    "fertility": _number("pieces a word, in training text", languages=True, format="ratio"),
    "anchors": _number("pieces that languages share"),
    "anchor_tokens": _number("share of tokens that these cover", format="share"),
    # Of `similarity`.
    "sentences": Evaluator("sentence retrieval with a map", parts=_BOTH_WAYS),
    "unmapped": Evaluator("sentence retrieval without a map", parts=_BOTH_WAYS),
    "context": Evaluator("translation of words in context", parts=(*_INDUCED, *_COUNTS)),
    "static": Evaluator(
        "translation by static vectors", layers=False, parts=(*_INDUCED, *_COUNTS)
    ),
    "context_static": Evaluator(
        "translation of the words in context by static vectors",
        layers=False, parts=(*_INDUCED, *_COUNTS),
    ),
    "pearson": Evaluator("correlation over layers of CKA and retrieval", layers=False),
    # Of training.
    "loss": Evaluator("training loss", unit="loss", more_is_better=False, layers=False),
}  # fmt: skip


# Metrics that any encoder has.
OF_ENCODERS = ("mu", *(name for name, each in EVALUATORS.items() if each.of))


def names(*of: str) -> tuple[str, ...]:
    """The metrics of these kinds, in the registry's order."""
    return tuple(name for name, each in EVALUATORS.items() if each.of in of)


def require_layers(layers: Sequence[int], depth: int, field: str) -> None:
    """Raises ValueError, naming the field, if there is no layer or one that the model lacks."""
    if not layers or not all(0 <= layer <= depth for layer in layers):
        raise ValueError(f"{field}={tuple(layers)}: the model has layers 0..{depth}")


def paper_layers(layers: int) -> tuple[int, int]:
    """The two layers that D&S evaluate: 0 and 8 of 12; 0 and round(2L/3) at other depths."""
    return 0, round(2 * layers / 3)
