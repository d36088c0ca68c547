"""The plans that steps follow: how sentences share rows, or which windows of streams are read.

A plan of streams holds the places of windows in the text on the device. Where the text is too large
for the device, or is changed every time it is read, the plan holds the windows' tokens. The order
is the same either way.
"""

import dataclasses
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from xling_jax.batches.packing import Plan, Sampler, lay_out
from xling_jax.batches.streams import StreamSampler
from xling_jax.batches.tasks import TaskSampler

THREADS, BUFFERED = 4, 32  # reading threads, and steps read ahead

# From (language, first token in its stream, update) to the window's tokens, [window].
Read = Callable[[int, int, int], np.ndarray]


def _fields(plans: Sequence[Any]) -> list[np.ndarray]:
    """The fields of the replicas' plans, all of the same dataclass, stacked as [R, K, …]."""
    names = [field.name for field in dataclasses.fields(plans[0])]
    return [np.stack([getattr(plan, name) for plan in plans]) for name in names]


class InputPipeline:
    """Plans of the steps by samplers, one per replica; the text lies on the device."""

    def __init__(self, samplers: Sequence[Any], layouts: Sequence[Any] = ()):
        """`layouts` are the shapes of steps, from the smallest; by default the samplers' one."""
        self.layouts, self._samplers = layouts or (samplers[0].layout,), samplers
        self._distinct = {id(sampler): sampler for sampler in samplers}

    def layout_of(self, step: int) -> Any:
        """The shape of a step, one of `layouts`; `steps` gives all in the smallest that has room
        for each of them."""
        return self.layouts[-1]

    def steps(self, start: int, stop: int) -> list[np.ndarray]:
        """The fields of the plan of updates start..stop-1 of one epoch, [R, stop - start, …]."""
        return self._planned(lambda sampler: sampler.plan(start, stop))

    def _planned(self, plan: Callable[[Any], Any]) -> list[np.ndarray]:
        """The fields of the replicas' plans; replicas that share a sampler share its plan."""
        plans = {key: plan(sampler) for key, sampler in self._distinct.items()}
        return _fields([plans[id(sampler)] for sampler in self._samplers])

    def close(self) -> None: ...


class TaskPipeline(InputPipeline):
    """Plans of fine-tuning by a sampler that all replicas share. Steps may have two shapes."""

    def __init__(self, sampler: TaskSampler, replicas: int):
        super().__init__([sampler] * replicas, sampler.layouts)

    def layout_of(self, step: int) -> Any:
        return self._samplers[0].layout_of(step, step + 1)


class SentencePipeline(InputPipeline):
    """Assigns the sentences of all replicas to rows, an epoch ahead, in a thread of its own.

    The plan's `owner` of each place takes much memory, so it is made only for the steps asked for.
    """

    def __init__(self, samplers: Sequence[Sampler], total: int):
        """`total` is the number of updates of the whole training; nothing after it is planned."""
        super().__init__(samplers)
        self._steps_per_epoch, self._total = samplers[0].steps_per_epoch, total
        self._thread = ThreadPoolExecutor(1)
        self._assigned: dict[int, dict[int, Future[tuple[np.ndarray, np.ndarray]]]] = {}

    def steps(self, start: int, stop: int) -> list[np.ndarray]:
        """As in `InputPipeline`; also starts to assign the next epoch."""
        epoch, first = divmod(start, self._steps_per_epoch)
        ahead = [n for n in (epoch, epoch + 1) if n * self._steps_per_epoch < self._total]
        self._assigned = {n: self._assigned.get(n) or self._begun(n) for n in ahead}
        part = slice(first, first + stop - start)

        def plan(sampler: Sampler) -> Plan:
            sentence, row = self._assigned[epoch][id(sampler)].result()
            return lay_out(sentence[part], row[part], sampler.lengths, sampler.layout)

        return self._planned(plan)

    def _begun(self, epoch: int) -> dict[int, Future[tuple[np.ndarray, np.ndarray]]]:
        """Starts to assign an epoch; returns the assignments to come, by the sampler's id."""
        return {
            key: self._thread.submit(sampler.assign, epoch)
            for key, sampler in self._distinct.items()
        }

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)


class StreamingPipeline(InputPipeline):
    """Plans with their tokens, read ahead by Grain in threads."""

    def __init__(self, samplers: Sequence[StreamSampler], read: Read, total: int, shards: Set[int]):
        """`read` gives a window's tokens. Only the windows of `shards`, those of this process's
        devices, are read; others are left zero. `total` is the number of updates of the whole
        training."""
        super().__init__(samplers, [dataclasses.replace(samplers[0].layout, is_fed=True)])
        self._shards, self._read, self._total = shards, read, total
        self._next, self._ahead = -1, iter(())

    def _step(self, step: int) -> list[np.ndarray]:
        """The fields [R, 1, …] of one update."""

        def fed(sampler: StreamSampler) -> Any:
            plan = sampler.plan(step, step + 1)
            tokens = np.zeros((*plan.windows.shape, self.layouts[0].window), np.int32)
            for place in np.ndindex(plan.windows.shape):
                if place[1] not in self._shards:
                    continue
                language, start = int(plan.language[place[:-1]]), int(plan.windows[place])
                tokens[place] = self._read(language, start, step)
            return dataclasses.replace(plan, windows=tokens)

        return self._planned(fed)

    def steps(self, start: int, stop: int) -> list[np.ndarray]:
        if start != self._next:
            import grain  # imported late: it is slow, and most runs' text fits the device

            steps = grain.MapDataset.range(start, self._total).map(self._step)
            options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=BUFFERED)
            self._ahead = iter(steps.to_iter_dataset(options))
        self._next = stop
        found = [next(self._ahead) for _ in range(start, stop)]
        return [np.concatenate(fields, axis=1) for fields in zip(*found, strict=True)]

    def close(self) -> None:
        self._next, self._ahead = -1, iter(())
