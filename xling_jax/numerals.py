"""Numbers in text: only plain ones, while int() and float() also read "1_0", "nan" and "١"."""

import re

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,18}")


def decimal(text: str) -> float:
    """A number, with or without a sign, a point and an exponent; ValueError for other text."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"give a number, not {text!r}")
    return float(text)


def whole(text: str) -> int:
    """A whole number of at most 18 digits, which int64 holds; ValueError for other text."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"give a whole number from 0, not {text!r}")
    return int(text)
