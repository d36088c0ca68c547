"""What must be known to read a run of `similarity`: how far it is, of what, and the measures."""

from __future__ import annotations

from collections.abc import Sequence

from xling_jax.experiments.bilingual import report_notes
from xling_jax.experiments.similarity.report_pairs import (
    BILINGUAL,
    MONOLINGUAL,
    OTHER_SEED,
    RANDOM,
    Pair,
    languages,
)
from xling_jax.report.rows import Run

_KINDS = {
    BILINGUAL: "bilingual: one model reads both languages",
    MONOLINGUAL: "monolingual: each language has a model of its own",
    RANDOM: "random: the other language's encoder has random weights, as a lower bound",
}
_OTHER_SEED = (
    f"{OTHER_SEED}: two models of the first language from different seeds, en–en′ in the paper, "
    "where they read a text and its paraphrases. The bilingual en–en′ was trained on one text with "
    "two vocabularies and embeddings."
)
_CKA = (
    "CKA: linear centred kernel alignment of the mean-pooled sentences of both models, that are "
    "translations of each other: 1 where the two differ by a rotation and a scale alone. L0 is "
    "what the embeddings give."
)
_SENTENCES = (
    "Sentences: the share of sentences whose translation is the nearest by cosine (P@1), mean of "
    "both directions, with vectors mapped orthogonally by other sentences and their translations, "
    "or as they are (no map)."
)
_WORDS = (
    "Words: the share of words of the test dictionary with a translation nearest by CSLS (P@1), "
    "mean of both directions, after an orthogonal map learned from other words: by the embeddings "
    "of words that are one piece, by static vectors of the same words, or by the means of the "
    "states of all their occurrences (in context). The last has other words to choose from, so it "
    "cannot be compared with the first two."
)
_PEARSON = (
    "Pearson: the correlation of CKA with mapped sentence retrieval over the layers. With few "
    "layers it is high or low by chance."
)
_BEST = "What stands after a best value (at) is its layer, the lowest of several."
_PAPER = (
    "The paper (Wu, Conneau et al. 2020, §5) shows these measures in figures and prints no table "
    "of them: its claims are its sentences, and thresholds that they do not give are ours."
)
_SIZES = {
    "learned": "pairs of sentences for CKA and maps",
    "tested": "for retrieval",
    "contexts": "sentences of each language for words in context",
}


def about(pairs: Sequence[Pair]) -> list[str]:
    """Everything there is to say about rows and the measures that they have."""
    kinds = [text for kind, text in _KINDS.items() if any(p.kind == kind for p in pairs)]
    notes = [f"{'; '.join(kinds)}."] if kinds else []
    notes += [_OTHER_SEED] if any(pair.row == OTHER_SEED for pair in pairs) else []
    names = {name for pair in pairs for name in pair.metrics}
    starts = {name.split("_")[0] for name in names}
    for needed, text in (
        ({"cka"}, _CKA),
        ({"sentences", "unmapped"}, _SENTENCES),
        ({"words", "static", "context"}, _WORDS),
        ({"pearson"}, _PEARSON),
        ({"sentences", "unmapped", "context"}, _BEST),
    ):
        if starts & needed:
            notes.append(text)
    for pair in pairs:
        if pair.has_ended and not pair.metrics:
            notes.append(f"Row {pair.row}: no text was given to compare its models on.")
    return [*notes, _PAPER]


def state(run: Run) -> str:
    """How far the run is, and of what."""
    parts = []
    if found := languages(run):
        parts.append(f"language{'s' if len(found) > 1 else ''} {', '.join(found)}")
    setting = "; ".join(parts)
    texts = [report_notes.sentence(run), f"{setting[:1].upper()}{setting[1:]}." if parts else ""]
    return " ".join(filter(None, [*texts, _sizes(run)]))


def _sizes(run: Run) -> str:
    """How much text is read at most."""
    found = [
        f"{number:,.0f} {what}"
        for name, what in _SIZES.items()
        if (number := run.setting("sentences", name)) is not None
    ]
    return f"At most {', '.join(found)}." if found else ""
