"""What only a browser knows of the page: it fits, its pictures show, its text can be read.

A script is added to a copy of the page and says what it finds to a page around it, which writes it
down.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fake_run import fake_run

from xling_jax.experiments.fake_english import published
from xling_jax.experiments.fake_english import report as page

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), "")
pytestmark = [
    pytest.mark.pictures,
    pytest.mark.skipif(not BROWSER, reason="no Chromium is installed"),
]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--virtual-time-budget=3000", "--window-size=1600,1000",
)  # fmt: skip
# Nothing but what the page holds may be loaded; whatever is tried is reported.
POLICY = """
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
  style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<script>
const refused = [];
document.addEventListener("securitypolicyviolation", e => refused.push(e.blockedURI));
</script>
"""
PROBE = """
<script>
const width = () => document.documentElement.scrollWidth;
const visible = e => e.checkVisibility() && e.getClientRects().length > 0;
function light(colour) {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
}
function behind(e) {
  for (; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)|transparent/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
}
function contrast(e) {
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
}
addEventListener("load", () => {
  const found = { window: innerWidth, folded: width() };
  document.querySelectorAll("details").forEach(e => e.open = true);
  found.unfolded = width();
  found.pictures = [...document.images].map(e => [e.naturalWidth, e.clientWidth]);
  const text = e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const read = [...document.querySelectorAll("main *")].filter(e => text(e) && visible(e));
  found.texts = read.length;
  found.faint = read.filter(e => contrast(e) < 4.5).map(e => e.outerHTML.slice(0, 200));
  found.background = getComputedStyle(document.body).backgroundColor;
  found.overlap = read.filter(e => e.closest("td, th") && e.scrollWidth > e.clientWidth + 1
    && getComputedStyle(e).display !== "inline").map(e => e.outerHTML.slice(0, 200));
  found.refused = refused;
  parent.postMessage(JSON.stringify(found), "*");
});
</script>
"""
# A window has a least width, a frame in it has not.
FRAME = """<!doctype html><meta name="color-scheme" content="light dark">
<script>
addEventListener("message", e => {
  const holder = document.createElement("pre");
  holder.id = "found";
  holder.textContent = e.data;
  document.body.append(holder);
});
</script>
<iframe src="copy.html" style="width: WIDTHpx; height: 900px; border: 0"></iframe>
"""
LONG = "a-name-that-someone-chose-and-that-has-no-place-to-break" * 3


def look(report: Path, folder: Path, width: int, dark: bool) -> dict[str, Any]:
    """What the script finds on a page of a width."""
    text = report.read_text().replace("<head>", f"<head>{POLICY}")
    (folder / "copy.html").write_text(text.replace("</body>", f"{PROBE}</body>"))
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)))
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [BROWSER, *FLAGS, scheme, profile, "--dump-dom", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(unescape(match[1]))
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """75 replicas of which most still train, and a run with a long name."""
    folder = tmp_path_factory.mktemp("runs")
    names = [*published.ORDER[:12], "17-250", "lr1e-4", "lr2e-2"]
    share = {name: 1.0 if n < 2 else 0.25 for n, name in enumerate(names)}
    seeds = (0, 42, 43, 100, 101)
    many = fake_run(folder / "many", names, seeds, share, diverged={"lr2e-2": seeds})
    for path in (many / "arrays").iterdir():
        path.unlink()
    going = fake_run(folder / "going", ["0", LONG], [0, 42], {"0": 1.0, LONG: 0.25})
    for run in (many, going):
        page.write(run)
    return {run.name: run / "report" / "report.html" for run in (many, going)}


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1440, False)], ids=["narrow", "wide"])
@pytest.mark.parametrize("name", ["many", "going"])
def test_the_page_fits_shows_and_can_be_read(
    pages: dict[str, Path], tmp_path: Path, name: str, width: int, dark: bool
) -> None:
    found = look(pages[name], tmp_path, width, dark)
    assert found["window"] == width
    assert found["folded"] <= width and found["unfolded"] <= width
    assert found["pictures"] and all(min(sizes) > 0 for sizes in found["pictures"])
    assert found["refused"] == []
    assert found["texts"] > 50 and found["faint"] == [] and found["overlap"] == []
    assert (found["background"] == "rgb(255, 255, 255)") != dark


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<html><head></head><body><main><p style='color: #aaa; background: #fff'>faint</p>"
        "<p style='width: 2000px'>wide</p><img src='data:image/png;base64,AAAA'>"
        "<img src='https://example.invalid/a.png'></main></body></html>"
    )
    found = look(bad, tmp_path, 390, dark=False)
    assert found["folded"] > 2000 and found["pictures"][0][0] == 0
    assert len(found["faint"]) == 1 and "faint" in found["faint"][0]
    assert len(found["refused"]) == 1 and "example.invalid" in found["refused"][0]
