"""Sentences to train a vocabulary on: drawn evenly from all of a text, which is read once."""

import itertools
import os

import pytest

from xling_jax.corpora import text
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.corpora.sources import Lines
from xling_jax.corpora.splitting import Splitter
from xling_jax.vocabulary import samples


def test_a_sample_is_drawn_evenly_and_keeps_the_order():
    lines = [f"{i:03}" for i in range(200)]
    counts = dict.fromkeys(lines, 0)
    for seed in range(600):
        drawn = samples.draw(iter(lines), 20, seed)
        assert len(drawn) == len(set(drawn)) == 20 and drawn == sorted(drawn)
        for line in drawn:
            counts[line] += 1
    parts = [sum(counts[line] for line in lines[k : k + 20]) for k in range(0, 200, 20)]
    # Each is 1,200 in the mean, with a standard deviation of 31.
    assert max(abs(part - 1200) for part in parts) < 130
    assert 25 < min(counts.values()) and max(counts.values()) < 100


def test_a_sample_goes_by_its_seed_and_takes_all_of_a_short_text():
    lines = [str(i) for i in range(1000)]
    assert samples.draw(lines, 10, 1) == samples.draw(iter(lines), 10, 1)
    assert samples.draw(lines, 10, 1) != samples.draw(lines, 10, 2)
    assert samples.draw(lines, 1000) == samples.draw(lines, 2000) == lines
    assert samples.draw([], 5) == [] and len(samples.draw(lines, 1, 3)) == 1


def sample(folder, *given, split=None, limit=None, number=3, tokenize="none"):
    """A sample as of a run in the folder."""
    normalizer = Normalizer("en", Normalization(True, tokenize))
    return samples.of_text(given, split, normalizer, limit, number, folder / "samples")


@pytest.fixture
def read(monkeypatch):
    """How often a text was read."""
    found = []
    stream = text.stream
    monkeypatch.setattr(text, "stream", lambda *given: found.append(given) or stream(*given))
    return found


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"It is {k}, no more: so it was.\n\n" for k in range(20)))
    return str(path)


def test_the_next_run_takes_the_sample_without_reading_the_text(read, source, tmp_path):
    first = sample(tmp_path, source, Lines("more", ("a\u2028b", " c ")))
    assert len(first.sentences) == 3 and first.total == 22
    assert sample(tmp_path, source, Lines("more", ("a\u2028b", " c "))) == first
    assert len(read) == 1
    assert sample(tmp_path, source, number=99).sentences == sorted(
        {f"It is {k}, no more: so it was." for k in range(20)}, key=lambda x: int(x.split()[2][:-1])
    )


def test_whatever_decides_a_sample_makes_another_one(read, source, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("It is so.\n" * 4)
    kinds = (
        {},
        {"number": 4},
        {"limit": 7},
        {"split": Splitter("en")},
        {"split": Splitter("en", clauses=True)},
        {"tokenize": "moses"},
    )
    made = [sample(tmp_path, source, **kind) for kind in kinds]
    made += [sample(tmp_path, source, str(other)), sample(tmp_path, str(other))]
    assert len(read) == len(made)
    assert [each.total for each in made] == [20, 20, 7, 20, 40, 20, 24, 4]
    assert len(list(tmp_path.glob("samples/*"))) == len(made)


def test_a_damaged_sample_is_drawn_anew(read, source, tmp_path):
    first = sample(tmp_path, source)
    [path] = tmp_path.glob("samples/*")
    path.write_text(path.read_text()[:-1])
    assert sample(tmp_path, source) == first and len(read) == 2


def test_a_text_that_changes_while_it_is_read_is_refused(monkeypatch, source, tmp_path):
    stream = text.stream

    def changed(*given):
        yield from itertools.islice(stream(*given), 5)
        with open(source, "a") as file:
            file.write("It is new.\n")
        os.utime(source, ns=(0, 0))

    monkeypatch.setattr(text, "stream", changed)
    with pytest.raises(ValueError, match="text.txt was changed while it was read: start again"):
        sample(tmp_path, source)
    assert not list(tmp_path.glob("samples/*"))
