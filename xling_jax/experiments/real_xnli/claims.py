"""What D&S Table 3 says of XNLI after fine-tuning on English, as claims.

Source: Dufter & Schütze 2020 ("D&S"), §5 and Table 3 (`published.csv`): accuracy, mean and standard
deviation of three seeds. Rows have the names of our configs. German is the language that row 3
inverts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from xling_jax.report import claims, published
from xling_jax.report.claims import Evidence, Quantity, RowEvidence

SOURCE = "D&S 2020"
LANGUAGES = {"en": "English", "de": "German", "hi": "Hindi"}
LINES = published.read(Path(__file__).with_name("published.csv"))
ROLES = tuple(f"accuracy in the {n} language" for n in ("first", "second", "third"))


def of_paper() -> Evidence:
    """The printed numbers."""
    found = {
        line.row: RowEvidence(dict(zip(ROLES, line.metrics.values(), strict=True)))
        for line in LINES
    }
    return Evidence(found, printed=True)


def _accuracy(role: str) -> Callable[[str], Quantity]:
    return lambda row: claims.metric(role, row)


# "Little effect" and "significantly" have no threshold in the text; .02 and .1 are ours.
CLAIMS = claims.load(__file__, {role.split()[3]: _accuracy(role) for role in ROLES})
