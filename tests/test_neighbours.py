"""vocabulary: static vectors of pieces, and their neighbours in other languages."""

import itertools
import os
import types
from unittest import mock

import numpy as np
import pytest
from small_run import config

from xling_jax.experiments.fake_english.experiment import Experiment
from xling_jax.vocabulary import neighbours, pieces, static_vectors
from xling_jax.vocabulary.static_vectors import Vectors

SETTINGS = dict(
    dimension=20,
    learning_rate=0.05,
    window=3,
    min_count=3,
    negative=5,
    sample=0.0,
    epochs=3,
    min_n=3,
    max_n=6,
    buckets=1000,
    threads=1,
)
WORDS = {n: f"word{n}" for n in range(100)}
SHIFT = 500


def text(sentences=400, words=60, rare=77):
    """Sentences of frequent and less frequent words, and one word that occurs twice."""
    random = np.random.default_rng(0)
    shares = 1 / np.arange(1, words + 1)
    drawn = random.choice(words, (sentences, 8), p=shares / shares.sum()).astype(np.int32)
    return [*drawn, np.array([rare, 0, rare], np.int32)]


def test_the_same_seed_gives_the_same_vectors_and_another_does_not():
    first, again, other = (
        static_vectors.train(SETTINGS, text(), WORDS, seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.vectors, again.vectors)
    assert not np.array_equal(first.vectors, other.vectors)
    assert first.vectors.shape == (60, 20)


def test_words_that_share_characters_are_alike_where_n_grams_count():
    """Words of a text without order, so that only their spelling can make them alike."""
    names = {n: f"{'abcdefghij'[n // 10]}" * 5 + f"{n % 10}" for n in range(100)}

    def likeness(settings):
        found = static_vectors.train(settings, text(), names, 1)
        unit = found.vectors / np.linalg.norm(found.vectors, axis=1, keepdims=True)
        is_own = (found.words[:, None] // 10 == found.words // 10) & ~np.eye(60, dtype=bool)
        cosine = unit @ unit.T
        return cosine[is_own].mean() - cosine[~is_own & ~np.eye(60, dtype=bool)].mean()

    few = SETTINGS | {"epochs": 1, "learning_rate": 1e-4}
    assert likeness(few) > 0.3 > 0.1 > abs(likeness(few | {"max_n": 0}))


def test_sentences_are_read_again_in_every_pass_and_never_held():
    class Counted:
        passes = 0

        def __iter__(self):
            self.passes += 1
            yield from text()

    counted = Counted()
    found = static_vectors.train(SETTINGS, counted, WORDS, 1)
    assert counted.passes == 1 + SETTINGS["epochs"]
    np.testing.assert_array_equal(
        found.vectors, static_vectors.train(SETTINGS, text(), WORDS, 1).vectors
    )


def test_a_sentence_is_read_to_its_end():
    """Also behind the 10,000 words that gensim reads of one."""
    long = np.concatenate(text() * 10)
    parts = np.split(long, range(10_000, len(long), 10_000))
    assert len(parts) > 2
    whole, cut = (static_vectors.train(SETTINGS, given, WORDS, 1) for given in ([long], parts))
    np.testing.assert_array_equal(whole.vectors, cut.vectors)


def test_words_come_by_frequency_and_rare_ones_are_left_out():
    found = static_vectors.train(SETTINGS, text(), WORDS, 1)
    counts = np.bincount(np.concatenate(text()))
    assert (np.diff(counts[found.words]) <= 0).all()
    assert counts[77] == 2 and 77 not in found.words
    with pytest.raises(ValueError, match="min_count=3: nothing occurs so often"):
        static_vectors.train(SETTINGS, [np.arange(5)], WORDS, 1)
    with pytest.raises(ValueError, match="min_count=3: nothing occurs so often"):
        static_vectors.train(SETTINGS, [], WORDS, 1)


def test_a_vec_file_gives_the_vectors_of_known_words(tmp_path):
    path = tmp_path / "x.vec"
    path.write_text("4 2\nthe 1 2\ne\u0301 .5 -1\nNew York 3 4 \nthe 9 9\n", encoding="utf-8")
    found = static_vectors.read(path, {"the": 7, "New York": 9, "absent": 3, "\xe9": 5})
    assert found.words.tolist() == [7, 5, 9]
    np.testing.assert_array_equal(found.vectors, [[1, 2], [0.5, -1], [3, 4]])
    path.write_text("\ufeff9 2\nthe 1 2\nof .5 -1\nNew York\n", encoding="utf-8")
    assert static_vectors.read(path, {"the": 7, "of": 1}, most=2).words.tolist() == [7, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the 1 2\nof 1 x\n", "line 2: not a word and 2 numbers"),
        (b"the 1 2\nof 1\n", "line 2: not a word"),
        (b"the 1 2 3 4\nof 1 2\n", "line 2: not a word and 4 numbers"),
        (b"1 9\nthe 1 2 3 4\n", "line 2: not a word and 9 numbers"),
        (b"the 1 2\nna\xefve 1 2\n", "line 2: not valid UTF-8"),
        (b"the 1 nan\n", "line 1: not a word"),
        (b"the 1_0 2\n", "line 1: not a word"),
        (b"the\nof\n", "line 1: not a word and its numbers"),
        (b"3 2\nthe 1 2\nof 1 2\n", "line 4: the file ends after 2 vectors, and .* says 3"),
        (b"1 2\nthe 1 2\nof 1 2\n", "line 3: the first line says 1 vectors; here are more"),
        (b"2 3\nthe 1 2\nof 1 2\n", "line 2: not a word and 3 numbers"),
        (b"2 1\nthe 1 2\nof 1 2\n", "line 2: the first line says 1 numbers a vector; here are"),
        (b"2 1\nthe 1 2\nthe 1\n", "line 2: the first line says 1 numbers a vector; here are"),
        (b"a 1 2\nb 1 2\n", "none of the wanted words"),
        (b"", "none of the wanted words"),
    ],
)
def test_a_bad_vec_file_is_refused_with_its_line(content, message, tmp_path):
    path = tmp_path / "x.vec"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        static_vectors.read(path, {"the": 0, "of": 1})
    with pytest.raises(FileNotFoundError, match="no such file"):
        static_vectors.read(tmp_path / "none.vec", {"the": 0})


def languages(number):
    """Copies of one space, each rotated, of pieces 5.. of each language; some have no vector."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(40, 20))
    points = centres[random.integers(40, size=SHIFT - 5)] * random.gamma(2, size=(SHIFT - 5, 1))
    points += 0.5 * random.normal(size=points.shape)
    found = []
    for k in range(number):
        rotation = np.linalg.qr(random.normal(size=(20, 20)))[0]
        own = (points @ rotation + 0.01 * random.normal(size=points.shape)).astype(np.float32)
        found.append(Vectors(np.arange(5, SHIFT - 10, dtype=np.int32) + k * SHIFT, own[:-10]))
    return found


def test_neighbours_are_the_counterparts_in_every_other_language():
    table = neighbours.find(languages(3), 3 * SHIFT, 2, seed=0)
    assert table.shape == (3 * SHIFT, 4)
    known = np.concatenate([np.arange(5, SHIFT - 10) + k * SHIFT for k in range(3)])
    assert (np.delete(table, known, axis=0) == neighbours.NO_PIECE).all()
    first = table[known].reshape(-1, 2, 2)[:, :, 0]
    assert (first % SHIFT == known[:, None] % SHIFT).mean() > 0.95
    others = [(1, 2), (0, 2), (0, 1)]
    for k, rows in enumerate(np.split(first, 3)):
        assert (rows // SHIFT == others[k]).all()


def test_more_neighbours_than_there_are_vectors_are_refused():
    few = Vectors(np.arange(3, dtype=np.int32), np.eye(3, dtype=np.float32))
    with pytest.raises(ValueError, match="number=5 needs vectors of 20 pieces.*a language has 3"):
        neighbours.find([few, few], 6, 5, seed=0)


def laboratory(workdir, row, **changes):
    """Prepares an experiment, but for a plan of its memory; its tables are then in the workdir."""
    with mock.patch("xling_jax.devices.memory_limit", lambda: None):
        Experiment(config(f"row={row},epochs=1", **changes), workdir)
    return {path.stem: np.load(path) for path in (workdir / "vocabulary").glob("*.npy")}


@pytest.fixture
def made_at_once(monkeypatch):
    """Tables that are made at once, each another one."""
    numbers = itertools.count(5)

    def find(vectors, size, number, seed, tries):
        return np.full((size, number), next(numbers), np.int32)

    monkeypatch.setattr(neighbours, "find", find)


def test_vectors_come_from_what_each_row_is_trained_on(tmp_path, monkeypatch, made_at_once):
    seen = []

    def train(settings, sentences, names, seed):
        assert {names[piece] for sentence in sentences for piece in sentence} <= set(own[seed % 2])
        seen.append({tuple(sentence % 200) for sentence in sentences})
        assert all((sentence % 200 >= 5).all() for sentence in sentences)
        return languages(2)[(seed - 1) % 2]

    laboratory(tmp_path / "names", "0")
    model = next((tmp_path / "names" / "vocabulary").glob("*.model"))
    pieces_ = pieces.Pieces(model.read_bytes()).names[5:]
    own = {1: pieces_, 0: ["::" + name for name in pieces_]}

    monkeypatch.setattr(static_vectors, "train", train)
    tables = laboratory(tmp_path / "run", "30+knn-replace;no-parallel+0")
    assert tables.keys() == {"neighbours-parallel", "neighbours-no-parallel"}
    (whole, again), (first, second) = sorted([seen[:2], seen[2:]], key=lambda x: -len(x[0]))
    assert whole == again and first | second == whole
    # Few of the embedded language's sentences occur twice.
    assert len(first & second) < 0.1 * len(whole)


def test_tables_that_do_not_repeat_are_kept_or_refused(tmp_path, made_at_once):
    threads = {"vocabulary.neighbours.skip_gram.threads": 2}
    (table,) = laboratory(tmp_path, "30", **threads).values()
    (again,) = laboratory(tmp_path, "30", **threads).values()
    np.testing.assert_array_equal(again, table)
    path = tmp_path / "vocabulary" / "neighbours-parallel.npy"
    whole = path.read_bytes()
    turned = str(table.shape[::-1]).encode()
    for damaged in (
        whole.replace(b"}", b" ", 1),  # of which numpy raises a TokenError
        whole.replace(str(table.shape).encode(), turned, 1),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="threads=2 does not make the same table again"):
            laboratory(tmp_path, "30", **threads)
        assert path.read_bytes() == damaged != whole
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="neighbours-parallel.npy is a pipe"):
        laboratory(tmp_path, "30", **threads)


def test_processes_with_different_tables_are_refused(tmp_path, monkeypatch, made_at_once):
    def refuse(own, explain):
        assert own.keys() == {"parallel"}
        raise ValueError(explain({"parallel": "other"}))

    here = types.SimpleNamespace(require_same=refuse)
    monkeypatch.setattr("xling_jax.experiments.fake_english.neighbours.processes", here)
    with pytest.raises(ValueError, match="have different tables of neighbours"):
        laboratory(tmp_path, "30")


def write_vectors(path, names, seed):
    random = np.random.default_rng(0)
    points = random.normal(size=(40, 20))[random.integers(40, size=len(names))]
    points += 0.3 * random.normal(size=points.shape)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(20, 20)))[0]
    rows = [" ".join([n, *map(str, x)]) for n, x in zip(names, points @ rotation, strict=True)]
    path.write_text("\n".join([f"{len(names)} 20", *rows]) + "\n", encoding="utf-8")


def test_vectors_can_come_from_files_whose_change_is_noticed(tmp_path):
    laboratory(tmp_path / "names", "0")
    model = next((tmp_path / "names" / "vocabulary").glob("*.model"))
    names = pieces.Pieces(model.read_bytes()).names[5:]
    files = tmp_path / "en.vec", tmp_path / "fake.vec"
    for seed, (path, prefix) in enumerate(zip(files, ("", "::"), strict=True)):
        write_vectors(path, [prefix + name for name in names], seed)
    vectors = {"vocabulary.neighbours.vectors": tuple(map(str, files))}
    (table,) = laboratory(tmp_path / "run", "30", **vectors).values()
    known = np.r_[5:200, 205:400]
    assert (table[known, 0] == (known + 200) % 400).mean() > 0.95
    (tmp_path / "run" / "vocabulary" / "neighbours-parallel.npy").write_bytes(b"torn")
    (again,) = laboratory(tmp_path / "run", "30", **vectors).values()
    np.testing.assert_array_equal(again, table)
    write_vectors(files[1], ["::" + name for name in names[::-1]], 7)
    (other,) = laboratory(tmp_path / "run", "30", **vectors).values()
    assert (other != table).any(), "a run that has trained nothing follows its files"
    (tmp_path / "run" / "checkpoints" / "0" / "1").mkdir(parents=True)
    write_vectors(files[1], ["::" + name for name in names], 7)
    with pytest.raises(ValueError, match="the content of .*fake.vec"):
        laboratory(tmp_path / "run", "30", **vectors)
    write_vectors(files[0], [name for name in names if "▁" not in name], 0)
    with pytest.raises(ValueError, match="en.vec has no piece that begins a word, such as ▁"):
        laboratory(tmp_path / "words", "30", **vectors)
