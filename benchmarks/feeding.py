"""How fast are batches made ready?

python benchmarks/feeding.py

Measures the batches of Wu, Conneau et al. 2020 (8 parts of 96 windows of 256), which
`StreamingPipeline` gives to the step from files of random tokens that the system may cache in
memory; and the plans of Dufter & Schütze 2020 (256 packed sentences of 17,178 in each of two
languages).
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from sizes import LONGEST, SIZES, sentence_lengths
from turns import spread

from xling_jax.batches.packing import Sampler, choose_layout, lay_out
from xling_jax.batches.streams import StreamLayout, StreamSampler
from xling_jax.batches.token_files import Shard, TokenFiles, write_tokens
from xling_jax.training.input_pipeline import StreamingPipeline

SIZE = SIZES["wu-conneau"]
SENTENCES = 17_178  # of each language (D&S §2.1)


def token_files(folder: Path, tokens: int, number: int, seed: int) -> TokenFiles:
    """Writes random tokens of a language as so many token files."""
    random, dtype, shards = np.random.default_rng(seed), np.dtype("<u4"), []
    for place in range(number):
        path = folder / f"{seed}-{place}.npy"
        count = tokens // number
        write_tokens(path, [random.integers(5, SIZE.model.vocabulary_size, count)], dtype)
        shard = Shard(
            file=path.name,
            bytes=path.stat().st_size,
            sha256="",
            tokens=count,
            sentences=1,
            words=1,
            unknown=0,
            text_sha256="",
        )
        shards.append(dataclasses.asdict(shard))
    return TokenFiles(folder, {"key": "", "manifest": {}, "shards": shards})


def packed(repeats: int) -> None:
    """Prints how long the host takes to plan an update of one replica."""
    lengths = sentence_lengths(2 * SENTENCES, np.random.default_rng(0)).astype(np.int32)
    batch = SIZES["bert-small"].batch
    layout = choose_layout(lengths, [np.arange(len(lengths))], batch, (48, LONGEST))
    sampler, spent = Sampler(lengths, 2, layout, 0), [list[float](), list[float]()]
    for epoch in range(repeats + 1):
        began = time.perf_counter()
        assigned = sampler.assign(epoch)
        between = time.perf_counter()
        lay_out(*assigned, lengths, layout)
        both = between - began, time.perf_counter() - between
        for own, seconds in zip(spent, both, strict=True):
            own.append(seconds * 1e3 / sampler.steps_per_epoch)
    rows, owners = (spread(own[1:], ".2f") for own in spent)
    print(f"an update of {batch} sentences: rows in {rows} ms, the owner of each place in {owners}")


def main() -> None:
    """Measures and prints the lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=100_000_000, help="of each of two languages")
    parser.add_argument(
        "--files", type=int, default=600, help="of each language; prepared text has one for 16 MB"
    )
    parser.add_argument("--steps", type=int, default=200, help="of a turn")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    packed(arguments.repeats)
    layout = StreamLayout.choose(SIZE.parts, SIZE.batch // SIZE.parts, SIZE.length, 1, 1)
    total = arguments.steps * (arguments.repeats + 1)
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        files = [
            token_files(Path(folder), arguments.tokens, arguments.files, seed) for seed in (0, 1)
        ]
        sampler = StreamSampler(tuple(x.total for x in files), (0.5, 0.5), layout, 0, total)

        def read(language: int, start: int, step: int) -> np.ndarray:
            return files[language].read(start, layout.window)

        pipeline = StreamingPipeline([sampler], read, total, {0})
        for first in range(0, total, arguments.steps):
            began = time.perf_counter()
            pipeline.steps(first, first + arguments.steps)
            seconds = time.perf_counter() - began
            rates.append(arguments.steps * SIZE.batch * SIZE.length / seconds / 1e6)
        pipeline.close()
    measured = rates[1:]  # the first turn opens the files
    windows = statistics.median(measured) * 1e6 / SIZE.length
    print(f"{spread(measured, '.2f')} million tokens a second, {windows:,.0f} windows a second")


if __name__ == "__main__":
    main()
