"""Figures as HTML: cards of a section, each with the picture in it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

NO_MATPLOTLIB = "matplotlib is not installed, so there are none."


def quiet(text: str) -> str:
    """A paragraph that stands back."""
    return f'<p class="quiet">{escape(text)}</p>\n'


def section(explanation: str, cards: Sequence[str]) -> str:
    """Cards under what there is to say of them; empty without a card."""
    if not cards:
        return ""
    return f'{quiet(explanation)}<div class="figures">\n{"".join(cards)}</div>\n'


def card(paths: tuple[Path, Path], alt: str, kind: str = "svg", wide: bool = False) -> str:
    """A figure as a data address, so that the page needs no other file, and links to both files.

    A wide one has a line of the page for itself, and scrolls in its box where that is narrow.
    """
    embed = next(path for path in paths if path.suffix == f".{kind}")
    data = base64.b64encode(embed.read_bytes()).decode()
    mime = "image/svg+xml" if kind == "svg" else "image/png"
    links = " · ".join(f'<a href="figures/{escape(p.name)}">{p.suffix[1:]}</a>' for p in paths)
    kinds = ' class="wide"' if wide else ""
    return (
        f'<figure{kinds}><div class="scroll">'
        f'<img alt="{escape(alt)}" src="data:{mime};base64,{data}"></div>'
        f"<figcaption>{escape(alt)} ({links})</figcaption></figure>\n"
    )
