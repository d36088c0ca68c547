"""How fast does text become token files, and in how much memory?"""

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from xling_jax.batches.prepare import CHUNK_BYTES, Encoding, prepare
from xling_jax.corpora import text
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.corpora.splitting import Splitter
from xling_jax.vocabulary import pieces, samples

_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes, in which the peak of memory is given


def main() -> None:
    """Prepares a file, repeated to the size asked for."""
    arguments = _parser().parse_args()
    normalization = Normalization(
        punctuation=not arguments.plain, tokenize="none" if arguments.plain else "moses"
    )
    folder = Path(tempfile.mkdtemp(prefix="prepare-", dir=arguments.folder))
    try:
        source = folder / "text.txt"
        size = _repeat(Path(arguments.text), arguments.megabytes * 1_000_000, source)
        normalizer = Normalizer(arguments.language, normalization)
        sample = samples.draw(text.stream([arguments.text]), arguments.sample)
        vocabulary = pieces.train([normalizer(line) for line in sample], arguments.vocabulary)
        encoding = Encoding(
            arguments.language,
            normalization,
            vocabulary,
            Splitter(arguments.language) if arguments.split else None,
        )
        print(f"before: {_peak(resource.RUSAGE_SELF)} MB in this process at its peak", flush=True)
        start = time.perf_counter()
        files = prepare(
            [str(source)],
            encoding,
            folder,
            processes=arguments.processes,
            chunk_bytes=arguments.chunk_bytes,
            say=_say,
        )
        seconds = time.perf_counter() - start
        print(
            f"{size / 1e6:,.0f} MB of text, {files.sentences:,} sentences, {files.total:,} tokens "
            f"in {len(files.shards)} files\n{seconds:.1f} s with {arguments.processes} processes: "
            f"{size / 1e6 / seconds:.2f} MB/s, {files.total / seconds:,.0f} tokens/s\n"
            f"peak of memory: {_peak(resource.RUSAGE_SELF)} MB in this process, "
            f"{_peak(resource.RUSAGE_CHILDREN)} MB in the largest of the others"
        )
    finally:
        shutil.rmtree(folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", required=True, help="a UTF-8 file with a sentence a line")
    parser.add_argument("--language", default="en", help="whose rules normalise it")
    parser.add_argument("--megabytes", type=int, default=1000, help="the text is repeated to these")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--chunk-bytes", type=int, default=CHUNK_BYTES)
    parser.add_argument("--vocabulary", type=int, default=8000, help="pieces")
    parser.add_argument("--sample", type=int, default=20_000, help="sentences to train them on")
    parser.add_argument("--plain", action="store_true", help="leave punctuation and words alone")
    parser.add_argument("--split", action="store_true", help="cut the lines into sentences")
    parser.add_argument("--folder", help="where to write (default: the temporary folder)")
    return parser


def _repeat(source: Path, size: int, target: Path) -> int:
    """Writes `source` again and again until the file has `size` bytes or more; returns its size."""
    data = source.read_bytes()
    data += b"" if data.endswith(b"\n") else b"\n"
    written = 0
    with target.open("wb") as file:
        while written < size:
            written += file.write(data)
    return written


def _peak(whose: int) -> int:
    return round(resource.getrusage(whose).ru_maxrss * _UNIT / 1e6)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
