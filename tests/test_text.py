"""corpora: sentences come out clean, counted and hashed, from files and from TFDS."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import subprocess
import sys
import tarfile
import unicodedata

import numpy as np
import pytest

from xling_jax.corpora import sources, text
from xling_jax.corpora.splitting import Splitter


def write(path: pathlib.Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def test_a_line_is_a_sentence_whatever_the_line_ends(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        source = write(tmp_path / "a.txt", end.join(["In the beginning.", "", "And."]).encode())
        read = text.read(source, "en")
        assert read.sentences == ["In the beginning.", "And."]
        assert (read.language, read.source) == ("en", source)


def test_a_lone_carriage_return_in_a_very_long_first_line_ends_no_line(tmp_path):
    long = "a " * 2**18
    source = write(tmp_path / "a.txt", f"b\r{long}\nc\n".encode())
    assert [len(x) for x in text.read(source, "en").sentences] == [len(f"b {long}".strip()), 1]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_lone_carriage_return_among_other_line_ends_ends_no_line(tmp_path, end):
    other = write(tmp_path / "b.txt", b"one\ntwo three\nfour\nfive")
    source = write(tmp_path / "a.txt", end.join(["eins", "zwei\rdrei", "vier\r", "fünf"]).encode())
    sides = text.read_parallel(source, other, ("de", "en"))
    assert sides[0].sentences == ["eins", "zwei drei", "vier", "fünf"]
    assert [x.start for x in sources.chunks(source, 8)] == [0, 13 + 2 * len(end)]
    with open(source, "ab") as file:
        file.write(b"\xff")
    with pytest.raises(ValueError, match="a.txt, line 4: not valid UTF-8"):
        text.read(source, "de")


def test_the_hash_is_of_the_sentences_alone(tmp_path):
    plain = text.read(write(tmp_path / "a.txt", b"one\ntwo\n"), "en")
    blank = text.read(write(tmp_path / "b.txt", b"\xef\xbb\xbf one \n\n\ntwo"), "en")
    assert plain.sha256 == blank.sha256 == hashlib.sha256(b"one\ntwo").hexdigest()
    assert text.from_sentences(["one", "two!"], "en", "here").sha256 != plain.sha256


def test_text_is_composed_and_free_of_control_characters():
    decomposed = unicodedata.normalize("NFD", "été à l'hôtel")
    made = text.from_sentences(
        [f"\ufeff{decomposed}", "a\x00b\x07c\td\x85e", "u\ufeff\u0308ber\u00a0 alles", " \x1f "],
        "fr",
        "here",
    )
    assert made.sentences == ["été à l'hôtel", "a b c d e", "über alles"]
    assert text.from_sentences(made.sentences, "fr", "here") == made


def test_splitting_loses_no_words(tmp_path):
    lines = ["A b; c day. Ed", "f: 3.5 g", 'H "i j." k']
    source = write(tmp_path / "a.txt", "\n".join(lines).encode())
    split = text.read(source, "en", split=Splitter("en", clauses=True))
    assert " ".join(split.sentences).split() == " ".join(lines).split()
    assert split.sentences[:2] == ["A b;", "c day."]


def test_limit_counts_sentences_after_splitting(tmp_path):
    source = write(tmp_path / "a.txt", b"One. Two. Three.\nFour.")
    assert text.read(source, "en", split=Splitter("en"), limit=2).sentences == ["One.", "Two."]
    assert len(text.read(source, "en", limit=2).sentences) == 2
    with pytest.raises(ValueError, match="5 sentences are wanted, but .*a.txt has 4: lower"):
        text.read(source, "en", split=Splitter("en"), limit=5)


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.txt: no such file"):
        text.read(str(tmp_path / "none.txt"), "en")
    with pytest.raises(ValueError, match="is a folder: name one file"):
        text.read(str(tmp_path), "en")
    for nothing in (b"", b"\n \r\n\t\n", b"\xef\xbb\xbf"):
        with pytest.raises(ValueError, match="a.txt has no text"):
            text.read(write(tmp_path / "a.txt", nothing), "en")
    for end in (b"\n", b"\r\n", b"\r"):
        latin = end.join([b"one", b"", b"caf\xe9 noir", b"more"])
        with pytest.raises(ValueError, match=r"a.txt, line 3: not valid UTF-8 \(byte 0xe9\)"):
            text.read(write(tmp_path / "a.txt", latin), "fr")


PLAIN = "one\ntwo\n"


def tar(content: bytes) -> bytes:
    archive, member = io.BytesIO(), tarfile.TarInfo("a.txt")
    member.size = len(content)
    with tarfile.open(fileobj=archive, mode="w") as file:
        file.addfile(member, io.BytesIO(content))
    return archive.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (PLAIN.encode("utf-16"), "line 1: .* looks like UTF-16: .* iconv -f utf-16 "),
        (PLAIN.encode("utf-16-le"), "line 1: a NUL byte. It looks like UTF-16LE: .* utf-16le"),
        (PLAIN.encode("utf-16-be"), "line 1: a NUL byte. It looks like UTF-16BE"),
        ("好的\n是\n".encode("utf-16-le"), "It looks like UTF-16LE"),
        ("привет\nмир\n".encode("utf-16-le"), "It looks like UTF-16LE"),
        ("नमस्ते\nदुनिया\n".encode("utf-16-be"), "It looks like UTF-16BE"),
        (gzip.compress(b"one", mtime=0), "a .gz file: unpack it, or let its name end with .gz"),
        (lzma.compress(b"one"), "a .xz file: unpack it, or let its name end with .xz"),
        (b"PK\3\4\0\0", "It looks like a .zip file: unpack it$"),
        ("好的\n是\n".encode("utf-16"), "It looks like UTF-16:"),
        (PLAIN.encode("utf-32"), "It looks like UTF-32:"),
        (PLAIN.encode("utf-32-le"), "It looks like UTF-32LE"),
        (b"some more text\nand a\0 byte of none\n", "line 2: a NUL byte. The file is damaged"),
        (b"some more text\n\0\nand more\n", "line 2: a NUL byte. The file is damaged"),
        (tar(b"one"), "It looks like a .tar file: unpack it, and name one of its files"),
    ],
)
def test_other_encodings_are_told_and_named(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        text.read(write(tmp_path / "a.txt", data), "zh")


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "loop")
    for source, message in [
        (str(tmp_path / "pipe"), "pipe is no regular file"),
        ("/dev/zero", "/dev/zero is no regular file"),
        (str(tmp_path / "loop"), "loop: cannot be read"),
        ("x" * 300, "cannot be read .File name too long"),
        ("~no such user/text", "is no name of a file"),
    ]:
        for use in (
            sources.fingerprint,
            lambda x: sources.chunks(x, 9),
            lambda x: text.read(x, ""),
        ):
            with pytest.raises(ValueError, match=message):
                use(source)
    with pytest.raises(FileNotFoundError, match="no such file"):
        text.read(write(tmp_path / "a.txt", b"one") + "/b.txt", "en")


@pytest.mark.parametrize("marks", ["\u0300\u0323", "\u0344", "\u0f73"])
def test_very_many_combining_marks_take_no_quadratic_time(marks):
    line = "a" + marks * 100_000
    found = text.clean(line)  # in minutes, if the time grew with the square of the marks
    assert text.clean(found) == found and found.count("\u034f") > 3000
    few = "a" + marks * 15 + " e\u0301 — " + "…" * 100
    assert text.clean(few) == unicodedata.normalize("NFC", few)


WIDE = ["Größe", "", "日本語の文", "a", "\U00020000 𝄞" * 50, "ж" * 700, "end"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_chunks_lose_no_line_wherever_they_would_cut(tmp_path, monkeypatch, size, end):
    for block in (2, 5, 2**13):  # characters and line ends fall across blocks too
        monkeypatch.setattr(sources, "_SEARCHED", block)
        monkeypatch.setattr(sources, "_BLOCK", block)
        for last in ("", end, "\n"):
            source = write(tmp_path / "a.txt", (end.join(WIDE) + last).encode())
            chunks = sources.chunks(source, size)
            read = [line for chunk in chunks for line in sources.lines(chunk)]
            assert list(filter(None, read)) == list(filter(None, WIDE))
            assert list(text.stream([source])) == list(filter(None, WIDE))
            assert chunks[0].start == 0 and chunks[-1].stop == os.path.getsize(source)
            assert all(a.stop == b.start for a, b in zip(chunks, chunks[1:], strict=False))


def test_no_more_is_read_than_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_BLOCK", 2)
    source = write(tmp_path / "a.txt", b"one\n\ntwo\nthree\xff")
    assert list(text.read(source, "en", limit=2).sentences) == ["one", "two"]


def test_chunks_of_lines_in_memory(tmp_path):
    given = sources.Lines("here", tuple(WIDE))
    chunks = sources.chunks(given, 30)
    assert len(chunks) == 3 and {chunk.source.name for chunk in chunks} == {"here"}
    assert [line for chunk in chunks for line in sources.lines(chunk)] == WIDE
    assert list(text.stream([given])) == list(filter(None, WIDE))
    assert sources.chunks(sources.Lines("nothing", ()), 30) == []


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".GZ", gzip.compress),
    ],
)
def test_compressed_files_are_read_as_what_they_hold(tmp_path, ending, pack):
    packed = pack("\n".join(WIDE).encode() * 1000)
    source = write(tmp_path / f"a.txt{ending}", packed)
    plain = write(tmp_path / "a.txt", "\n".join(WIDE).encode() * 1000)
    assert text.read(source, "ja").sentences == text.read(plain, "ja").sentences
    assert sources.chunks(source, 10) == [sources.Chunk(source)]
    write(tmp_path / f"a.txt{ending}", packed[: len(packed) // 2])
    with pytest.raises(ValueError, match="line [0-9]+: cannot be unpacked .*: it is torn"):
        text.read(source, "ja")
    write(tmp_path / f"a.txt{ending}", b"plain text")
    with pytest.raises(ValueError, match=f"a.txt{ending}, line 1: cannot be unpacked"):
        text.read(source, "ja")
    write(tmp_path / f"a.txt{ending}", pack(b"one\n\ncaf\xe9"))
    with pytest.raises(ValueError, match=f"a.txt{ending}, line 3: not valid UTF-8"):
        text.read(source, "ja")


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_nothing_behind_a_compressed_stream_is_lost(tmp_path, monkeypatch, ending, pack):
    monkeypatch.setattr(sources, "_BLOCK", 40)  # a stream ends within a block, and at its end
    for count in range(1, 20):
        first, second = pack(b"one\n" * count), pack(b"two\n" * 500)
        damaged = bytes([second[0] ^ 1, *second[1:]])
        source = write(tmp_path / f"a.txt{ending}", first + second + b"\0" * 100)
        assert [*sources.lines(sources.Chunk(source))] == ["one"] * count + ["two"] * 500 + [""]
        for wrong in (first + damaged, first + b"two", first + second[:3], first + second[:-1]):
            write(tmp_path / f"a.txt{ending}", wrong)
            with pytest.raises(ValueError, match="line [0-9]+: cannot be unpacked from here on"):
                [*sources.lines(sources.Chunk(source))]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_chunk_names_the_line_of_the_whole_file(tmp_path, monkeypatch, end):
    for block in (2, 3, 2**13):
        monkeypatch.setattr(sources, "_BLOCK", block)
        lines = [b"one", b"", "größer".encode(), b"four", b"caf\xe9 noir", b"six\xff"]
        source = write(tmp_path / "a.txt", end.join(lines))
        chunks = sources.chunks(source, 12)
        assert [*sources.lines(chunks[0])] and len(chunks) == 3
        with pytest.raises(ValueError, match=r"a.txt, line 5: not valid UTF-8 \(byte 0xe9\)"):
            [*sources.lines(chunks[1])]
        with pytest.raises(ValueError, match=r"line 6: not valid UTF-8 \(byte 0xff\)"):
            [*sources.lines(chunks[2])]
    cut_off = write(tmp_path / "b.txt", end.join([b"one", "ö".encode()[:1]]))
    with pytest.raises(ValueError, match=r"b.txt, line 2: not valid UTF-8 \(byte 0xc3\)"):
        text.read(cut_off, "de")


def test_a_fingerprint_is_of_the_content_alone(tmp_path):
    one = write(tmp_path / "a.txt", b"one\ntwo")
    same = write(tmp_path / "b.txt", b"one\ntwo")
    other = write(tmp_path / "c.txt", b"one\ntwo ")
    assert sources.fingerprint(one) == sources.fingerprint(same) != sources.fingerprint(other)
    memory = [
        sources.Lines(name, lines) for name, lines in zip("aab", ("xy", "z", "xy"), strict=True)
    ]
    assert sources.fingerprint(memory[0]) == sources.fingerprint(memory[2])
    assert sources.fingerprint(memory[0]) != sources.fingerprint(memory[1])
    with pytest.raises(FileNotFoundError, match="none.txt: no such file"):
        sources.fingerprint(str(tmp_path / "none.txt"))


def test_parallel_texts_have_text_in_the_same_lines(tmp_path):
    def read(one: bytes, other: bytes):
        given = write(tmp_path / "one.txt", one), write(tmp_path / "two.txt", other)
        return [each.sentences for each in text.read_parallel(*given, ("en", "de"))]

    assert read(b"a\n\nb\n", b"x\n \ny") == [["a", "b"], ["x", "y"]]
    for one, other, message in [
        (b"a\n\nb\n", b"x\ny\n\n", "one.txt, line 2: no text, and .*two.txt has text"),
        (b"a\nb\n", b"\nx\ny\n", "two.txt, line 1: no text, and .*one.txt has text"),
        (b"a\nb\n", b"x\n", "two.txt ends after 1 lines, and .*one.txt has text in line 2"),
        (b"a\n\n\n", b"x\n\ny\nz", "one.txt, line 3: no text|one.txt ends after 2 lines"),
        (b"a", b"x\n\ny", "one.txt ends after 2 lines"),
        (b"\n", b"\n", "one.txt has no text"),
    ]:
        with pytest.raises(ValueError, match=message):
            read(one, other)


def test_manifest_counts_what_was_read():
    made = text.from_sentences(["a b", "c"], "en", "one.txt")
    assert text.manifest([made]) == [
        {"source": "one.txt", "language": "en", "sentences": 2, "words": 3, "sha256": made.sha256}
    ]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with small datasets in ArrayRecord files; one more is only declared."""
    tfds = pytest.importorskip("tensorflow_datasets")
    folder = tmp_path_factory.mktemp("tfds")

    class Tiny(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("1.0.0")
        FEATURES: dict = {}

        def _info(self):
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(self.FEATURES)
            )

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples()}

    class OneText(Tiny):
        FEATURES = {"line": tfds.features.Text(), "number": np.int64}

        def _generate_examples(self):
            for i in range(30):
                yield i, {"line": f"Vers {i}. Größe;\nende", "number": i}

    class TwoTexts(Tiny):
        FEATURES = {"translation": tfds.features.Translation(["en", "de"]), "number": np.int64}

        def _generate_examples(self):
            for i in range(5):
                yield i, {"translation": {"en": f"one {i}", "de": f"ein {i}"}, "number": i}

    class Wiki40b(Tiny):
        FEATURES = {"text": tfds.features.Text()}

        def _generate_examples(self):
            yield 0, {"text": "\n_START_ARTICLE_\nA\n_START_PARAGRAPH_\nOne. Two._NEWLINE_Three."}

    class Unreachable(OneText):
        def _split_generators(self, dl_manager):
            raise ConnectionError("no route to host\nand more")

    class Raced(OneText):
        """Another process begins to prepare it later and is ready earlier."""

        others = 1

        def _split_generators(self, dl_manager):
            if Raced.others:
                Raced.others = 0
                Raced(data_dir=folder, file_format="array_record").download_and_prepare()
            return super()._split_generators(dl_manager)

    OneText(data_dir=folder, file_format="array_record").download_and_prepare()
    TwoTexts(data_dir=folder, file_format="array_record").download_and_prepare()
    Wiki40b(data_dir=folder, file_format="array_record").download_and_prepare()
    return folder


def test_tfds_gives_one_text_feature_of_every_example(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    read = text.read("tfds:one_text", "de")
    assert sorted(read.sentences) == sorted(f"Vers {i}. Größe; ende" for i in range(30))
    assert text.read("tfds:one_text:1.0.0:train#line", "de").sentences == read.sentences
    sliced = text.read("tfds:one_text:train[:10]", "de", split=Splitter("en", True))
    assert len(sliced.sentences) == 30 and sliced.sentences[1::3] == ["Größe;"] * 10


def test_another_process_may_prepare_a_tfds_dataset_first(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    found = text.read("tfds:raced", "de")
    assert found.sentences == text.read("tfds:one_text", "de").sentences


def test_the_markup_of_wiki40b_is_no_text(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    found = text.read("tfds:wiki40b", "en", split=Splitter("en"))
    assert found.sentences == ["A", "One.", "Two.", "Three."]


def test_tfds_is_divided_by_examples(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    monkeypatch.setattr(sources, "_EXAMPLES", 2)
    for name in ("tfds:one_text", "tfds:one_text:train[3:14]"):
        chunks = sources.chunks(name, 100)
        assert len(chunks) > 2 and len({chunk.stop for chunk in chunks}) == len(chunks)
        lines = [text.clean(line) for chunk in chunks for line in sources.lines(chunk)]
        assert lines == text.read(name, "de").sentences
    assert sources.fingerprint("tfds:one_text") != sources.fingerprint("tfds:one_text:train[:9]")


def test_tfds_is_read_without_tensorflow(prepared):
    program = (
        "import sys; from xling_jax.corpora import text;"
        "assert 'tensorflow_datasets' not in sys.modules;"
        "print(len(text.read('tfds:one_text', 'de').sentences), 'tensorflow' in sys.modules)"
    )
    environment = {**os.environ, "TFDS_DATA_DIR": str(prepared)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["30", "False"], done.stderr


def test_two_fields_of_a_tfds_dataset_are_parallel(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    english = text.read("tfds:two_texts#translation/en", "en").sentences
    german = text.read("tfds:two_texts#translation/de", "de").sentences
    assert [s.replace("one", "ein") for s in english] == german and len(german) == 5


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("tfds:two_texts", "name a text feature after #; it has .*translation/en, translation/de"),
        ("tfds:one_text#number", r"it has line \(all features: .*number"),
        ("tfds:one_text:test", "no split 'test'; one_text has train"),
        ("tfds:no_such_text", "TFDS knows no dataset 'no_such_text'.*TFDS_DATA_DIR"),
        ("tfds:unreachable", r"failed \(no route to host\).*tfds-tensorflow.*array_record"),
        ("tfds:", r"not of the form tfds:NAME\[/CONFIG\]\[:SPLIT\]\[#FIELD\]"),
    ],
)
def test_what_tfds_cannot_give_is_named_in_one_line(prepared, monkeypatch, source, message):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    with pytest.raises(ValueError, match=message) as caught:
        text.read(source, "en")
    assert "\n" not in str(caught.value) and source in str(caught.value)
