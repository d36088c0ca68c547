"""The neighbour tables of an experiment's knn-replace rows (D&S §4)."""

import hashlib
import io
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from xling_jax import errors, processes
from xling_jax.batches.packing import own_parts
from xling_jax.batches.setting import Modifications
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import sources
from xling_jax.experiments.fake_english.data import Data
from xling_jax.files import require_regular, write_beside
from xling_jax.training.metrics import say
from xling_jax.vocabulary import neighbours, static_vectors
from xling_jax.vocabulary.pieces import BLANK, SPECIALS
from xling_jax.vocabulary.static_vectors import Vectors

FIELD = "vocabulary.neighbours"
NAMES = {True: "parallel", False: "no-parallel"}


class Neighbours:
    """Tables of neighbours [V, N]: for rows trained on all text (True), and for no-parallel rows.

    Only those that some row needs are made; a table without neighbours serves all other rows.
    """

    def __init__(
        self,
        config: ConfigDict,
        data: Data,
        rows: Iterable[Modifications],
        folder: Path,
        stored: Mapping[str, str],
    ):
        """Takes the tables of a stored run from a folder, or makes those that the rows need.

        `stored` has the hash of each table that the run began with, and is empty for a new run.

        Raises:
          ValueError, FileNotFoundError: a field of vocabulary.neighbours cannot be used; or a
            table is not the one that the run began with, or that the first process has.
        """
        needed = {row.is_parallel for row in rows if row.needs_neighbours}
        self._tables = {which: _table(config, data, which, folder, stored) for which in needed}
        self.hashes = {NAMES[which]: _sha256(table) for which, table in self._tables.items()}
        processes.require_same(
            self.hashes,
            lambda _: (
                "the processes of this run have different tables of neighbours (other "
                f"devices, or {FIELD}.skip_gram.threads above 1): make them with one process first"
            ),
        )
        self._qualities = {which: quality(data, table) for which, table in self._tables.items()}
        for found in self._qualities.values():
            say(", ".join(f"{name} {value:.3f}" for name, value in found.items()))
        width = next((table.shape[1] for table in self._tables.values()), 1)
        self._none = neighbours.nothing(data.vocabulary.size, width)

    def of(self, row: Modifications) -> np.ndarray:
        return self._tables[row.is_parallel] if row.needs_neighbours else self._none

    def quality(self, row: Modifications) -> Mapping[str, float]:
        """How good a row's table is; empty for a row that uses none."""
        return self._qualities[row.is_parallel] if row.needs_neighbours else {}


def _sha256(table: np.ndarray) -> str:
    return hashlib.sha256(table.tobytes()).hexdigest()


def _table(
    config: ConfigDict, data: Data, is_parallel: bool, folder: Path, stored: Mapping[str, str]
) -> np.ndarray:
    """The stored table, or a new one, which is written into the folder."""
    name, section = NAMES[is_parallel], config.vocabulary.neighbours
    path, wanted = folder / f"neighbours-{name}.npy", stored.get(name)
    if wanted and path.exists():
        require_regular(path)
        shape = data.vocabulary.size, section.number * (len(data.vocabulary.languages) - 1)
        try:
            table = np.load(path, allow_pickle=False)
            if (table.dtype, table.shape, _sha256(table)) == (np.int32, shape, wanted):
                return table
        except Exception:  # of a damaged file: numpy raises errors of many kinds
            pass
    if wanted and section.skip_gram.threads > 1 and not section.vectors:
        raise ValueError(
            f"{path} is missing or damaged, and {FIELD}.skip_gram.threads="
            f"{section.skip_gram.threads} does not make the same table again: put the file back, "
            "or choose another --workdir"
        )
    with errors.in_field(FIELD):
        vectors = _vectors(config, data, is_parallel)
        say("mapping the vectors of the languages into one space, without a dictionary")
        table = neighbours.find(
            vectors, data.vocabulary.size, section.number, section.seed, section.tries
        )
    if wanted and _sha256(table) != wanted:
        raise ValueError(
            f"{path} is missing or damaged, and the table made now is not the one that this run "
            "began with (other versions of the program or its libraries, or another device): put "
            "the file back, or choose another --workdir"
        )
    file = io.BytesIO()
    np.save(file, table)
    write_beside(path, file.getvalue())
    return table


def _vectors(config: ConfigDict, data: Data, is_parallel: bool) -> list[Vectors]:
    """Vectors of each language's pieces: from the files that the config names, or else by skip-gram
    from the text that the rows are trained on.

    The languages' vectors are trained side by side, with the same results as one by one.
    """
    section, store, vocabulary = config.vocabulary.neighbours, data.train, data.vocabulary
    languages, names = len(vocabulary.languages), vocabulary.names()
    # Natural languages may have pieces in common.
    own = [{piece: names[piece] for piece in vocabulary.ordinary(k)} for k in range(languages)]
    if section.vectors:
        return [_read(path, pieces) for path, pieces in zip(section.vectors, own, strict=True)]
    chosen = np.arange(len(store)) if is_parallel else own_parts(len(store), languages)
    settings = section.skip_gram.to_dict()
    say(f"training {settings['dimension']}-dimensional vectors of {vocabulary.size:,} pieces")
    results: list[Future[Vectors]] = [Future() for _ in range(languages)]

    class Text:
        """The ordinary pieces of a language's sentences, read from the store in every pass."""

        def __init__(self, language: int):
            self._numbers = chosen[store.languages[chosen] == language]

        def __iter__(self) -> Iterator[np.ndarray]:
            for sentence in map(store.sentence, self._numbers):
                yield sentence[sentence % vocabulary.shift >= SPECIALS]

    def train(language: int) -> None:
        try:  # the languages' seeds differ: Fake-English has the text of English
            seed = (section.seed + language + 1) % 2**32
            found = static_vectors.train(settings, Text(language), own[language], seed)
            results[language].set_result(found)
        except BaseException as error:
            results[language].set_exception(error)

    for language in range(languages):  # daemons do not delay the end of the program
        threading.Thread(target=train, args=(language,), daemon=True).start()
    return [result.result() for result in results]


def _read(path: str, names: Mapping[int, str]) -> Vectors:
    """The vectors of a `.vec` file for pieces of these names; ValueError also if its words are no
    pieces: then none begins with the mark of a blank, and those that look like a piece inside words
    are other words."""
    found = static_vectors.read(path, {name: piece for piece, name in names.items()})
    starts = [name for name in names.values() if BLANK in name]
    if not any(BLANK in names[int(piece)] for piece in found.words):
        raise ValueError(
            f"{path} has no piece that begins a word, such as {', '.join(starts[-3:])}: give "
            "vectors of pieces, not of words, trained on text that vocabulary/*.model of the "
            "workdir has cut"
        )
    return found


def manifest(config: ConfigDict) -> list[dict[str, str]]:
    """The `.vec` files that the config names, with their hashes; ValueError or FileNotFoundError
    where there is not one for each language, or one cannot be read."""
    paths, languages = tuple(config.vocabulary.neighbours.vectors), tuple(config.corpora.languages)
    if paths and len(paths) != len(languages):
        raise ValueError(f"{FIELD}.vectors={paths}: give a .vec file for each of {languages}")
    # Entries have no `field`, since those of stored runs lack it.
    with errors.in_field(f"{FIELD}.vectors"):
        return [
            {
                "source": str(Path(path)),
                "language": "vectors",
                "sha256": sources.fingerprint(path),
                "path": path,
            }
            for path in paths
        ]


def whole_pieces(words: TokenStore | None, languages: int) -> np.ndarray:
    """The pieces of those words that are one piece in every language, `[N, languages]`; `words` are
    n of each language, as in `EncodedTexts`."""
    if words is None:
        return np.zeros((0, languages), np.int32)
    starts_LxN, counts_LxN = (
        x.reshape(languages, -1) for x in (words.offsets[:-1], np.diff(words.offsets))
    )
    return words.tokens[starts_LxN[:, (counts_LxN == 1).all(axis=0)]].T


def quality(data: Data, table: np.ndarray) -> dict[str, float]:
    """The share of occurring pieces that have neighbours and, of those whose translations are
    known, the share of nearest neighbours that are right: over all pairs of languages and, if there
    are several, in each, both directions. A share over no pieces is left out."""
    vocabulary, languages = data.vocabulary, data.vocabulary.languages
    translations_NxL = whole_pieces(data.evaluated.words, len(languages))
    is_ordinary = np.arange(vocabulary.size) % vocabulary.shift >= SPECIALS
    has_one = table[:, 0] != neighbours.NO_PIECE
    nearest = table.reshape(len(table), len(languages) - 1, -1)[:, :, 0]

    def are_right(own: int, other: int) -> np.ndarray:
        known_Nx2 = translations_NxL[:, [own, other]]
        known_Nx2 = known_Nx2[has_one[known_Nx2[:, 0]]]
        return nearest[known_Nx2[:, 0], other - (other > own)] == known_Nx2[:, 1]

    is_right = {
        f"_{languages[x]}-{languages[y]}": np.concatenate([are_right(x, y), are_right(y, x)])
        for x, y in itertools.combinations(range(len(languages)), 2)
    }
    counts = np.bincount(data.train.tokens, minlength=vocabulary.size)
    shares = {"_known": has_one[is_ordinary & (counts > 0)]}
    shares["_right"] = np.concatenate(list(is_right.values()))
    if len(is_right) > 1:
        shares |= {f"_right{pair}": values for pair, values in is_right.items()}
    return {f"neighbours{name}": float(each.mean()) for name, each in shares.items() if len(each)}
