"""The Fake-English laboratory (Dufter & Schütze 2020): from a config to results."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import ml_collections
import numpy as np

from xling_jax import devices, experiment
from xling_jax.batches import packing, setting
from xling_jax.batches.assembly import SPECIALS
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.sampling import Sampler
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import text as corpora
from xling_jax.corpora.synthetic.config import LanguageConfig
from xling_jax.corpora.synthetic.sentences import generate
from xling_jax.evaluators.multilinguality import Multilinguality, Texts, paper_layers
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig
from xling_jax.reports import page, results, tables
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.loop import Diverged, Replica, Schedule, Training
from xling_jax.training.metrics import MetricsFile, say
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import RUNNING, Program, State
from xling_jax.vocabulary import pieces as vocabulary
from xling_jax.vocabulary.languages import ShiftedVocabulary

SYNTHETIC = "synthetic"  # the source of the embedded language
TRAIN_SENTENCES, DEV_SENTENCES = 1, 2  # seeds of the embedded language's two texts


def read_texts(config: ml_collections.ConfigDict) -> tuple[corpora.Text, corpora.Text]:
    """The training and the held-out text.

    Raises:
      ValueError, FileNotFoundError: one of them cannot be read, or is shorter than asked.
    """
    section, language = config.corpora, config.corpora.languages[0]
    if (section.train == SYNTHETIC) != (section.dev == SYNTHETIC):
        raise ValueError(
            f"corpora.train={section.train} and corpora.dev={section.dev}: give a file or a TFDS "
            "name for both, or leave both to the embedded language"
        )
    if section.train == SYNTHETIC:
        knobs = LanguageConfig(**section.synthetic)
        return tuple(
            corpora.from_sentences(generate(knobs, number, seed), language, f"{SYNTHETIC} {name}")
            for name, number, seed in [
                ("train", section.train_sentences, TRAIN_SENTENCES),
                ("dev", section.dev_sentences, DEV_SENTENCES),
            ]
        )  # type: ignore[return-value]
    found = []
    for name in ("train", "dev"):
        try:
            found.append(
                corpora.read(
                    section[name],
                    language,
                    split_sentences=section.split_sentences,
                    limit=section[f"{name}_sentences"] or None,
                )
            )
        except (ValueError, FileNotFoundError) as error:
            raise type(error)(f"corpora.{name}: {error}") from error
    return found[0], found[1]


@dataclasses.dataclass(frozen=True)
class Data:
    """Texts as ids, in English and Fake-English."""

    vocabulary: ShiftedVocabulary
    texts: Texts
    piece_range: PieceRange

    @classmethod
    def prepare(
        cls, config: ml_collections.ConfigDict, train: corpora.Text, dev: corpora.Text, cache: Path
    ) -> "Data":
        """Trains the vocabulary and encodes both texts; the second language shifts the ids."""
        section = config.vocabulary
        pieces = vocabulary.train(train.sentences, section.size, cache, section.model_type)
        languages = ShiftedVocabulary(pieces, tuple(config.corpora.languages))

        def stored(ids: Sequence[np.ndarray], own_unknown: bool = False) -> TokenStore:
            """Special tokens in the text stay the first language's; the setting shifts them."""
            first = 0 if own_unknown else SPECIALS
            shifted = [
                [np.where(x < first, x, x + languages.offset(name)) for x in ids]
                for name in languages.languages
            ]
            return TokenStore.from_languages(shifted, config.batches.max_length)

        texts = Texts(
            train=stored(pieces.encode(train.sentences)),
            dev=stored(pieces.encode(dev.sentences)),
            pieces=stored(
                [np.array([piece], np.int32) for piece in range(pieces.size)], own_unknown=True
            ),
        )
        piece_range = PieceRange(len(languages.languages), languages.shift)
        return cls(languages, texts, piece_range)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A row of the table and a seed: what becomes a replica."""

    row: str
    description: str
    seed: int
    modifications: setting.Modifications


def cells(config: ml_collections.ConfigDict) -> list[Cell]:
    """The replicas that the config asks for.

    `config.row` names rows of `config.rows` joined by `+`, or is itself a description.

    Raises:
      ValueError: an unknown row or modification.
    """
    languages = config.corpora.languages
    wanted = []
    for row in config.row.split("+"):
        if row not in config.rows and row not in setting.MODIFICATIONS and ";" not in row:
            raise ValueError(
                f"row={row!r} is unknown: choose from {', '.join(config.rows)}, or give "
                f"modifications joined by ';' ({', '.join(setting.MODIFICATIONS)})"
            )
        description = config.rows.get(row, row)
        modifications = setting.parse(description, languages)
        wanted += [Cell(row, description, seed, modifications) for seed in config.seeds]
    if len({(cell.row, cell.seed) for cell in wanted}) < len(wanted):
        raise ValueError(f"row={config.row}, seeds={tuple(config.seeds)}: something is named twice")
    return wanted


def group(wanted: Sequence[Cell], side_by_side: int) -> list[list[list[Any]]]:
    """Deals replicas out to programs: [[row, seed], …] for each.

    Replicas of one program have the same model size, and are either trained or not.
    """
    kinds: dict[tuple[bool, bool], list[Cell]] = {}
    for cell in wanted:
        kind = ("overparam" in cell.modifications, "untrained" in cell.modifications)
        kinds.setdefault(kind, []).append(cell)
    return [
        [[cell.row, cell.seed] for cell in alike[start : start + side_by_side]]
        for alike in kinds.values()
        for start in range(0, len(alike), side_by_side)
    ]


class Laboratory:
    """Runs the groups of replicas of one experiment, and stores what comes out."""

    def __init__(self, config: ml_collections.ConfigDict, workdir: Path):
        """Reads the texts, and opens the workdir or refuses it."""
        self._config, self._workdir = config, workdir
        wanted = cells(config)
        experiment.require_writable(workdir)
        train, dev = read_texts(config)
        self._data = Data.prepare(config, train, dev, workdir / "vocabulary")
        side_by_side = config.devices.side_by_side or devices.side_by_side()
        stored = experiment.store(
            workdir,
            config,
            corpora.manifest([train, dev]),
            rows={cell.row: cell.description for cell in wanted},
            vocabulary={
                "size": self._data.vocabulary.size,
                "languages": list(self._data.vocabulary.languages),
                "sha256": self._data.vocabulary.pieces.sha256,
            },
            groups=group(wanted, side_by_side),
        )
        by_name = {(cell.row, cell.seed): cell for cell in wanted}
        self._groups = [[by_name[row, seed] for row, seed in names] for names in stored["groups"]]
        self._metrics = MetricsFile(workdir / "metrics.jsonl")
        for name, one in [("train", train), ("dev", dev)]:
            store: TokenStore = getattr(self._data.texts, name)
            say(
                f"{name} text: {one.source}, {len(one.sentences):,} sentences, "
                f"{store.lengths.mean():.1f} places each, {store.truncated // 2} cut"
            )

    def run(self) -> str:
        """Trains and evaluates what is missing, writes the report, returns the table.

        Raises:
          Diverged: no replica has a result.
          Interrupted: the run was asked to end.
        """
        path = self._workdir / "results.json"
        problem = None
        for number, members in enumerate(self._groups):
            done = {(result.row, result.seed) for result in results.read_results(path)}
            if {(cell.row, cell.seed) for cell in members} <= done:
                continue
            names = ", ".join(
                f"row {cell.row} ({cell.description}) seed {cell.seed}" for cell in members
            )
            say(f"group {number + 1} of {len(self._groups)}: {names}")
            try:
                Group(self._config, self._workdir, self._data, members, number).run(self._metrics)
            except Diverged as error:
                problem = error
                say(str(error))
            page.write(self._workdir)
        if problem and not any(result.metrics for result in results.read_results(path)):
            raise problem
        return tables.terminal(self._workdir)


class Group:
    """The replicas of one program, from the first step to the stored result."""

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        workdir: Path,
        data: Data,
        members: Sequence[Cell],
        number: int,
    ):
        """Lays out the batches and compiles nothing yet."""
        self._config, self._workdir, self._data = config, workdir, data
        self._members, self._number = members, number
        first = members[0].modifications
        sizes: Mapping[str, Any] = config.models.to_dict()
        learning_rate = config.training.learning_rate
        if "overparam" in first:
            sizes = {
                **sizes,
                **{k: config.overparam[k] for k in ("hidden", "intermediate", "heads")},
            }
            learning_rate = config.overparam.learning_rate
        languages = data.vocabulary.languages
        self._model = BertConfig(vocabulary_size=data.vocabulary.size, **sizes)
        self._mesh = devices.make_mesh(len(members))
        self._layout, samplers = self._plan_batches()
        self._replicas = [
            Replica(
                row=cell.row,
                description=cell.description,
                seed=cell.seed,
                setting=setting.make(
                    cell.modifications,
                    languages,
                    seed=cell.seed,
                    learning_rate=learning_rate,
                    max_length=config.batches.max_length,
                    shift=data.vocabulary.shift,
                ),
                sampler=sampler,
            )
            for cell, sampler in zip(members, samplers, strict=True)
        ]
        epoch = samplers[0].steps_per_epoch
        total = 0 if "untrained" in first else config.training.epochs * epoch
        self._schedule = Schedule(
            total=total,
            evaluations=tuple(
                sorted({round(total * p / 100) for p in config.evaluators.curve} | {total})
            ),
            save_every=config.training.save_every or epoch,
            call=min(config.training.steps_per_call, epoch),
        )
        section = config.training
        self._program = Program(
            model=self._model,
            optimizer=OptimizerConfig(
                total_steps=max(1, total),
                warmup_steps=section.warmup_steps,
                weight_decay=section.weight_decay,
                epsilon=section.epsilon,
                clip=section.clip,
            ),
            pieces=data.piece_range,
            rows=self._layout.shard_rows,
        )
        self._last: tuple[int, list[dict[str, float]], np.ndarray] | None = None

    def _plan_batches(self) -> tuple[packing.Layout, list[Sampler]]:
        """One layout for all replicas, and the sampler of each."""
        section, store = self._config.batches, self._data.texts.train

        def sampler(cell: Cell, layout: packing.Layout) -> Sampler:
            is_parallel = "no-parallel" not in cell.modifications
            languages = len(self._data.vocabulary.languages)
            return Sampler(store.lengths, languages, layout, cell.seed, is_parallel)

        empty = packing.Layout((), section.sentences)
        layout = packing.choose_layout(
            store.lengths,
            [sampler(cell, empty).sentences for cell in self._members],
            section.sentences,
            section.row_lengths,
            self._mesh.shape[devices.DATA],
            section.attend_padding,
        )
        return layout, [sampler(cell, layout) for cell in self._members]

    def run(self, metrics: MetricsFile) -> None:
        """Trains, evaluates and stores the replicas' results.

        Raises:
          Diverged: none of them has a finite loss any more; that is stored as their result.
          Interrupted: the run was asked to end.
        """
        batches, rows = self._config.batches, self._layout.rows
        say(
            f"{len(self._members)} replicas on {self._mesh.shape} "
            f"{jax.devices()[0].platform} devices; {self._schedule.total} steps of "
            f"{batches.sentences} sentences ({self._schedule_note()}), rows {rows}, "
            f"{100 * self._replicas[0].sampler.plan(0).fill():.0f} % full"
        )
        evaluators = self._config.evaluators
        evaluation = Multilinguality(
            self._model,
            self._data.texts,
            self._data.piece_range,
            self._mesh,
            layers=evaluators.layers or paper_layers(self._model.layers),
            sentences=batches.sentences,
            row_lengths=batches.row_lengths,
            attend_padding=batches.attend_padding,
        )

        def evaluate(step: int, state: State, settings: setting.Setting) -> None:
            found, vectors = evaluation(state.params, settings)
            self._last = step, found, vectors
            epoch = self._replicas[0].sampler.steps_per_epoch
            for replica, values in zip(self._replicas, found, strict=True):
                metrics.write(
                    kind="evaluation",
                    step=step,
                    epoch=step / epoch,
                    row=replica.row,
                    seed=replica.seed,
                    metrics=values,
                )
                say(f"{replica.name}, step {step}: " + ", ".join(_summary(values)))

        folder = self._workdir / "checkpoints" / f"group{self._number}"
        checkpoints = Checkpoints(folder)
        training = Training(
            self._program,
            self._mesh,
            self._replicas,
            self._data.texts.train,
            self._schedule,
            checkpoints,
            metrics,
            evaluate,
        )
        try:
            state = training.run()
        except Diverged:
            self._store_results(training.state)
            raise
        finally:
            checkpoints.close()
        if self._last is None or self._last[0] != self._schedule.total:
            evaluate(self._schedule.total, state, training.settings)
        self._store_results(state)

    def _schedule_note(self) -> str:
        return f"{self._config.training.epochs} epochs" if self._schedule.total else "untrained"

    def _store_results(self, state: State) -> None:
        """Adds the replicas to `results.json`, after the arrays that the figures need."""
        stopped = np.asarray(state.stopped_at)
        for number, replica in enumerate(self._replicas):
            has_diverged = stopped[number] != RUNNING
            if not has_diverged:
                self._store_arrays(number, replica, state)
            results.add_result(
                self._workdir / "results.json",
                results.Replica(
                    experiment=self._config.name,
                    row=replica.row,
                    description=replica.description,
                    seed=replica.seed,
                    step=int(stopped[number]) if has_diverged else self._schedule.total,
                    metrics={} if has_diverged else self._last[1][number],
                    diverged_at=int(stopped[number]) if has_diverged else None,
                ),
            )

    def _store_arrays(self, number: int, replica: Replica, state: State) -> None:
        """The layer-0 vectors of all pieces and the position table, for Figures 4 and 8."""
        vectors_2xVxD = self._last[2][number][:, 0]
        languages = self._data.vocabulary.languages
        size = self._data.vocabulary.shift
        counts = np.bincount(self._data.texts.train.tokens, minlength=size * len(languages))
        embeddings = partition.select(state.params)["embeddings"]
        results.write_arrays(
            self._workdir / "arrays" / f"row{replica.row}_seed{replica.seed}.npz",
            results.Arrays(
                token_embeddings=np.concatenate(vectors_2xVxD),
                token_languages=np.repeat(np.arange(len(languages)), size),
                token_names=np.array(self._data.vocabulary.names()),
                token_counts=counts,
                position_embeddings=np.asarray(embeddings["positions"][number]),
                position_offset=int(replica.setting.position_offset),
                language_names=languages,
            ),
        )


def _summary(values: Mapping[str, float]) -> Iterator[str]:
    """The metrics of an evaluation that fit a line."""
    for name, value in values.items():
        if name == "mu" or name.startswith("perplexity") and not name.endswith("mean"):
            yield f"{name} {value:.3g}"
    for name, value in values.items():
        if name.rsplit("_", 1)[-1].isdigit():
            yield f"{name} {value:.2f}"
