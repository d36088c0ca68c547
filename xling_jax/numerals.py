"""Numbers in text: plain ones alone, where int() and float() read "1_0", "nan" and "١" too."""

import re

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,18}")


def decimal(text: str) -> float:
    """A number with a sign, a point and an exponent or without; ValueError if it is none."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"give a number, not {text!r}")
    return float(text)


def whole(text: str) -> int:
    """A number in digits that int64 holds; ValueError if it is none."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"give a whole number from 0, not {text!r}")
    return int(text)
