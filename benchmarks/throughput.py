"""How many tokens a second does training process, and what share of the machine does that use?

python benchmarks/throughput.py

BERT-small of Dufter & Schütze 2020, the model of Wu, Conneau et al. 2020 and BERT-base, with
dropout, on the devices that JAX finds. README.md beside this file says what is counted, and has
results.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import sizes
from flops import flops_of
from sizes import SIZES
from turns import HERE, LARGE_PAGES, Worker, rounds, say, speed, spread

from xling_jax.models.bert import BertConfig, NumberType

DTYPES = get_args(NumberType)
LEARNING_RATE = 1e-4
OURS, MACHINE, HUGGING_FACE = "xling_jax", "matrix products", "Hugging Face"
# Contestants share a device; each takes what it needs of its memory.
VARIABLES = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **LARGE_PAGES}
COLUMNS = (
    "| model | dtype | | tokens/s | step, ms | share of the matrix rate, % | times Hugging Face "
    "| compiled, MiB a device | peak, MiB |\n|---|---|---|---|---|---|---|---|---|"
)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["float32", "bfloat16"])
    parser.add_argument("--replicas", type=int, nargs="+", default=[1], help="seeds in one program")
    parser.add_argument("--batch", type=int, help="sentences or windows a step of a replica")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a turn, at least")
    parser.add_argument(
        "--cpu-devices", type=int, default=0, help="that a CPU is split into (0: as in a run)"
    )
    parser.add_argument(
        "--hugging-face",
        type=Path,
        metavar="ENVIRONMENT",
        help="a virtual environment with torch and transformers, which then take part",
    )
    parser.add_argument("--output", type=Path, help="a JSON file for every turn's counts")
    return parser.parse_args()


def devices_found() -> tuple[str, str, int]:
    """The platform of JAX's devices, their kind and their number."""
    command = [sys.executable, HERE / "device_worker.py"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    platform, kind, count = json.loads(done.stdout.splitlines()[-1])
    return platform, kind, count


def torch_device(platform: str, count: int) -> str:
    """PyTorch's name for the device; ValueError if it cannot use the devices that JAX uses."""
    if platform not in ("cpu", "gpu"):
        raise ValueError(
            f"--hugging-face takes part on CPUs and GPUs: leave it out on a {platform}"
        )
    if platform == "gpu" and count > 1:
        raise ValueError(
            f"--hugging-face uses one GPU, and there are {count}: set CUDA_VISIBLE_DEVICES=0"
        )
    return "cuda" if platform == "gpu" else "cpu"


@contextlib.contextmanager
def contestants(
    arguments: argparse.Namespace, name: str, dtype: str, platform: str, device: str
) -> Iterator[dict[str, Worker]]:
    """Workers of a model in a dtype, by the names of their lines in the table; they end on exit."""
    size = SIZES[name]
    batch = arguments.batch or (size.cpu_batch if platform == "cpu" else size.batch)
    if batch % size.parts:
        raise ValueError(f"--batch={batch}: {name} has {size.parts} parts, choose a multiple")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        text = Path(folder) / "text.npz"
        sizes.write(size, text)
        options = {
            "text": str(text),
            "model": dataclasses.asdict(dataclasses.replace(size.model, dtype=dtype)),
            "length": size.length,
            "parts": size.parts,
            "batch": batch,
            "learning_rate": LEARNING_RATE,
            "cpu_devices": arguments.cpu_devices,
        }
        workers: dict[str, Worker] = {}

        def start(line: str, python: str | Path, script: str, **own: Any) -> None:
            say(f"{name}, {dtype}: {line} warms up")
            log = Path(folder) / f"{len(workers)}.log"
            workers[line] = Worker(python, script, options | own, VARIABLES, log)
            stack.callback(workers[line].close)

        start(MACHINE, sys.executable, "matrix_worker.py")
        script = "stream_worker.py" if size.length else "our_worker.py"
        for replicas in arguments.replicas:
            line = OURS if replicas == 1 else f"{OURS}, {replicas} replicas"
            start(line, sys.executable, script, replicas=replicas)
        if arguments.hugging_face:
            start(
                HUGGING_FACE,
                arguments.hugging_face / "bin" / "python",
                "torch_worker.py",
                device=device,
                attention="sdpa",
                mask=not size.length,  # windows have no padding
                fused=True,
                compile=True,
                dynamic=not size.length,
            )
        yield workers


def lines(
    name: str, dtype: str, model: BertConfig, results: dict[str, list[dict]], accelerators: int
) -> list[str]:
    """The table's lines of a model in a dtype."""
    machine = [accelerators * max(result["rates"].values()) for result in results[MACHINE]]
    found = []
    for line, turns in results.items():
        if line == MACHINE:
            continue
        speeds = [speed(turn) for turn in turns]
        steps = [1e3 * turn["seconds"] / turn["steps"] for turn in turns]
        shares = [
            100 * flops_of(model, turn) / turn["seconds"] / rate
            for turn, rate in zip(turns, machine, strict=True)
        ]
        ratio = ""
        if line != HUGGING_FACE and HUGGING_FACE in results:
            others = [speed(turn) for turn in results[HUGGING_FACE]]
            ratio = spread([a / b for a, b in zip(speeds, others, strict=True)], ".2f")
        memory = [
            f"{bytes_ / 2**20:,.0f}" if bytes_ else ""
            for bytes_ in (turns[-1].get("bytes_needed"), turns[-1]["bytes_peak"])
        ]
        cells = [name, dtype, line, spread(speeds, ",.0f"), spread(steps, ",.0f")]
        found.append("| " + " | ".join([*cells, spread(shares, ".0f"), ratio, *memory]) + " |")
    return [*found, f"| {name} | {dtype} | {MACHINE} | {in_tflops(machine)} | | | | | |"]


def in_tflops(rates: list[float]) -> str:
    """Rates as a cell of the table."""
    return spread([rate / 1e12 for rate in rates], ".3g") + " TFLOP/s"


def main() -> None:
    """Measures, and prints each model's lines as soon as they are known."""
    arguments = parse()
    platform, kind, count = devices_found()
    device = torch_device(platform, count) if arguments.hugging_face else ""
    print(f"{count} x {kind} ({platform}), {os.cpu_count()} cores\n\n{COLUMNS}", flush=True)
    everything = {}
    for name in arguments.models:
        for dtype in arguments.dtypes:
            with contestants(arguments, name, dtype, platform, device) as workers:
                results = rounds(workers, arguments.repeats, arguments.seconds, say)
            accelerators = 1 if platform == "cpu" else count
            model = SIZES[name].model
            print("\n".join(lines(name, dtype, model, results, accelerators)), flush=True)
            everything[f"{name}, {dtype}"] = results
            if arguments.output:
                text = json.dumps(everything, indent=1) + "\n"
                arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
