"""What reports say, compared with what they said before, which is stored beside the tests.

`UPDATE_SNAPSHOTS=1 python -m pytest tests/test_report_snapshots.py` stores it anew; read the
difference before it is committed.
"""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


class Page(HTMLParser):
    """The tags of a page, the addresses that it would load, and its text, a line a block.

    Cells of a row are parted by bars; figures stand as what they show.
    """

    _BLOCKS = {"p", "li", "tr", "h1", "h2", "h3", "summary", "nav", "figcaption", "title"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self._lines, self._is_style = [""], False
        self.feed(text)

    @property
    def text(self) -> str:
        """What a reader sees."""
        lines = (" ".join(line.split()) for line in self._lines)
        return "".join(f"{line}\n" for line in lines if line)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "srcset", "data")]
        self._is_style = tag == "style"
        if tag in self._BLOCKS:
            self._lines.append("# " if tag in ("h1", "h2", "h3") else "")
        elif tag in ("td", "th"):
            self._lines[-1] += " | "
        elif tag == "sub":
            self._lines[-1] += " "

    def handle_endtag(self, tag: str) -> None:
        self._is_style = False
        if tag in self._BLOCKS:
            self._lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._is_style:
            self._lines[-1] += data


def assert_as_before(name: str, workdir: Path, terminal: str) -> None:
    """Raises unless a run's page, what the terminal says and, where it has ended, its tables are as
    they are stored.
    """
    report = workdir / "report"
    page = Page((report / "report.html").read_text(encoding="utf-8"))
    parts = {"terminal": terminal, "report.html": page.text}
    for path in sorted((report / "tables").iterdir()):
        # The page has the claims whole.
        if name.endswith("ended") and not path.name.startswith("claims"):
            parts[path.name] = path.read_text(encoding="utf-8")
    found = "".join(f"==== {part}\n{text}" for part, text in parts.items())
    found = found.replace(str(workdir), "WORKDIR")
    stored = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(found, encoding="utf-8")
    assert found == stored.read_text(encoding="utf-8"), f"{name} differs from {stored}"
