"""docs/record: results that are kept with the project give their tables again, on any machine."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_run import ROOT

from xling_jax.experiments.zero_shot import scores
from xling_jax.gather import gather
from xling_jax.report.frame import Run
from xling_jax.runs import store

RECORD = ROOT / "docs" / "record"
KEPT = sorted(path.name for path in RECORD.iterdir())


def printed(name: str) -> dict[str, dict[str, str]]:
    """The cells of each row, by column, of the first table below the name of a kept run."""
    text = (ROOT / "docs" / "results.md").read_text().split(f"`docs/record/{name}`", 1)[1]
    lines = re.search(r"(^\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {cells[0]: dict(zip(header, cells, strict=True)) for cells in rows}


def expected(run: Run, language: str) -> Iterator[tuple[str, str, str]]:
    """A row, a column, and the numbers there: means over seeds, of both languages or the second."""
    both = "en", language
    if run.experiment == "zero_shot":
        columns = {"nli": "inference", "ner": "names", "parsing": "parsing"}
        board = scores.read(run)
        for job in board.jobs:
            means = [f"{job.scores[each].mean:.1f}" for each in both]
            yield job.row, columns[job.task], ", ".join(means)
        for row in set(board.rows) - {scores.DEFAULT}:
            deltas = [board.delta(row, task).mean for task in columns]
            yield row, "Δ", f"{sum(deltas) / len(deltas):+.1f}"
        return
    columns = {"retrieval": "sentences", "mapped": "mapped", "words": "words", "cka": "CKA"}
    for name, row in run.rows.items():
        means = [f"{row.metrics[f'perplexity_dev_{each}'].mean:.1f}" for each in both]
        yield name, "perplexity", ", ".join(means)
        for metric, column in columns.items():
            layers = [row.metrics[f"{metric}_{language}_{layer}"].mean for layer in range(9)]
            digits = 2 if metric == "cka" else 3
            yield name, column, f"{sum(layers) / 9:.{digits}f}".removeprefix("0")


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_run_has_the_numbers_of_the_results(name, tmp_path):
    tables = gather([RECORD / name], tmp_path / "run")
    run, lines = Run(tmp_path / "run"), printed(name)
    assert run.planned == run.ended and len(run.ended) >= 10
    cells = list(expected(run, name.rpartition("-")[2]))
    # Of ten rows: three tasks, and the difference of all but one; or five measures.
    assert len(cells) == (3 * 10 + 9 if run.experiment == "zero_shot" else 5 * 10)
    for row, column, numbers in cells:
        [own] = [cell for head, cell in lines[row].items() if head.split(" ")[0] == column]
        assert re.sub(r" ± [\d.]+", "", own) == numbers, (row, column)
        number = re.escape(numbers.split(", ")[-1])
        if column not in ("perplexity", "CKA"):  # which the table gives with another digit
            assert re.search(rf"^{row} .*{number}", tables, re.MULTILINE)


def test_pairs_together_decide_as_many_claims_as_the_results_say(tmp_path):
    text = (ROOT / "docs" / "results.md").read_text()
    command = r"gather ((?:docs/record/zero_shot-[\w-]+ )+)--workdir"
    found = re.findall(rf"{command}.*?of the 14 claims (\d+) hold", text, re.DOTALL)
    assert len(found) == text.count("of the 14 claims") == 2
    for number, (paths, held) in enumerate(found):
        runs, together = [ROOT / path for path in paths.split()], tmp_path / str(number)
        tables = gather(runs, together)
        assert len(Run(together).ended) == sum(len(Run(run).ended) for run in runs)
        assert len(re.findall("^  held ", tables, re.MULTILINE)) == int(held)


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_run_names_no_place_of_one_machine(name):
    def strings(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from strings(inner)

    found = list(strings(store.read(RECORD / name)))
    assert found and not [x for x in found if Path(x).is_absolute() or x.startswith("~")]
