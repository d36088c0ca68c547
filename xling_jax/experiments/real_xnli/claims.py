"""The numbers of D&S Table 3, and what they say, as claims.

Source: Dufter & Schütze 2020 ("D&S"), §5 and Table 3: accuracy on XNLI after fine-tuning on
English, mean and standard deviation of three seeds. Rows have the names of our configs. German is
the language that row 3 inverts.
"""

from __future__ import annotations

from typing import NamedTuple

from xling_jax.report.claims import Check, Claim, Evidence, Measure, RowEvidence, metric

SOURCE = "D&S 2020"
LANGUAGES = {"en": "English", "de": "German", "hi": "Hindi"}
SEEDS = 3
LITTLE, MUCH = 0.02, 0.1
FIRST, SECOND, THIRD = (f"accuracy in the {n} language" for n in ("first", "second", "third"))


class Line(NamedTuple):
    """A row: mean and standard deviation in each of LANGUAGES."""

    row: str
    scores: tuple[tuple[float, float], ...]


TABLE_3 = (
    Line("0", ((0.75, 0.00), (0.57, 0.02), (0.45, 0.01))),
    Line("3", ((0.75, 0.00), (0.41, 0.01), (0.46, 0.04))),
    Line("8", ((0.74, 0.00), (0.37, 0.02), (0.38, 0.02))),
    Line("30", ((0.74, 0.01), (0.61, 0.01), (0.54, 0.00))),
)


def find(row: str) -> Line | None:
    """The printed line of a row, or None."""
    return next((line for line in TABLE_3 if line.row == row), None)


def of_paper() -> Evidence:
    """The printed numbers."""
    found = {
        line.row: RowEvidence(
            {
                name: Measure(mean, sd, SEEDS)
                for name, (mean, sd) in zip((FIRST, SECOND, THIRD), line.scores, strict=True)
            }
        )
        for line in TABLE_3
    }
    return Evidence(found, printed=True)


def _claim(name: str, statement: str, *checks: Check, source: str = "§5") -> Claim:
    where = "XNLI, fine-tuned on the first language"
    return Claim(name, f"{SOURCE}, {source}", where, statement, checks)


def _against_original(name: str, row: str, sign: str, plus: float = 0.0) -> Check:
    return Check(metric(name, row), sign, metric(name, "0"), plus=plus)


# "Little effect" and "significantly" have no threshold in the text; these are ours.
CLAIMS = (
    _claim(
        "no-row-harms-the-source-language",
        "No ablation costs the language that is learned from more than .02.",
        *(_against_original(FIRST, row, "≥", -LITTLE) for row in ("3", "8", "30")),
        source="Table 3",
    ),
    _claim(
        "inverting-harms-the-inverted-language",
        "Inverting the second language costs it more than .1.",
        _against_original(SECOND, "3", "<", -MUCH),
    ),
    _claim(
        "inverting-spares-the-other-language",
        "Inverting the second language costs the third at most .02.",
        _against_original(THIRD, "3", "≥", -LITTLE),
    ),
    _claim(
        "architecture-harms-both-languages",
        "Without shared positions, special tokens and random words both other languages lose.",
        *(_against_original(name, "8", "<") for name in (SECOND, THIRD)),
    ),
    _claim(
        "neighbours-help-both-languages",
        "Replacing words by neighbours in other languages helps both other languages.",
        *(_against_original(name, "30", ">") for name in (SECOND, THIRD)),
    ),
)
