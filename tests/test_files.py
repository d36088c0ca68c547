"""files: JSON is read, or one error names the file."""

import json
import os

import pytest

from xling_jax import files


def test_json_is_read(tmp_path):
    path = tmp_path / "a.json"
    for value in ({"a": [1, 2.5, None, True, "é"], "b": {}}, [], 0, "x", float("inf")):
        path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
        assert files.read_json(path) == value
    path.write_bytes(b"\xef\xbb\xbf[1]")  # a byte-order mark
    assert files.read_json(path) == [1]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is not JSON .line 1, column 1: "),
        (b'{"a": 1,\n "b":', "is not JSON .line 2, column 6: "),
        (b"[1] 2", "is not JSON .line 1, column 5: "),
        (b'["\xff"]', "is not UTF-8 .byte 3"),
        ('["é"]'.encode("utf-16"), "is not UTF-8 .byte 1"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b'[{"a": 1, "b": 2, "a": 1}]', "an object has 'a' twice"),
        (b"[" + b"1" * 10_000 + b"]", "digits"),
    ],
)
def test_what_is_not_json_is_refused_with_the_files_name(content, message, tmp_path):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.json:? .*{message}.*: restore it, or") as caught:
        files.read_json(tmp_path / "a.json")
    assert "\n" not in str(caught.value)


def test_what_is_not_a_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="a.json"):
        files.read_json(tmp_path / "a.json")
    with pytest.raises(ValueError, match="is a folder"):
        files.read_json(tmp_path)
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(ValueError, match="a.json is a pipe"):
        files.read_json(tmp_path / "a.json")
    with open(tmp_path / "b.json", "wb") as file:
        file.truncate(files.LARGEST_JSON + 1)
    with pytest.raises(ValueError, match="b.json is larger than 4096 MiB"):
        files.read_json(tmp_path / "b.json")
