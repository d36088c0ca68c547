"""What do the evaluators of a bilingual run cost, as shares of its training time?

python benchmarks/evaluators.py

For the default row of configs/bilingual.py at scale=laptop on the embedded languages, prints the
seconds of a training step, and of each evaluator and each comparison of sentences the seconds of
the first call, which compiles, and of later ones, and the share that all calls of a run take.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from turns import suit_libraries

from xling_jax import devices
from xling_jax.evaluators import registry
from xling_jax.evaluators.comparison import COMPARISONS, Parallel
from xling_jax.evaluators.translations import Translations
from xling_jax.experiments.bilingual import experiment
from xling_jax.experiments.bilingual.data import Preparer
from xling_jax.experiments.bilingual.group import Group
from xling_jax.runs import config_files
from xling_jax.runs.run import Run
from xling_jax.training.loop import stack
from xling_jax.training.step import train_steps

CONFIG = Path(__file__).parent.parent / "configs" / "bilingual.py"
STEPS = 50  # of a turn


def seconds(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The time of a first call, which compiles, and the median of later ones."""
    times = []
    for _ in range(1 + repeats):
        began = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - began)
    return times[0], statistics.median(times[1:])


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", default="en-near")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    suit_libraries()
    devices.set_cpu_devices(0)
    config = config_files.load_config(str(CONFIG), f"row=default,pair={arguments.pair}")
    (row,) = experiment.rows(config)
    with tempfile.TemporaryDirectory() as folder:
        data = Preparer(config, Path(folder))(row)
        group = Group(config, Run(Path(folder), str), row, [0], data)
        measure(group, data, config, arguments.repeats)


def measure(group: Group, data, config, repeats: int) -> None:
    """Prints the seconds of each evaluator and their shares of a run's training."""
    program, mesh, schedule = group._program, group._mesh, group._schedule
    replica = devices.A_REPLICA
    state = devices.place(stack([program.initial_state(0)]), mesh, replica)
    settings = devices.place(stack([r.setting for r in group._replicas]), mesh, replica)
    store = devices.place(data.train, mesh, devices.SHARED)
    kept = [state]

    def a_step() -> float:
        """Seconds of an update."""
        pipeline = group._pipeline
        fields = [
            devices.place(field.astype(np.int32), mesh, spec)
            for field, spec in zip(pipeline.steps(0, STEPS), program.plan_specs, strict=True)
        ]
        function = train_steps(program, mesh)

        def train():
            kept[0], metrics = function(kept[0], settings, store, jnp.int32(STEPS), *fields)
            return metrics.loss

        return seconds(train, repeats)[1] / STEPS

    step = a_step()
    params, layers = kept[0].params, config.models.layers + 1
    perplexity = group._stream_perplexity()

    def translations(of: str) -> Translations:
        is_words = of == registry.DICTIONARY
        return Translations(
            program.model,
            mesh,
            [item for item in data.items if bool(item.gold) == is_words],
            names=config.evaluators.names,
            layers=range(layers),
            max_length=config.batches.length,
            sentences=config.evaluators.sentences,
            row_lengths=tuple(config.evaluators.row_lengths),
        )

    random = np.random.default_rng(0)
    shape = (layers, config.corpora.test_sentences, config.models.hidden)
    x, y = (jnp.asarray(random.standard_normal(shape, np.float32)) for _ in range(2))

    def by_layer(name: str) -> Callable:
        def at_layer(sides):
            return COMPARISONS[name](Parallel(*sides))

        compiled = jax.jit(lambda *sides: jax.lax.map(at_layer, sides))
        return lambda: compiled(x, y)

    sentences, words = translations(registry.SENTENCES), translations(registry.DICTIONARY)
    often, seldom = len(schedule.evaluations), len(group._curve)
    entries = [
        ("held-out perplexity", lambda: perplexity(params), often),
        ("translations of sentences", lambda: sentences(params), seldom),
        *(
            (f"of them: {registry.EVALUATORS[name].title}", by_layer(name), seldom)
            for name in registry.names(registry.SENTENCES)
            if name in config.evaluators.names
        ),
        ("translations of words", lambda: words(params), seldom),
    ]
    training = step * schedule.total
    print(f"{schedule.total} steps of {1e3 * step:.1f} ms: {training:.0f} s of training")
    print("\n| evaluator | first call, s | later, s | calls a run | share of training, % |")
    print("|---|---|---|---|---|")
    for name, call, number in entries:
        first, later = seconds(call, repeats)
        share = 100 * (first + later * (number - 1)) / training
        print(f"| {name} | {first:.2f} | {later:.3f} | {number} | {share:.2f} |")


if __name__ == "__main__":
    main()
