"""models.xlm_text: an XLM reads text as XLMTokenizer and XLMWithLMHeadModel of transformers do."""

import dataclasses
import json
import os
import sys
import types

import numpy as np
import pytest
from weights import change_config, randomized

from xling_jax.corpora.normalize import segment_chinese
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.models import folders
from xling_jax.models.bert import BertConfig
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.models.hugging_face import xlm_text
from xling_jax.models.hugging_face.xlm_text import XlmModel, split

CHINESE = ["他说：“3.5 %的猫，在U.S.A.。”", "我 爱 the dog's cat.", "Ａ１、（a）"]
SENTENCES = ["The dog's cat sees “the” old dog.", "Thé  thèse… (n° 3)", "a", "", "xyz the",
             "за́мок x\u200by"]  # fmt: skip
MERGES = ["t h", "th e</w>", "d o", "do g</w>", "s e", "se e", "c a", "ca t</w>", "o l"]
PIECES = [
    *("<s>", "</s>", "<pad>", "<unk>", "<special0>", "<special1>", *"thedogsca.l'", "s</w>"),
    *("e</w>", "g</w>", "a</w>", ".</w>", "th", "the</w>", "do", "dog</w>", "see", "cat</w>"),
    *("d</w>", "n", "3</w>", ")</w>", "\"</w>", "'</w>", "T", "The</w>"),
]  # fmt: skip
CONFIG = BertConfig(
    vocabulary_size=len(PIECES) + 3, layers=2, hidden=24, intermediate=96, heads=3, positions=60,
    token_types=2, head="linear",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A model that knows English, as language 1, and French."""
    hugging_face.save(tmp_path, CONFIG, randomized(CONFIG))
    change_config(tmp_path, lang2id={"en": 1, "fr": 0})
    vocabulary = {name: number for number, name in enumerate(PIECES)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    # Two columns, or three: how often the pair was seen.
    lines = [line + " 17" * (number % 2) for number, line in enumerate(MERGES)]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path


def transformers_tokenizer(folder, is_plain=True):
    xlm = pytest.importorskip("transformers.models.xlm.tokenization_xlm")
    return xlm.XLMTokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"),
        do_lowercase_and_remove_accent=is_plain,
    )  # fmt: skip


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("language", ["en", "fr"])
def test_ids_are_those_of_transformers(is_plain, language, folder):
    theirs = transformers_tokenizer(folder, is_plain)
    theirs.save_pretrained(folder)
    model = folders.load(folder, language)
    assert (
        isinstance(model, XlmModel) and model.is_plain == is_plain and model.special_ids == (0, 1)
    )
    xlm_text.save(folder / "kept", model)
    kept = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(folder / "kept")
    for text, expected in zip(SENTENCES, model.encode(SENTENCES), strict=True):
        for tokenizer in (theirs, kept):
            ids = tokenizer.convert_tokens_to_ids(tokenizer._tokenize(text, lang=language))
            assert ids == expected.tolist(), text
            ids = tokenizer.build_inputs_with_special_tokens(ids)
            assert ids == [0, *expected.tolist(), 1]


def test_chinese_is_segmented_and_not_cut_further(folder, monkeypatch):
    characters = sorted({*"".join(CHINESE), *'a1,:"()'})
    names = [*PIECES[:6], *characters, *(f"{character}</w>" for character in characters)]
    vocabulary = {name: number for number, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    config = dataclasses.replace(CONFIG, vocabulary_size=len(names))
    hugging_face.save(folder, config, randomized(config))
    change_config(folder, lang2id={"zh": 1})
    model = folders.load(folder, "zh")
    assert "3.5%" in model.write(CHINESE[0]).split()  # which Moses writes as "3.5 %"
    monkeypatch.setitem(sys.modules, "rjieba", types.SimpleNamespace(cut=segment_chinese))
    theirs = transformers_tokenizer(folder)
    for text, ids in zip(CHINESE, model.encode(CHINESE), strict=True):
        assert ids.tolist() == theirs.convert_tokens_to_ids(theirs._tokenize(text, lang="zh")), text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_pairs_are_read_as_transformers_reads_them(end, folder):
    lines = ["#version: 0.2", "t h 9", "a \u2028 7", "h\x85 e 2", "e\u2028</w> t", "c x 1.5"]
    lines += [
        "\u3000 \u2003</w> 5",
        "\u3000 \xa0 7",
        "\u3000 a 12",
        "\xa0 a 12",
        "d  o",
        "s\te 4",
        "a b 1 2",
    ]
    (folder / "merges.txt").write_bytes("".join(line + end for line in lines).encode())
    ranks = folders.load(folder, "en").ranks
    pairs = [("#version:", "0.2"), ("t", "h"), ("a", "7"), ("h", "e"), ("e", "</w>")]
    assert sorted(ranks, key=ranks.__getitem__)[:5] == pairs
    theirs = transformers_tokenizer(folder).bpe_ranks
    assert {pair: rank for pair, rank in theirs.items() if len(pair) == 2} == ranks


@pytest.mark.parametrize(
    "lines, message",
    [
        (["t h", "c", ""], "line 2: 'c' is no pair"),
        (["t h", "", "d o", ""], "line 2: '' is no pair"),
        (["t h", "d o", "t h 3", ""], "line 3: 't h 3' is there twice"),
        (["t h", "d o"], "line 2: the last line has no end"),
    ],
)
def test_lines_that_are_no_pairs_are_refused(folder, lines, message):
    (folder / "merges.txt").write_text("\n".join(lines), "utf-8")
    with pytest.raises(ValueError, match=f"merges.txt, {message}"):
        folders.load(folder, "en")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"th": 99}, "piece 'th' has the id 99, and the model has ids from 0 to 39"),
        ({"th": 7}, "the pieces '.*' and 'th' have the same id 7"),
        ({"th": -1}, "th=-1: Input should be"),
        ({"th": 21.0}, "th=21.0: Input should be"),
        ({"th": "21"}, "th='21': Input should be"),
        ({"th": True}, "th=True: Input should be"),
        ({"th": None}, "th=None: Input should be"),
    ],
)
def test_ids_that_are_no_rows_are_refused(folder, changes, message):
    vocabulary = {name: number for number, name in enumerate(PIECES)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary | changes), "utf-8")
    with pytest.raises(ValueError, match=f"vocab.json: {message}"):
        folders.load(folder, "en")


def test_the_language_of_the_text_has_its_embedding(folder):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    for number, language in enumerate(("fr", "en")):
        model = folders.load(folder, language)
        found = TextEncoder(model).sentences(SENTENCES[:1])
        (ids,) = model.encode(SENTENCES[:1])
        tokens = torch.tensor([[0, *ids.tolist(), 1]])
        with torch.no_grad():
            states = theirs(
                input_ids=tokens, attention_mask=torch.ones_like(tokens),
                langs=torch.full_like(tokens, number), output_hidden_states=True,
            ).hidden_states  # fmt: skip
        expected = np.stack([state[0, 1:-1].mean(axis=0).numpy() for state in states])
        np.testing.assert_allclose(found[:, 0], expected, atol=2e-5)
    with pytest.raises(ValueError, match="lang2id names none for 'de'"):
        folders.load(folder, "de")


def test_a_piece_that_ends_a_word_is_one(folder):
    model = folders.load(folder, "en")
    ((ids, word_of),) = model.encode_words(["The thes dog ´ xyz"])
    pieces = ["the</w>", "th", "e", "s</w>", "dog</w>", *["<unk>"] * 4]
    assert [PIECES[number] for number in ids] == pieces
    assert word_of.tolist() == [0, 1, 1, 1, 2, 3, 4, 4, 4]
    some = model.single_pieces(["dog", "dogs", "The", "q"])
    assert some == {"dog": PIECES.index("dog</w>"), "The": PIECES.index("the</w>")}
    every = model.single_pieces()
    assert {"the", "dog", "cat", "a", "."} <= every.keys() and "do" not in every


def test_pairs_are_joined_in_the_order_in_which_they_were_learned():
    ranks = {("a", "b"): 0, ("ab", "ab"): 1, ("b", "c</w>"): 2, ("b", "a"): 3}
    assert split("ababab", {**ranks, ("a", "b</w>"): 4}) == ["abab", "ab</w>"]
    assert split("abc", ranks) == ["ab", "c</w>"]
    assert split("bc", ranks) == ["bc</w>"] and split("a", ranks) == ["a</w>"]


def test_the_models_files_are_named_and_what_is_wrong_with_them(folder):
    names = ["config.json", "model.safetensors", "vocab.json", "merges.txt"]
    assert [path.name for path in folders.files(folder)] == names
    (folder / "tokenizer_config.json").write_text("{}")
    assert [path.name for path in folders.files(folder)] == [*names, "tokenizer_config.json"]
    (folder / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ValueError, match=r"tokenizer_config.json: \[\]: Input should be"):
        folders.load(folder, "en")
    (folder / "tokenizer_config.json").write_text('{"do_lowercase_and_remove_accent": "no"}')
    with pytest.raises(ValueError, match="accent='no': Input should be"):
        folders.load(folder, "en")
    (folder / "tokenizer_config.json").unlink()
    (folder / "merges.txt").write_bytes(b"a \xff\n")
    with pytest.raises(ValueError, match="merges.txt is not UTF-8 .byte 3"):
        folders.load(folder, "en")
    (folder / "merges.txt").write_text("")
    (folder / "vocab.json").write_text(json.dumps({"<s>": 0, "</s>": 1, "<unk>": 2, "Ġa": 3}))
    with pytest.raises(ValueError, match="vocab.json is not an XLM's.*need tokenizer.json"):
        folders.load(folder, "en")
    (folder / "vocab.json").write_text(json.dumps({n: i * 9 for i, n in enumerate(PIECES)}))
    with pytest.raises(ValueError, match="has the id .*resize_token_embeddings"):
        folders.load(folder, "en")
    (folder / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match="merges.txt: no such file; AutoTokenizer"):
        folders.files(folder)
    os.mkfifo(folder / "merges.txt")
    with pytest.raises(ValueError, match="merges.txt is a pipe"):
        folders.manifest(folder)
