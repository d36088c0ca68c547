"""Experiments from a notebook, each in a process of its own and shown while it runs."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.display import HTML, DisplayHandle, Image

from xling_jax.report import figures
from xling_jax.report.figures import Line, house_style, side_by_side
from xling_jax.report.frame import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFRESH = 2.0  # seconds between two looks at a run
LAST_LINES = 15  # of a run's progress lines, shown if it fails
HEIGHT = 700  # of a report, in pixels
# Inside another page, links within the report work, but links to files beside it do not.
_WITHIN = (
    '<base href="about:srcdoc"><style>figcaption a { pointer-events: none; color: inherit; '
    "text-decoration: none }</style></head>"
)


def run(arguments: Sequence[str], workdir: str | os.PathLike[str], shown: Mapping[str, str]) -> str:
    """Runs an experiment to its end and returns the table that it prints. Meanwhile its last
    progress line and its curves are shown below the cell.

    It runs as the command `python -m xling_jax.main` with these arguments, so that memory and
    accelerator are free again when it ends. Interrupting the cell ends it at a checkpoint, and
    running the cell again resumes it. `shown` has the metrics to draw over training, with their
    titles. RuntimeError, with its last lines, if the experiment fails.
    """
    command = [sys.executable, "-m", "xling_jax.main", *arguments, f"--workdir={workdir}"]
    with tempfile.TemporaryDirectory() as folder:
        printed, said = Path(folder, "printed"), Path(folder, "said")
        with (
            open(printed, "wb") as output,
            open(said, "wb") as errors,
            subprocess.Popen(command, stdout=output, stderr=errors) as process,
        ):
            try:
                view = _View(workdir, said, shown)
                while process.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(REFRESH)
                    view.update()
                view.update()
            finally:
                process.terminate()  # does nothing if it has ended
                process.wait()
        if process.returncode:
            last = "\n".join(_text(said).splitlines()[-LAST_LINES:])
            raise RuntimeError(f"the run ended with status {process.returncode}. It said:\n{last}")
        return _text(printed)


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")


class _View:
    """The output below a cell while an experiment runs, updated as it goes on."""

    def __init__(self, workdir: str | os.PathLike[str], said: Path, shown: Mapping[str, str]):
        self._workdir, self._said, self._shown = workdir, said, shown
        self._line, self._curves = DisplayHandle(), DisplayHandle()
        self._last, self._drawn = "", list[Line]()
        self._line.display(_as_code("starting"))

    def update(self) -> None:
        last = next(reversed(_text(self._said).splitlines()), "")
        if last != self._last:
            self._last = last
            self._line.update(_as_code(last))
        lines = training(self._workdir) if self._shown else []
        if lines != self._drawn:
            image = picture(side_by_side(lines, self._shown, "training step"))
            (self._curves.update if self._drawn else self._curves.display)(image)
            self._drawn = lines


def _as_code(text: str) -> HTML:
    return HTML(f"<code>{escape(text)}</code>")


def training(workdir: str | os.PathLike[str]) -> list[Line]:
    """The curves of all rows of a run, ended or not; none while there is no workdir."""
    workdir = Path(workdir).expanduser()
    return figures.over_training(Run(workdir), "row {}") if workdir.is_dir() else []


def picture(figure: Figure) -> Image:
    """A figure as the output of a cell, whatever the notebook's backend is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    content = io.BytesIO()
    with house_style():
        FigureCanvasAgg(figure).print_png(content)
    return Image(content.getvalue())


def report(workdir: str | os.PathLike[str]) -> HTML:
    """The report of a run as the output of a cell, in a frame, so that it keeps its style."""
    page = Path(workdir).expanduser() / "report" / "report.html"
    if not page.exists():
        raise FileNotFoundError(f"{page}: no such file; run the experiment of {workdir} first")
    text = page.read_text("utf-8").replace("</head>", _WITHIN, 1)
    return HTML(
        f'<div><iframe srcdoc="{escape(text)}" width="100%" height="{HEIGHT}" '
        'style="border: 1px solid #ccc"></iframe></div>'
    )
