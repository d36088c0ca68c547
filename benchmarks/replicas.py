"""Are seeds trained faster side by side, one a device, or one after the other, each on all?

python benchmarks/replicas.py

BERT-small of Dufter & Schütze 2020 (§2.1), 256 sentences a step, on the CPU, one device a core.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from pathlib import Path

import corpus
from turns import LARGE_PAGES, Worker, rounds, say, speed, spread

TOGETHER, IN_TURN = "side by side", "one after the other"


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    corpus.add_arguments(parser)
    cores = min(8, len(os.sched_getaffinity(0)))
    parser.add_argument("--replicas", type=int, default=cores, help="seeds side by side")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--sentences", type=int, default=256, help="a step")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--seconds", type=float, default=20.0, help="of a turn, at least")
    return parser.parse_args()


def main() -> None:
    """Measures and prints the table; seeds one after the other are as fast as one alone."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        text = folder / "text.npz"
        say(corpus.write(arguments, text))
        workers = {}
        for contestant, replicas in [(TOGETHER, arguments.replicas), (IN_TURN, 1)]:
            options = {
                "text": str(text),
                "layers": arguments.layers,
                "sentences": arguments.sentences,
                "learning_rate": 2e-3,
                "replicas": replicas,
            }
            variables = {"JAX_PLATFORMS": "cpu", **LARGE_PAGES}
            log = folder / f"{replicas}.log"
            workers[contestant] = Worker(sys.executable, "our_worker.py", options, variables, log)
            stack.callback(workers[contestant].close)
        results = rounds(workers, arguments.repeats, arguments.seconds, say)
    speeds = {contestant: [speed(x) for x in found] for contestant, found in results.items()}
    ratios = [a / b for a, b in zip(speeds[TOGETHER], speeds[IN_TURN], strict=True)]
    print("| | real tokens/s, all seeds together |\n|---|---|")
    for contestant, found in speeds.items():
        print(f"| {arguments.replicas} seeds {contestant} | {spread(found, ',.0f')} |")
    print(f"\nSide by side is {spread(ratios, '.2f')} times as fast.")


if __name__ == "__main__":
    main()
