"""What a step reads: the rows that its sentences share, or the windows of its streams.

Of streams the plan gives the places, or, if the text is too large for the device or changed every
time it is read, the tokens. Both give the same order.
"""

import dataclasses
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from xling_jax.batches.packing import Plan, Sampler, lay_out
from xling_jax.batches.streams import StreamSampler

THREADS, BUFFERED = 4, 32  # that read, and steps read ahead

# Of (language, first token in its stream, update): the tokens, [window].
Read = Callable[[int, int, int], np.ndarray]


def _fields(plans: Sequence[Any]) -> list[np.ndarray]:
    """The fields of replicas' plans, of one dataclass, as [R, K, …]."""
    names = [field.name for field in dataclasses.fields(plans[0])]
    return [np.stack([getattr(plan, name) for plan in plans]) for name in names]


class InputPipeline:
    """What stands in each step, by samplers, one a replica; the text lies on the device."""

    def __init__(self, samplers: Sequence[Any]):
        self.layout, self._samplers = samplers[0].layout, samplers
        self._distinct = {id(sampler): sampler for sampler in samplers}

    def steps(self, start: int, stop: int) -> list[np.ndarray]:
        """The fields of the plan of updates start..stop-1, of one epoch: [R, stop - start, …]."""
        return self._planned(lambda sampler: sampler.plan(start, stop))

    def _planned(self, plan: Callable[[Any], Any]) -> list[np.ndarray]:
        """The fields of the samplers' plans; replicas that share a sampler share its plan."""
        plans = {key: plan(sampler) for key, sampler in self._distinct.items()}
        return _fields([plans[id(sampler)] for sampler in self._samplers])

    def close(self) -> None: ...


class SentencePipeline(InputPipeline):
    """Assigns the sentences of all replicas to rows, an epoch ahead, in a thread of its own; what
    owns each place follows only for the steps that are asked for, because it takes much memory."""

    def __init__(self, samplers: Sequence[Sampler], total: int):
        """`total`: updates of the whole training, behind which nothing is assigned."""
        super().__init__(samplers)
        self._epoch, self._total = samplers[0].steps_per_epoch, total
        self._thread = ThreadPoolExecutor(1)
        self._assigned: dict[int, dict[int, Future[tuple[np.ndarray, np.ndarray]]]] = {}

    def steps(self, start: int, stop: int) -> list[np.ndarray]:
        """Begins with the next epoch's assignment."""
        epoch, first = divmod(start, self._epoch)
        ahead = [n for n in (epoch, epoch + 1) if n * self._epoch < self._total]
        self._assigned = {n: self._assigned.get(n) or self._begun(n) for n in ahead}
        part = slice(first, first + stop - start)

        def plan(sampler: Sampler) -> Plan:
            sentence, row = self._assigned[epoch][id(sampler)].result()
            return lay_out(sentence[part], row[part], sampler.lengths, sampler.layout)

        return self._planned(plan)

    def _begun(self, epoch: int) -> dict[int, Future[tuple[np.ndarray, np.ndarray]]]:
        """What an epoch's assignments will be, by sampler."""
        return {
            key: self._thread.submit(sampler.assign, epoch)
            for key, sampler in self._distinct.items()
        }

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)


class StreamingPipeline(InputPipeline):
    """Plans with their tokens, read ahead by Grain in threads."""

    def __init__(self, samplers: Sequence[StreamSampler], read: Read, total: int, shards: Set[int]):
        """`read` reads a window; of the `total` updates those windows are read that `shards` of
        this process's devices work on, and others stay empty."""
        super().__init__(samplers)
        self.layout = dataclasses.replace(self.layout, is_fed=True)
        self._shards, self._read, self._total = shards, read, total
        self._next, self._ahead = -1, iter(())

    def _step(self, step: int) -> list[np.ndarray]:
        """The fields [R, 1, …] of one update."""

        def fed(sampler: StreamSampler) -> Any:
            plan = sampler.plan(step, step + 1)
            tokens = np.zeros((*plan.windows.shape, self.layout.window), np.int32)
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
