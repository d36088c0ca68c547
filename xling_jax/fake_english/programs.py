"""What the groups of one experiment share: kinds of models, compiled steps, evaluators."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import ml_collections
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import packing, setting
from xling_jax.batches.sampling import Sampler
from xling_jax.evaluators.multilinguality import Multilinguality, paper_layers, require_layers
from xling_jax.fake_english.data import Data
from xling_jax.fake_english.neighbours import Neighbours
from xling_jax.fake_english.replicas import Cell
from xling_jax.models.bert import BertConfig
from xling_jax.training.compilation import StepCompiler
from xling_jax.training.metrics import say
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import Program


@dataclasses.dataclass(frozen=True)
class Kind:
    """What replicas have in common that share a program.

    learning_rate: the peak, where a row does not name its own. epochs: 0 for untrained models.
    """

    model: BertConfig
    learning_rate: float
    epochs: int


class Programs:
    """Makes everything that replicas of the same kind share, each thing once."""

    def __init__(self, config: ml_collections.ConfigDict, data: Data, neighbours: Neighbours):
        """Takes the texts; compiles nothing yet."""
        self._config, self._data, self.neighbours = config, data, neighbours
        self.compiler = StepCompiler(data.texts.train)
        self._layouts: dict[int, packing.Layout] = {}
        self._evaluators: dict[tuple[BertConfig, Mesh], Multilinguality] = {}

    def kind(self, cell: Cell) -> Kind:
        """The kind of a cell.

        Raises:
          ValueError: the model has no layer that is to be evaluated, or its tables no rows for
            the longest sentence or a language.
        """
        sizes: dict[str, Any] = self._config.models.to_dict()
        training = self._config.training
        learning_rate, epochs = training.learning_rate, training.epochs
        if "overparam" in cell.modifications:
            large = self._config.overparam.to_dict()
            learning_rate = large.pop("learning_rate")
            epochs = large.pop("epochs") or epochs
            sizes |= large
        epochs = cell.modifications.epochs or epochs
        if "untrained" in cell.modifications:
            epochs = 0
        model = BertConfig(vocabulary_size=self._data.vocabulary.size, **sizes)
        require_layers(self.layers(model), model.layers)
        self._require_positions(model, cell)
        return Kind(model, learning_rate, epochs)

    def layers(self, model: BertConfig) -> tuple[int, ...]:
        """The layers that are evaluated."""
        return tuple(self._config.evaluators.layers) or paper_layers(model.layers)

    def _require_positions(self, model: BertConfig, cell: Cell) -> None:
        """Refuses sentences or languages that the model's tables have no rows for."""
        length = self._config.batches.max_length
        kinds = len(self._data.vocabulary.languages) if "lang-pos" in cell.modifications else 1
        if model.positions < kinds * length:
            raise ValueError(
                f"models.positions={model.positions}, but row {cell.row} ({cell.description}) "
                f"needs {kinds} x batches.max_length={length}: raise the one or lower the other"
            )
        if model.token_types < kinds:
            raise ValueError(
                f"models.token_types={model.token_types}, but row {cell.row} ({cell.description}) "
                f"needs one for each of {kinds} languages: raise it"
            )

    def layout(self, mesh: Mesh) -> packing.Layout:
        """One layout for rows that are trained in parallel or not.

        It does not depend on the rows that are trained, so neither do a row's numbers.
        """
        section, store = self._config.batches, self._data.texts.train
        shards = mesh.shape[devices.DATA]
        if shards not in self._layouts:
            empty = packing.Layout((), section.sentences)
            self._layouts[shards] = packing.choose_layout(
                store.lengths,
                [self._sampler(is_parallel, empty).sentences for is_parallel in (True, False)],
                section.sentences,
                section.row_lengths,
                shards,
                section.attend_padding,
            )
        return self._layouts[shards]

    def _sampler(self, is_parallel: bool, layout: packing.Layout, seed: int = 0) -> Sampler:
        languages = len(self._data.vocabulary.languages)
        return Sampler(self._data.texts.train.lengths, languages, layout, seed, is_parallel)

    def sampler(self, cell: Cell, mesh: Mesh) -> Sampler:
        """The order of a cell's training."""
        is_parallel = "no-parallel" not in cell.modifications
        return self._sampler(is_parallel, self.layout(mesh), cell.seed)

    def setting(self, cell: Cell) -> setting.Setting:
        """The values of a cell."""
        vocabulary = self._data.vocabulary
        return setting.make(
            cell.modifications,
            vocabulary.languages,
            seed=cell.seed,
            learning_rate=self.kind(cell).learning_rate,
            max_length=self._config.batches.max_length,
            shift=vocabulary.shift,
            neighbours=self.neighbours.of(cell.modifications),
        )

    def steps(self, kind: Kind, mesh: Mesh) -> tuple[int, int]:
        """Updates of the whole training, and of an epoch."""
        epoch = self._sampler(True, self.layout(mesh)).steps_per_epoch
        return kind.epochs * epoch, epoch

    def call(self, epoch: int) -> int:
        """Updates in one compiled call: equal parts of an epoch."""
        return int(np.ceil(epoch / np.ceil(epoch / self._config.training.steps_per_call)))

    def program(self, kind: Kind, mesh: Mesh) -> Program:
        """What the compiled step of a kind fixes."""
        section = self._config.training
        return Program(
            model=kind.model,
            optimizer=OptimizerConfig(
                total_steps=max(1, self.steps(kind, mesh)[0]),
                warmup_steps=section.warmup_steps,
                weight_decay=section.weight_decay,
                epsilon=section.epsilon,
                clip=section.clip,
            ),
            pieces=self._data.piece_range,
            rows=self.layout(mesh).shard_rows,
        )

    def evaluator(self, model: BertConfig, mesh: Mesh) -> Multilinguality:
        """The evaluator of a model size on a mesh."""
        if (model, mesh) not in self._evaluators:
            batches = self._config.batches
            self._evaluators[model, mesh] = Multilinguality(
                model,
                self._data.texts,
                self._data.piece_range,
                mesh,
                layers=self.layers(model),
                sentences=batches.sentences,
                row_lengths=batches.row_lengths,
                attend_padding=batches.attend_padding,
            )
        return self._evaluators[model, mesh]

    def side_by_side(self, cells: Sequence[Cell]) -> int:
        """How many of the cells, all of one kind, to train at once: what fits in memory.

        `devices.side_by_side` in the config overrides it.
        """
        if wanted := self._config.devices.side_by_side:
            return min(len(cells), wanted)
        number = devices.side_by_side(len(cells))
        kind, limit = self.kind(cells[0]), devices.memory_limit()
        if not kind.epochs or limit is None:
            return number
        while True:
            mesh = devices.make_mesh(number)
            needed = self.compiler(
                self.program(kind, mesh),
                mesh,
                self.layout(mesh),
                self.call(self.steps(kind, mesh)[1]),
                number,
                self.setting(cells[0]),
            ).bytes_needed
            if needed <= limit:
                return number
            gib = f"{needed / 2**30:.1f} GiB a device of {limit / 2**30:.1f}"
            if number == 1:
                say(f"memory may not suffice: one replica needs {gib}. {LESS_MEMORY}")
                return 1
            say(f"{number} replicas side by side need {gib}: fewer at a time")
            number = devices.side_by_side(len(cells), max(1, int(number * limit / needed)))


LESS_MEMORY = (
    "Lower devices.side_by_side or batches.sentences, or choose models.dtype=bfloat16 or a "
    "smaller model"
)
