"""batches: code-switching replaces whole words, as often as it says, the same in any process."""

import math
import random

import numpy as np
import pytest

from xling_jax.batches import code_switch
from xling_jax.batches.code_switch import PieceDictionary, Switched, switch, switch_window
from xling_jax.corpora.dictionaries import Dictionary, from_pairs
from xling_jax.vocabulary import pieces

DRAW = random.Random(0)


def some_words(letters: str, number: int) -> list[str]:
    words = {"".join(DRAW.choices(letters, k=DRAW.randint(2, 7))) for _ in range(2 * number)}
    return sorted(words)[:number]


# The languages have no letters in common, so a word tells where it is from.
KNOWN, UNKNOWN = some_words("abdefg", 200), some_words("hijklm", 60)
FRENCH, RUSSIAN = some_words("nopqrs", 400), some_words("tuvwxyz", 200)
CHINESE = ["日本", "中国人", "大学生", "水"]
SENTENCES = [
    f"{' '.join(words).capitalize()}, ({words[2]} {words[3]}) {words[0]}-{words[1]}."
    for words in (DRAW.choices(KNOWN + UNKNOWN, k=12) for _ in range(500))
]
MODEL = pieces.train(
    SENTENCES + [" ".join([word.title(), word]) for word in FRENCH + RUSSIAN] + CHINESE, 300
)
STARTS = code_switch.word_starts(MODEL.names)
ENCODE = dict.fromkeys(("en", "fr", "ru", "zh"), MODEL.encode)
TO_FRENCH = from_pairs(zip(KNOWN, FRENCH, strict=False), "en", "fr")
TO_RUSSIAN = from_pairs(zip(KNOWN, RUSSIAN, strict=True), "en", "ru")


def build(*dictionaries: Dictionary) -> PieceDictionary:
    return PieceDictionary.build(dictionaries, ENCODE, STARTS)


def encode(text: str) -> np.ndarray:
    return MODEL.encode([text])[0]


def decode(ids: np.ndarray) -> str:
    return "".join(MODEL.names[i] for i in ids).replace("▁", " ").removeprefix(" ")


def always(text: str, dictionary: PieceDictionary) -> str:
    """The text with every word of the dictionary replaced."""
    return decode(switch(encode(text), dictionary, (0,), probability=1.0, most=1.0).tokens)


STREAM = np.concatenate([[*ids, pieces.SEP] for ids in MODEL.encode(SENTENCES)])


def read(start: int, number: int) -> np.ndarray:
    return np.take(STREAM, np.arange(start, start + number), mode="wrap")


def words_of(text: str) -> list[str]:
    return text.replace("[SEP]", " [SEP] ").split()


def test_three_words_in_ten_are_replaced_where_nothing_binds():
    dictionary = build(TO_FRENCH)
    plain = np.concatenate(MODEL.encode([" ".join(KNOWN * 20)]))
    switched = switch(plain, dictionary, (0, 0, 0, 0), most=1.0)
    assert switched.words == 4000
    assert abs(switched.changed / 4000 - 0.3) < 0.03
    for probability, changed in ((0.0, 0), (1.0, 4000)):
        assert switch(plain, dictionary, (0,), probability=probability, most=1).changed == changed


def test_never_more_than_the_share_of_a_block_changes():
    dictionary = build(TO_FRENCH)
    shares = []
    for block in range(200):
        tokens = read(37 * block, 5 + 3 * block)
        for most in (0.15, 0.29, 0.0):
            switched = switch(tokens, dictionary, (0, 0, 0, block), most=most)
            assert switched.changed <= most * switched.words + 1e-9
        shares.append(switch(tokens, dictionary, (0, 0, 0, block), probability=0.6))
    large = [each for each in shares if each.words > 100]
    assert all(each.changed == math.floor(0.15 * each.words + 1e-9) for each in large)
    plain = encode(" ".join(KNOWN[:100]))
    assert switch(plain, dictionary, (0,), probability=1.0, most=0.29).changed == 29


def test_the_subset_that_is_kept_has_no_favourite_places():
    dictionary = build(TO_FRENCH)
    plain = encode(" ".join(KNOWN[:100]))
    times = np.zeros(100)
    for block in range(400):
        text = decode(switch(plain, dictionary, (0, 0, 0, block)).tokens)
        times += [a != b for a, b in zip(text.split(), KNOWN, strict=False)]
    assert times.sum() == 400 * 15
    assert np.abs(times.reshape(4, 25).mean(1) / 60 - 1).max() < 0.1


def test_translations_come_as_often_as_they_weigh():
    word = KNOWN[0]
    weights = {FRENCH[0]: 6.0, FRENCH[1]: 3.0, f"{FRENCH[2]} {FRENCH[3]}": 1.0}
    dictionary = build(Dictionary("en", "fr", {word: tuple(weights.items())}))
    tokens = encode(" ".join([word] * 15000))
    switched = switch(tokens, dictionary, (0, 0, 0, 0), most=1.0)
    words = decode(switched.tokens).split()
    observed = np.array([words.count(each.split()[-1]) for each in weights])
    expected = switched.changed / 10 * np.array(list(weights.values()))
    assert observed.sum() == switched.changed > 4000
    assert ((observed - expected) ** 2 / expected).sum() < 18.4  # one in 10,000 exceeds it


def test_all_target_languages_of_a_word_have_equal_shares():
    french = Dictionary("en", "fr", {KNOWN[0]: ((FRENCH[0], 90.0), (FRENCH[1], 30.0))})
    russian = Dictionary("en", "ru", {KNOWN[0]: ((RUSSIAN[0], 1.0),), KNOWN[1]: ((RUSSIAN[1], 1),)})
    dictionary = build(french, russian)
    words = always(" ".join([KNOWN[0]] * 4000 + [KNOWN[1]] * 10), dictionary).split()
    shares = [words.count(word) / 4000 for word in (FRENCH[0], FRENCH[1], RUSSIAN[0])]
    np.testing.assert_allclose(shares, [0.375, 0.125, 0.5], atol=0.03)
    assert words[4000:] == [RUSSIAN[1]] * 10


def test_a_block_depends_on_its_own_seed_parts_alone():
    dictionary = build(TO_FRENCH)
    tokens = read(0, 400)
    parts = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    made = [switch(tokens, dictionary, each).tokens.tolist() for each in parts]
    again = [switch(tokens, build(TO_FRENCH), each).tokens.tolist() for each in parts[::-1]]
    assert made == again[::-1]
    assert len({tuple(each) for each in made}) == len(parts)


@pytest.mark.parametrize("dictionaries", [(TO_FRENCH,), (TO_FRENCH, TO_RUSSIAN)])
def test_whole_words_are_replaced_and_all_else_stays(dictionaries):
    dictionary = build(*dictionaries)
    allowed = {}
    for each in dictionaries:
        for word, pairs in each.with_capitals().entries.items():
            allowed.setdefault(word, set()).update(text for text, _ in pairs)
    tokens = read(0, len(STREAM))
    switched = switch(tokens, dictionary, (0, 0, 0, 0), most=1.0)
    pairs = list(zip(words_of(decode(tokens)), words_of(decode(switched.tokens)), strict=True))
    changed = [(old.strip(",.)"), new.strip(",.)")) for old, new in pairs if old != new]
    assert len(changed) == switched.changed > 1000
    assert all(new in allowed[old] for old, new in changed)
    assert any(old.endswith(",") and old != new and new.endswith(",") for old, new in pairs)
    assert not any(new.count("-") != old.count("-") for old, new in pairs)


def test_special_tokens_and_pieces_in_the_middle_of_a_word_stay():
    starts = STARTS.copy()
    starts[: len(pieces.SPECIAL_TOKENS)] = True
    dictionary = PieceDictionary.build([TO_FRENCH], ENCODE, starts)
    first, second = encode(KNOWN[0]), encode(KNOWN[1])
    tokens = np.concatenate(
        [[pieces.CLS], first, [pieces.SEP], first, second, [pieces.MASK, pieces.PAD, pieces.PAD]]
    )
    switched = switch(tokens, dictionary, (0,), probability=1.0, most=1.0)
    assert decode(switched.tokens) == (
        f"[CLS] {FRENCH[0]}[SEP] {FRENCH[0]} {FRENCH[1]}[MASK][PAD][PAD]"
    )
    assert (switched.changed, switched.words) == (3, 3)
    # Parts of words are no words: before [UNK], and at the start of a block.
    part, long = [*first, pieces.UNK], max((encode(word) for word in KNOWN), key=len)
    for tokens in (part, long[1:]):
        switched = switch(np.array(tokens), dictionary, (0,), probability=1.0, most=1.0)
        assert switched.tokens.tolist() == list(tokens) and switched.changed == 0
    for nothing in ([], [pieces.SEP, pieces.SEP]):
        switched = switch(np.array(nothing, np.int32), dictionary, (0,))
        assert switched.tokens.tolist() == nothing and switched.words == 0


def test_case_is_kept():
    word, other = KNOWN[0], KNOWN[1]
    dictionary = build(from_pairs([(word, FRENCH[0]), (other.title(), FRENCH[1])], "en", "fr"))
    text = f"{word.title()} {word} {other.title()} {other}."
    expected = f"{FRENCH[0].title()} {FRENCH[0]} {FRENCH[1]} {other}."
    assert always(text, dictionary) == expected


def test_translations_without_blanks_and_phrases():
    dictionary = build(
        from_pairs([(KNOWN[0], "中国人"), (KNOWN[1], "大学生 日本"), (KNOWN[2], "水")], "en", "zh")
    )
    text = f"{UNKNOWN[0]} {KNOWN[0]} {KNOWN[1]}, {KNOWN[2]}."
    assert always(text, dictionary) == f"{UNKNOWN[0]} 中国人 大学生 日本, 水."


def test_marks_begin_words_and_marks_inside_words_do_not():
    names = ["[PAD]", "▁dog", "▁", "dog", ".", "▁.", "-", "’", "’.", "日", "ा", "3"]
    expected = [0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0]
    assert code_switch.word_starts(names).tolist() == [bool(each) for each in expected]


def test_a_translation_that_equals_the_word_changes_nothing():
    dictionary = build(from_pairs([(KNOWN[0], KNOWN[0]), (KNOWN[1], FRENCH[0])], "en", "fr"))
    tokens = encode(" ".join([KNOWN[0], KNOWN[1]] * 10))
    switched = switch(tokens, dictionary, (0,), probability=1.0, most=0.5)
    assert (switched.changed, switched.words) == (10, 20)
    assert decode(switched.tokens).split() == [KNOWN[0], FRENCH[0]] * 10


def test_languages_may_have_vocabularies_of_their_own():
    def shifted(texts):
        return [ids + MODEL.size for ids in MODEL.encode(texts)]

    starts = np.concatenate([STARTS, STARTS])
    dictionary = PieceDictionary.build(
        [from_pairs([(KNOWN[0], KNOWN[0])], "en", "fr")],
        {"en": MODEL.encode, "fr": shifted},
        starts,
    )
    switched = switch(encode(KNOWN[0]), dictionary, (0,), probability=1.0, most=1.0)
    assert (switched.tokens - MODEL.size).tolist() == encode(KNOWN[0]).tolist()
    assert switched.changed == 1


def test_what_cannot_be_found_or_written_is_left_out_and_counted():
    pairs = [
        (KNOWN[0], FRENCH[0]),
        (f"{KNOWN[1]} {KNOWN[2]}", FRENCH[1]),
        (f"{KNOWN[1]},{KNOWN[2]}", FRENCH[2]),
        (f"{KNOWN[3]}é", FRENCH[3]),
        (f"{KNOWN[3]}é", FRENCH[4]),
        (KNOWN[4], "été"),
        (KNOWN[4], FRENCH[5]),
        (KNOWN[5], "été"),
    ]
    dictionary = build(from_pairs(pairs, "en", "fr"))
    text = " ".join([KNOWN[0], KNOWN[1], KNOWN[2], KNOWN[4], KNOWN[5]])
    expected = " ".join([FRENCH[0], KNOWN[1], KNOWN[2], FRENCH[5], KNOWN[5]])
    assert always(text, dictionary) == expected


LONG = Dictionary(
    "en", "fr", {word: ((" ".join(FRENCH[k : k + 4]), 1.0),) for k, word in enumerate(KNOWN)}
)
PIECE = next(name[1:] for name in MODEL.names if name[1:] and set(name) <= set("▁nopqrs"))
assert len(encode(PIECE)) == 1
SHORT = Dictionary("en", "fr", {word: ((PIECE, 1.0),) for word in KNOWN})


@pytest.mark.parametrize("pairs", [TO_FRENCH, LONG, SHORT])
@pytest.mark.parametrize(("probability", "most"), [(0.3, 0.15), (1.0, 0.5), (1.0, 1.0)])
def test_a_window_has_its_length_and_no_more_changes_than_allowed(pairs, probability, most):
    dictionary = build(pairs)
    rates = {"probability": probability, "most": most}
    for start in (0, 1, 2, 511, 513, len(STREAM) - 5):
        for length in (1, 2, 60, 255):
            window = switch_window(read, start, length, dictionary, (0, 0, 0), **rates)
            assert window.tokens.shape == (length,) and window.tokens.dtype == np.int32
            assert window.changed <= most * window.words + 1e-9
            assert window.changed > 0 or length < 60
            assert STARTS[window.tokens].sum() >= window.words


@pytest.mark.parametrize("pairs", [TO_FRENCH, LONG, SHORT])
def test_a_window_is_cut_from_the_switched_stream(pairs):
    dictionary = build(pairs)
    everything = {"probability": 1.0, "most": 1.0}
    for start in range(0, 600, 3):
        window = switch_window(read, start, 20, dictionary, (0, 0, 0), **everything)
        stream = switch(read(start, 300), dictionary, (0,), **everything)
        np.testing.assert_array_equal(window.tokens, stream.tokens[:20])


def test_a_window_without_changes_is_the_text():
    for start in (0, 700, len(STREAM) - 5):
        window = switch_window(read, start, 255, build(TO_FRENCH), (0, 0, 0), probability=0.0)
        np.testing.assert_array_equal(window.tokens, read(start, 255))
        assert (window.changed, window.words) == (0, np.sum(STARTS[read(start, 255)]))


def test_windows_of_every_epoch_differ_and_those_of_one_do_not():
    dictionary = build(TO_FRENCH)

    def make(start: int, epoch: int) -> Switched:
        return switch_window(read, start, 255, dictionary, (0, 0, epoch))

    windows = {(s, e): make(s, e).tokens.tolist() for s in (0, 255, 510) for e in range(3)}
    for (start, epoch), tokens in reversed(windows.items()):
        assert make(start, epoch).tokens.tolist() == tokens
    assert len({tuple(tokens) for tokens in windows.values()}) == 9


def test_a_word_has_the_same_draw_in_every_window():
    dictionary = build(TO_FRENCH, TO_RUSSIAN)
    borders = [place for place, piece in enumerate(STREAM) if MODEL.names[piece][0] == "▁"]

    def words(start: int) -> list[str]:
        window = switch_window(read, start, 900, dictionary, (0, 0, 0), most=1.0)
        return words_of(decode(window.tokens))

    first = words(0)
    for number in (1, 7, 30):
        skipped = len(words_of(decode(STREAM[: borders[number]])))
        assert words(borders[number])[:100] == first[skipped : skipped + 100]


def test_what_makes_no_sense_is_refused():
    dictionary = build(TO_FRENCH)
    with pytest.raises(ValueError, match="gave 10 tokens: let it go on"):
        switch_window(lambda start, number: STREAM[:10], 0, 20, dictionary, (0,))
    with pytest.raises(ValueError, match="one source language"):
        build(TO_FRENCH, TO_FRENCH.reverse())
    with pytest.raises(ValueError, match="no encoding for fr"):
        PieceDictionary.build([TO_FRENCH], {"en": MODEL.encode}, STARTS)
    with pytest.raises(ValueError, match="no word of en is left: 0 pairs .* characters of 1"):
        build(from_pairs([(KNOWN[0], "été")], "en", "fr"))
