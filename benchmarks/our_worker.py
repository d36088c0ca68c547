"""This project's contestant on packed sentences: D&S's original setting."""

import functools
from collections.abc import Sequence

import numpy as np
from training_turns import Compiler, LastLoss, NoCheckpoints, Turns, schedule
from turns import TOTAL, Referee

from xling_jax import devices
from xling_jax.batches import packing, setting
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.packing import Sampler
from xling_jax.batches.store import SPECIAL_PLACES, TokenStore
from xling_jax.models.bert import BertConfig
from xling_jax.training.input_pipeline import SentencePipeline
from xling_jax.training.loop import Replica, Training
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import Program
from xling_jax.vocabulary import neighbours

LANGUAGES = ("en", "fake")
ROW_LENGTHS, MAX_LENGTH = (48,), 128
CALL = 30  # steps


class Counter:
    """Counts what the replicas read."""

    def __init__(self, samplers: Sequence[Sampler]):
        """Takes the replicas' samplers, which tell again what is in a batch."""
        self._samplers = samplers
        self._sentences = functools.lru_cache(4 * len(samplers))(
            lambda number, epoch: samplers[number].assign(epoch)[0]
        )

    def __call__(self, first: int, stop: int) -> dict[str, int]:
        """Of the steps from `first` to `stop` - 1, for all replicas: the tokens, those that are not
        special, and the sum of the sentences' squared lengths."""
        lengths = []
        for number, sampler in enumerate(self._samplers):
            for step in range(first, stop):
                epoch, within = divmod(step, sampler.steps_per_epoch)
                sentence = self._sentences(number, epoch)[within]
                lengths.append(sampler.lengths[sentence[sentence >= 0]].astype(int))
        every = np.concatenate(lengths)
        return {
            "tokens": int(every.sum()),
            "pieces": int((every - SPECIAL_PLACES).sum()),
            "squares": int((every**2).sum()),
        }


def main() -> None:
    """Trains `replicas` seeds side by side."""
    referee = Referee()
    options = referee.options
    devices.set_cpu_devices(options["cpu_devices"])
    text = np.load(options["text"])
    store = TokenStore(text["tokens"], text["offsets"], text["languages"])
    shift = int(text["shift"])
    seeds = range(options["replicas"])
    mesh = devices.make_mesh(len(seeds))
    layout = packing.choose_layout(
        store.lengths,
        [np.arange(len(store))],
        options["batch"],
        ROW_LENGTHS,
        mesh.shape[devices.DATA],
    )
    samplers = [Sampler(store.lengths, len(LANGUAGES), layout, seed) for seed in seeds]
    original = functools.partial(
        setting.make,
        setting.parse(setting.ORIGINAL, LANGUAGES),
        LANGUAGES,
        learning_rate=options["learning_rate"],
        max_length=MAX_LENGTH,
        shift=shift,
        neighbours=neighbours.nothing(shift * len(LANGUAGES)),
    )
    replicas = [Replica("0", setting.ORIGINAL, seed, original(seed=seed)) for seed in seeds]
    program = Program(
        BertConfig(**options["model"]),
        OptimizerConfig(total_steps=TOTAL),
        PieceRange(len(LANGUAGES), shift),
        layout.shard_rows,
    )
    metrics, compiler = LastLoss(), Compiler(store)
    Training(
        program,
        mesh,
        replicas,
        store,
        SentencePipeline(samplers, TOTAL),
        schedule(samplers[0].steps_per_epoch, CALL),
        NoCheckpoints(),
        metrics,
        Turns(referee, Counter(samplers), metrics, compiler, options.get("trace")),
        compiler=compiler,
    ).run()


if __name__ == "__main__":
    main()
