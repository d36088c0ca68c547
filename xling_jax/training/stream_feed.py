"""What a step reads of the streams: the places of its windows, or, if the text is too large for
the device or changed every time it is read, their tokens. Both give the same order."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from xling_jax.batches.streams import StreamLayout, StreamPlan, StreamSampler

THREADS, BUFFERED = 4, 32  # that read, and steps read ahead

# Of (language, first token in its stream, update, number in the update): the tokens, [window].
Read = Callable[[int, int, int, int], np.ndarray]


def _fields(plans: Sequence[StreamPlan]) -> list[np.ndarray]:
    """The fields of replicas' plans as [R, K, …]."""
    names = [field.name for field in dataclasses.fields(StreamPlan)]
    return [np.stack([getattr(plan, name) for plan in plans]) for name in names]


class ResidentPlanner:
    """Plans of text that lies on the device."""

    def __init__(self, samplers: Sequence[StreamSampler]):
        """Takes the replicas' samplers."""
        self.layout: StreamLayout = samplers[0].layout
        self._samplers = samplers

    def steps(self, start: int, stop: int) -> list[np.ndarray]:
        """The fields of the plan of updates start..stop-1, of one epoch: [R, stop - start, …]."""
        return _fields([sampler.plan(start, stop) for sampler in self._samplers])

    def close(self) -> None:
        """Nothing is running."""


class FedPlanner:
    """Plans with their tokens, read ahead by Grain in threads."""

    def __init__(self, samplers: Sequence[StreamSampler], read: Read, total: int):
        """Takes the replicas' samplers, how a window is read, and the number of updates."""
        self.layout = dataclasses.replace(samplers[0].layout, is_fed=True)
        self._samplers, self._read, self._total = samplers, read, total
        self._next, self._ahead = -1, iter(())

    def _step(self, step: int) -> list[np.ndarray]:
        """The fields [R, 1, …] of one update."""
        plans = []
        for sampler in self._samplers:
            plan = sampler.plan(step, step + 1)
            tokens = np.empty((*plan.windows.shape, self.layout.window), np.int32)
            for place in np.ndindex(plan.windows.shape):
                language = int(plan.language[place[:-1]])
                start, slot = int(plan.windows[place]), int(plan.slot[place])
                tokens[place] = self._read(language, start, step, slot)
            plans.append(dataclasses.replace(plan, windows=tokens))
        return _fields(plans)

    def steps(self, start: int, stop: int) -> list[np.ndarray]:
        """The fields of the plan of updates start..stop-1: [R, stop - start, …]."""
        if start != self._next:
            import grain  # imported late: it is slow, and most runs' text fits the device

            steps = grain.MapDataset.range(start, self._total).map(self._step)
            options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=BUFFERED)
            self._ahead = iter(steps.to_iter_dataset(options))
        self._next = stop
        found = [next(self._ahead) for _ in range(start, stop)]
        return [np.concatenate(fields, axis=1) for fields in zip(*found, strict=True)]

    def close(self) -> None:
        """Drops what was read ahead."""
        self._next, self._ahead = -1, iter(())
