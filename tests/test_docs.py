"""The documentation's links lead to files and headings that are there."""

import re

import pytest
from small_run import ROOT

PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def headings(path):
    """The fragments by which GitHub names a page's headings."""
    for heading in re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text("utf-8"))
    for target, fragment in links:
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not fragment or fragment in headings(path), f"{target}#{fragment}"
