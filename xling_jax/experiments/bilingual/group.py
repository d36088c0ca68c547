"""A row's seeds, from the first step to the stored result."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import ml_collections
import numpy as np

from xling_jax import devices
from xling_jax.batches.streams import SENTENCE
from xling_jax.batches.windows import StreamStore
from xling_jax.corpora.normalize import Normalization
from xling_jax.evaluators.perplexity import StreamPerplexity
from xling_jax.evaluators.translations import Translations
from xling_jax.experiments.bilingual.data import Data
from xling_jax.experiments.bilingual.export import export, folder_of
from xling_jax.experiments.bilingual.rows import Row
from xling_jax.experiments.bilingual.selection import Best, start_from
from xling_jax.files import plain_name
from xling_jax.models.bert import BertConfig
from xling_jax.records import Identity
from xling_jax.runs import store
from xling_jax.runs.run import Member, store_result
from xling_jax.training import sharding
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.interruption import Interruption
from xling_jax.training.loop import Diverged, Replica, Schedule, Training, stack
from xling_jax.training.metrics import MetricsFile, say
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import RUNNING, State
from xling_jax.training.stream_step import StreamProgram, StreamSetting, Vocabularies

BEST = "best"


def checkpoints_of(workdir: Path, members: Sequence[Member]) -> Path:
    """The folder of the checkpoints of a row's seeds that train side by side."""
    seeds = "-".join(str(seed) for _, seed in members)
    return workdir / "checkpoints" / f"row{plain_name(members[0][0])}_seeds{seeds}"


class Group:
    """Trains and evaluates the seeds of one row side by side, and stores what comes out."""

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        workdir: Path,
        row: Row,
        seeds: Sequence[int],
        data: Data,
        identity: Identity,
    ):
        """Lays out the batches; compiles nothing yet.

        Raises:
          ValueError: fields that do not go together, each named with the way out.
        """
        self._config, self._workdir, self._row, self._data = config, workdir, row, data
        self._mesh = devices.make_mesh(len(seeds), at_most=config.devices.replica_axis_at_most)
        training = config.training
        self._replicas = [
            Replica(
                row=row.name,
                description=row.description,
                seed=seed,
                setting=StreamSetting.of(seed, training.learning_rate),
                identity=identity,
            )
            for seed in seeds
        ]
        shards = self._mesh.shape[devices.DATA]
        self._samplers = data.samplers(config, seeds, shards)
        total = training.epochs * training.steps_per_epoch
        curve = {round(total * percent / 100) for percent in config.evaluators.curve}
        self._curve = curve | {total}  # where translations are looked for too
        epochs = range(training.steps_per_epoch, total, training.steps_per_epoch)
        self._schedule = Schedule(
            total=total,
            epoch=training.steps_per_epoch,
            evaluations=tuple(sorted(self._curve.union(epochs))),
            save_every=training.save_every or training.steps_per_epoch,
            call=min(training.steps_per_call, training.steps_per_epoch),
        )
        self._pipeline = data.pipeline(config, self._samplers, total, self._mesh)
        self._program = StreamProgram(
            BertConfig(vocabulary_size=data.vocabulary.size, **config.models),
            OptimizerConfig(
                total_steps=total,
                **{
                    name: training[name]
                    for name in ("warmup_steps", "weight_decay", "epsilon", "clip", "decay")
                },
            ),
            self._pipeline.layout,
            Vocabularies(len(row.languages), data.vocabulary.way == "separate", row.softmax),
            row.partition,
            shards=sharding.shards_of(config.devices, self._mesh),
        )

    @property
    def _written(self) -> Normalization:
        """How the text is written."""
        return Normalization(self._config.corpora.punctuation, self._config.corpora.tokenize)

    def _initial_state(self, seed: int) -> State:
        """The state of a seed before its first update."""
        state, folder = self._program.initial_state(seed), self._config.training.start_from
        if not folder:
            return state
        data, row = self._data, self._row
        params = start_from(
            folder, data.vocabulary.sha256, row.partition, len(row.languages), state.params
        )
        return self._program.state_of(params)

    def _stream_perplexity(self) -> StreamPerplexity:
        begins_with_sentence = self._config.batches.begin == SENTENCE
        text, languages = self._data.dev, self._row.languages
        return StreamPerplexity(self._program, self._mesh, text, languages, begins_with_sentence)

    def check(self) -> None:
        """Tries what training and evaluation begin with.

        Raises:
          ValueError, FileNotFoundError: a field that cannot be used, with the way out.
        """
        self._stream_perplexity()
        if self._config.training.start_from:
            self._initial_state(self._replicas[0].seed)

    def run(self, metrics: MetricsFile, interruption: Interruption) -> None:
        """Trains, evaluates and stores the replicas' results.

        Raises:
          Diverged: none of them has a finite loss any more; that is stored as their result.
          Interrupted: the run was asked to end.
        """
        self._describe()
        identity = self._replicas[0].identity
        members = [(replica.row, replica.seed) for replica in self._replicas]
        folder = checkpoints_of(self._workdir, members)
        checkpoints = Checkpoints(folder, identity=identity, replicas=members)
        best = Best(folder / BEST, members, self._data.vocabulary.sha256, identity)
        evaluate = self._evaluator(best)
        text = self._data.train
        if text is None or self._pipeline.layout.is_fed:
            nothing = [np.zeros(1, np.int32)] * len(self._row.languages)
            text = StreamStore.of(nothing, self._data.tables)
        training = Training(
            self._program,
            self._mesh,
            self._replicas,
            text,
            self._pipeline,
            self._schedule,
            checkpoints,
            metrics,
            evaluate,
            interruption,
            initial_state=self._initial_state,
            profile=store.profile_folder(self._config, self._workdir),
            is_shown=lambda name: name.startswith("perplexity") or name in ("retrieval", "words"),
        )
        try:
            state = training.run()
            found = training.final_metrics()
        except Diverged:
            self._store(training.state, best, [])
            raise
        finally:
            checkpoints.close()
            best.close()
        # Before the results, which say that nothing is missing.
        parameters = best.parameters()
        for replica, params in zip(self._replicas, parameters, strict=True):
            if params:
                row, vocabulary = self._row, self._data.vocabulary
                folder = folder_of(self._workdir, row.name, replica.seed)
                export(folder, row, self._program.model, params, vocabulary, self._written)
        scores = self._scores(state, parameters, best.steps(), training.settings)
        self._store(state, best, scores or found)

    def _scores(
        self, state: State, parameters: Sequence, steps: Sequence[int | None], settings
    ) -> list[dict[str, float]]:
        """The metrics of what is selected (W&C §3.1); none if that is what training ended with.

        Args:
          state: the final one. parameters, steps: each replica's selected ones, None without any.
          settings: of the replicas, on the devices.
        """
        if all(step in (None, self._schedule.total) for step in steps):
            return []
        final = devices.fetch(state.params) if None in parameters else None
        chosen = [
            jax.tree.map(lambda x, n=number: x[n], final) if params is None else params
            for number, params in enumerate(parameters)
        ]
        specs = sharding.state_specs(self._program).params
        selected = devices.place(stack(chosen), self._mesh, specs)
        return self._measure(selected, settings, True)

    def _describe(self) -> None:
        layout, found = self._samplers[0].layout, self._data.found
        shares = ", ".join(
            f"{name} {size:,} tokens ({100 * draw:.0f} % of the parts)"
            for name, size, draw in zip(
                self._row.languages, self._data.sizes, self._samplers[0].draws, strict=True
            )
        )
        say(
            f"{shares}; {self._data.vocabulary.size:,} pieces ({self._row.sharing}), of which "
            f"{found['anchors']:.0f} are anchors, {100 * found['anchor_tokens']:.0f} % of tokens"
        )
        total = self._schedule.total
        say(
            f"{len(self._replicas)} replicas on {dict(self._mesh.shape)} "
            f"{jax.devices()[0].platform} devices; {total} steps of {layout.parts} x "
            f"{layout.sequences} sequences of {layout.length} ("
            f"{devices.shares(layout.parts * layout.sequences, self._mesh)}, {layout.microbatch} "
            f"at once); {self._samplers[0].passes(total)[0]:.1f} passes over "
            f"{self._row.languages[0]}"
        )

    def _prepare_evaluators(self) -> None:
        """Puts the text to evaluate on onto the devices."""
        section, data = self._config.evaluators, self._data
        self._perplexity = self._stream_perplexity()
        self._translations: Translations | None = None
        if data.items:
            self._translations = Translations(
                self._program.model,
                self._mesh,
                data.items,
                names=section.names,
                layers=self._layers(),
                max_length=self._config.batches.length,
                sentences=section.sentences,
                row_lengths=tuple(section.row_lengths),
            )

    def _measure(self, params, settings, has_translations: bool) -> list[dict[str, float]]:
        """The metrics of each replica, from parameters and settings with a replica axis."""
        found = self._perplexity(params, settings)
        if self._translations is None or not has_translations:
            return found
        layers, languages, section = self._layers(), self._row.languages, self._config.evaluators
        return [
            own | others | _means(section.names, others, languages, layers)
            for own, others in zip(found, self._translations(params), strict=True)
        ]

    def _evaluator(self, best: Best):
        """What the loop calls with (step, state, settings)."""
        self._prepare_evaluators()
        first = f"perplexity_dev_{self._row.languages[0]}"

        def evaluate(step: int, state: State, settings: StreamSetting) -> list[dict[str, float]]:
            found = self._measure(state.params, settings, step in self._curve)
            if step:
                best.offer(step, state, [values[first] for values in found])
            return found

        return evaluate

    def _layers(self) -> tuple[int, ...]:
        """The layers that are evaluated: all by default."""
        every = range(self._config.models.layers + 1)
        return tuple(self._config.evaluators.layers) or tuple(every)

    def _store(self, state: State, best: Best, scores: list[dict[str, float]]) -> None:
        """Adds the replicas to `results.json`, each with the scores of what is selected."""
        stopped_at = devices.fetch(state.stopped_at).tolist()
        for number, (replica, at, selected) in enumerate(
            zip(self._replicas, stopped_at, best.found(), strict=True)
        ):
            values: dict[str, float] = {}
            if at == RUNNING:
                values = {**scores[number], **self._data.found, **selected}
            total = self._schedule.total
            scored = round(selected.get("best_step", total))
            store_result(self._workdir, replica, total, at, values, scored)


def _means(
    names: Sequence[str],
    values: Mapping[str, float],
    languages: Sequence[str],
    layers: Sequence[int],
) -> dict[str, float]:
    """The means over languages and layers of what is measured at each, such as `retrieval`."""
    found = {}
    for name in names:
        parts = (f"{name}_{language}_{layer}" for language in languages for layer in layers)
        if every := [values[part] for part in parts if part in values]:
            found[name] = float(np.mean(every))
    return found
