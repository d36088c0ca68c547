"""The contestant of this project: `training.loop`'s own loop, which stops between its calls."""

import functools
import time

import numpy as np
from turns import Referee

from xling_jax import devices
from xling_jax.batches import packing, setting
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.sampling import Sampler
from xling_jax.batches.store import TokenStore
from xling_jax.models.bert import BertConfig
from xling_jax.training.loop import Replica, Schedule, Training
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.planners import SentencePlanner
from xling_jax.training.step import Program
from xling_jax.vocabulary import neighbours

LANGUAGES = ("en", "fake")
ROW_LENGTHS, MAX_LENGTH = (48,), 128
CALL, TOTAL = 30, 20_000  # steps


class NoCheckpoints:
    """Saves nothing: what is measured is the step."""

    def latest(self):
        """There is none."""

    def save(self, step, state):
        """Does nothing."""

    def wait(self):
        """Does nothing."""


class LastLoss:
    """Keeps the training loss, in nats, instead of writing it to a file."""

    loss = float("nan")

    def keep(self, is_kept):
        """Does nothing."""

    def write(self, *, loss, **entry):
        """Takes the mean over a call's steps."""
        self.loss = loss


class Turns:
    """Stands in for the evaluation: measures, and ends a turn when its time is over."""

    def __init__(self, referee: Referee, samplers: list[Sampler], metrics: LastLoss):
        """The first call, in which nothing is measured, is the warm-up."""
        self._referee, self._samplers, self._metrics = referee, samplers, metrics
        self._seconds = self._first = 0
        self._began = time.perf_counter()
        self._plan = functools.lru_cache(4 * len(samplers))(
            lambda number, epoch: samplers[number].plan(epoch)
        )

    def __call__(self, step, state, settings):
        """Called by the loop after every call of the compiled program."""
        seconds = time.perf_counter() - self._began
        if seconds < self._seconds:
            return
        result = self._count(self._first, step)
        result |= {"seconds": seconds, "steps": step - self._first, "loss": self._metrics.loss}
        self._seconds = self._referee.report(result)
        self._first, self._began = step, time.perf_counter()

    def _count(self, first: int, last: int) -> dict[str, int]:
        """Sentences of all replicas in these steps, their tokens, the sum of their squares."""
        lengths = []
        for number, sampler in enumerate(self._samplers):
            for step in range(first, last):
                epoch, within = divmod(step, sampler.steps_per_epoch)
                sentence = self._plan(number, epoch).sentence[within]
                lengths.append(sampler.lengths[sentence[sentence >= 0]].astype(int))
        every = np.concatenate(lengths)
        return {
            "sentences": len(every),
            "tokens": int(every.sum()),
            "squares": int((every**2).sum()),
        }


def all_stops(epoch: int) -> tuple[int, ...]:
    """The steps at which a call ends in a run that is never evaluated."""
    schedule, stops = Schedule(TOTAL, epoch, (), epoch, min(CALL, epoch)), [0]
    while stops[-1] < TOTAL:
        stops.append(schedule.next_stop(stops[-1]))
    return tuple(stops[1:])


def main() -> None:
    """Trains `replicas` seeds of D&S's original setting, side by side."""
    referee = Referee()
    options = referee.options
    devices.set_cpu_devices(0)
    text = np.load(options["text"])
    store = TokenStore(text["tokens"], text["offsets"], text["languages"])
    shift = int(text["shift"])
    seeds = range(options["replicas"])
    mesh = devices.make_mesh(len(seeds))
    layout = packing.choose_layout(
        store.lengths,
        [np.arange(len(store))],
        options["sentences"],
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
    model = BertConfig(vocabulary_size=shift * len(LANGUAGES), layers=options["layers"])
    program = Program(
        model,
        OptimizerConfig(total_steps=TOTAL),
        PieceRange(len(LANGUAGES), shift),
        layout.shard_rows,
    )
    epoch, metrics = samplers[0].steps_per_epoch, LastLoss()
    schedule = Schedule(TOTAL, epoch, all_stops(epoch), epoch, min(CALL, epoch))
    turns = Turns(referee, samplers, metrics)
    planner = SentencePlanner(samplers)
    Training(
        program, mesh, replicas, store, planner, schedule, NoCheckpoints(), metrics, turns
    ).run()


if __name__ == "__main__":
    main()
