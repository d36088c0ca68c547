"""What D&S Table 3 says of XNLI after fine-tuning on English, as claims.

Source: Dufter & Schütze 2020 ("D&S"), §5 and Table 3 (`published.csv`): accuracy, mean and standard
deviation of three seeds. Rows have the names of our configs. German is the language that row 3
inverts.
"""

from __future__ import annotations

from functools import partial

from xling_jax.report import claims, table

SOURCE = "D&S 2020"
LANGUAGES = {"en": "English", "de": "German", "hi": "Hindi"}
LINES = table.published(__file__, SOURCE)
MBERT = "mBERT"  # a line of the table that is no row of ours
ROLES = tuple(f"accuracy in the {n} language" for n in ("first", "second", "third"))


# "Little effect" and "significantly" have no threshold in the text; .02 and .1 are ours.
CLAIMS = claims.load(__file__, {role.split()[3]: partial(claims.metric, role) for role in ROLES})
