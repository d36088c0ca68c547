"""How fast are R seeds in one program, against R runs one after the other, each on all devices?

python benchmarks/replicas.py

BERT-small of Dufter & Schütze 2020 (§2.1), 256 sentences a step. On a CPU of two devices, two
replicas have one each; five are vectorised, and each of their batches is divided between both.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import corpus
from turns import LARGE_PAGES, Worker, rounds, say, speed, spread

VARIABLES = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **LARGE_PAGES}  # workers share the device


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    corpus.add_arguments(parser)
    parser.add_argument(
        "--replicas", type=int, nargs="+", default=[1, 2, 5], help="seeds in one program"
    )
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--sentences", type=int, default=256, help="a step")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--seconds", type=float, default=20.0, help="of a turn, at least")
    return parser.parse_args()


def main() -> None:
    """Measures and prints the table; R runs one after the other are as fast as one alone."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        text = folder / "text.npz"
        say(corpus.write(arguments, text))
        workers = {}
        for replicas in sorted({1, *arguments.replicas}):
            options = {
                "text": str(text),
                "model": {"vocabulary_size": 2 * arguments.vocabulary, "layers": arguments.layers},
                "batch": arguments.sentences,
                "cpu_devices": 0,
                "learning_rate": 2e-3,
                "replicas": replicas,
            }
            log = folder / f"{replicas}.log"
            worker = Worker(sys.executable, "our_worker.py", options, VARIABLES, log)
            workers[str(replicas)] = worker
            stack.callback(worker.close)
        results = rounds(workers, arguments.repeats, arguments.seconds, say)
    speeds = {replicas: [speed(x) for x in found] for replicas, found in results.items()}
    print("| replicas in one program | real tokens/s of all | against one after the other |")
    print("|---:|---|---|")
    for replicas, found in speeds.items():
        ratios = [a / b for a, b in zip(found, speeds["1"], strict=True)]
        print(f"| {replicas} | {spread(found, ',.0f')} | {spread(ratios, '.2f')} |")


if __name__ == "__main__":
    main()
