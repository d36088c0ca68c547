"""batches.prepare: the same token files from any text, however it is cut, stopped or shared out."""

import dataclasses
import gzip
import hashlib
import os
import pickle
import random
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from xling_jax.batches import prepare as preparation
from xling_jax.batches import token_files
from xling_jax.batches.prepare import Encoding, Job, make_shard, prepare
from xling_jax.batches.store import TokenStore
from xling_jax.batches.token_files import TokenFiles
from xling_jax.corpora import sources, text
from xling_jax.corpora.normalize import Normalization
from xling_jax.corpora.splitting import Splitter
from xling_jax.vocabulary import pieces
from xling_jax.vocabulary.pieces import SEP, UNK

PLAIN = Normalization(punctuation=False, tokenize="none")


def some_text(lines: int = 600) -> list[str]:
    """Lines of one to three sentences, some blank, with characters of one to four bytes."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abdeéilmößжд", k=draw.randint(2, 8))) for _ in range(200)]
    return [
        " ".join(f"{' '.join(draw.choices(words, k=6))}, «x»." for _ in range(draw.randint(0, 3)))
        for _ in range(lines)
    ]


TEXT = some_text()


@pytest.fixture(scope="module")
def vocabulary():
    return pieces.train([line for line in TEXT if line], 150)


@pytest.fixture
def encoding(vocabulary):
    return Encoding("fr", Normalization(), vocabulary, split=Splitter("fr"))


@pytest.fixture
def source(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(TEXT), "utf-8")
    return str(tmp_path / "text.txt")


def contents(files: TokenFiles) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def expected(encoding: Encoding, lines=TEXT) -> np.ndarray:
    sentences = list(encoding.sentences(lines))
    return np.concatenate([[*ids, SEP] for ids in encoding.pieces.encode(sentences)])


def test_the_stream_is_every_sentence_and_a_sep(encoding, source, tmp_path):
    files = prepare([source], encoding, tmp_path, chunk_bytes=5000)
    stream = files.as_array()
    assert stream.dtype == np.int32 and len(files.shards) > 5
    np.testing.assert_array_equal(stream, expected(encoding))
    sentences = list(text.stream([source], Splitter("fr")))
    assert files.total == len(stream) and files.sentences == len(sentences) == sum(stream == SEP)
    for shard in files.shards:
        tokens = np.load(files.folder / shard.file, allow_pickle=False)
        assert tokens.dtype == np.uint16 and tokens.shape == (shard.tokens,)
    assert TokenFiles.open_unchanged(files.folder)


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_words_are_cut_as_in_their_sentences(model_type, monkeypatch):
    """Also where nothing is remembered, characters are unknown, or text has the mark of a blank."""
    lines = [line for line in TEXT if line]
    vocabulary = pieces.train(lines, 150, model_type=model_type)
    assert vocabulary.cuts_words_alone == (model_type == "bpe")
    given = [*lines, "☃ [MASK] <unk> ☃☃", "[SEP]", "☃", "le " * 3 + "e" * 40]
    known: dict[str, bytes] = {}
    for most in (10_000, 0):
        monkeypatch.setattr(preparation, "_MOST_WORDS", most)
        for batch in (given, [*given, "a▁b ▁ ▁c"], given[:3]):
            ids, lengths = preparation._encode(batch, vocabulary, known)
            encoded = vocabulary.encode(batch)
            np.testing.assert_array_equal(ids, np.concatenate(encoded))
            assert lengths == list(map(len, encoded))
            assert max(map(len, known), default=0) <= 32


def test_any_number_of_processes_makes_the_same_files(encoding, source, tmp_path):
    several = [source, sources.Lines("memory", tuple(TEXT[:50])), source]
    made = [
        prepare(several, encoding, tmp_path / str(number), processes=number, chunk_bytes=9000)
        for number in (1, 2)
    ]
    assert contents(made[0]) == contents(made[1]) and len(made[0].shards) > 5
    assert made[0].folder.name == made[1].folder.name
    np.testing.assert_array_equal(made[0].as_array(), expected(encoding, TEXT + TEXT[:50] + TEXT))


def test_what_was_stopped_goes_on_to_the_same_files(encoding, source, tmp_path):
    files = prepare([source], encoding, tmp_path, chunk_bytes=5000)
    before = contents(files)
    written = {path: path.stat().st_mtime_ns for path in files.folder.glob("*.npy")}
    (files.folder / token_files.INDEX).unlink()
    lost = [files.folder / shard.file for shard in files.shards[1::2]]
    lost[0].write_bytes(lost[0].read_bytes()[:-2])  # torn
    lost[1].with_name(lost[1].stem + ".json").write_text("{")
    for path in lost[2:]:
        path.unlink()
    (files.folder / f".{lost[2].name}.123").write_bytes(b"half")
    again = prepare([source], encoding, tmp_path, chunk_bytes=5000)
    assert contents(again) == before
    for path, time in written.items():
        assert (path.stat().st_mtime_ns == time) == (path not in lost), path


def test_what_is_finished_is_opened(encoding, source, tmp_path, monkeypatch):
    said = []
    files = prepare([source], encoding, tmp_path, say=said.append)
    monkeypatch.setattr(preparation, "make_shard", lambda job: pytest.fail("made again"))
    assert prepare([source], encoding, tmp_path).key == files.key
    assert len(said) == 1 and f"fr: {files.sentences:,} sentences" in said[0]


def test_what_decides_the_content_decides_the_folder(encoding, source, tmp_path):
    size = encoding.pieces.size
    choices = [
        encoding,
        dataclasses.replace(encoding, language="de"),
        dataclasses.replace(encoding, normalization=PLAIN),
        dataclasses.replace(encoding, split=None),
        dataclasses.replace(encoding, split=Splitter("fr", clauses=True)),
        dataclasses.replace(encoding, ids=np.arange(size)),
        dataclasses.replace(encoding, pieces=pieces.train([x for x in TEXT if x], 149)),
    ]
    made = [prepare([source], choice, tmp_path) for choice in choices]
    made += [prepare([source], encoding, tmp_path, limit=limit) for limit in (3, 9999)]
    made += [prepare([source], encoding, tmp_path, chunk_bytes=9000)]
    made += [prepare([source, source], encoding, tmp_path)]
    assert len({files.folder for files in made}) == len({files.key for files in made}) == 11


@pytest.mark.parametrize("max_length", [4, 9, 99])
def test_a_token_store_has_the_sentences_of_token_files(encoding, source, tmp_path, max_length):
    files = [prepare([source], encoding, tmp_path, limit=limit) for limit in (None, 7)]
    found = TokenStore.from_files(files, max_length)
    ids = encoding.pieces.encode(list(encoding.sentences(TEXT)))
    expected = TokenStore.from_languages([ids, ids[:7]], max_length)
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
    assert len(found) == len(ids) + 7 and (found.truncated > 7) == (max_length < 99)


def test_compressed_text_and_text_in_memory_give_the_same_stream(encoding, source, tmp_path):
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress("\n".join(TEXT).encode()))
    plain = prepare([source], encoding, tmp_path).as_array()
    for other in (str(packed), sources.Lines("memory", tuple(TEXT))):
        files = prepare([other], encoding, tmp_path, chunk_bytes=7000)
        np.testing.assert_array_equal(files.as_array(), plain)
        assert files.manifest["sources"] == [sources.name(other)]


def test_a_read_crosses_files_and_the_end(encoding, tmp_path, monkeypatch):
    monkeypatch.setattr(token_files, "_OPEN", 2)
    blank = tuple([""] * 40)  # makes files without a token
    lines = sources.Lines("memory", (*blank, *TEXT[:40], *blank, *TEXT[40:60], *blank))
    files = prepare([lines], encoding, tmp_path, chunk_bytes=40)
    assert min(shard.tokens for shard in files.shards) == 0 and len(files.shards) > 20
    stream = files.as_array()
    ends = np.flatnonzero(stream == SEP)
    np.testing.assert_array_equal(files.sentence_starts, [0, *(ends[:-1] + 1)])
    endless = np.concatenate([stream] * 4)
    draw = np.random.default_rng(0)
    for start, length in draw.integers(0, (files.total, 999), (40, 2)).tolist():
        part = files.read(start, length)
        assert part.dtype == np.int32
        np.testing.assert_array_equal(part, endless[start : start + length])
    np.testing.assert_array_equal(files.read(5, 3 * files.total), endless[5 : 5 + 3 * len(stream)])
    np.testing.assert_array_equal(files.read(files.total * 7 + 3, 9), stream[3:12])
    copy = pickle.loads(pickle.dumps(files))
    np.testing.assert_array_equal(copy.as_array(), stream)


def test_threads_may_read_more_files_than_are_open_at_a_time(
    encoding, source, tmp_path, monkeypatch
):
    monkeypatch.setattr(token_files, "_OPEN", 1)
    files = prepare([source], encoding, tmp_path, chunk_bytes=300)
    assert len(files.shards) > 20
    stream = files.as_array()
    starts = np.random.default_rng(0).integers(0, files.total - 9, 20_000).tolist()
    with ThreadPoolExecutor(8) as pool:
        for start, part in zip(starts, pool.map(lambda x: files.read(x, 9), starts), strict=True):
            np.testing.assert_array_equal(part, stream[start : start + 9])


@pytest.mark.parametrize(
    ("limit", "processes"), [(1, 1), (30, 1), (31, 1), (400, 1), (1, 2), (400, 2)]
)
def test_a_limit_keeps_the_first_sentences(encoding, source, tmp_path, limit, processes):
    everything = prepare([source], encoding, tmp_path).as_array()
    files = prepare(
        [source], encoding, tmp_path, limit=limit, processes=processes, chunk_bytes=5000
    )
    end = np.flatnonzero(everything == SEP)[limit - 1] + 1
    np.testing.assert_array_equal(files.as_array(), everything[:end])
    assert files.sentences == files.manifest["sentences"] == limit
    on_disk = sorted(path.name for path in files.folder.glob("*.npy"))
    assert on_disk == [shard.file for shard in files.shards]


def test_ids_of_a_joint_vocabulary_stand_in_for_pieces(encoding, source, tmp_path):
    own = prepare([source], encoding, tmp_path).as_array()
    size = encoding.pieces.size
    for shift, dtype in ((1000, np.uint16), (2**16, np.uint32)):
        ids = np.arange(size, dtype=np.int32)
        ids[5:] += shift
        files = prepare([source], dataclasses.replace(encoding, ids=ids), tmp_path)
        np.testing.assert_array_equal(files.as_array(), np.where(own < 5, own, own + shift))
        assert np.load(files.folder / files.shards[0].file).dtype == dtype


def test_the_manifest_says_what_was_read(vocabulary, tmp_path):
    encoding = Encoding("::x/y", PLAIN, vocabulary)
    files = prepare([sources.Lines("here", ("дж ж", "", "日本 x"))], encoding, tmp_path)
    stream = files.as_array()
    content = hashlib.sha256("дж ж\n日本 x".encode()).hexdigest()
    assert files.manifest == {
        "language": "::x/y",
        "sources": ["here"],
        "sentences": 2,
        "words": 4,
        "tokens": files.total,
        "unknown": np.mean(stream[stream != SEP] == UNK),
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
    }
    assert files.folder.parent == tmp_path and files.manifest["unknown"] > 0
    assert TokenFiles.open(files.folder).manifest == files.manifest


def test_a_flipped_bit_in_any_file_changes_no_token(encoding, source, tmp_path):
    whole = prepare([source], encoding, tmp_path, chunk_bytes=9000).as_array()
    random = np.random.default_rng(0)
    for path in sorted(tmp_path.glob("*/*")):
        content = bytearray(path.read_bytes())
        content[random.integers(len(content))] ^= 1 << int(random.integers(8))
        path.write_bytes(content)
        again = prepare([source], encoding, tmp_path, chunk_bytes=9000)
        np.testing.assert_array_equal(again.as_array(), whole)


def test_a_changed_file_is_refused_and_made_anew(encoding, source, tmp_path):
    files = prepare([source], encoding, tmp_path, chunk_bytes=9000)
    before, path = contents(files), files.folder / files.shards[1].file
    whole = path.read_bytes()
    for content, message in [
        (whole[:-2], f"{path.name} is {len(whole) - 2} bytes"),
        (None, "No s"),
    ]:
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(ValueError, match=f"index.json cannot be used .*{message}.*: prepare"):
            TokenFiles.open(files.folder)
    assert contents(prepare([source], encoding, tmp_path, chunk_bytes=9000)) == before
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert TokenFiles.open_unchanged(files.folder) is None
    path.write_bytes(b"x" * len(whole))
    with pytest.raises(ValueError, match=f"{path.name} cannot be read"):
        TokenFiles.open(files.folder).as_array()
    (files.folder / token_files.INDEX).write_text("{}")
    with pytest.raises(ValueError, match="index.json cannot be used"):
        TokenFiles.open(files.folder)
    assert contents(prepare([source], encoding, tmp_path, chunk_bytes=9000)) == before


@pytest.mark.parametrize("processes", [1, 2])
def test_errors_of_a_source_come_through(encoding, tmp_path, processes):
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"one line\n" * 100 + b"caf\xe9\n" + b"one line\n" * 100)
    with pytest.raises(ValueError, match="latin.txt, line 101: not valid UTF-8"):
        prepare([str(latin)], encoding, tmp_path, chunk_bytes=500, processes=processes)
    for nothing in ([sources.Lines("a", ())], [sources.Lines("a", ("", " ")), str(latin)][:1]):
        with pytest.raises(ValueError, match="a has no text: it is empty"):
            prepare(nothing, encoding, tmp_path)
    with pytest.raises(FileNotFoundError, match="none.txt: no such file"):
        prepare([str(tmp_path / "none.txt")], encoding, tmp_path, processes=processes)


def test_a_source_that_changes_after_it_was_hashed_leaves_no_file(
    encoding, source, tmp_path, monkeypatch
):
    chunks = sources.chunks

    def late(*args):
        with open(source, "a", encoding="utf-8") as file:
            file.write("\na new line")
        return chunks(*args)

    monkeypatch.setattr(sources, "chunks", late)
    with pytest.raises(ValueError, match="text.txt was changed while it was read: start again"):
        prepare([source], encoding, tmp_path, chunk_bytes=5000)
    monkeypatch.undo()
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(TEXT))
    files = prepare([source], encoding, tmp_path, chunk_bytes=5000)
    np.testing.assert_array_equal(files.as_array(), expected(encoding))


class Ending(Encoding):
    def sentences(self, lines):
        os._exit(9)


def test_an_ended_process_is_named(encoding, source, tmp_path):
    ending = Ending(encoding.language, encoding.normalization, encoding.pieces)
    with pytest.raises(ValueError, match="processes=2: one of them was ended from outside"):
        prepare([source], ending, tmp_path, processes=2, chunk_bytes=9000)


def test_workers_import_no_jax_and_run_no_main_module_again(encoding, source, tmp_path):
    encoding.pieces.save(tmp_path / "pieces.model")
    (tmp_path / "program.py").write_text(
        f"""
import sys
import xling_jax.batches.prepare
from xling_jax.batches.prepare import Encoding
from xling_jax.corpora.normalize import Normalization
from xling_jax.vocabulary.pieces import Pieces
print("jax" in sys.modules)
encoding = Encoding("fr", Normalization(), Pieces.load("{tmp_path}/pieces.model"))
made = xling_jax.batches.prepare.prepare(
    ["{source}"], encoding, "{tmp_path}", processes=2, chunk_bytes=20000
)
print(len(made.shards) > 1)
"""
    )
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_memory_does_not_grow_with_the_text(vocabulary, tmp_path):
    line = "abcde éжд, ößl. " * 6
    path = tmp_path / "large.txt"
    path.write_text(f"{line}\n" * (30 * 2**20 // len(f"{line}\n".encode())), "utf-8")
    chunks = sources.chunks(str(path), 2**20)
    assert len(chunks) in (30, 31)
    shard_path, state = tmp_path / "00003.tokens.npy", sources.state(str(path))
    job = Job(chunks[3], state, "", shard_path, Encoding("x", PLAIN, vocabulary), None)
    tracemalloc.start()
    try:
        read = sum(1 for _ in sources.lines(sources.Chunk(str(path))))
        assert read > 200_000 and tracemalloc.get_traced_memory()[1] < 3 * 2**20
        tracemalloc.reset_peak()
        shard = make_shard(job)
        assert shard.tokens > 400_000 and tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
