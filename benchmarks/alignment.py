"""How fast are CSLS, VecMap, Procrustes and CKA, and how much memory do they take?

python benchmarks/alignment.py
python benchmarks/alignment.py vecmap

Procrustes is compared with scipy, CKA with its plain formula in numpy, an iteration of VecMap with
one in numpy, and CSLS with its formula in numpy and with one exact search by faiss, which is a part
of its work (`pip install faiss-cpu`; left out if it is missing). Every measurement is a process of
its own, which reports its time after a first call that compiles, and its peak memory; the
contestants take turns.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from turns import ONE_BLAS_THREAD, peak_memory

NEIGHBOURS = 10
SECONDS = 1.0  # for which a contestant is called, at least
ROWS = 1000  # of a block in numpy; the whole matrix would not fit in memory


def points(n: int, d: int, seed: int) -> np.ndarray:
    """Random points of unit length."""
    x = np.random.default_rng(seed).standard_normal((n, d), np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def csls_ours(n: int, d: int) -> Callable[[], object]:
    """The best key of each query by CSLS."""
    import jax

    from xling_jax.linalg import csls

    x, y = (jax.device_put(points(n, d, seed)) for seed in (0, 1))
    return lambda: jax.block_until_ready(csls.top_k(x, y))


def csls_numpy(n: int, d: int) -> Callable[[], object]:
    """CSLS by its formula in numpy, some rows at a time."""
    x, y = points(n, d, 0), points(n, d, 1)

    def density(a, b):
        found = []
        for start in range(0, n, ROWS):
            cosines = a[start : start + ROWS] @ b.T
            found.append(np.partition(cosines, -NEIGHBOURS, axis=1)[:, -NEIGHBOURS:].mean(axis=1))
        return np.concatenate(found)

    def search():
        of_x, of_y = density(x, y), density(y, x)
        best = [
            (2 * x[s : s + ROWS] @ y.T - of_x[s : s + ROWS, None] - of_y).argmax(axis=1)
            for s in range(0, n, ROWS)
        ]
        return np.concatenate(best)

    return search


def search_faiss(n: int, d: int) -> Callable[[], object]:
    """One exact search for the ten nearest; CSLS needs two, and a third one by its own measure."""
    import faiss

    x, y = points(n, d, 0), points(n, d, 1)
    index = faiss.IndexFlatIP(d)
    index.add(y)
    return lambda: index.search(x, NEIGHBOURS)


def vecmap_ours(n: int, d: int) -> Callable[[], object]:
    """One iteration of unsupervised VecMap, which makes some hundred of them."""
    import jax

    from xling_jax.linalg import vecmap

    x, y = (jax.device_put(points(n, d, seed)) for seed in (0, 1))
    pairs = np.random.default_rng(2).integers(0, n, (2 * n, 2))
    return lambda: jax.block_until_ready(vecmap.improve(x, y, pairs, jax.random.key(0), 0.1))


def vecmap_numpy(n: int, d: int) -> Callable[[], object]:
    """An iteration as Artetxe et al. 2018 (§3.3) describe it, some rows at a time: each direction
    computes the cosines of all pairs twice, for its neighbourhoods and for its dictionary."""
    x, y = points(n, d, 0), points(n, d, 1)
    pairs = np.random.default_rng(2).integers(0, n, (2 * n, 2))
    chance = np.random.default_rng(3)

    def density(a, b):
        found = []
        for start in range(0, n, ROWS):
            cosines, rows = a[start : start + ROWS] @ b.T, np.arange(min(ROWS, n - start))
            total = 0.0
            for _ in range(NEIGHBOURS):
                best = cosines.argmax(axis=1)
                total = total + cosines[rows, best]
                cosines[rows, best] = -1
            found.append(total / NEIGHBOURS)
        return np.concatenate(found)

    def dictionary(a, b, density_b):
        found, total = [], 0.0
        for start in range(0, n, ROWS):
            cosines = a[start : start + ROWS] @ b.T
            total += cosines.max(axis=1).sum()
            cosines -= density_b / 2
            cosines *= chance.random(cosines.shape) >= 0.9
            found.append(cosines.argmax(axis=1))
        return np.concatenate(found), total

    def iteration():
        left, _, right = np.linalg.svd(x[pairs[:, 0]].T @ y[pairs[:, 1]])
        a, b = x @ left, y @ right.T
        return dictionary(a, b, density(b, a)), dictionary(b, a, density(a, b))

    return iteration


def procrustes_ours(n: int, d: int) -> Callable[[], object]:
    """The orthogonal map."""
    import jax

    from xling_jax.linalg.procrustes import orthogonal_map

    x, y = (jax.device_put(points(n, d, seed)) for seed in (0, 1))
    return lambda: jax.block_until_ready(orthogonal_map(x, y))


def procrustes_scipy(n: int, d: int) -> Callable[[], object]:
    """The orthogonal map by scipy."""
    import scipy.linalg

    x, y = points(n, d, 0), points(n, d, 1)
    return lambda: scipy.linalg.orthogonal_procrustes(x, y, check_finite=False)


def cka_ours(n: int, d: int) -> Callable[[], object]:
    """Linear CKA."""
    import jax

    from xling_jax.linalg.cka import linear_cka

    x, y = (jax.device_put(points(n, d, seed)) for seed in (0, 1))
    return lambda: jax.block_until_ready(linear_cka(x, y))


def cka_gram(n: int, d: int) -> Callable[[], object]:
    """Linear CKA from the matrices of all pairs of items, as Kornblith et al. 2019 introduce it."""
    x, y = points(n, d, 0), points(n, d, 1)

    def gram():
        k, h = ((z - z.mean(axis=0)) @ (z - z.mean(axis=0)).T for z in (x, y))
        return (k * h).sum() / np.sqrt((k * k).sum() * (h * h).sum())

    return gram


CONTESTANTS = {
    function.__name__: function
    for function in (
        csls_ours,
        csls_numpy,
        search_faiss,
        vecmap_ours,
        vecmap_numpy,
        procrustes_ours,
        procrustes_scipy,
        cka_ours,
        cka_gram,
    )
}
NAMES = ("csls", "vecmap", "procrustes", "cka")  # with which names of contestants begin


def measure(name: str, n: int, d: int) -> None:
    """Prints as JSON the seconds of a call, its CPU seconds on all cores, and the process's peak
    memory."""
    call = CONTESTANTS[name](n, d)
    call()
    took: list[float] = []
    began = time.process_time()
    while sum(took) < SECONDS:
        before = time.perf_counter()
        call()
        took.append(time.perf_counter() - before)
    cpu = (time.process_time() - began) / len(took)
    print(json.dumps({"seconds": statistics.median(took), "CPU": cpu, "GiB": peak_memory()}))


def turn(name: str, n: int, d: int) -> dict[str, float]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--only", name, str(n), str(d)]
    environment = (ONE_BLAS_THREAD if name.endswith("_ours") else {}) | os.environ
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Lets the contestants of each table take turns, and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or of {', '.join(NAMES)}")
    parser.add_argument("--words", type=int, default=50_000, help="of CSLS, and of Procrustes")
    parser.add_argument("--sentences", type=int, default=10_000, help="of CKA")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        name, n, d = arguments.only
        measure(name, int(n), int(d))
        return
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    words, sentences = arguments.words, arguments.sentences
    faiss = ["search_faiss"] if importlib.util.find_spec("faiss") else []
    tables = [
        [("csls_ours", words, 300), *((x, words, 300) for x in ("csls_numpy", *faiss))],
        *([(f"vecmap_{x}", n, 300) for x in ("ours", "numpy")] for n in (2000, 10_000, 20_000)),
        [("procrustes_ours", words, 768), ("procrustes_scipy", words, 768)],
        [("cka_ours", sentences, 768), ("cka_gram", sentences, 768)],
        [("cka_ours", 10 * sentences, 768), ("cka_ours", 20 * sentences, 768)],
        [("csls_ours", words, 300), ("csls_ours", 2 * words, 300)],
    ]
    wanted = tuple(arguments.names or NAMES)
    for entries in (table for table in tables if table[0][0].startswith(wanted)):
        found = [[turn(*entry) for entry in entries] for _ in range(arguments.repeats)]
        print("\n| | n | d | s | times the first | CPU s | times the first | peak GiB |")
        print("|---" * 8 + "|")
        for column, (name, n, d) in enumerate(entries):
            cells = [name, f"{n:,}", str(d)]
            for measured in ("seconds", "CPU"):
                values = [row[column][measured] for row in found]
                times = [row[column][measured] / row[0][measured] for row in found]
                cells.append(f"{statistics.median(values):.3f}")
                spread = f"({min(times):.2f} to {max(times):.2f})"
                cells.append(f"{statistics.median(times):.2f} {spread}")
            cells.append(f"{statistics.median(row[column]['GiB'] for row in found):.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
