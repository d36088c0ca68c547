"""batches.assembly, corruption and setting: each ablation does what the paper says, alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.batches import assembly, corruption, hashing, packing, setting
from xling_jax.batches.store import TokenStore
from xling_jax.vocabulary.pieces import SPECIALS

LANGUAGES = ("en", "fake")
SHIFT = 100
TEXT = [[11, 12, 13], [20, 21], [30, 31, 32, 33, 34]]
PIECES = corruption.PieceRange(2, SHIFT)


def store(text=TEXT):
    ids = [np.array(sentence) for sentence in text]
    return TokenStore.from_languages([ids, [sentence + SHIFT for sentence in ids]], 128)


def values(description):
    return setting.make(
        setting.parse(description, LANGUAGES),
        LANGUAGES,
        seed=7,
        learning_rate=1e-3,
        max_length=128,
        shift=SHIFT,
        neighbours=counterparts(),
    )


def first_step(plan):
    return packing.Plan(
        jnp.asarray(plan.sentence[0]), jnp.asarray(plan.start[0]), jnp.asarray(plan.owner[0, 0])
    )


def assembled(description, text=TEXT, attend_padding=False):
    """Every sentence of both languages: {(language, sentence): field arrays of its places}."""
    tokens = store(text)
    order = np.arange(len(tokens))
    layout = packing.choose_layout(
        tokens.lengths, [order], len(order), (16,), attend_padding=attend_padding
    )
    plan = packing.planned([order], tokens.lengths, layout)
    step = first_step(plan)
    batch = jax.device_get(assembly.assemble(tokens, step, values(description)))
    found = {}
    for slot, sentence in enumerate(plan.sentence[0][: len(order)]):
        places = np.flatnonzero(plan.owner[0, 0] == slot)
        key = (sentence // len(text), sentence % len(text))
        found[key] = {f.name: getattr(batch, f.name)[places] for f in dataclasses.fields(batch)}
    return found


def test_original_frames_each_sentence_and_restarts_positions():
    for (language, number), batch in assembled("original").items():
        pieces = [piece + SHIFT * language for piece in TEXT[number]]
        assert batch["tokens"].tolist() == [2, *pieces, 3]
        assert batch["positions"].tolist() == list(range(len(pieces) + 2))
        assert (batch["token_types"] == 0).all() and (batch["mask_ids"] == 4).all()
        assert batch["is_piece"].tolist() == [False] + [True] * len(pieces) + [False]
        assert len(set(batch["segments"])) == 1


def test_lang_pos_shifts_positions_and_token_types_of_the_second_language_only():
    plain, changed = assembled("original"), assembled("lang-pos")
    for key, batch in changed.items():
        np.testing.assert_array_equal(batch["tokens"], plain[key]["tokens"])
        np.testing.assert_array_equal(batch["positions"], plain[key]["positions"] + 128 * key[0])
        assert (batch["token_types"] == key[0]).all()


def test_shift_special_gives_the_second_language_its_own_special_tokens():
    plain, changed = assembled("original"), assembled("shift-special")
    for key, batch in changed.items():
        is_special = ~batch["is_piece"]
        expected = plain[key]["tokens"] + SHIFT * key[0] * is_special
        np.testing.assert_array_equal(batch["tokens"], expected)
        assert (batch["mask_ids"] == 4 + SHIFT * key[0]).all()


def test_inv_order_reverses_the_pieces_between_cls_and_sep():
    plain, changed = assembled("original"), assembled("inv-order")
    for key, batch in changed.items():
        tokens = plain[key]["tokens"].copy()
        mirror = np.arange(len(tokens))
        if key[0] == 1:
            tokens[1:-1], mirror[1:-1] = tokens[1:-1][::-1], mirror[1:-1][::-1]
        np.testing.assert_array_equal(batch["tokens"], tokens)
        np.testing.assert_array_equal(batch["mirror"], mirror)
        np.testing.assert_array_equal(batch["positions"], plain[key]["positions"])


def test_attend_padding_lets_a_sentence_see_its_languages_padding():
    longest = max(len(sentence) for sentence in TEXT) + 2
    for (language, number), batch in assembled("shift-special", attend_padding=True).items():
        length = len(TEXT[number]) + 2
        own = SHIFT * language
        assert len(batch["tokens"]) == longest
        assert batch["tokens"][length - 1] == 3 + own
        assert (batch["tokens"][length:] == own).all()
        assert len(set(batch["segments"])) == 1
        assert batch["positions"].tolist() == list(range(longest))
        assert batch["is_token"].sum() == length and batch["is_piece"].sum() == length - 2
        assert not batch["is_ordinary"][length:].any()


def test_unknown_pieces_are_never_masked_and_have_the_languages_own_id():
    text = [[11, 1, 12]]
    ids = [np.array(text[0])]
    tokens = TokenStore.from_languages([ids, [np.where(ids[0] < 5, ids[0], ids[0] + SHIFT)]], 128)
    plan = packing.planned([np.arange(2)], tokens.lengths, packing.Layout(((1, 16),), 2))
    for description, unknown in [("original", 1), ("shift-special", 1 + SHIFT)]:
        batch = assembly.assemble(tokens, first_step(plan), values(description))
        assert batch.tokens[:10].tolist()[7] == unknown and batch.tokens[2] == 1
        assert batch.is_piece[7] and not batch.is_ordinary[7] and batch.is_ordinary[6]


def test_any_language_can_be_inverted():
    assert values("inv-order[en]").inverted.tolist() == [True, False]
    assert values("inv-order").inverted.tolist() == [False, True]


def test_modifications_add_up():
    together = assembled("lang-pos;shift-special;inv-order")[1, 0]
    assert together["tokens"].tolist() == [102, 113, 112, 111, 103]
    assert together["positions"].tolist() == [128, 129, 130, 131, 132]


@pytest.mark.parametrize(
    ("description", "marginals"),
    [
        ("original", (0.8, 0.1, 0.1, 0)),
        ("no-random", (0.8, 0.2, 0, 0)),
        ("no-random-as-published", (0.9, 0.1, 0, 0)),
        ("knn-replace", (0.5, 0.1, 0.1, 0.3)),
        ("knn-replace-as-published", (0.5, 0.16, 0.1, 0.24)),
        ("knn-replace;no-random", (0.5, 0.2, 0, 0.3)),
        ("knn-replace;no-random-as-published", (0.6, 0.1, 0, 0.3)),
    ],
)
def test_marginals(description, marginals):
    np.testing.assert_allclose(values(description).marginals, marginals)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("lang-pose", "unknown modification 'lang-pose'"),
        ("lang-pos[en]", "lang-pos has no argument"),
        ("lang-pos[]", "lang-pos has no argument"),
        ("inv-order[de]", "'inv-order.de.': choose a language from en, fake"),
        ("inv-order[]", "write an argument in the brackets, or leave them out"),
        ("inv-order;inv-order[fake]", "fake is inverted twice"),
        ("", "a part is empty"),
        (";", "a part is empty"),
        ("lang-pos;;no-random", "a part is empty"),
        ("lang-pos; lang-pos", "'lang-pos' is there twice"),
        ("original;lang-pos", "original stands alone"),
        ("no-random;no-random-as-published", "one reading of no-random"),
        ("knn-replace;knn-replace-as-published", "one reading of knn-replace"),
        ("epochs", "'epochs' needs an argument in brackets"),
        ("epochs[5", "unknown modification"),
        ("epochs[x]", "give a number above 0"),
        ("epochs[2.5]", "give a whole number of epochs, or a multiple such as 2.5x"),
        ("epochs[5];epochs[6]", "epochs is given twice"),
        ("learning-rate[fast]", "give a number above 0"),
        ("learning-rate[-1]", "give a number above 0"),
        ("learning-rate[inf]", "give a number above 0"),
        ("untrained;epochs[5]", "an untrained model has no epochs"),
        ("untrained;knn-replace", "an untrained model has no knn-replace"),
        ("original[5]", "original has no argument"),
        *(
            (f"{name}[{bad}]", rf"'{name}\[.*\]': give a number above 0")
            for name in ("epochs", "learning-rate")
            for bad in ("0", "0x1", "nan", "1_0", "1e-50", "1e39", "1e999", "٣", "²", " 5", "+5")
        ),
    ],
)
def test_a_bad_description_is_refused(description, message):
    with pytest.raises(ValueError, match=message):
        setting.parse(description, LANGUAGES)


def test_a_row_may_have_epochs_and_a_learning_rate_of_its_own():
    found = setting.parse("lang-pos;epochs[250];learning-rate[1e-4]", LANGUAGES)
    assert found.epochs_of(100) == 250 and "lang-pos" in found
    assert setting.parse("epochs[2.5x]", LANGUAGES).epochs_of(40) == 100
    assert setting.parse("lang-pos", LANGUAGES).epochs_of(40) == 40
    assert setting.parse("untrained", LANGUAGES).epochs_of(40) == 0
    assert values("learning-rate[1e-4]").learning_rate == np.float32(1e-4)
    assert values("epochs[250]").learning_rate == values("original").learning_rate


@pytest.mark.parametrize("epochs", ["0.01x", "1e-30x", "1e9", "1e6x"])
def test_a_row_of_no_epochs_or_of_too_many_is_refused(epochs):
    with pytest.raises(ValueError, match="epochs are asked for; choose from 1 to 1,000,000"):
        setting.parse(f"epochs[{epochs}]", LANGUAGES).epochs_of(35)


def test_sentences_longer_than_the_model_are_cut_and_counted():
    long = TokenStore.from_languages([[np.arange(200), np.arange(3)]], 128)
    assert long.truncated == 1 and long.lengths.tolist() == [128, 5]
    with pytest.raises(ValueError, match="no sentence has a piece"):
        TokenStore.from_languages([[np.arange(0)] * 2], 128)


@functools.lru_cache
def corrupted(description, step=0, rate=corruption.MASKING_RATE):
    """A large batch and its corruption."""
    random = np.random.default_rng(0)
    text = [random.integers(SPECIALS, SHIFT, 40) for _ in range(1000)]
    tokens = store(text)
    order = np.arange(len(tokens))
    layout = packing.choose_layout(tokens.lengths, [order], len(order), (48,))
    plan = packing.planned([order], tokens.lengths, layout)
    one = first_step(plan)
    row = values(description)
    batch = assembly.assemble(tokens, one, row)
    token = hashing.token_hash(row.seed, step, one.owner, batch.places)
    result = corruption.corrupt(batch, token, row.marginals, row.neighbours, PIECES.draw, rate)
    return jax.device_get(batch), jax.device_get(result)


def selected(result):
    return result.selected[result.weights > 0]


@pytest.mark.parametrize("rate", [0.15, 0.4, 0.9])
def test_the_masking_rate_is_the_share_of_pieces_selected_and_no_special_token_is(rate):
    batch, result = corrupted("original", rate=rate)
    chosen = selected(result)
    pieces = batch.is_piece.sum()
    assert batch.is_piece[chosen].all()
    assert abs(len(chosen) - rate * pieces) < 5 * np.sqrt(pieces * rate * (1 - rate))
    np.testing.assert_array_equal(result.targets[result.weights > 0], batch.tokens[chosen])


def test_only_selected_places_change():
    batch, result = corrupted("original")
    untouched = np.setdiff1d(np.arange(len(batch.tokens)), selected(result))
    np.testing.assert_array_equal(result.tokens[untouched], batch.tokens[untouched])


@pytest.mark.parametrize(
    "description",
    ["original", "no-random", "no-random-as-published", "knn-replace", "knn-replace;no-random"],
)
def test_the_shares_masked_kept_and_replaced(description):
    batch, result = corrupted(description)
    chosen = selected(result)
    new, old = result.tokens[chosen], batch.tokens[chosen]
    masked, kept = new == 4, new == old
    neighbour = ~kept & (new == counterparts()[old, 0])
    shares = [masked, kept, ~masked & ~kept & ~neighbour, neighbour]
    np.testing.assert_allclose(
        [share.mean() for share in shares], values(description).marginals, atol=0.02
    )


def counterparts():
    """Every ordinary piece's counterpart in the other language."""
    ids = np.arange(2 * SHIFT)
    table = np.where(ids % SHIFT < SPECIALS, -1, (ids + SHIFT) % (2 * SHIFT))
    return table[:, None].astype(np.int32)


def test_a_neighbour_is_drawn_evenly_and_a_piece_without_one_is_kept():
    in_memory = corrupted("original")[0]
    batch = jax.tree.map(jnp.asarray, in_memory)
    table = np.full((2 * SHIFT, 3), -1, np.int32)
    table[10], table[11, :2] = (120, 121, 122), (123, 124)
    only_neighbours = np.array([0, 0, 0, 1], np.float32)
    drawn = {10: [], 11: [], 12: []}
    for step in range(20):
        token = hashing.token_hash(0, step, batch.segments, batch.places)
        result = jax.device_get(
            corruption.corrupt(
                batch, token, only_neighbours, table, PIECES.draw, corruption.MASKING_RATE
            )
        )
        for place in selected(result):
            if int(in_memory.tokens[place]) in drawn:
                drawn[int(in_memory.tokens[place])].append(int(result.tokens[place]))
    shares = np.bincount(drawn[10], minlength=123)[120:] / len(drawn[10])
    np.testing.assert_allclose(shares, 1 / 3, atol=4 * np.sqrt(2 / 9 / len(drawn[10])))
    assert set(drawn[11]) == {123, 124} and set(drawn[12]) == {12}


def test_random_pieces_come_from_both_languages_and_are_never_special():
    batch, result = corrupted("original")
    chosen = selected(result)
    new = result.tokens[chosen]
    replaced = new[(new != 4) & (new != batch.tokens[chosen])]
    assert (replaced % SHIFT >= SPECIALS).all()
    assert abs((replaced >= SHIFT).mean() - 0.5) < 0.1
    assert len(np.unique(replaced)) > 150


def test_corruption_is_drawn_anew_each_step():
    first, second = (set(selected(corrupted("original", step)[1])) for step in (0, 1))
    overlap = len(first & second) / len(first)
    assert 0.1 < overlap < 0.2
