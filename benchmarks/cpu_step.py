"""Where does a training step on a CPU spend its time, and is it faster than in other code?

python benchmarks/cpu_step.py
python benchmarks/cpu_step.py --kind streams --against CHECKOUT
python benchmarks/cpu_step.py --kind wide-streams --dtypes float32 bfloat16_products

Prints the times of the parts of a step of half a batch on one core, from XLA's profile. With
several dtypes, or with --against, whole steps on all cores take turns: those of each dtype, and
those of another checkout of this project in the first dtype.
"""

import argparse
import collections
import dataclasses
import gzip
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import get_args

import sizes
from memory_traffic import computations
from sizes import SIZES, Size
from training_turns import PLAN
from turns import HERE, LARGE_PAGES, Worker, rounds, say, spread

from xling_jax.models.bert import BertConfig, NumberType

DTYPES = get_args(NumberType)
KINDS = {
    "sentences": SIZES["bert-small"],
    # the first setting of docs/small_models.md
    "streams": Size(
        BertConfig(900, layers=8, heads=2, positions=64, token_types=1, dropout=0.0),
        length=24,
        parts=4,
        batch=48,
        cpu_batch=48,
    ),
    # The size that docs/results.md has on English and French
    "wide-streams": Size(
        BertConfig(
            8000,
            layers=8,
            hidden=128,
            intermediate=512,
            heads=4,
            positions=64,
            token_types=1,
            dropout=0.0,
        ),
        length=24,
        parts=8,
        batch=128,
        cpu_batch=128,
    ),
}
LOOPS = "while", "call", "conditional"  # operations that contain others
# Patterns of XLA's names of operations, and the parts that these belong to; the first match counts.
DENSE = "(query_key_value|output|intermediate|dense)/"
PARTS = {
    r"psum": "sum over the devices",
    rf"transpose.*{DENSE}.*(cond/|transpose)": "gradients of kernels",
    rf"transpose.*{DENSE}(dot|convert)": "gradients through dense layers",
    rf"{DENSE}(dot|convert)": "dense layers",
    r"norm/": "layer norms",
    r"attention/(split|reshape|concatenate|transpose|swapaxes|slice)": "attention: copies",
    r"transpose.*attention/": "gradients of attention",
    r"attention/": "attention and its dropout",
    r"layers/\d+/(erf|mul|add_any)": "GELU, and gradients of dropout",
    r"layers/\d+/": "residuals and their dropout, sums of gradients",
    r"embeddings/": "embeddings",
    r"jvp\((\w*Head)?\)|jvp\(pd|jvp\(jit\(take": "head and loss",
}
REST = "optimiser, batches, masking"


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=KINDS, default="sentences")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--cpu-devices", type=int, default=0, help="of the turns; 0: as in a run")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a turn, at least")
    return parser.parse_args()


def start(kind: str, dtype: str, folder: Path, name: str, checkout: Path, **own) -> Worker:
    """A worker that trains in a dtype with the code of a checkout."""
    size = KINDS[kind]
    options = {
        "text": str(folder / "text.npz"),
        "model": dataclasses.asdict(dataclasses.replace(size.model, dtype=dtype)),
        "batch": size.cpu_batch,
        "parts": size.parts,
        "length": size.length,
        "learning_rate": 1e-4,
        "replicas": 1,
    }
    script = "stream_worker.py" if size.length else "our_worker.py"
    variables = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(checkout.resolve())} | LARGE_PAGES
    return Worker(sys.executable, script, options | own, variables, folder / f"{name}.log")


def part_of(path: str) -> str:
    """The part that an operation belongs to, by its name in the source."""
    return next((part for pattern, part in PARTS.items() if re.search(pattern, path)), REST)


def parts(trace: Path, steps: int) -> dict[str, float]:
    """The milliseconds that each part takes in a step, from a profile."""
    named, _ = computations((trace / PLAN).read_text("utf-8"))
    path = {
        each["name"]: found[1]
        for instructions in named.values()
        for each in instructions
        if (found := re.search(r'op_name="([^"]*)"', each["rest"]))
    }
    taken: collections.Counter[str] = collections.Counter()
    for file in trace.glob("plugins/profile/*/*.trace.json.gz"):
        with gzip.open(file) as stream:
            events = json.load(stream)["traceEvents"]
        for event in events:
            name = event.get("args", {}).get("hlo_op", LOOPS[0])
            if not name.startswith(LOOPS):
                taken[part_of(path.get(name, ""))] += event["dur"] / 1e3 / steps
    return dict(taken.most_common())


def profile(kind: str, dtype: str, folder: Path, seconds: float) -> str:
    """The parts of a step of half a batch on one core, as Markdown."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    trace = folder / "trace"
    trace.mkdir()
    size = KINDS[kind]
    half = {"batch": size.cpu_batch // 2, "cpu_devices": 1}
    worker = start(kind, dtype, folder, "profile", HERE.parent, trace=str(trace), **half)
    found = worker.turn(seconds)
    worker.close()
    os.sched_setaffinity(0, cores)
    taken = parts(trace, found["steps"])
    total = sum(taken.values())
    lines = ["| part | ms a step | share, % |", "|---|---|---|"]
    lines += [f"| {name} | {ms:.1f} | {100 * ms / total:.0f} |" for name, ms in taken.items()]
    measured = 1e3 * found["seconds"] / found["steps"]
    return "\n".join([*lines, f"| all | {total:.1f} | |", "", f"The step took {measured:.1f} ms."])


def turns(arguments: argparse.Namespace, folder: Path) -> str:
    """The steps of all dtypes, and of another checkout, in turns, as Markdown."""
    kind, devices = arguments.kind, arguments.cpu_devices
    first = arguments.dtypes[0]
    given = [(dtype, dtype, HERE.parent) for dtype in arguments.dtypes]
    if arguments.against:
        given.append((f"{first}, {arguments.against}", first, arguments.against))
    workers = {
        line: start(kind, dtype, folder, f"worker{number}", checkout, cpu_devices=devices)
        for number, (line, dtype, checkout) in enumerate(given)
    }
    results = rounds(workers, arguments.repeats, arguments.seconds, say)
    for worker in workers.values():
        worker.close()
    lines = [f"| {kind} | step, ms | times as fast as {first} |", "|---|---|---|"]
    times = {
        line: [1e3 * each["seconds"] / each["steps"] for each in found]
        for line, found in results.items()
    }
    for line, found in times.items():
        ratios = [b / a for a, b in zip(found, times[first], strict=True)]
        lines.append(f"| {line} | {spread(found, '.1f')} | {spread(ratios, '.2f')} |")
    return "\n".join(lines)


def main() -> None:
    """Measures and prints the tables."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes.write(KINDS[arguments.kind], folder / "text.npz")
        if arguments.against or len(arguments.dtypes) > 1:
            print(turns(arguments, folder))
        else:
            (dtype,) = arguments.dtypes
            print(profile(arguments.kind, dtype, folder, arguments.seconds))


if __name__ == "__main__":
    main()
