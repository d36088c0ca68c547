"""A small text of two languages in streams, and models trained on it."""

import dataclasses
import functools

import jax
import numpy as np
import replicas_run

from xling_jax import devices
from xling_jax.batches.streams import StreamLayout, StreamSampler, probabilities
from xling_jax.batches.windows import PieceTables, StreamStore
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig
from xling_jax.training.input_pipeline import InputPipeline
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.stream_step import StreamProgram, StreamSetting, Vocabularies
from xling_jax.vocabulary.pieces import SEP
from xling_jax.vocabulary.sharing import LanguageVocabulary

SIZES = (30, 24)  # pieces of each language
SENTENCES = (90, 60)
MODEL = BertConfig(
    vocabulary_size=max(SIZES),
    layers=2,
    hidden=16,
    intermediate=32,
    heads=2,
    positions=32,
    head="linear",
)
OPTIMIZER = OptimizerConfig(
    total_steps=100, warmup_steps=5, weight_decay=0.01, clip=0.5, decay="inverse_sqrt"
)
PARTS, SEQUENCES, LENGTH, EPOCH = 2, 8, 16, 6
SEP_EMB = (partition.PIECES, "embeddings/positions", "mlm/bias")


@functools.lru_cache
def vocabulary(way):
    """Pieces without a text: language k's have the ids that the way gives them."""
    firsts = {"separate": (0, 0), "prefixed": (0, SIZES[0] - 5), "joint": (0, 0)}[way]
    ids = [
        np.where(np.arange(n) < 5, np.arange(n), np.arange(n) + first).astype(np.int32)
        for n, first in zip(SIZES, firsts, strict=True)
    ]
    return LanguageVocabulary(way, ("a", "b"), (None, None), tuple(ids))


@functools.lru_cache
def store(way="separate", random_pieces="inside"):
    """Sentences that count upwards, so that a masked piece can be told from its neighbours."""
    random = np.random.default_rng(0)
    streams = []
    for size, sentences, ids in zip(SIZES, SENTENCES, vocabulary(way).ids, strict=True):
        stream = []
        for _ in range(sentences):
            count = 5 + (random.integers(size - 5) + np.arange(random.integers(4, 14))) % (size - 5)
            stream += [*ids[count], SEP]
        streams.append(np.array(stream, np.int32))
    return StreamStore.of(streams, tables(vocabulary(way), random_pieces))


def tables(vocabulary, random_pieces="inside"):
    """Those of languages in whose training text all of their pieces occur."""
    return PieceTables.of(vocabulary, random_pieces, vocabulary.ids, vocabulary.ids)


def sampler(shards=1, seed=0, accumulate=1, draws=None):
    draws = probabilities(SENTENCES, 0.7) if draws is None else draws
    layout = StreamLayout.choose(PARTS, SEQUENCES, LENGTH, shards, accumulate)
    return StreamSampler(tuple(store().sizes), tuple(draws), layout, seed, EPOCH)


def program(layout, partition=(), way="separate", softmax="language", **changes):
    model = dataclasses.replace(MODEL, vocabulary_size=vocabulary(way).size)
    fields = {
        "model": model,
        "optimizer": OPTIMIZER,
        "layout": layout,
        "vocabularies": Vocabularies(2, way == "separate", softmax),
        "partition": partition,
    }
    return StreamProgram(**{**fields, **changes})


def run(samplers, one, steps=12, initial=None, pipeline=None, text=None, data=1, call=3):
    """Trains replicas; returns the states before and after and the metrics of every step."""
    mesh = devices.make_mesh(1, jax.devices()[:data])
    pipeline = pipeline or InputPipeline(samplers)
    first = initial or [one.initial_state(s.seed) for s in samplers]
    settings = [StreamSetting.of(s.seed, 1e-2) for s in samplers]
    text = text or store()
    return replicas_run.run(one, mesh, first, settings, text, pipeline.steps, steps, call)
