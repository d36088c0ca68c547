"""This project's contestant on streams: W&C's step on windows of random text."""

import jax
import numpy as np
from training_turns import Compiler, LastLoss, NoCheckpoints, Turns, schedule
from turns import TOTAL, Referee

from xling_jax import devices
from xling_jax.batches.streams import StreamLayout, StreamSampler
from xling_jax.batches.windows import PieceTables, StreamStore
from xling_jax.models.bert import BertConfig
from xling_jax.training.input_pipeline import InputPipeline
from xling_jax.training.loop import Replica, Training
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.sharding import AnyProgram
from xling_jax.training.stream_step import StreamProgram, StreamSetting, Vocabularies
from xling_jax.vocabulary.sharing import LanguageVocabulary

LANGUAGES = ("first", "second")
EPOCH, CALL = 2000, 10  # steps


def store_of(tokens: np.ndarray, vocabulary_size: int) -> StreamStore:
    """The two halves of a text as two languages that share a vocabulary."""
    ids = np.arange(vocabulary_size, dtype=np.int32)
    vocabulary = LanguageVocabulary("joint", LANGUAGES, (), (ids,) * len(LANGUAGES))
    half = len(tokens) // 2
    tables = PieceTables.of(vocabulary, "anywhere", vocabulary.ids, vocabulary.ids)
    return StreamStore.of([tokens[:half], tokens[half:]], tables)


def program_of(model: BertConfig, layout: StreamLayout) -> StreamProgram:
    """The step of the default row of W&C Table 1."""
    optimizer = OptimizerConfig(TOTAL, warmup_steps=3000, weight_decay=0.0, decay="inverse_sqrt")
    return StreamProgram(model, optimizer, layout, Vocabularies(len(LANGUAGES), False, "shared"))


def main() -> None:
    """Trains `replicas` seeds side by side."""
    referee = Referee()
    options = referee.options
    devices.set_cpu_devices(options["cpu_devices"])
    text = np.load(options["text"])
    model, length, parts = BertConfig(**options["model"]), options["length"], options["parts"]
    store = store_of(text["tokens"], model.vocabulary_size)
    seeds = range(options["replicas"])
    mesh = devices.make_mesh(len(seeds))
    layout = StreamLayout.choose(
        parts, options["batch"] // parts, length, mesh.shape[devices.DATA], 1
    )
    samplers = [
        StreamSampler(tuple(store.sizes), (0.5, 0.5), layout, seed, EPOCH) for seed in seeds
    ]
    replicas = [
        Replica("default", "default", seed, StreamSetting.of(seed, options["learning_rate"]))
        for seed in seeds
    ]
    program: AnyProgram = program_of(model, layout)
    metrics, compiler = LastLoss(), Compiler(store)

    def count(first: int, stop: int) -> dict[str, int]:
        windows = (stop - first) * len(seeds) * layout.parts * layout.sequences
        return {
            "tokens": windows * length,
            "pieces": windows * layout.window,
            "squares": windows * length**2,
        }

    Training(
        program,
        mesh,
        replicas,
        store,
        InputPipeline(samplers),
        schedule(EPOCH, 1 if jax.default_backend() == "cpu" else CALL),
        NoCheckpoints(),
        metrics,
        Turns(referee, count, metrics, compiler, options.get("trace")),
        compiler=compiler,
    ).run()


if __name__ == "__main__":
    main()
