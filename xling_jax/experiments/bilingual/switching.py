"""A language's token files with words replaced once by translations (W&C §4.2, Extra anchors)."""

import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xling_jax.batches import code_switch, token_files
from xling_jax.batches.code_switch import PieceDictionary
from xling_jax.batches.token_files import Shard, TokenFiles
from xling_jax.training.metrics import say
from xling_jax.vocabulary.pieces import SEP, UNK

FORMAT = 1  # of the files; a new one makes all anew
BLOCK = 2**14  # most tokens whose words are switched together
BLOCKS = 2**10  # in a file


def _blocks(files: TokenFiles) -> Iterator[np.ndarray]:
    """The stream in blocks of whole sentences; only a sentence longer than a block is cut."""
    start = 0
    while start < files.total:
        block = files.read(start, min(BLOCK, files.total - start))
        ends = np.flatnonzero(block == SEP)
        if len(ends):
            block = block[: ends[-1] + 1]
        yield block
        start += len(block)


def switch_once(
    files: TokenFiles,
    words: PieceDictionary,
    seed_parts: tuple[int, int],
    probability: float,
    most: float,
    folder: Path,
) -> TokenFiles:
    """Makes the token files of a text with words replaced, or opens them if they are there.

    Only one block is in memory at a time; what a killed run left unfinished is made again. For
    `probability` and `most` see `code_switch.switch`; `seed_parts` are the seed and the language's
    number, `folder` is where prepared texts are.
    """
    entries = hashlib.sha256()
    for word, (translations, sums) in sorted(words.entries.items()):
        entries.update(b"|".join([word, *translations]) + repr(sums).encode())
    decides = [FORMAT, files.key, entries.hexdigest(), BLOCK, *seed_parts, probability, most]
    key = hashlib.sha256(json.dumps(decides).encode()).hexdigest()
    own = folder / f"{files.folder.name.rpartition('-')[0]}-switched-{key[:16]}"
    if made := TokenFiles.open_unchanged(own):
        return made
    blocks = enumerate(_blocks(files))
    shards: list[Shard] = []
    changed, dtype = 0, token_files.token_type(len(words.starts))
    while first := list(itertools.islice(blocks, 1)):
        counts = {"sentences": 0, "words": 0, "unknown": 0}
        digest = hashlib.sha256()

        def parts(first=first, counts=counts, digest=digest) -> Iterator[np.ndarray]:
            nonlocal changed
            for place, block in itertools.chain(first, itertools.islice(blocks, BLOCKS - 1)):
                switched = code_switch.switch(
                    block, words, (*seed_parts, 0, place), probability=probability, most=most
                )
                changed += switched.changed
                counts["sentences"] += int(np.count_nonzero(block == SEP))
                counts["words"] += switched.words
                counts["unknown"] += int(np.count_nonzero(block == UNK))
                digest.update(switched.tokens.tobytes())
                yield switched.tokens

        path = own / f"{len(shards):05}.tokens.npy"
        shards.append(token_files.write_shard(path, parts(), dtype, digest, counts))
    number = sum(shard.words for shard in shards)
    tokens = sum(shard.tokens for shard in shards)
    say(f"{files.manifest['language']}: {changed:,} of {number:,} words replaced by translations")
    manifest = {**files.manifest, "words": number, "tokens": tokens, "switched": changed}
    return token_files.write_index(own, key, manifest, shards)
