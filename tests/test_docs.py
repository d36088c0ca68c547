"""The documentation's links lead to files and headings that are there."""

import re

import pytest
from small_run import ROOT

PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def fragments(path):
    """The names that GitHub gives a page's headings."""
    prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text("utf-8"))
    for target, fragment in links:
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not fragment or fragment in fragments(path), f"{target}#{fragment}"
