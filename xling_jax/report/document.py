"""What the report of every experiment has: its frame, all metrics, and what was run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from xling_jax.files import write_beside
from xling_jax.report.cards import quiet
from xling_jax.report.cells import ABSENT
from xling_jax.report.formats import rows_in_words
from xling_jax.report.markup import grid
from xling_jax.report.rows import Run
from xling_jax.report.style import CSS

_TEXT_FIELDS = ("source", "language", "sentences", "words", "sha256")


def write(path: Path, run: Run, state: str, sections: Mapping[str, str]) -> Path:
    """Writes a page that needs no other file: the state of a run and its sections.

    Args:
      path: of the page, which is returned.
      run: the run.
      state: HTML.
      sections: HTML by heading, in order; one without content is left out.
    """
    title = f"{run.experiment or 'A run'}: report"
    shown = [(heading, text) for heading, text in sections.items() if text]
    body = "".join(_section(n, *each) for n, each in enumerate(shown))
    links = "".join(f'<a href="#s{n}">{escape(name)}</a> ' for n, (name, _) in enumerate(shown))
    return write_beside(
        path,
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style></head>\n<body><main>\n"
        f"<h1>{escape(title)}</h1>\n{state}<nav>{links}</nav>\n{body}</main></body></html>\n",
    )


def _section(number: int, heading: str, text: str) -> str:
    return f'<section id="s{number}"><h2>{escape(heading)}</h2>\n{text}</section>\n'


def all_metrics(run: Run) -> str:
    """Every metric of every row, folded away: p@5, the directions, and whatever else there is."""
    rows = [row for name in run.row_names() if (row := run.row(name)).metrics]
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    lines = []
    for name in sorted(names):
        cells = [row.metrics.get(name) for row in rows]
        texts = [ABSENT if c is None else f"{c.mean:.4g} ± {c.sd:.2g}" for c in cells]
        lines.append((name, *texts))
    if not lines:
        return quiet("No metrics yet.")
    table = grid(("metric", *(f"row {row.row}" for row in rows)), lines)
    return f"<details><summary>All metrics</summary>{table}</details>\n"


def flat(config: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The fields of nested sections, each with its whole name."""
    if isinstance(config, Mapping) and config:
        for key, value in config.items():
            yield from flat(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, str(config)


def settings(
    run: Run,
    vocabulary: Any,
    text_fields: Sequence[str] = _TEXT_FIELDS,
    without_texts: str = "The config names no texts.",
) -> str:
    """The experiment, its texts, and the whole config folded away.

    Args:
      run: the run.
      vocabulary: what is known of it, nested or not.
      text_fields: what is shown of each text.
      without_texts: what is said where there are none.
    """
    config = run.config
    versions = config.get("versions")
    facts = [(name, config.get(name, ABSENT)) for name in ("experiment", "scale")]
    facts += [("rows", ", ".join(run.row_names()) or ABSENT), ("steps", _steps(run))]
    facts += list(flat(vocabulary or ABSENT, "vocabulary"))
    facts.append(("fingerprint", config.get("fingerprint", ABSENT)))
    pairs = versions.items() if isinstance(versions, dict) else ()
    facts.append(("versions", ", ".join(f"{k} {v}" for k, v in pairs) or ABSENT))
    text = "".join(
        f'<tr><td class="name">{escape(str(k))}</td><td class="name">{escape(str(v))}</td></tr>'
        for k, v in facts
    )
    text = f'<div class="scroll"><table>{text}</table></div>\n'
    if run.texts:
        lines = [[_count(t.get(field, ABSENT)) for field in text_fields] for t in run.texts]
        text += "<h3>Texts</h3>" + grid(text_fields, lines, names=2)
    else:
        text += quiet(without_texts)
    if nested := config.get("config"):
        text += "<details><summary>The whole config</summary>"
        text += grid((), flat(nested), names=2) + "</details>\n"
    return text


def _steps(run: Run) -> str:
    """The updates of a replica, and which rows make another number of them."""
    by_number: dict[int, list[str]] = {}
    for row in run.row_names():
        if (steps := run.steps_of(row)) is not None:
            by_number.setdefault(steps, []).append(row)
    if not by_number:
        return ABSENT
    usual = max(by_number, key=lambda steps: len(by_number[steps]))
    others = [f"{n:,} ({rows_in_words(of, 'row')})" for n, of in by_number.items() if n != usual]
    return "; ".join([f"{usual:,}", *others])


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
