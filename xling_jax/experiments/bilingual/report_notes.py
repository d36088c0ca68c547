"""What must be known to read a bilingual run: how far it is, of what texts, what the scores are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.experiments.bilingual.report_metrics import (
    candidates,
    corpora,
    languages,
    layers,
    spread,
)
from xling_jax.experiments.fake_english import report_notes
from xling_jax.report.formats import listed
from xling_jax.report.rows import Row, Run

THINGS = {"retrieval": "sentences", "words": "words"}  # that a task translates
_PAPER = (
    "The settings are as in Wu, Conneau et al. 2020, Table 1. The paper prints how well fine-tuned "
    "models transfer (XNLI, NER, parsing); here the pretrained models themselves are asked for "
    "translations, so the figures cannot be set beside the paper's, only the order of the rows."
)
_PERPLEXITY = (
    "Perplexities are of masked pieces of held-out text. They can be compared only between rows "
    "with the same vocabulary: a joint vocabulary and those of each language cut the same text "
    "into other pieces, and with separate embeddings a prediction chooses among the pieces of one "
    "language alone."
)
_ANCHORS = (
    "Anchors: pieces that occur in the training text of two languages or more, and the share of "
    "tokens that they cover, mean over languages."
)
_SD = (
    "The second number of a cell is the standard deviation over seeds, of the population "
    "(ddof=0). A difference between rows that is not well above it may be chance."
)
_ONE_SEED = (
    "One seed a row: how much of a difference between rows is chance cannot be told. The option "
    "seeds, as in seeds=0+1+2, trains more."
)


def about(run: Run, rows: Sequence[Row]) -> list[str]:
    """Everything there is to say about the rows of a run."""
    names = {name for row in rows for name in row.metrics}
    found = _scores(run) if names & {"retrieval", "words"} else []
    found.append(_PERPLEXITY)
    if "anchors" in names:
        found.append(_ANCHORS)
    if any(len(row.seeds) > 1 for row in rows):
        found.append(_SD)
    elif names:
        found.append(_ONE_SEED)
    return [*found, *_scored(run, rows), _PAPER, *report_notes.progress(rows)]


def _scored(run: Run, rows: Sequence[Row]) -> list[str]:
    """At which steps the figures were taken, of rows of which a seed has ended."""
    told, older = [], []
    for row in rows:
        ended = [r for r in run.replicas if r.row == row.row and r.diverged_at is None]
        steps = {r.scored_at for r in ended if r.scored_at is not None}
        if steps:
            total = run.steps_of(row.row)
            of = f" of {total:,}" if total else ""
            told.append(f"{row.row} {listed([f'{step:,}' for step in sorted(steps)])}{of}")
        if any(r.scored_at is None for r in ended):
            older.append(row.row)
    found = []
    if told:
        found.append(
            "Figures, but for those over training, are of the checkpoint with the lowest "
            f"perplexity on held-out text of the row's first language: step {'; '.join(told)}."
        )
    if older:
        found.append(
            "Stored by an older version, and those of the last evaluation, whatever its "
            f"perplexity: {listed(older)}."
        )
    return found


def _scores(run: Run) -> list[str]:
    """What the two scores are, and among how many candidates."""
    named = languages(run)
    between = f" between {named[0]} and {listed(named[1:])}" if len(named) > 1 else ""
    over = ["both directions", _layers(layers(run)), *["all languages"] * (len(named) > 2)]
    sentences, words = (_among(run, task, things) for task, things in THINGS.items())
    return [
        f"Sentence retrieval{between}: the share of sentences whose translation is the nearest by "
        f"cosine of the mean vectors of their pieces{sentences}; mean of {listed(over)}.",
        "After a map: the same of the second half of these sentences, when an orthogonal map is "
        "learned on the first half. CKA: how alike the vectors of translations are but for such a "
        f"map, from 0 to 1.{_cut(run)}",
        "Word translation: the share of words of a dictionary whose nearest word by CSLS is a "
        f"translation, each encoded alone{words}; the same means.",
    ]


def _cut(run: Run) -> str:
    """How many sentences were cut, where some were."""
    start = "retrieval_cut_"
    shares: dict[str, float] = {}
    for row in map(run.row, run.row_names()):
        for name, value in row.metrics.items():
            if name.startswith(start):
                language = name.removeprefix(start)
                shares[language] = max(shares.get(language, 0.0), value.mean)
    told = [f"{100 * share:.0f} % ({name})" for name, share in shares.items() if share]
    return f" Cut, because they are longer than a window: {listed(told)} of them." if told else ""


def _layers(evaluated: Sequence[int]) -> str:
    """Layers in words."""
    if not evaluated:
        return "the evaluated layers"
    first, last = evaluated[0], evaluated[-1]
    if len(evaluated) == 1:
        return f"layer {first} alone"
    if list(evaluated) == list(range(first, last + 1)):
        return f"layers {first} to {last}"
    return f"layers {listed(list(map(str, evaluated)))}"


def _among(run: Run, task: str, things: str) -> str:
    """Among how many candidates, where that is known."""
    found = candidates(run, task)
    if not found:
        return ""
    if len({tuple(numbers) for numbers in found.values()}) == 1:
        told = f"{spread(next(iter(found.values())))} {things}"
    else:
        each = [f"{spread(numbers)} {things} of {name}" for name, numbers in found.items()]
        told = listed(each)
    least = min(number for numbers in found.values() for number in numbers)
    return f", among {told} (chance: about {1 / least:.2g})"


def sentence(run: Run) -> str:
    """How far the run is: rows done of rows planned, and the row in training."""
    planned, names = run.replicas_planned(), run.row_names()
    ended = {(r.row, r.seed) for r in run.replicas}
    records = (*run.metrics.training, *run.metrics.evaluations)
    if not records and not ended:
        return "Nothing has been logged yet" + (f": 0 of {len(names)} rows done." if names else ".")
    left = {row for row, _ in planned - ended}
    done = sum(name not in left for name in names)
    text = f"{'Not finished' if left else 'Ended'}: {done} of {len(names)} rows done"
    running = [record for record in records if (record.row, record.seed) not in ended]
    if running:
        last = max(running, key=lambda record: record.step)
        total = run.steps_of(last.row)
        of = f" of {total:,}" if total else ""
        text += f", row {last.row} at step {last.step:,}{of}"
    diverged = sum(r.diverged_at is not None for r in run.replicas)
    if diverged:
        text += f"; {diverged} of {len(planned)} replicas diverged"
    return f"{text}."


def setting(run: Run) -> str:
    """Seeds, scale, languages and texts, in a sentence or two."""
    parts = []
    if seeds := sorted({seed for _, seed in run.replicas_planned()}):
        parts.append(f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}")
    if scale := run.config.get("scale"):
        parts.append(f"scale {scale}")
    if found := languages(run):
        parts.append(f"language{'s' if len(found) > 1 else ''} {', '.join(found)}")
    text = "; ".join(parts)
    return " ".join(filter(None, [f"{text[0].upper()}{text[1:]}." if text else "", _texts(run)]))


def embedded(run: Run) -> str:
    """What the program made of text, in a sentence; empty where the texts are real ones."""
    section = corpora(run)
    own = [section.get(name) for name in languages(run)]
    if not own or any(not isinstance(x, dict) or x.get("train") != SYNTHETIC for x in own):
        return ""
    sizes = [
        f"{section[field]:,} {what}"
        for field, what in (
            ("train_sentences", "sentences of each language to train"),
            ("dev_sentences", "held out"),
            ("test_sentences", "translated"),
        )
        if isinstance(section.get(field), int)
    ]
    return f"Texts made by the program{': ' if sizes else ''}{', '.join(sizes)}."


def _texts(run: Run) -> str:
    """Where the training text is from, and how much there is of it where that is stored."""
    by_language: dict[str, list[str]] = {}
    for text in run.texts:
        if text.get("field", "train") in ("train", "other") and text.get("source"):
            source = str(text["source"])
            name = source if source.startswith("tfds:") else Path(source).name
            sizes = [f"{text[x]:,} {x}" for x in ("sentences", "words") if _is_size(text.get(x))]
            shown = f"{name} ({', '.join(sizes)})" if sizes else name
            by_language.setdefault(str(text.get("language", "")), []).append(shown)
    if not by_language:
        return embedded(run)
    told = "; ".join(f"{name}: {', '.join(found)}" for name, found in by_language.items())
    limit = corpora(run).get("train_sentences")
    most = f", the first {limit:,} sentences of a language" if _is_size(limit) and limit else ""
    return f"Trained on {told}{most}."


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
