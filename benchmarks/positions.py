"""Do languages need the same positions? It depends on how many there are.

python benchmarks/positions.py --workdir=runs/positions --figure=docs/images/positions

Trains row no_anchors of configs/bilingual.py at scale=laptop with shared positions and with
positions of each language's own (D&S's lang-pos), on windows of several lengths and at two widths,
and draws how many translations of sentences are found over training. What has run is not run again;
what is left to run may be left out by `--lengths` and `--widths`.
"""

import argparse
from pathlib import Path

from laptop import run, windows

from xling_jax.report import figures
from xling_jax.report.frame import Run

ROWS = {"no_anchors": "shared", "no-anchors;sep[embeddings/positions]": "each language's own"}
SEQUENCES = {16: 18, 24: 12, 32: 9, 48: 6}  # of a part, so that an update has as many tokens


def main() -> None:
    """Runs what is missing and draws the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--figure", type=Path, required=True, help="without .svg or .png")
    parser.add_argument("--lengths", type=int, nargs="+", default=list(SEQUENCES))
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--seeds", default="0")
    arguments = parser.parse_args()
    for width in arguments.widths:
        for length in arguments.lengths:
            fields = {"models.hidden": width, "models.intermediate": 4 * width}
            fields |= windows(length, SEQUENCES[length])
            run(
                "bilingual",
                f"row={'+'.join(ROWS)},pair=en-near,seeds={arguments.seeds}",
                arguments.workdir / f"{width}-{length}",
                [f"--config.{name}={value}" for name, value in fields.items()],
            )
    draw(arguments)


def draw(arguments: argparse.Namespace) -> None:
    """A row of panels for each width, a panel for each length."""
    with figures.house_style():
        figure = figures.new_figure(2.6 * len(arguments.lengths), 2.4 * len(arguments.widths))
        grid = figure.subplots(
            len(arguments.widths), len(arguments.lengths), sharey=True, squeeze=False
        )
        for panels, width in zip(grid, arguments.widths, strict=True):
            for panel, length in zip(panels, arguments.lengths, strict=True):
                found = Run(arguments.workdir / f"{width}-{length}")
                for colour, (row, label) in zip(figures.COLOURS, ROWS.items(), strict=False):
                    curve = found.curves(row)
                    steps = [step / 1000 for step in curve["retrieval"].steps]
                    panel.plot(steps, curve["retrieval"].mean, color=colour, label=label)
                panel.set_title(f"windows of {length}, {width} wide")
            panels[0].set_ylabel("sentences found")
        for panel in grid[-1]:
            panel.set_xlabel("thousand updates")
        grid[0][0].legend(title="positions")
        figures.save(figure, arguments.figure.parent, arguments.figure.name)


if __name__ == "__main__":
    main()
