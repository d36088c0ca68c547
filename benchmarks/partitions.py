"""What does it cost to give each language parameters of its own?

python benchmarks/partitions.py

Measures step times of models of one shape that take turns in one process and differ in what is
partitioned (`PARTITIONS`): from nothing to everything. Two languages, random text.
"""

import argparse
import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np
from turns import suit_libraries

from xling_jax import devices
from xling_jax.batches.streams import StreamLayout, StreamSampler
from xling_jax.batches.windows import PieceTables, StreamStore
from xling_jax.experiments.bilingual.rows import SEP_EMB, SHARED_SPECIAL
from xling_jax.models.bert import BertConfig
from xling_jax.models.partition import EVERYTHING
from xling_jax.training.input_pipeline import InputPipeline
from xling_jax.training.loop import stack
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import train_steps
from xling_jax.training.stream_step import StreamProgram, StreamSetting, Vocabularies
from xling_jax.vocabulary.sharing import LanguageVocabulary

PARTITIONS = {
    "nothing": (),
    "layers 1 to 3": ("layers/0..2",),
    "embeddings": SEP_EMB,
    "embeddings but special tokens": SHARED_SPECIAL,
    "embeddings, layers 1 to 3": (*SEP_EMB, "layers/0..2"),
    "everything": EVERYTHING,
}
TOKENS = 100_000  # of each language


class Contestant:
    """A model that makes some steps when asked."""

    def __init__(self, arguments: argparse.Namespace, paths: tuple[str, ...]):
        """Compiles the step."""
        random = np.random.default_rng(0)
        ids = np.arange(arguments.pieces, dtype=np.int32)
        vocabulary = LanguageVocabulary("separate", ("a", "b"), (), (ids, ids))  # type: ignore
        tokens = random.integers(5, arguments.pieces, 2 * TOKENS)
        sizes = (TOKENS, TOKENS)
        tables = PieceTables.of(vocabulary, "inside", vocabulary.ids, vocabulary.ids)
        store = StreamStore.of(np.split(tokens, 2), tables)
        mesh = devices.make_mesh(1)
        layout = StreamLayout.choose(
            arguments.parts, arguments.sequences, arguments.length, jax.device_count(), 1
        )
        pipeline = InputPipeline([StreamSampler(sizes, (0.5, 0.5), layout, 0, 10**6)])
        model = BertConfig(
            vocabulary_size=arguments.pieces,
            layers=arguments.layers,
            hidden=arguments.hidden,
            intermediate=4 * arguments.hidden,
            heads=max(1, arguments.hidden // 64),
            positions=arguments.length,
            token_types=1,
            head="linear",
        )
        program = StreamProgram(
            model, OptimizerConfig(total_steps=10**6), layout, Vocabularies(2, True, "language"),
            paths,
        )  # fmt: skip
        self._steps, self._count = arguments.steps, 0
        self._mesh, self._pipeline, self._program = mesh, pipeline, program
        self._state = devices.place(stack([program.initial_state(0)]), mesh, devices.A_REPLICA)
        setting = stack([StreamSetting.of(0, 1e-4)])
        self._setting = devices.place(setting, mesh, devices.A_REPLICA)
        self._store = devices.place(store, mesh, devices.SHARED)
        self._function = train_steps(program, mesh)
        self()

    def __call__(self) -> float:
        """Makes the steps of a turn; returns the seconds per step."""
        began = time.perf_counter()
        fields = self._pipeline.steps(self._count, self._count + self._steps)
        arguments = [
            devices.place(field.astype(np.int32), self._mesh, spec)
            for field, spec in zip(fields, self._program.plan_specs, strict=True)
        ]
        self._state, metrics = self._function(
            self._state, self._setting, self._store, jnp.int32(self._steps), *arguments
        )
        jax.block_until_ready(dataclasses.astuple(metrics))
        self._count += self._steps
        return (time.perf_counter() - began) / self._steps


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--pieces", type=int, default=2048, help="of each language")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--sequences", type=int, default=8, help="of each part")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    suit_libraries()
    devices.set_cpu_devices(0)
    contestants = {name: Contestant(arguments, paths) for name, paths in PARTITIONS.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(arguments.repeats):
        order = list(contestants)
        for name in order[number % len(order) :] + order[: number % len(order)]:
            times[name].append(contestants[name]())
    print(f"{arguments}\n\n| each language has | step, ms | against nothing |\n|---|---|---|")
    for name, found in times.items():
        ratios = np.array(found) / np.array(times["nothing"])
        print(
            f"| {name} | {1e3 * np.median(found):.1f} | {np.median(ratios):.3f} "
            f"({ratios.min():.3f} to {ratios.max():.3f}) |"
        )


if __name__ == "__main__":
    main()
