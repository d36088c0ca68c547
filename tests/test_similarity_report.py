"""The report of a comparison of models shows what is stored, whole or half, and decides claims."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from snapshot import Page
from test_report_page import files_of

from xling_jax.experiments.similarity import claims as similarity_claims
from xling_jax.experiments.similarity import report as similarity
from xling_jax.experiments.similarity import rows
from xling_jax.experiments.similarity.rows import KINDS, MONOLINGUAL, OTHER_SEED, Pair
from xling_jax.report import figures
from xling_jax.report.claims import HELD, NOT_HELD, NOT_RUN, UNDECIDED, Decided
from xling_jax.report.figures import COLOURS
from xling_jax.report.frame import Run, measured
from xling_jax.report.gallery import Gallery
from xling_jax.runs import results

LANGUAGES = ("en", "fr", "zh")
DEPTH = 4
FAR = {"fr": 0.1, "de": 0.15, "zh": 0.3, "near": 0.1, "middle": 0.15, "far": 0.2, "en": 0.0}
Changes = Mapping[str, Mapping[str, float | None]]  # by row; None takes a metric away


def metrics_of(row: str) -> dict[str, float]:
    """Numbers of a row as the paper describes them."""
    kind, _, language = row.partition("_")
    if row == OTHER_SEED:
        kind, language = "monolingual", "en"
    distance = FAR.get(language, 0.2)
    level = {"bilingual": 0.97 - 1.1 * distance, "random": 0.3}.get(kind, 0.9 - distance)
    shape = [0.0, 0.02, -0.02, -0.05, -0.1]
    cka = {f"cka_{n}": level + x for n, x in enumerate(shape)}
    found = {**cka, "cka": float(np.mean(list(cka.values())))}
    if language == "en":
        return found
    for n, x in enumerate(shape):
        for name, value in (("sentences", level - 0.2 + x), ("unmapped", 0.02 + x / 10)):
            ends = {"": value, "_forward": value, "_backward": value, "_p5": value + 0.1}
            found |= {f"{name}_{n}{end}": v for end, v in ends.items()}
        for k, more in ((1, 0.0), (5, 0.1), (10, 0.15)):
            found[f"context_{n}_p{k}"] = 0.3 + 0.05 * n + more
        found |= {f"context_{n}_words": 1500.0, f"context_{n}_covered": 1400.0}
    for name, value in (("words", 0.5), ("static", 0.49), ("context_static", 0.6)):
        found |= {f"{name}_p1": value, f"{name}_p5": value + 0.1, f"{name}_p10": value + 0.15}
        found |= {f"{name}_forward_p1": value, f"{name}_backward_p1": value}
        found |= {f"{name}_words": 1500.0, f"{name}_covered": 800.0, f"{name}_learned": 4000.0}
    found |= {"words_first": 9000.0, "words_second": 8000.0, "pearson": 0.95}
    return found | ({"retrieval_cut": 0.004} if row == "monolingual_zh" else {})


def names_of(languages: Sequence[str]) -> list[str]:
    return [f"{kind}_{name}" for name in languages[1:] for kind in KINDS] + [OTHER_SEED]


def described(row: str, languages: Sequence[str]) -> str:
    if row == OTHER_SEED:
        return f"{languages[0]}|{languages[0]}_other @{languages[0]}"
    if "|" in row:
        return row
    kind, _, language = row.partition("_")
    other = f"random[{language}]" if kind == "random" else language
    return f"{languages[0]}|{other} @{language}"


def fake_run(
    folder: Path,
    names: Sequence[str] | None = None,
    waiting: Sequence[str] = (),
    changes: Changes | None = None,
    languages: Sequence[str] = LANGUAGES,
    only: str = "",
) -> Path:
    """A workdir as a run leaves it.

    Args:
      folder: the workdir.
      names: of rows, by default all of the languages.
      waiting: rows that have not ended.
      changes: what is different from `metrics_of`.
      languages: the first one and those that it is compared with.
      only: what the kept metrics begin with.
    """
    names = names_of(languages) if names is None else names
    folder.mkdir(parents=True, exist_ok=True)
    descriptions = {name: described(name, languages) for name in names}
    config = {
        "experiment": "similarity", "fingerprint": "f00", "scale": "paper",
        "versions": {"jax": "0.7.0"}, "rows": descriptions,
        "groups": [[[name, 0]] for name in names],
        "texts": [{"source": "/a/fr.txt", "language": "fr", "field": "learned", "sha256": "1"},
                  {"source": "/a/models/en", "language": "model", "sha256": "2"}],
        "config": {"languages": list(languages), "models": {"en": "/a/models/en"},
                   "sentences": {"learned": 10_000, "tested": 1000, "contexts": 500_000}},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    ended = []
    for name in names:
        if name not in waiting:
            changed = {**metrics_of(name), **(changes or {}).get(name, {})}
            found = {k: v for k, v in changed.items() if v is not None and k.startswith(only)}
            ended.append(results.Replica("similarity", name, descriptions[name], 0, 0, found))
    if ended:
        results.write_results(folder / "results.json", ended)
    return folder


def page_of(workdir: Path) -> str:
    similarity.write(workdir)
    return (workdir / "report" / "report.html").read_text()


def pairs_of(workdir: Path) -> list[Pair]:
    return rows.pairs(Run(workdir))


def decide(workdir: Path) -> dict[str, Decided]:
    run = Run(workdir)
    found = similarity_claims.decide(rows.pairs(run), rows.languages(run))
    return {decided.claim.id: decided for decided in found}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, with its report."""
    workdir = fake_run(tmp_path_factory.mktemp("ended"))
    similarity.write(workdir)
    return workdir


def going_run(folder: Path) -> Path:
    """Rows that ended, wait, were not measured, and one of a user's own."""
    own = "en|something-else-of-a-long-name @fr"
    return fake_run(
        folder, [*names_of(LANGUAGES), own], waiting=["bilingual_zh", "random_zh"],
        changes={OTHER_SEED: dict.fromkeys(metrics_of(OTHER_SEED))},
    )  # fmt: skip


@pytest.fixture(scope="module")
def going(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that goes on, with its report."""
    workdir = going_run(tmp_path_factory.mktemp("going"))
    similarity.write(workdir)
    return workdir


def table_of(workdir: Path, name: str) -> list[dict[str, str]]:
    with open(workdir / "report" / "tables" / f"{name}.csv") as file:
        return list(csv.DictReader(file))


def test_the_tables_have_the_numbers_of_each_row(ended: Path) -> None:
    summary = {line["row"]: line for line in table_of(ended, "similarity")}
    assert list(summary) == names_of(LANGUAGES)
    expected = metrics_of("monolingual_fr")
    found = summary["monolingual_fr"]
    assert float(found["cka"]) == pytest.approx(expected["cka"], rel=1e-5)
    assert float(found["cka_last"]) == pytest.approx(expected["cka_4"], rel=1e-5)
    assert float(found["sentences_best"]) == pytest.approx(expected["sentences_1"], rel=1e-5)
    assert (found["sentences_best_layer"], found["context_best_layer"]) == ("1", "4")
    assert summary[OTHER_SEED]["pearson"] == summary[OTHER_SEED]["words_p1"] == ""
    cka = table_of(ended, "cka")
    header = [name for name in cka[0] if not name.endswith("_sd")]
    assert header == ["row", "description", "source", "L0", "L1", "L2", "L3", "L4", "mean",
                      "seeds", "diverged"]  # fmt: skip
    assert [line["description"] for line in table_of(ended, "sentences")][:2] == [
        "with a map", "without a map",
    ]  # fmt: skip
    words = {line["row"]: line for line in table_of(ended, "words")}
    assert words["random_zh"]["static_p10"] == "0.64"
    found = words["random_zh"]
    assert (found["words_covered"], found["words_learned"]) == ("800", "4000")
    assert [line["description"] for line in table_of(ended, "words_by_layer")][:3] == [
        "P@1", "P@5", "P@10",
    ]  # fmt: skip
    latex = (ended / "report" / "tables" / "similarity.tex").read_text()
    assert r"random\_fr & en\textbar{}random{[}fr] @fr & " in latex
    lines = (ended / "report" / "tables" / "similarity.md").read_text().splitlines()
    assert r"en\|fr @fr" in lines[5]


def test_a_run_still_going_shows_every_row_as_it_is(going: Path) -> None:
    shown = similarity.summary(Run(going), pairs_of(going))
    messages = {line.row: line.message for line in shown.lines if line.message}
    assert messages == {
        "bilingual_zh": "not begun", "random_zh": "not begun", OTHER_SEED: "not measured",
    }  # fmt: skip
    decided = decide(going)
    assert decided["bilingual-is-more-alike"].numbers == "not ended: row bilingual_zh"
    assert decided["maps-align"].outcome == HELD


def test_means_over_seeds_have_their_spread_and_what_they_lack_is_said(tmp_path: Path) -> None:
    name = "monolingual_fr"
    path = fake_run(tmp_path, [name, "bilingual_fr"]) / "config.json"
    config = json.loads(path.read_text())
    config["groups"] = [[[row, seed]] for row in (name, "bilingual_fr") for seed in (0, 1, 2)]
    path.write_text(json.dumps(config))
    first = metrics_of(name)
    other = {key: value + 0.1 for key, value in first.items() if key not in ("words_p1", "pearson")}
    both = enumerate((first, other))
    results.write_results(tmp_path / "results.json", [
        results.Replica("similarity", name, described(name, LANGUAGES), seed, 0, found)
        for seed, found in both
    ])  # fmt: skip
    run, found = Run(tmp_path), pairs_of(tmp_path)
    shown = similarity.summary(run, found)
    assert {line.row: (line.seeds, line.message) for line in shown.lines} == {
        name: ("2/3", ""), "bilingual_fr": ("0/3", "not begun"),
    }  # fmt: skip
    (cells,) = [line.cells for line in shown.lines if line.cells]
    assert cells["cka"].sd == cells["sentences_best"].sd == pytest.approx(0.05)
    assert f"Row {name}: some of its 2 seeds lack a finite words_p1, pearson; " in str(shown.notes)
    assert any("standard deviation over seeds" in note for note in shown.notes)
    kinds = rows.by_kind(found, LANGUAGES)
    (line,) = similarity.lines(kinds, {"": ("sentences", "")})
    assert line.curves["monolingual"].sd == pytest.approx([0.05] * (DEPTH + 1))


def test_pairs_are_told_by_names_and_descriptions(going: Path) -> None:
    by_kind = rows.by_kind(pairs_of(going), LANGUAGES)
    labels = {kind: [pair.label for pair in pairs] for kind, pairs in by_kind.items()}
    assert labels == {
        "bilingual": ["en–fr", "en–zh"], "monolingual": ["en–en′", "en–fr", "en–zh"],
        "random": ["en–fr", "en–zh"], "": ["en|something-else-of-a-long-name @fr"],
    }  # fmt: skip
    assert list(similarity.blocks(by_kind)) == [*KINDS, similarity.OTHERS]


def test_the_heat_table_has_a_cell_for_every_number(going: Path) -> None:
    shown = similarity.blocks(rows.by_kind(pairs_of(going), LANGUAGES))
    axes = similarity.heat(shown).axes
    assert len(axes) == 2 * len(shown)
    texts = [text.get_text() for each in axes for text in each.texts]
    # 8 columns, of which three are empty, of 5 layers and their mean.
    assert len(texts) == 8 * 6 and texts.count("–") == 3 * 6
    for (_, own), above, below in zip(shown.items(), axes, axes[len(shown) :], strict=False):
        first = [f"{values['L0']:.2f}"[1:] if values else "–" for _, values in own]
        assert [text.get_text() for text in above.texts][: len(own)] == first
        empty = [not values for _, values in own]
        for panel, number in ((above, 5), (below, 1)):
            mask = np.ma.getmaskarray(panel.collections[0].get_array()).reshape(number, -1)
            assert mask.tolist() == [empty] * number


@pytest.mark.pictures
def test_rows_with_long_names_are_told_apart_in_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[set[str]] = []
    monkeypatch.setattr(figures, "bars", lambda rows, *_: drawn.append({x.label for x in rows}))
    names = [f"en|a_model_of_a_name_this_long_{n} @fr" for n in range(2)]
    found = pairs_of(fake_run(tmp_path, names))
    kinds = rows.by_kind(found, LANGUAGES)
    similarity._words(found, kinds, Gallery(tmp_path))
    *_, below = similarity.heat(similarity.blocks(kinds)).axes
    columns = {text.get_text() for text in below.get_xticklabels()}
    assert len(columns) == len(drawn[0]) == 2


def test_languages_have_one_colour_in_all_panels(going: Path) -> None:
    kinds = rows.by_kind(pairs_of(going), LANGUAGES)
    measures = {"": ("sentences", ""), ", no map": ("unmapped", "")}
    shown = similarity.lines(kinds, measures)
    numbers = {line.label: line.number for line in shown}
    colours = len(COLOURS)
    assert numbers["en–fr, no map"] == numbers["en–fr"] + colours
    assert list(dict.fromkeys(kind for line in shown for kind in line.curves)) == [
        *KINDS,
        similarity.OTHERS,
    ]
    assert {kind for line in shown if line.label == "en–fr" for kind in line.curves} == set(KINDS)


def test_a_measure_without_layers_is_a_flat_line(going: Path) -> None:
    kinds = {MONOLINGUAL: rows.by_kind(pairs_of(going), LANGUAGES)[MONOLINGUAL][1:]}
    shown = similarity.lines(kinds, {"": ("context", "p1"), ", static": ("context_static", "p1")})
    curves = {line.label: line.curves[MONOLINGUAL] for line in shown}
    assert list(curves) == ["en–fr", "en–zh", "en–fr, static", "en–zh, static"]
    assert list(curves["en–fr, static"].mean) == [0.6] * (DEPTH + 1)
    assert curves["en–fr, static"].steps == curves["en–fr"].steps


def test_many_pairs_have_lines_of_their_own(tmp_path: Path) -> None:
    languages = ["en", *(f"x{n}" for n in range(14))]
    names = [f"monolingual_{language}" for language in languages[1:]]
    kinds = rows.by_kind(pairs_of(fake_run(tmp_path, names, languages=languages)), languages)
    shown = similarity.lines(kinds, {"": ("sentences", ""), ", no map": ("unmapped", "")})
    assert len({line.number for line in shown}) == len(shown) == 28
    for mapped, unmapped in zip(shown[:14], shown[14:], strict=True):
        assert mapped.number % len(COLOURS) == unmapped.number % len(COLOURS)
        assert mapped.number // figures.STYLES == unmapped.number // figures.STYLES


@pytest.mark.pictures
@pytest.mark.parametrize(
    ("only", "figures"),
    [("cka", {"cka"}), ("unmapped", {"sentences"}), ("words", {"words"}),
     ("context", {"words_by_layer"}), ("nothing", set())],
)  # fmt: skip
def test_a_run_with_some_measures_has_those(tmp_path: Path, only: str, figures: set[str]) -> None:
    text = page_of(fake_run(tmp_path, ["monolingual_fr", "random_fr"], only=only))
    assert len(Page(text).loads) == len(figures)
    for name in figures:
        assert f"{name}.csv" in files_of(tmp_path, "tables")
        assert f"{name}.svg" in files_of(tmp_path, "figures")
    assert len(files_of(tmp_path, "tables")) == 3 * (2 + len(figures))


@pytest.mark.parametrize("names", [[], ["monolingual_fr"]])
def test_a_run_that_has_not_begun_has_a_page(tmp_path: Path, names: list[str]) -> None:
    text = page_of(fake_run(tmp_path, names, waiting=names))
    assert "Nothing has been logged yet" in text and ("not begun" in text) == bool(names)


def test_rows_that_the_config_does_not_describe_are_shown(tmp_path: Path) -> None:
    found = [results.Replica("similarity", "mine", "", 0, 0, {"cka_0": 0.5, "cka": 0.5})]
    results.write_results(tmp_path / "results.json", found)
    assert similarity.write(tmp_path).splitlines()[2].split() == ["mine", *[".500"] * 3, "1"]


RISING = {f"cka_{n}": 0.5 + 0.1 * n for n in range(DEPTH + 1)}
NEEDED = {
    "bilingual-is-more-alike": ("bilingual_fr", {"cka": 0.5}, "cka"),
    "more-alike-than-random": ("random_fr", {"cka": 0.95}, "cka"),
    "lower-layers-are-alike": ("monolingual_fr", RISING, "cka_"),
    "higher-layers-translate-words": ("monolingual_fr", {"context_4_p1": 0.1}, "context"),
    "context-underperforms-static-vectors": (
        "monolingual_fr", {"context_static_p1": 0.5}, "context_static",
    ),
    "similarity-tells-retrieval": ("monolingual_fr", {"pearson": 0.9}, "pearson"),
    "gap-shrinks-with-distance": ("bilingual_zh", {"cka": 0.95}, "cka"),
    "maps-align": ("monolingual_zh", {f"unmapped_{n}": 0.35 for n in range(5)}, "unmapped"),
    "lower-layers-retrieve": ("monolingual_zh", {"sentences_3": 0.9}, "sentences"),
    "embeddings-match-static-vectors": ("monolingual_fr", {"static_p1": 0.53}, "static"),
}  # fmt: skip


def test_numbers_as_the_paper_describes_them_support_every_claim(ended: Path) -> None:
    decided = decide(ended)
    assert list(decided) == list(NEEDED)
    for each in decided.values():
        assert each.outcome == HELD, each
        assert each.claim.source.startswith("W&C, §5") and each.claim.statement.endswith(".")
        assert "text of" in each.claim.scope and "fr" in each.claim.scope


@pytest.mark.parametrize("name", NEEDED)
def test_another_number_speaks_against_a_claim(tmp_path: Path, name: str) -> None:
    row, changed, _ = NEEDED[name]
    decided = decide(fake_run(tmp_path, changes={row: changed}))[name]
    assert decided.outcome == NOT_HELD, decided
    assert f"row {row}" in decided.numbers.split("not so: ")[1]


def test_layers_are_compared_seed_by_seed() -> None:
    """Each seed is best below the middle, but the mean of both in the last layer."""
    layers = zip((0.1, 0.9, 0.1, 0.1, 0.1, 0.62), (0.1, 0.1, 0.9, 0.1, 0.1, 0.62), strict=True)
    found = {f"sentences_{n}": measured(dict(enumerate(both))) for n, both in enumerate(layers)}
    pair = Pair("monolingual_fr", "en|fr @fr", MONOLINGUAL, "fr", "en–fr", found, True)
    for decided in similarity_claims.decide([pair], LANGUAGES):
        if decided.claim.id == "lower-layers-retrieve":
            assert decided.outcome == HELD, decided
            assert "row monolingual_fr 1.5 ±0.5" in decided.numbers
            break
    else:
        pytest.fail("no claim on the layer that is best")


@pytest.mark.parametrize("name", NEEDED)
def test_a_claim_is_not_run_without_its_rows_or_their_numbers(tmp_path: Path, name: str) -> None:
    row, _, metrics = NEEDED[name]
    waits = decide(fake_run(tmp_path / "waits", waiting=[row]))[name]
    assert (waits.outcome, waits.numbers) == (NOT_RUN, f"not ended: row {row}")
    without = {
        each: {metric: None for metric in metrics_of(each) if metric.startswith(metrics)}
        for each in names_of(LANGUAGES)
    }
    lacks = decide(fake_run(tmp_path / "lacks", changes=without))[name]
    assert lacks.outcome == NOT_RUN and lacks.numbers.startswith("not measured: row"), lacks
    absent = decide(fake_run(tmp_path / "absent", ["random_fr"]))[name]
    assert absent.outcome == NOT_RUN


def test_what_was_not_measured_of_one_language_is_left_out_of_a_claim(tmp_path: Path) -> None:
    changes = {"monolingual_zh": {"pearson": None}, "monolingual_fr": {"pearson": 0.91}}
    decided = decide(fake_run(tmp_path, changes=changes))["similarity-tells-retrieval"]
    assert (decided.outcome, decided.numbers) == (
        HELD,
        "correlation: row monolingual_fr .91 (1 seed)",
    )
    assert decided.claim.scope == "Monolingual models, text of fr (not measured: zh)"


def test_alike_low_layers_need_both_the_highest_and_the_mean(tmp_path: Path) -> None:
    # The highest is low, but the lower half is below the upper.
    changes = {"monolingual_fr": {"cka_0": 0.1, "cka_1": 0.1, "cka_2": 0.9}}
    decided = decide(fake_run(tmp_path, changes=changes))["lower-layers-are-alike"]
    assert decided.outcome == NOT_HELD
    assert decided.numbers.endswith("not so: row monolingual_fr: mean CKA of the lower half > row "
                                    "monolingual_fr's mean CKA of the upper half")  # fmt: skip


def test_a_single_layer_has_no_lower_and_higher_ones(tmp_path: Path) -> None:
    layers = {f"cka_{n}": None for n in range(1, 5)}
    workdir = fake_run(tmp_path, ["monolingual_fr"], changes={"monolingual_fr": layers})
    decided = decide(workdir)["lower-layers-are-alike"]
    assert decided.outcome == NOT_RUN and "below and above the middle" in decided.numbers


@pytest.mark.parametrize(
    ("languages", "outcome"),
    [(("en", "zh", "fr"), HELD), (("en", "near", "far"), HELD),
     (("en", "far", "near", "middle"), HELD), (("en", "fr"), NOT_RUN),
     (("en", "fr", "near"), NOT_RUN), (("fr", "de", "zh"), NOT_RUN)],
)  # fmt: skip
def test_distances_are_known_of_some_languages(
    tmp_path: Path, languages: Sequence[str], outcome: str
) -> None:
    decided = decide(fake_run(tmp_path, languages=languages))["gap-shrinks-with-distance"]
    assert decided.outcome == outcome
    if outcome == NOT_RUN:
        assert decided.numbers.startswith("2 languages whose order by distance is known")


def test_seeds_that_differ_more_than_rows_decide_nothing(tmp_path: Path) -> None:
    pairs = pairs_of(fake_run(tmp_path))

    def seeds(pair: Pair, by: float) -> Pair:
        sign = -1 if pair.kind == MONOLINGUAL else 1
        shifted = {
            name: measured({s: value.mean + sign * s * by for s in (-1, 0, 1)})
            for name, value in pair.metrics.items()
        }
        return replace(pair, metrics=shifted)

    outcomes = {}
    for by in (0.0, 0.5):
        found = similarity_claims.decide([seeds(p, by) for p in pairs], LANGUAGES)
        outcomes[by] = {each.claim.id: each.outcome for each in found}
    assert outcomes[0.0]["bilingual-is-more-alike"] == HELD
    for name in ("bilingual-is-more-alike", "more-alike-than-random"):
        assert outcomes[0.5][name] == UNDECIDED
    assert outcomes[0.5]["maps-align"] == HELD  # on two numbers of one row, seed by seed


def test_another_model_of_the_first_language_is_the_nearest(tmp_path: Path) -> None:
    names = [*names_of(("en", "fr")), "bilingual_en"]
    changes = {"bilingual_en": {"cka": 0.99}, OTHER_SEED: {"cka": 0.8}}
    workdir = fake_run(tmp_path, names, changes=changes, languages=("en", "fr"))
    decided = decide(workdir)["gap-shrinks-with-distance"]
    assert decided.outcome == HELD and decided.claim.scope.endswith("text of en and fr")


def test_a_row_has_ended_when_all_of_its_seeds_have(tmp_path: Path) -> None:
    path = fake_run(tmp_path) / "config.json"
    config = json.loads(path.read_text())
    config["groups"].append([["bilingual_fr", 1]])
    path.write_text(json.dumps(config))
    found = {pair.row: pair.has_ended for pair in rows.pairs(Run(tmp_path))}
    assert not found.pop("bilingual_fr") and all(found.values())
