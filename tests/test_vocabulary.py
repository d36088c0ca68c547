"""vocabulary: sizes, special tokens and ids are what they are said to be, however trained."""

import random
import unicodedata

import numpy as np
import pytest
import sentencepiece

from xling_jax.vocabulary import pieces, sharing
from xling_jax.vocabulary.pieces import SPECIAL_TOKENS, Pieces
from xling_jax.vocabulary.sharing import ShiftedVocabulary


def some_text(sentences: int = 400) -> list[str]:
    """Sentences over a few hundred made-up words, with punctuation and numbers."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abdeilmnorst", k=draw.randint(2, 8))) for _ in range(300)]
    return [
        f"{' '.join(draw.choices(words, k=8))}, ({draw.randint(1, 999)}) don't, {word.title()}."
        for word in draw.choices(words, k=sentences)
    ]


TEXT = some_text()


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def trained(request) -> Pieces:
    return pieces.train(TEXT, 200, model_type=request.param)


def decode(trained: Pieces, ids: np.ndarray) -> str:
    return "".join(trained.names[i] for i in ids).replace("▁", " ").removeprefix(" ")


def test_size_counts_the_special_tokens_that_come_first(trained):
    assert trained.size == len(trained.names) == len(set(trained.names)) == 200
    assert tuple(trained.names[:5]) == SPECIAL_TOKENS
    ids = (pieces.PAD, pieces.UNK, pieces.CLS, pieces.SEP, pieces.MASK)
    assert tuple(trained.names[i] for i in ids) == SPECIAL_TOKENS


def test_encoding_is_lossless_and_adds_nothing(trained):
    encoded = trained.encode(TEXT)
    assert all(ids.dtype == np.int32 and ids.ndim == 1 for ids in encoded)
    assert [decode(trained, ids) for ids in encoded] == TEXT
    assert min(ids.min() for ids in encoded) >= len(SPECIAL_TOKENS)
    assert trained.encode([]) == [] and trained.encode([""])[0].shape == (0,)


def test_pieces_do_not_mix_letters_with_digits_or_punctuation(trained):
    for name in trained.names[5:]:
        kinds = {unicodedata.category(c)[0] for c in name.replace("▁", "")}
        assert kinds <= {"L"} or not kinds & {"L"}, name


def test_unseen_characters_become_unk(trained):
    (ids,) = trained.encode([f"{TEXT[0]} 日本"])
    assert ids[-1] == pieces.UNK and list(ids).count(pieces.UNK) == 1


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_names_of_special_tokens_in_text_are_text(model_type):
    names = " ".join(SPECIAL_TOKENS)
    plain = pieces.train(TEXT, 200, model_type=model_type)
    seen = pieces.train([*TEXT, *[names, names.replace(" ", "")] * 200], 200, model_type=model_type)
    for trained in (plain, seen):
        ids = np.concatenate(trained.encode([names, *SPECIAL_TOKENS, f"a{names}b"]))
        assert not set(ids.tolist()) & {pieces.PAD, pieces.CLS, pieces.SEP, pieces.MASK}
        assert tuple(trained.names[:5]) == SPECIAL_TOKENS
    assert decode(seen, seen.encode([names])[0]) == names


def test_lines_with_the_character_that_sentencepiece_reserves_count():
    (ids,) = pieces.train([*TEXT, "ж \u2585 ß"], 200).encode(["ж ß \u2585"])
    assert list(ids).count(pieces.UNK) == 1 and ids[-1] == pieces.UNK


def test_long_sentences_count():
    long = " ".join(["zebra"] * 5000)
    (ids,) = pieces.train([*TEXT, long], 200).encode(["zebra"])
    assert pieces.UNK not in ids


def test_the_same_text_and_settings_give_the_same_model(trained):
    again = [pieces.train(TEXT, 200, model_type=kind).sha256 for kind in ("bpe", "unigram")]
    assert trained.sha256 in again and again[0] != again[1]
    assert pieces.train(TEXT[:-1], 200).sha256 != again[0]


def test_save_and_load(trained, tmp_path):
    trained.save(tmp_path / "sub" / "pieces.model")
    loaded = Pieces.load(tmp_path / "sub" / "pieces.model")
    assert (loaded.sha256, loaded.names) == (trained.sha256, trained.names)
    assert [f.name for f in (tmp_path / "sub").iterdir()] == ["pieces.model"]
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{tmp_path}/sub/pieces.model")
    assert processor.encode(TEXT[0]) == loaded.encode(TEXT[:1])[0].tolist()


def test_a_foreign_or_broken_model_is_refused_by_name(tmp_path):
    (tmp_path / "broken.model").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="broken.model: not a SentencePiece model"):
        Pieces.load(tmp_path / "broken.model")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_prefix=f"{tmp_path}/foreign", vocab_size=100
    )
    with pytest.raises(ValueError, match="foreign.model: .* begins with .*<unk>.* train it with"):
        Pieces.load(tmp_path / "foreign.model")


def test_the_cache_goes_by_content(tmp_path, monkeypatch):
    first = pieces.train(TEXT, 200, cache=tmp_path)
    others = [
        pieces.train(TEXT[1:], 200, cache=tmp_path),
        pieces.train(TEXT, 199, cache=tmp_path),
        pieces.train(TEXT, 200, cache=tmp_path, model_type="unigram"),
    ]
    assert len({first.sha256, *(other.sha256 for other in others)}) == 4
    assert len(list(tmp_path.iterdir())) == 4
    monkeypatch.setattr(pieces, "_train", lambda *_: pytest.fail("trained again"))
    assert pieces.train(TEXT, 200, cache=tmp_path).sha256 == first.sha256


def test_the_cache_goes_by_sentencepiece_version(tmp_path, monkeypatch):
    pieces.train(TEXT, 200, cache=tmp_path)
    monkeypatch.setattr(sentencepiece, "__version__", "0.0.0")
    pieces.train(TEXT, 200, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("tear", [lambda data: data[: len(data) // 2], lambda data: b""])
def test_a_torn_cache_file_is_written_anew(tmp_path, tear):
    first = pieces.train(TEXT, 200, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(tear(whole))
    assert pieces.train(TEXT, 200, cache=tmp_path).sha256 == first.sha256
    assert [f.read_bytes() for f in tmp_path.iterdir()] == [whole]


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize("text", [["word"], ["the cat sat on the mat", "the dog sat"]])
def test_a_size_beyond_the_text_is_refused_with_the_largest_that_works(model_type, text):
    with pytest.raises(ValueError, match="size=2048 is too large for this text") as caught:
        pieces.train(text, 2048, model_type=model_type)
    largest = int(str(caught.value).split("it allows ")[1].split()[0])
    assert pieces.train(text, largest, model_type=model_type).size == largest
    with pytest.raises(ValueError, match=f"Set the size to {largest} or less"):
        pieces.train(text, largest + 1, model_type=model_type)


@pytest.mark.parametrize("size", [6, 20])
def test_a_size_below_the_characters_is_refused_with_the_smallest_that_works(size):
    with pytest.raises(ValueError, match="is too small for this text .sentences: 400") as caught:
        pieces.train(TEXT, size)
    smallest = int(str(caught.value).split("tokens need ")[1].split()[0])
    assert pieces.train(TEXT, smallest).size == smallest


def test_no_text_and_no_size_are_refused():
    for nothing in ([], [""], ["", " "]):
        with pytest.raises(ValueError, match="size=100: there is nothing to train on"):
            pieces.train(nothing, 100)
    for size in (-1, 0, 5):
        with pytest.raises(ValueError, match=f"size={size}: the special tokens alone are 5"):
            pieces.train(TEXT, size)


def test_shifted_languages_share_pieces_but_no_ids(trained):
    shifted = ShiftedVocabulary(("en", "fake", "faker"), (trained,) * 3, is_fake=True)
    assert (shifted.shift, shifted.size, len(shifted.names())) == (200, 600, 600)
    for k in range(3):
        (ids,) = shifted.shifted([np.array([0, 4, 5, 199])], k)
        assert ids.tolist() == [0, 4, 5 + k * 200, 199 + k * 200]
        assert shifted.names()[k * 200 : (k + 1) * 200] == ["::" * k + n for n in trained.names]
    assert len(set(shifted.names())) == 600


def test_ordinary_pieces_are_all_but_the_special_tokens_of_every_language(trained):
    shifted = ShiftedVocabulary(("en", "fake"), (trained,) * 2, is_fake=True)
    ordinary = [i for language in range(2) for i in shifted.ordinary(language)]
    rest = sorted(set(range(shifted.size)) - set(ordinary))
    assert len(ordinary) == len(set(ordinary)) == 2 * 195
    assert [shifted.names()[i] for i in rest] == [
        *SPECIAL_TOKENS,
        *("::" + t for t in SPECIAL_TOKENS),
    ]


@pytest.mark.parametrize("way", ["joint", "union", "prefixed"])
def test_fertility_counts_words_of_other_languages_too(trained, way):
    """Text of which half the sentences are put in from the other language."""
    other = pieces.train([line.upper() for line in TEXT], 200)
    vocabulary = sharing.make(way, ("en", "xx"), [trained, other][: 1 if way == "joint" else 2])
    counts, found = np.zeros((2, vocabulary.size), np.int64), []
    for language in (0, 1):
        lines = [TEXT[:200], [line.upper() for line in TEXT[200:]]]
        encoded = [vocabulary.encode(k, own) for k, own in enumerate(lines)]
        ids = np.concatenate([*encoded[0], *encoded[1]])
        counts[language] = np.bincount(ids, minlength=vocabulary.size)
        found.append(
            sum(ids >= pieces.SPECIALS) / sum(len(x.split()) for own in lines for x in own)
        )
    assert list(sharing.fertility(vocabulary, counts).values()) == pytest.approx(found)


def test_languages_are_named_once(trained):
    for languages in ((), ("en", "en")):
        with pytest.raises(ValueError, match="languages=.*each only once"):
            ShiftedVocabulary(languages, (trained,) * 2)
