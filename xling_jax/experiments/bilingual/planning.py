"""Which windows of a row's text stand in each step."""

from collections.abc import Sequence

import ml_collections
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches.code_switch import switch_window
from xling_jax.batches.streams import (
    SENTENCE,
    StreamLayout,
    StreamSampler,
    beginnings,
    probabilities,
)
from xling_jax.experiments.bilingual.data import Data
from xling_jax.training.input_pipeline import ResidentPipeline, StreamingPipeline


def samplers(
    config: ml_collections.ConfigDict,
    data: Data,
    seeds: Sequence[int],
    shards: int,
) -> list[StreamSampler]:
    """What says which windows stand in each step, for each seed.

    Args:
      config: the experiment.
      data: the text.
      seeds: of the order.
      shards: how many devices share a step.

    Raises:
      ValueError: the devices cannot share the sequences, or a language has too little text.
    """
    batches = config.batches
    shape = batches.parts, batches.sequences, batches.length
    layout = StreamLayout.choose(*shape, shards, batches.accumulate)
    draws = tuple(probabilities([x.sentences for x in data.files], batches.alpha).tolist())
    epoch = config.training.steps_per_epoch
    begin: list[np.ndarray] | None = None
    if batches.begin == SENTENCE:
        begin = [beginnings(x.sentence_starts, x.total, layout.window) for x in data.files]
    return [StreamSampler(data.sizes, draws, layout, seed, epoch, begin) for seed in seeds]


def pipeline(
    config: ml_collections.ConfigDict,
    data: Data,
    of: Sequence[StreamSampler],
    until: int,
    mesh: Mesh,
) -> ResidentPipeline | StreamingPipeline:
    """What says what stands in each step: places on the device, or tokens from the host.

    Args:
      config: the experiment.
      data: the text.
      of: the replicas' samplers.
      until: the first update that is not planned.
      mesh: the devices.
    """
    window, section = of[0].layout.window, config.code_switch
    if data.train is not None and not data.switch:
        return ResidentPipeline(of)

    def read(language: int, start: int, step: int, slot: int) -> np.ndarray:
        files = data.files[language]
        if language not in data.switch:
            return files.read(start, window)
        return switch_window(
            files.read,
            start,
            window,
            data.switch[language],
            (section.seed, language, step),
            probability=section.probability,
            most=section.most,
        ).tokens

    return StreamingPipeline(of, read, until, devices.own_shards(mesh))
