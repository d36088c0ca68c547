"""How fast is a training step, compared with Hugging Face on the same machine?

python benchmarks/step_vs_hugging_face.py

BERT-small of Dufter & Schütze 2020 (§2.1), 256 sentences a step, on the CPU. README.md beside this
file says what is counted, and has results.
"""

import argparse
import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import corpus
from flops import flops_of
from turns import HERE, LARGE_PAGES, Worker, rounds, say, speed, spread

from xling_jax.models.bert import BertConfig

LEARNING_RATE = 2e-3
OURS, MACHINE = "xling_jax", "matrix products"
HUGGING_FACE = {
    "Hugging Face as D&S ran it": {"attention": "eager", "mask": False, "fused": False},
    "Hugging Face at its best": {"attention": "sdpa", "mask": True, "fused": True},
}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    corpus.add_arguments(parser)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--sentences", type=int, default=256, help="a step")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--seconds", type=float, default=20.0, help="of a turn, at least")
    parser.add_argument(
        "--environment",
        type=Path,
        default=HERE / ".venv",
        help="a virtual environment with torch and transformers; made where it is missing",
    )
    parser.add_argument("--compile", action="store_true", help="torch.compile for HF at its best")
    parser.add_argument("--output", type=Path, help="a JSON file for every turn's counts")
    return parser.parse_args()


def interpreter(environment: Path) -> Path:
    """The Python of an environment with torch and transformers, which is made if it is missing."""
    python = environment / "bin" / "python"
    if not python.exists():
        say(f"making {environment} with torch and transformers")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "numpy", "torch", "transformers"]
        subprocess.run(install, check=True)
    return python


def with_better_allocator(start: Callable[[dict], Worker], name: str, seconds: float) -> Worker:
    """The faster of two workers, one with large pages in glibc's malloc, after two turns each."""
    workers = {"default malloc": start({}), "large pages": start(LARGE_PAGES)}
    results = rounds(workers, 2, seconds, lambda message: say(f"{name}: {message}"))
    speeds = {kind: max(map(speed, found)) for kind, found in results.items()}
    best = max(speeds, key=lambda kind: speeds[kind])
    for kind, worker in workers.items():
        if kind != best:
            worker.close()
    say(f"{name} is faster with {best}: {speeds}")
    return workers[best]


def table(results: dict[str, list[dict]], model: BertConfig) -> str:
    """A table of the medians, lowest and highest figures, as Markdown."""
    lines = [
        "| | real tokens/s | xling_jax is faster, times | share of the matrix rate, % |",
        "|---|---|---|---|",
    ]
    machine = [max(result["rates"].values()) for result in results[MACHINE]]
    for name, found in results.items():
        if name == MACHINE:
            continue
        speeds = [speed(result) for result in found]
        ratios = [speed(a) / b for a, b in zip(results[OURS], speeds, strict=True)]
        shares = [
            100 * flops_of(model, result) / result["seconds"] / rate
            for result, rate in zip(found, machine, strict=True)
        ]
        ratio = "" if name == OURS else spread(ratios, ".2f")
        lines.append(f"| {name} | {spread(speeds, ',.0f')} | {ratio} | {spread(shares, '.0f')} |")
    rate = spread([x / 1e9 for x in machine], ".0f")
    return "\n".join([*lines, "", f"The machine multiplies matrices at {rate} GFLOP/s."])


def main() -> None:
    """Measures and prints the table."""
    arguments = parse()
    python = interpreter(arguments.environment)
    model = BertConfig(vocabulary_size=2 * arguments.vocabulary, layers=arguments.layers)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        text = folder / "text.npz"
        say(corpus.write(arguments, text))
        options = {
            "text": str(text),
            "model": dataclasses.asdict(model),
            "batch": arguments.sentences,
            "parts": 1,
            "learning_rate": LEARNING_RATE,
            "compile": False,
            "dynamic": True,
            "device": "cpu",
            "cpu_devices": 0,
        }
        count = 0

        def start(interpreter, script: str, own: dict, variables: dict) -> Worker:
            nonlocal count
            count += 1
            log = folder / f"{count}.log"
            worker = Worker(interpreter, script, options | own, variables, log)
            stack.callback(worker.close)
            return worker

        workers = {}
        for contestant, own in HUGGING_FACE.items():
            own = own | {"compile": arguments.compile and own["fused"]}
            workers[contestant] = with_better_allocator(
                lambda variables, own=own: start(python, "torch_worker.py", own, variables),
                contestant,
                arguments.seconds / 2,
            )
        cpu = {"JAX_PLATFORMS": "cpu"}
        ours = {"replicas": 1}
        workers[OURS] = start(sys.executable, "our_worker.py", ours, cpu | LARGE_PAGES)
        workers[MACHINE] = start(sys.executable, "matrix_worker.py", {}, cpu)
        results = rounds(workers, arguments.repeats, arguments.seconds, say)
    print(table(results, model))
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
