"""Do languages need the same positions? It depends on how many there are.

python benchmarks/positions.py --workdir=runs/positions --figure=docs/images/positions

Trains row no_anchors of configs/bilingual.py at scale=laptop with shared positions and with
positions of each language's own (D&S's lang-pos), in settings of `benchmarks/laptop.py`. Draws, in
a panel for each setting, the share of sentences whose translation is found over training. Runs that
have ended are not run again.
"""

import argparse
from pathlib import Path

from laptop import SETTINGS, run

from xling_jax.files import plain_name
from xling_jax.report import figures
from xling_jax.report.frame import Run

ROWS = {"no_anchors": "shared", "no-anchors;sep[embeddings/positions]": "each language's own"}
PANELS = {
    "half, windows of 16": "windows of 16, 64 wide",
    "half": "windows of 24, 64 wide",
    "half, windows of 32": "windows of 32, 64 wide",
    "half, narrow": "windows of 24, 32 wide",
    "half, wide": "windows of 24, 128 wide",
}


def main() -> None:
    """Runs what is missing and draws the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    named = ", ".join(f'"{name}"' for name in PANELS)
    parser.add_argument("settings", nargs="*", metavar="SETTING", help=f"all, or of {named}")
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--figure", type=Path, required=True, help="without .svg or .png")
    parser.add_argument("--seeds", default="0")
    arguments = parser.parse_args()
    settings = arguments.settings or list(PANELS)
    if unknown := set(settings) - set(PANELS):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {named}")
    for name in settings:
        run(
            "bilingual",
            f"row={'+'.join(ROWS)},pair=en-near,seeds={arguments.seeds}",
            arguments.workdir / plain_name(name),
            SETTINGS[name],
        )
    draw([arguments.workdir / plain_name(name) for name in settings], settings, arguments.figure)


def draw(workdirs: list[Path], settings: list[str], path: Path) -> None:
    """Draws the figure, a panel for each setting."""
    with figures.house_style():
        figure = figures.new_figure(2.3 * len(settings), 2.6)
        panels = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0]
        for panel, workdir, name in zip(panels, workdirs, settings, strict=True):
            found = Run(workdir)
            for colour, (row, label) in zip(figures.COLOURS, ROWS.items(), strict=False):
                curve = found.curves(row)["retrieval"]
                steps = [step / 1000 for step in curve.steps]
                panel.plot(steps, curve.mean, color=colour, label=label)
            panel.set_title(PANELS[name])
            panel.set_xlabel("thousand updates")
        panels[0].set_ylabel("sentences found")
        panels[0].legend(title="positions")
        figures.save(figure, path.parent, path.name)


if __name__ == "__main__":
    main()
