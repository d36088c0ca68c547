"""Experiments from a notebook: what is shown while a run goes on, and when it ends or fails."""

import html
import re
import sys

import pytest
from fake_run import fake_run
from small_run import CONFIG

from xling_jax import notebook
from xling_jax.experiments.fake_english import report

# A run that writes one evaluation, waits until its curves were shown, and ends well.
STUB = f"""#!{sys.executable}
import json, pathlib, signal, sys, time
def asked(*_):
    (workdir / "asked").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, asked)
workdir = pathlib.Path(sys.argv[-1].removeprefix("--workdir="))
workdir.mkdir(exist_ok=True)
assert sys.argv[1:3] == ["-m", "xling_jax.main"]
line = dict(kind="evaluation", row="0", seed=0, step=5, metrics=dict(mu=0.5, perplexity_dev=9))
(workdir / "metrics.jsonl").write_text(json.dumps(line) + "\\n{{half a li")
print("step 5 of 10 <", file=sys.stderr, flush=True)
deadline = time.monotonic() + 60
while not (workdir / "seen").exists():
    if time.monotonic() > deadline:
        sys.exit("nobody looked")
    time.sleep(0.01)
print("the table")
"""
SHOWN = {"mu": "mu", "perplexity_dev": "perplexity"}


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """What is shown, while a stub stands for the command; a picture lets it end."""
    outputs = []

    class Handle:
        def display(self, output):
            outputs.append(output)
            if isinstance(output, notebook.Image):
                (tmp_path / "seen").touch()

        update = display

    python = tmp_path / "python"
    python.write_text(STUB)
    python.chmod(0o755)
    monkeypatch.setattr(notebook, "DisplayHandle", Handle)
    monkeypatch.setattr(notebook, "REFRESH", 0.05)
    monkeypatch.setattr(sys, "executable", str(python))
    return outputs


def test_curves_are_shown_while_a_run_goes_on(shown, tmp_path):
    assert notebook.run(["--config=x"], str(tmp_path), SHOWN) == "the table\n"
    lines = [output.data for output in shown if isinstance(output, notebook.HTML)]
    assert lines[0] == "<code>starting</code>" and lines[-1] == "<code>step 5 of 10 &lt;</code>"
    (picture,) = (output for output in shown if isinstance(output, notebook.Image))
    assert picture.data.startswith(b"\x89PNG")


def test_an_interrupted_cell_asks_its_run_to_end(shown, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(notebook, "picture", interrupted)
    with pytest.raises(KeyboardInterrupt):
        notebook.run([], tmp_path, SHOWN)
    assert (tmp_path / "asked").exists()


def test_what_a_run_that_fails_said_last_is_shown(tmp_path):
    arguments = [f"--config={CONFIG}:row=0", "--config.training.epochs=0"]
    with pytest.raises(RuntimeError, match=r"status 1. It said:\n.*training.epochs=0"):
        notebook.run(arguments, tmp_path, {})


def test_rows_are_drawn_over_training(tmp_path):
    lines = notebook.training(fake_run(tmp_path / "run", ["0", "3"], (0, 42)))
    assert [line.label for line in lines] == ["row 0", "row 3"]
    figure = notebook.side_by_side(lines, SHOWN, "training step")
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]
    assert notebook.training(tmp_path / "nowhere") == []


def test_a_report_stands_in_a_frame_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    workdir = fake_run(tmp_path / "run", ["0"], (0,))
    with pytest.raises(FileNotFoundError, match="report.html: no such file; run the experiment"):
        notebook.report(workdir)
    report.write(workdir)
    text = (workdir / "report" / "report.html").read_text("utf-8")
    (framed,) = re.findall(r'srcdoc="([^"]*)"', notebook.report("~/run").data)
    assert html.unescape(framed).replace(notebook._WITHIN, "</head>") == text
