"""The documentation's links lead to files and headings that exist; its commands are accepted."""

import ast
import re
import shlex

import pytest
from small_run import ROOT

from xling_jax import main
from xling_jax.runs import fields

PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def fragments(path):
    """The names that GitHub gives a page's headings."""
    prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text("utf-8"))
    for target, fragment in links:
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not fragment or fragment in fragments(path), f"{target}#{fragment}"


@pytest.mark.parametrize(
    "path",
    [*PAGES, *sorted(ROOT.glob("configs/*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_commands_are_accepted(path, called, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(main, "run", lambda: fields.check(main.CONFIG.value))
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(text))
    written = r"python -m xling_jax\.main +(--config=(?!configs/NAME)[^`\n]+)"
    for command in re.findall(written, text.replace("\\\n", "")):
        assert called(shlex.split(command)) == (0, "", ""), command
