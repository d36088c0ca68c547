"""The report of a run of `real_xnli`: Dufter & Schütze 2020, Table 3."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.experiments.fake_english import report as pretraining
from xling_jax.experiments.real_xnli import claims
from xling_jax.experiments.zero_shot import scores
from xling_jax.experiments.zero_shot.scores import BASELINES, Board, Job
from xling_jax.files import plain_name, write_beside
from xling_jax.report import page, table
from xling_jax.report.claims import Decided, Evidence, RowEvidence, Verdicts
from xling_jax.report.figures import Entry, row_label
from xling_jax.report.frame import Measure, Row, Run, decoded
from xling_jax.report.gallery import Card, Gallery
from xling_jax.report.prose import also_diverged
from xling_jax.report.table import ABSENT, Column, Line, Table
from xling_jax.runs import results

TRANSFER = "transfer"  # the folder of the fine-tuning's workdir
TASK = "nli"
_WORDS = (
    "Translation is of a dictionary's words, as vocabularies of different languages have no pieces "
    "that translate each other; so is the mu that is made of it."
)


def write(workdir: Path) -> str:
    """Writes the report of a run, ended or not; returns the tables and the claims as text."""
    run, tuned = Run(workdir), board(workdir)
    gallery = Gallery(workdir / "report" / "figures")
    shown, verdicts = [result(run, tuned)], Verdicts(decide(run, tuned))
    said, cards = pretraining.texts(run), _bars(run, tuned, gallery)
    if _is_compared(run):
        whole = pretraining.whole_table(run)
        write_beside(workdir / "report" / "tables" / "results.csv", table.to_csv(whole))
        caption = "how multilingual the models are before they are fine-tuned"
        shown += [replace(each, name="pretraining", title="Pretraining", caption=caption,
                          notes=[*each.notes, _WORDS])
                  for each in pretraining.tables(run)]  # fmt: skip
        cards += pretraining.overview(run, gallery)
    sections: dict[str, list[Any]] = {
        "Overview": [page.Figures(said["Overview"], cards)],
        "Results": [*(x for each in shown for x in (each, each.notes)), page.all_metrics(run)],
        "Claims": [verdicts],
        "Training": [page.Figures(said["Training"], pretraining.training(run, gallery))],
        "What was run": page.settings(run, run.config.get("vocabulary")),
    }
    return page.write(run, state(run, tuned), sections, shown, verdicts)


def state(run: Run, tuned: Board) -> str:
    """How far pretraining and, where it is asked for, fine-tuning are."""
    text = page.progress(run)
    if tuned.jobs:
        return f"{text} Fine-tuning: {scores.settings_ended(tuned.jobs)} settings ended."
    return text if run.field(TRANSFER, "tasks") == [] else f"{text} Not fine-tuned yet."


def _is_compared(run: Run) -> bool:
    """Whether anything was measured at a layer."""
    return any(decoded(name).layer != "" for row in run.rows.values() for name in row.metrics)


def board(workdir: Path) -> Board:
    """What a run has fine-tuned so far."""
    folder = workdir / TRANSFER
    if not (folder / results.CONFIG).exists():
        return Board(())
    return scores.read(Run(folder))


def languages(run: Run) -> list[str]:
    """The run's languages; the first is the one that is learned from."""
    return run.names("corpora", "languages")


def _are_embedded(run: Run) -> bool:
    return any(run.field("corpora", name, "train") == SYNTHETIC for name in languages(run))


def _printed_as(run: Run) -> list[str]:
    """Our languages in the order of the paper's: the same ones, or embedded ones by their place."""
    return languages(run) if _are_embedded(run) else list(claims.LANGUAGES)


def _printed(run: Run) -> dict[str, Line]:
    """The paper's lines by row, with our languages in the places of the paper's; for real languages
    only if English is learned from, and no row that we describe otherwise than the paper."""
    names, embedded, found = languages(run), _are_embedded(run), dict[str, Line]()
    if not embedded and names[:1] != [*claims.LANGUAGES][:1]:
        return found
    for line in claims.LINES:
        places = dict(zip(_printed_as(run), line.cells.values(), strict=False))
        cells = {_accuracy(name): places[name] for name in names if name in places}
        if embedded or run.description(line.row) in (line.description, ""):
            found[line.row] = replace(line, cells=cells, more={})
    return found


def _bars(run: Run, tuned: Board, gallery: Gallery) -> list[Card]:
    """The accuracy of every row in every language, and the paper's."""
    paper = {name: line.cells for name, line in _printed(run).items()}
    entries = [Entry(row_label(row), _accuracies(tuned, name), paper.get(name, {}))
               for name, row in run.rows.items()]  # fmt: skip
    scores = {_accuracy(name): name for name in languages(run)}
    below = "accuracy of inference"
    return gallery.bars("accuracy", f"Every row: {below}", entries, scores, below, 1.0)


def result(run: Run, tuned: Board) -> Table:
    """A line for each row, with the paper's beneath it; then mBERT's, which is the paper's alone,
    and the baselines."""
    names = languages(run)
    columns = [Column.of(f"perplexity_dev_{name}", "perplexity", name, f"ppl {name}")
               for name in names]  # fmt: skip
    columns += [Column(name, _accuracy(name), group="accuracy") for name in names]
    printed, lines = _printed(run), list[Line]()
    for name, row in run.rows.items():
        own, lost, job = table.row_line(run, row), _lost(tuned, row), _job(tuned, name)
        cells, seeds = {**row.metrics, **_accuracies(tuned, name)}, own.seeds
        if job and job.chosen:
            good = {each.seed for each in job.chosen}
            seeds = table.seeds_in(len(good), len(run.seeds_planned(name)))
        lines.append(replace(own, cells=cells, seeds=seeds + also_diverged(len(lost)),
                             message="" if cells else own.message, diverged=lost))  # fmt: skip
        if line := printed.get(name):
            lines.append(replace(line, description=claims.SOURCE))
    if lines and (mbert := printed.get(claims.MBERT)):
        lines.append(replace(mbert, source=f"{claims.SOURCE}, {mbert.description}"))
    for which in BASELINES:
        known = {place[1]: value for place, value in tuned.baselines(TASK, which).items()}
        if known:
            cells = {_accuracy(name): Measure(value / 100) for name, value in known.items()}
            lines.append(Line("baseline", which, cells, which, seeds=ABSENT))
    first = names[0] if names else "the first language"
    notes = [
        "Perplexity of held-out text where every selected token is masked, of all seeds that were "
        f"pretrained; accuracy after fine-tuning on {first} alone, of the seeds in the line.",
    ]
    if any(row.metrics for row in run.rows.values()) and not _is_compared(run):
        notes.append(
            "Of the pretrained models perplexity alone was measured: no translations to find were "
            "given (corpora.LANGUAGE.test, corpora.LANGUAGE.words)."
        )
    both = zip(_printed_as(run), claims.LANGUAGES.values(), strict=False)
    stand = [f"{language} under {name}" for name, language in both if name in names]
    if stand and printed:
        notes.append(f"The paper's numbers stand where ours do: {', '.join(stand)}.")
    notes += page.row_notes(list(run.rows.values()))
    return Table("table3", "Table 3", "Inference, zero-shot", columns, lines, notes)


def _job(tuned: Board, row: str) -> Job | None:
    """The fine-tuning of a row."""
    return next(iter(tuned.of(plain_name(row), TASK)), None)


def _accuracy(language: str) -> str:
    """The name in files of the column of a language's accuracy; the language itself may be called
    like another column."""
    return f"accuracy_{language}"


def _accuracies(tuned: Board, row: str) -> dict[str, Measure]:
    """The accuracy of a row's models in every language, as a share."""
    job = _job(tuned, row)
    found = job.scores if job else {}
    return {_accuracy(name): value.times(0.01) for name, value in found.items()}


def _lost(tuned: Board, row: Row) -> dict[int, int]:
    """The seeds of a row that diverged, in pretraining or with every setting of fine-tuning, with
    the last good step."""
    job, found = _job(tuned, row.name), dict(row.diverged)
    return found | job.lost_seeds if job and job.has_ended else found


def decide(run: Run, tuned: Board) -> list[Decided]:
    """Every claim's verdict on the rows that were fine-tuned."""
    names = languages(run)
    found, unusable = dict[str, RowEvidence](), dict[str, str]()
    for row in run.row_names:
        accuracies = _accuracies(tuned, row)
        job, lost = _job(tuned, row), _lost(tuned, run.rows[row])
        planned = run.seeds_planned(row) - lost.keys()
        ended = planned & {replica.seed for replica in job.ended} if job else set()
        if ended and ended < planned:
            unusable[row] = f"not fine-tuned ({len(ended)} of {len(planned)} seeds are)"
        elif job and job.has_ended and set(map(_accuracy, names)) <= set(accuracies):
            roles = zip(claims.ROLES, names, strict=False)
            metrics = {role: accuracies[_accuracy(name)] for role, name in roles}
            found[row] = RowEvidence(metrics, diverged=tuple(sorted(lost)))
        elif lost and run.seeds_planned(row) <= lost.keys():
            unusable[row] = "diverged with every seed"
        else:
            unusable[row] = "not fine-tuned"
    return [claim.decide(Evidence(found, unusable)) for claim in claims.CLAIMS]
