"""What do the papers' full settings cost on accelerators? Prints the tables of docs/scaling.md.

python benchmarks/scaling.py
python benchmarks/scaling.py --memory    # compiles for TPUs, without one: `pip install -e ".[tpu]"`
python benchmarks/scaling.py --roofline  # the same: FLOP and bytes of a step, and where they go

Work is counted as described in README.md beside this file, and divided by the vendors' peak rates
times an assumed utilisation. Nothing is run.
"""

import argparse
import dataclasses
import math
import os

import jax
import numpy as np
import stream_worker
from jax.sharding import Mesh
from memory_traffic import traffic
from sizes import BASE, SIZES, Size

from xling_jax import devices
from xling_jax.batches.corruption import MASKING_RATE
from xling_jax.batches.packing import ROW_DIVISOR
from xling_jax.batches.streams import StreamLayout
from xling_jax.models import heads
from xling_jax.models.bert import BertConfig
from xling_jax.training.step import StepCompiler
from xling_jax.training.stream_step import StreamSetting
from xling_jax.training.utilisation import needed_flops

UTILISATION = 0.4
UTILISATIONS = (0.3, UTILISATION, 0.5)
DEVICES = (8, 32, 256)
TOPOLOGY, CHIP = "v5e:2x4", "TPU v5e"
ROOFLINE = ("wu-conneau", "bert-base")
LARGEST = 15  # operations
FLOAT = 4  # bytes
STATE = 4 * FLOAT  # a parameter, its gradient and two moments
GATHERED = FLOAT  # a parameter once more, whole on each device, if the state is divided


@dataclasses.dataclass(frozen=True)
class Chip:
    """The vendor's figures of a device.

    Attributes:
      rate: of bfloat16 products without sparsity, in FLOP/s.
      memory: in bytes.
      bandwidth: of the memory, in bytes/s.
      links: rate of all of its links together, one way, in bytes/s.
      joined: devices that the links join.
    """

    rate: float
    memory: float
    bandwidth: float
    links: float
    joined: int


CHIPS = {
    "TPU v5e": Chip(197e12, 16e9, 819e9, 200e9, 256),
    "TPU v5p": Chip(459e12, 95e9, 2765e9, 600e9, 8960),
    "H100, H200": Chip(989e12, 80e9, 3350e9, 450e9, 8),  # SXM; an H200 has 141 GB
}


@dataclasses.dataclass(frozen=True)
class Run:
    """A model's training.

    Attributes:
      updates: number of updates.
      sequences, length: number of sequences in an update, and tokens of each.
      special: tokens of a sequence that are not pieces.
      most: devices that can share an update, at most.
    """

    model: BertConfig
    updates: int
    sequences: int
    length: int
    special: int
    most: int

    @property
    def parameters(self) -> int:
        """The number of the model's parameters."""
        leaves = jax.tree.leaves(heads.param_shapes(self.model))
        return sum(math.prod(leaf.shape) for leaf in leaves)

    @property
    def tokens(self) -> int:
        """Tokens of an update."""
        return self.sequences * self.length

    @property
    def flops(self) -> float:
        """Floating-point operations of an update."""
        squares, pieces = self.tokens * self.length, self.sequences * (self.length - self.special)
        return needed_flops(self.model, self.tokens, squares, MASKING_RATE * pieces)

    def seconds(self, chip: Chip, utilisation: float) -> float:
        """Seconds of an update on one device."""
        return self.flops / (chip.rate * utilisation)


WU = SIZES["wu-conneau"]
WIKIPEDIA = BertConfig(60_000, **BASE, token_types=3)  # three vocabularies of 20,000 (D&S §5)
RUNS = {
    "W&C, 417 thousand updates": Run(WU.model, 200 * 2083, WU.batch, WU.length, 1, WU.batch),
    "W&C, 40 million updates": Run(WU.model, 40_000_000, WU.batch, WU.length, 1, WU.batch),
    "D&S §5, sentences of 30 tokens": Run(WIKIPEDIA, 140_000, 256, 30, 2, ROW_DIVISOR),
    "D&S §5, sentences of 128 tokens": Run(WIKIPEDIA, 140_000, 256, 128, 2, ROW_DIVISOR),
}
MODELS = {
    "W&C": RUNS["W&C, 417 thousand updates"],
    "D&S §5": RUNS["D&S §5, sentences of 30 tokens"],
}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def work() -> str:
    """The work of each run."""
    head = ["", "parameters, million", "MFLOP a token", "tokens an update", "updates"]
    head += ["tokens in all, billion", "FLOP in all, 10^18"]
    rows = [
        [
            name,
            f"{run.parameters / 1e6:.0f}",
            f"{run.flops / run.tokens / 1e6:.0f}",
            f"{run.tokens:,}",
            f"{run.updates:,}",
            f"{run.updates * run.tokens / 1e9:,.1f}",
            f"{run.updates * run.flops / 1e18:,.2f}",
        ]
        for name, run in RUNS.items()
    ]
    return table(head, rows)


def chips() -> str:
    """The vendors' figures."""
    head = ["", "bfloat16, TFLOP/s", "memory, GB", "links, one way, GB/s", "devices they join"]
    rows = [
        [
            kind,
            f"{chip.rate / 1e12:.0f}",
            f"{chip.memory / 1e9:.0f}",
            f"{chip.links / 1e9:.0f}",
            f"{chip.joined:,}",
        ]
        for kind, chip in CHIPS.items()
    ]
    return table(head, rows)


def hours() -> str:
    """Device-hours of each run on each chip."""
    head = ["device-hours at a utilisation of", *[f"{100 * u:.0f} %" for u in UTILISATIONS]]
    rows = [
        [f"{name}: {kind}"]
        + [f"{run.updates * run.seconds(chip, u) / 3600:,.1f}" for u in UTILISATIONS]
        for name, run in RUNS.items()
        for kind, chip in CHIPS.items()
    ]
    return table(head, rows)


def state() -> str:
    """The memory of parameters, gradients and moments on each device, within a step."""
    head = ["MB of state a device", "not divided", *[f"divided among {n}" for n in DEVICES]]
    rows = []
    for name, run in MODELS.items():
        bytes_each = [STATE, *[STATE / n + GATHERED for n in DEVICES if n <= run.most]]
        cells = [f"{each * run.parameters / 1e6:,.0f}" for each in bytes_each]
        rows.append([name, *cells, *[""] * (len(head) - 1 - len(cells))])
    return table(head, rows)


def exchange() -> str:
    """The time to sum the gradients over devices, beside the time of the work."""
    head = ["", "chip", *[f"{n} devices: work, ms / sum, ms" for n in DEVICES]]
    rows = []
    for name, run in MODELS.items():
        for kind, chip in CHIPS.items():
            cells = []
            for n in (n for n in DEVICES if n <= min(run.most, chip.joined)):
                sent = 2 * (n - 1) / n * FLOAT * run.parameters
                spent = run.seconds(chip, UTILISATION) / n
                cells.append(f"{1e3 * spent:.1f} / {1e3 * sent / chip.links:.1f}")
            rows.append([name, kind, *cells, *[""] * (len(DEVICES) - len(cells))])
    return table(head, rows)


def feeding() -> str:
    """The tokens that a device needs each second."""
    head = [f"million tokens a second a device, at {100 * UTILISATION:.0f} %", *CHIPS]
    rows = []
    for name, run in MODELS.items():
        rates = [run.tokens / run.seconds(chip, UTILISATION) / 1e6 for chip in CHIPS.values()]
        rows.append([name, *[f"{rate:.2f}" for rate in rates]])
    return table(head, rows)


TABLES = (work, chips, hours, state, exchange, feeding)
MEMORY = {  # fields of the model, batches.accumulate, devices.shard_parameters
    "W&C": ({}, 1, False),
    "W&C, remat": ({"remat": True}, 1, False),
    "W&C, accumulate=4": ({}, 4, False),
    "W&C, shard_parameters": ({}, 1, True),
}


def topology() -> Mesh:
    """A mesh of the devices of TOPOLOGY, which need not exist, each with a part of the batch."""
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # do not ask the cloud which TPU this is
    from jax.experimental import topologies

    return devices.make_mesh(1, topologies.get_topology_desc(TOPOLOGY, "tpu").devices)


def planned(size: Size, mesh: Mesh, accumulate: int = 1, is_divided: bool = False, **own):
    """The step of a model that reads windows, compiled by XLA for TPUs, and its layout."""
    count = mesh.shape[devices.DATA]
    model = dataclasses.replace(size.model, dtype="bfloat16", **own)
    sequences = size.batch // size.parts
    layout = StreamLayout.choose(size.parts, sequences, size.length, count, accumulate)
    store = stream_worker.store_of(np.zeros(2 * size.length, np.int32), model.vocabulary_size)
    program = stream_worker.program_of(model, layout)
    program = dataclasses.replace(program, shards=count if is_divided else 1)
    setting = StreamSetting.of(0, 1e-4)
    return StepCompiler(store)(program, mesh, layout, 1, 1, setting), layout


def memory() -> str:
    """The memory of W&C's step on each device of TOPOLOGY."""
    mesh, rows = topology(), []
    for name, (own, accumulate, is_divided) in MEMORY.items():
        compiled, layout = planned(WU, mesh, accumulate, is_divided, **own)
        rows.append([name, f"{layout.microbatch}", f"{compiled.bytes_needed / 2**20:,.0f}"])
    return table([f"on TPU {TOPOLOGY}", "windows at once on each", "compiled, MiB a device"], rows)


def roofline() -> str:
    """What bounds a step on each device of TOPOLOGY: arithmetic or memory traffic."""
    mesh, chip, rows, where = topology(), CHIPS[CHIP], [], []
    for name in ROOFLINE:
        size = SIZES[name]
        compiled, layout = planned(size, mesh)
        run = Run(size.model, 1, size.batch, size.length, 1, size.batch)
        flops = run.flops / mesh.shape[devices.DATA]
        moved = traffic(compiled.function.as_text())
        total = sum(moved.values())
        arithmetic, memory = flops / chip.rate, total / chip.bandwidth
        accessed = compiled.function.cost_analysis()["bytes accessed"]
        times = [flops / 1e12, accessed / 1e9, total / 1e9, 1e3 * arithmetic, 1e3 * memory]
        bound = 100 * arithmetic / max(arithmetic, memory)
        rows.append([name, *(f"{each:.1f}" for each in times), f"{bound:.0f}"])
        where += [[name, kind, f"{each / 1e9:.2f}"] for kind, each in moved.most_common(LARGEST)]
    head = [f"on {CHIP}, a device of {TOPOLOGY}", "needed, TFLOP", "accessed, GB"]
    head += ["moved, GB", "arithmetic, ms", "memory, ms", "share of the peak at most, %"]
    return "\n".join([table(head, rows), table(["", "operation", "GB"], where)])


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", action="store_true", help="the table of compiled memory alone")
    parser.add_argument("--roofline", action="store_true", help="what bounds a step on a TPU")
    options = parser.parse_args()
    compiled = [memory] * options.memory + [roofline] * options.roofline
    for each in compiled or TABLES:
        print(each())


if __name__ == "__main__":
    main()
