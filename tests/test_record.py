"""docs/record: results that are kept with the project give their tables again, on any machine."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_run import ROOT

from xling_jax.evaluators.registry import paper_layers
from xling_jax.experiments.real_xnli.report import TRANSFER
from xling_jax.experiments.similarity.rows import pairs
from xling_jax.experiments.zero_shot import scores, word_order
from xling_jax.gather import gather
from xling_jax.report.frame import Measure, Run, mean_of
from xling_jax.runs import store

RECORD = ROOT / "docs" / "record"
KEPT = sorted(path.name for path in RECORD.iterdir())
PAGES = "results.md", "small_models.md"  # with their tables
Cells = Iterator[tuple[str, ...]]  # row, column, numbers; the row's name on the terminal if another


def printed(name: str, number: int = 0) -> dict[str, dict[str, str]]:
    """The cells of each row, by column, of a table below the name of a kept run, the first being
    number 0."""
    pages = "".join((ROOT / "docs" / page).read_text() for page in PAGES)
    text = pages.split(f"`docs/record/{name}`", 1)[1]
    lines = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[number].splitlines()
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {cells[0]: dict(zip(header, cells, strict=True)) for cells in rows}


def results() -> str:
    """The page's text, on one line."""
    return " ".join((ROOT / "docs" / "results.md").read_text().split())


def shown(found: Measure, digits: int = 3, form: str = "") -> str:
    """A mean, and the standard deviation if there are several seeds; with more than one digit it
    is of shares, which the tables give without their zero."""
    mean = f"{found.mean:{form}.{digits}f}"
    both = mean if found.sd is None else f"{mean} ± {found.sd:.{digits}f}"
    return both if digits == 1 else re.sub(r"\b0\.", ".", both)


def of_bilingual(run: Run, language: str) -> Cells:
    """Means over layers; perplexity of both languages."""
    columns = {"retrieval": "sentences", "mapped": "mapped", "words": "words", "cka": "CKA"}
    for name, row in run.rows.items():
        both = [shown(row.metrics[f"perplexity_dev_{each}"], 1) for each in ("en", language)]
        yield name, "perplexity", ", ".join(both)
        for metric, column in columns.items():
            layers = [row.metrics[f"{metric}_{language}_{layer}"] for layer in range(9)]
            yield name, column, shown(mean_of(layers), 2 if metric == "cka" else 3)


def of_zero_shot(run: Run, language: str) -> Cells:
    """Scores in both languages, and how far the second's are from default's."""
    columns = {"nli": "inference", "ner": "names", "parsing": "parsing"}
    board = scores.read(run)
    for job in board.jobs:
        both = [shown(job.scores[each], 1) for each in ("en", language)]
        yield job.row, columns[job.task], ", ".join(both)
    for row in set(board.rows) - {scores.DEFAULT}:
        deltas = [board.delta(row, task) for task in columns]
        yield row, "Δ", shown(mean_of(deltas), 1, "+")


def of_aligned(run: Run, _: str) -> Cells:
    """Scores in `near` by how many layers are kept."""
    columns = {"ner": "names", "parsing": "parsing"}
    for job in scores.read(run).jobs:
        kind, _, layers = job.row.rpartition("_")
        column = f"{kind.replace('_', ' ')}, {columns[job.task]}"
        yield layers, column, shown(job.scores["near"], 1), job.row


def of_word_order(run: Run, _: str) -> Cells:
    """How alike the order of words is to English, and accuracy."""
    for language, found in word_order.languages(scores.read(run), "default", "en").items():
        yield language, "Kendall's tau", shown(found["order"], 2)
        yield language, "inference", shown(found["nli"], 1)


def of_similarity(run: Run, _: str) -> Cells:
    """CKA, and what the best layer has of the rest."""
    stored = {"CKA: mean": "cka", "layer 0": "cka_0", "layer 8": "cka_8"}
    stored |= {"words: embeddings": "words_p1", "static vectors": "static_p1"}
    stored |= {"those words, static": "context_static_p1"}
    best = {"sentences with a map": ("sentences", ""), "without": ("unmapped", "")}
    best |= {"in context": ("context", "p1")}
    for pair in pairs(run):
        for column, name in stored.items():
            if name in pair.metrics:
                yield pair.row, column, shown(pair.metrics[name])
        for column, place in best.items():
            if layers := pair.layers(*place):
                yield pair.row, column, shown(Measure(max(each.mean for each in layers.values())))


def of_real_xnli(run: Run, _: str) -> Cells:
    """Accuracy in each language."""
    for job in scores.read(Run(run.workdir / TRANSFER)).jobs:
        for language in job.languages:
            yield job.row, language, shown(job.scores[language].times(0.01), 2)


def of_fake_english(run: Run, _: str) -> Cells:
    """Scores at layer 0 and at two thirds of the depth, and perplexity."""
    columns = {"alignment_f1": "F1", "retrieval": "retr.", "translation": "transl."}
    for name, row in run.rows.items():
        yield name, "mu", shown(row.metrics["mu"], 2)
        for metric, column in columns.items():
            for layer in paper_layers(int(run.layers)):
                yield name, f"{column}, {layer}", shown(row.metrics[f"{metric}_{layer}"], 2)
        means = [row.metrics[f"perplexity_{text}"].mean for text in ("train", "dev")]
        yield name, "perplexity", f"{means[0]:.1f}, {means[1]:.0f}"


# What gives a row, a column and the numbers there, which are means over seeds, and how many of
# these there are: of some kept runs, and of all others of an experiment.
OF_RUN = {
    "bilingual-en-fr": (of_bilingual, 10 * 5),
    "zero_shot-en-fr": (of_zero_shot, 10 * 3 + 9),
    "bilingual-en-ru": (of_bilingual, 4 * 5),
    "zero_shot-en-ru": (of_zero_shot, 4 * 3 + 3),
    "zero_shot-aligned": (of_aligned, 9 * 3 * 2),
    "zero_shot-word-order": (of_word_order, 4 * 2),
}
OF_EXPERIMENT = {
    "bilingual": (of_bilingual, 10 * 5),
    "zero_shot": (of_zero_shot, 10 * 3 + 9),
    "similarity": (of_similarity, 8 * 3 + 6 * 6),
    "real_xnli": (of_real_xnli, 4 * 3),
    "fake_english": (of_fake_english, 18 * 8),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_run_has_the_numbers_of_the_results(name, tmp_path):
    tables = gather([RECORD / name], tmp_path / "run")
    run, lines = Run(tmp_path / "run"), printed(name)
    assert run.planned == run.ended
    give, count = OF_RUN.get(name) or OF_EXPERIMENT[run.experiment]
    cells = list(give(run, name.rpartition("-")[2]))
    assert len(cells) == count
    for row, column, numbers, *other in cells:
        [own] = [cell for head, cell in lines[row].items() if head.startswith(column)]
        for given, number in zip(own.split(", "), numbers.split(", "), strict=True):
            assert given in (number, number.partition(" ± ")[0]), (row, column)
        number = re.escape(numbers.split(", ")[-1].partition(" ± ")[0])
        if column not in ("perplexity", "CKA"):  # which the table gives with another digit
            line = rf"^{(other or [row])[0]}( .*)?(\n  ours .*)?(?<![\d.]){number}(?!\d)"
            assert re.search(line, tables, re.MULTILINE), (row, column)


def test_every_experiment_that_has_a_table_is_looked_at():
    others = set(KEPT) - set(OF_RUN)
    assert {store.read(RECORD / name)["experiment"] for name in others} == set(OF_EXPERIMENT)


def test_a_kept_curve_is_that_of_the_results():
    lines = printed("fake_english-new-testament", 1)
    curves = Run(RECORD / "fake_english-new-testament").evaluations.query("layer == part == ''")
    by_epoch = curves.pivot_table(index=["row", "epoch"], columns="metric", values="value")
    assert len(by_epoch) == 16 * 8 + 2
    for (row, epoch), found in by_epoch.iterrows():
        if epoch not in (0, 95):  # 0: of untrained models
            cell = f"{shown(Measure(found['mu']), 2)}, {found['perplexity_dev']:.0f}"
            assert lines[row][f"{epoch:g}"] == cell


def test_the_order_of_words_and_transfer_have_the_correlation_of_the_results():
    board = scores.read(Run(RECORD / "zero_shot-word-order"))
    found = word_order.correlations(word_order.languages(board, "default", "en"), "en", "nli")
    both = [shown(found[f"nli_{which}"], 2) for which in ("without", "with")]
    assert f"is {both[0]} without English and {both[1]} with it" in results()


def test_pairs_together_decide_as_many_claims_as_the_results_say(tmp_path):
    command = r"gather ((?:docs/record/zero_shot-\w+ )+)--workdir"
    counts = r"of the 14 claims (\d+) hold, and (\d+) (?:is|are) undecided"
    [(paths, held, undecided)] = re.findall(rf"{command}.*?{counts}", results())
    runs, together = [ROOT / path for path in paths.split()], tmp_path / "together"
    tables = gather(runs, together)
    assert len(Run(together).ended) == sum(len(Run(run).ended) for run in runs)
    decided = [re.findall(f"^  {x} ", tables, re.MULTILINE) for x in ("held", "undecided")]
    assert list(map(len, decided)) == [int(held), int(undecided)]


@pytest.mark.parametrize("name", ["similarity", "similarity-en-fr-ru"])
def test_similarity_decides_as_many_claims_as_the_results_say(name, tmp_path):
    text = results().split(f"`docs/record/{name}`", 1)[1]
    number, held = re.search(r"Of the (\d+) findings (\d+) hold", text).groups()
    tables = gather([RECORD / name], tmp_path / "run")
    decided = [re.findall(f"^  {x} ", tables, re.MULTILINE) for x in ("held", "NOT HELD")]
    assert len(decided[0]) == int(held) and sum(map(len, decided)) == int(number)


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
