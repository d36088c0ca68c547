"""What Wu, Conneau et al. 2020 find in §4, as claims on the rows and tasks that a run has.

All of them hold on the paper's own table. Scores are in percent, and a row's score on a task is the
mean over target languages unless a claim names one. Where the paper gives no threshold ("modest",
"reasonably strong", "random"), it is ours. Rows are named with a task, or alone where the tasks
are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xling_jax.experiments.similarity.claims import BY_DISTANCE, FROM, SOURCE
from xling_jax.experiments.zero_shot import published
from xling_jax.experiments.zero_shot.published import TASKS
from xling_jax.experiments.zero_shot.quantities import (
    AVERAGE,
    above,
    above_name,
    average,
    cost,
    gain,
    score,
)
from xling_jax.experiments.zero_shot.report_tables import MEAN
from xling_jax.experiments.zero_shot.scores import BASELINES, DEFAULT, Board, mean_of
from xling_jax.report.claims import Check, Claim, Decided, Evidence, Measure, RowEvidence
from xling_jax.report.formats import listed

LITTLE, MODEST = 3.0, 5.0  # points that an average may lose
STRONG = 0.9  # of the score that is left
NEAR_CHANCE = 10.0  # points above the better baseline
SIX = ("sep_l1_6", "sep_emb_l1_6")
# XNLI has as many pairs of each of three labels; the paper prints no baselines of the others.
_CHANCE = {"nli": 100 / 3, "ner": 0.0, "parsing": 0.0}


def _evidence(
    scores: Mapping[tuple[str, str], Mapping[str, Measure]],
    baselines: Mapping[tuple[str, str], float],
    tasks: Sequence[str],
    unusable: Mapping[str, str],
    printed: bool = False,
) -> Evidence:
    """What is known of rows on tasks, and of rows that have all of them.

    Args:
      scores: of a row and a task, by target language.
      baselines: of a task and a language.
      tasks: all that there are.
      unusable: why there is none, by `ROW/TASK`.
      printed: whether they are a paper's.
    """
    found, lacking = {}, dict(unusable)
    for (row, task), own in scores.items():
        values = {**own, MEAN: mean_of(list(own.values()))}
        for language, value in own.items():
            if (task, language) in baselines:
                over = value.mean - baselines[task, language]
                values[above_name(language)] = Measure(over, value.sd, value.number)
        found[f"{row}/{task}"] = RowEvidence(values)
    for row in dict.fromkeys(row for row, _ in scores):
        parts = [found.get(f"{row}/{task}") for task in tasks]
        if all(parts):
            means = [part.metrics[MEAN] for part in parts if part]
            found[row] = RowEvidence({AVERAGE: mean_of(means)})
    for name in unusable:
        row = name.rpartition("/")[0]
        if row not in found:
            lacking.setdefault(row, "not ended on every task")
    return Evidence(found, lacking, printed=printed)


def of_run(board: Board) -> Evidence:
    """The jobs that have ended with all settings, of every pair."""
    scores: dict[tuple[str, str], dict[str, Measure]] = {}
    unusable = {}
    for row in board.rows:
        for task in board.tasks:
            own, name = board.of(row, task), f"{row}/{task}"
            found = board.scores(row, task, board.targets)
            ended, planned = sum(job.ended for job in own), sum(job.planned for job in own)
            if not own:
                continue
            if not all(job.has_ended for job in own) or len(own) < len(board.sources):
                unusable[name] = f"not ended ({ended} of {planned} settings have)"
            elif len(found) < len(board.targets):
                unusable[name] = "diverged with every setting"
            else:
                scores[row, task] = _by_language(found)
    better: dict[tuple[str, str], float] = {}
    for task in board.tasks:
        for which in BASELINES:
            for (_, language), value in board.baselines(task, which).items():
                better[task, language] = max(value, better.get((task, language), 0.0))
    return _evidence(scores, better, board.tasks, unusable)


def _by_language(found: Mapping[tuple[str, str], Measure]) -> dict[str, Measure]:
    """Means over the pairs that test a language."""
    by_language: dict[str, list[Measure]] = {}
    for (_, language), value in found.items():
        by_language.setdefault(language, []).append(value)
    return {language: mean_of(values) for language, values in by_language.items()}


def of_paper() -> Evidence:
    """The printed numbers."""
    scores = {
        (line.row, task): {
            language: Measure(value)
            for language, value in zip(published.LANGUAGES, line.scores[task], strict=True)
        }
        for line in published.TABLE_1
        for task in TASKS
    }
    chance = {(task, name): _CHANCE[task] for task in TASKS for name in published.LANGUAGES}
    return _evidence(scores, chance, TASKS, {}, printed=True)


def by_distance(sources: Iterable[str], languages: Iterable[str]) -> list[str]:
    """The languages from near to far, as far as their distances from the source are known."""
    if set(sources) != {FROM}:
        return []
    names = set(languages)
    return max(([name for name in order if name in names] for order in BY_DISTANCE), key=len)


def decide(board: Board) -> list[Decided]:
    """Every claim's verdict on a run, always in the same order."""
    languages = list(dict.fromkeys(name for _, name in board.targets))
    order = by_distance((name for _, name in board.sources), languages)
    evidence = of_run(board)
    return [claim.decide(evidence) for claim in claims(board.tasks, languages, order)]


def claims(tasks: Sequence[str], languages: Sequence[str], order: Sequence[str]) -> list[Claim]:
    """The paper's claims on some tasks and target languages.

    Args:
      tasks: those that there are.
      languages: those that are tested and not learned from.
      order: those whose distance is known, from near to far.
    """

    def claim(
        name: str, source: str, statement: str,
        checks: Callable[[Sequence[str]], Iterable[Check]],
        of: Sequence[str] = TASKS, together: bool = False, places: int = 0,
    ) -> Claim:  # fmt: skip
        """A claim on those tasks in `of` that there are, or on all of them `together`.

        `places` is the number of languages that it needs from `order`; 0 if it is on the mean.
        """
        own = [task for task in of if task in tasks]
        lacking = [task for task in of if task not in tasks]
        missing = ""
        if lacking and (together or not own):
            missing = f"not in this run: task{'s' if len(lacking) > 1 else ''} {listed(lacking)}"
        elif len(order) < places:
            missing = (
                f"{places} languages whose order by distance is known are needed, not {len(order)}"
            )
        named = [*(order if places else languages)]
        scope = f"Tasks {listed(own)}" if len(own) > 1 else f"Task {(own or of)[0]}"
        if named:
            scope += f", transfer to {listed(named)}"
        made = () if missing else tuple(checks(own))
        return Claim(name, f"{SOURCE}, {source}", scope, statement, made, missing)

    def falling(*rows: str) -> Callable[[Sequence[str]], list[Check]]:
        """On every task each row is better than the next."""
        return lambda own: [
            Check(score(task, one), ">", score(task, other))
            for task in own
            for one, other in zip(rows[:-1], rows[1:], strict=True)
        ]

    # fmt: off
    return [
        claim("domain-costs-entities-most", "§4.1",
            "Text of another domain costs most in NER, more than in NLI and in parsing.",
            lambda _: [Check(cost("ner", "wiki_cc"), ">", cost(other, "wiki_cc"))
                       for other in ("nli", "parsing")], together=True),
        claim("domain-costs-modestly", "§4.1 and §4.5",
            "Text of another domain has a modest effect: on average over tasks it costs at most "
            "5 points.",
            lambda _: [Check(average("wiki_cc"), "≥", average(DEFAULT), plus=-MODEST)],
            together=True),
        claim("anchors-are-not-needed", "§4.2 and §4.5",
            "Transfer is possible without anchors: on average over tasks the lack of them costs "
            "at most 3 points, against default anchors and against the joint vocabulary.",
            lambda _: [Check(average("no_anchors"), "≥", average(row), plus=-LITTLE)
                       for row in ("default_anchors", DEFAULT)], together=True),
        claim("joint-vocabulary-matters-little", "§4.5",
            "A joint vocabulary contributes little: on average over tasks one for each language, "
            "with equal pieces in common, costs at most 3 points.",
            lambda _: [Check(average("default_anchors"), "≥", average(DEFAULT), plus=-LITTLE)],
            together=True),
        claim("more-anchors-help", "§4.2 and §4.5",
            "More anchors help: on average over tasks extra anchors are better than default "
            "anchors and than the joint vocabulary, and default anchors better than none.",
            lambda _: [Check(average("extra_anchors"), ">", average("default_anchors")),
                       Check(average("extra_anchors"), ">", average(DEFAULT)),
                       Check(average("default_anchors"), ">", average("no_anchors"))],
            together=True),
        claim("anchors-help-distant-languages-most", "§4.2",
            "Extra anchors help the most distant language more than the nearest one, compared "
            "with default anchors, on every task.",
            lambda own: [
                Check(gain(task, "extra_anchors", "default_anchors", order[-1]), ">",
                      gain(task, "extra_anchors", "default_anchors", order[0]))
                for task in own], places=2),
        claim("separate-embeddings-cost-more-than-anchors", "§4.3",
            "Separate embeddings, and with them softmaxes, cost more than the lack of anchors, on "
            "every task.", falling("no_anchors", "sep_emb")),
        claim("fewer-shared-layers-are-worse", "§4.3",
            "The fewer layers are shared the worse, on every task: all, without the bottom three, "
            "without the bottom six.", falling(DEFAULT, "sep_l1_3", "sep_l1_6")),
        claim("fewer-shared-layers-are-worse-without-embeddings", "§4.3",
            "The same with separate embeddings: the fewer layers are shared the worse, on every "
            "task.", falling(DEFAULT, "sep_emb", "sep_emb_l1_3", "sep_emb_l1_6")),
        claim("three-separate-layers-still-transfer", "§4.3",
            "Reasonably strong transfer is possible without tying the bottom three layers: nine "
            "tenths of the score are left on every task.",
            lambda own: [Check(score(task, "sep_l1_3"), "≥", score(task, DEFAULT), STRONG)
                         for task in own]),
        claim("six-separate-layers-cost-distant-languages-most", "§4.3",
            "With six separate layers the nearest language loses least, with and without "
            "embeddings of its own, on every task.",
            lambda own: [Check(cost(task, row, order[0]), "<", cost(task, row, other))
                         for task in own for row in SIX for other in order[1:]], places=2),
        claim("transfer-ends-without-embeddings-and-six-layers", "§4.3",
            "With separate embeddings and six separate layers transfer drops to random in all "
            "languages but the nearest: at most 10 points above the better baseline, on every "
            "task.",
            lambda own: [Check(above(task, SIX[1], name), "≤", NEAR_CHANCE)
                         for task in own for name in order[1:]], places=2),
        claim("sharing-matters-most", "§4.3 and §4.5",
            "Sharing parameters is the key: six separate layers are worse than another domain, no "
            "anchors and separate vocabularies, on every task, and separate embeddings too are "
            "the worst.",
            lambda own: [check for task in own for check in (
                *(Check(score(task, SIX[0]), "<", score(task, other))
                  for other in ("wiki_cc", "no_anchors", "default_anchors")),
                Check(score(task, SIX[1]), "<", score(task, SIX[0])))]),
        claim("distant-languages-transfer-less", "§4.4",
            "The more distant the language the lower the score, on NLI and parsing (NER has other "
            "data for each language).",
            lambda own: [Check(score(task, DEFAULT, near), ">", score(task, DEFAULT, far))
                         for task in own for near, far in zip(order[:-1], order[1:], strict=True)],
            of=("nli", "parsing"), places=2),
    ]
    # fmt: on
