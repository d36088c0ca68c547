"""export: a language's model as a folder, with which transformers computes what we do."""

import dataclasses
import json
import subprocess
import sys
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from weights import TOLERANCE, difference, logits_alone, randomized

from xling_jax import export
from xling_jax.corpora.normalize import Normalization
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.experiments.bilingual import group as bilingual
from xling_jax.experiments.bilingual.rows import parse
from xling_jax.models import folders, partition, stored
from xling_jax.models.bert import BertConfig
from xling_jax.models.heads import UNCHOSEN
from xling_jax.models.hugging_face import tokenizer as hugging_face_tokenizer
from xling_jax.models.hugging_face.text import HuggingFaceModel
from xling_jax.vocabulary import pieces, sharing

TEXTS = {
    "en": ["the dogs see a cat .", "a cat sees the dogs , and sleeps ."],
    "fr": ["les chiens voient un chat .", "un chat voit les chiens , et dort ; voilà ."],
}
LINEAR = BertConfig(
    vocabulary_size=0, layers=2, hidden=32, intermediate=128, heads=2, positions=200,
    token_types=1, head="linear",
)  # fmt: skip
BERT = dataclasses.replace(LINEAR, head="bert", intermediate=50, token_types=2)
SEPARATE = ("embeddings/tokens", "mlm/bias", "layers/0")  # embeddings and a layer of their own
KINDS = pytest.mark.parametrize(
    "way, own, config, model_type",
    [
        ("separate", SEPARATE, LINEAR, "bpe"),
        ("separate", SEPARATE, BERT, "unigram"),
        ("union", (), LINEAR, "bpe"),
        ("prefixed", (), BERT, "unigram"),
    ],
)
SENTENCES = [
    "the dogs see a cat .", "un chat voit les chiens", "  a  cat ,", "", "dogscat",
    "voilà zéro Ω .", "voila %% the ;;;;;",
]  # fmt: skip
SIZES = {"bpe": 40, "unigram": 24}


def stored_models(folder, way, own, config, model_type, chosen=None):
    """Models of two languages, of one partitioned tree; returns what was stored. `chosen` gives the
    ids that predictions chose among, from all of a language's."""
    trained = [
        pieces.train(text, SIZES[model_type], model_type=model_type) for text in TEXTS.values()
    ]
    vocabulary = sharing.make(way, tuple(TEXTS), trained)
    config = dataclasses.replace(config, vocabulary_size=vocabulary.size)
    models = [randomized(config, seed=zlib.crc32(name.encode())) for name in TEXTS]
    params = jax.device_get(partition.split(models, own))
    row = parse("row", "default", tuple(TEXTS))
    some = chosen and list(map(chosen, vocabulary.ids))
    bilingual.export(folder, row, config, params, vocabulary, Normalization(), some)
    return [stored.load(folder / name) for name in TEXTS]


def test_pieces_that_a_language_never_chose_from_are_never_predicted(tmp_path):
    kind = ("union", (), LINEAR, "bpe")
    whole = stored_models(tmp_path / "whole", *kind)
    first, second = ((tmp_path / "whole" / x / "model.safetensors").stat() for x in TEXTS)
    assert first.st_ino == second.st_ino  # kept once
    some = stored_models(tmp_path / "some", *kind, lambda ids: np.delete(ids, slice(7, None, 3)))
    for before, after, text in zip(whole, some, TEXTS.values(), strict=True):
        bias, now = before.params["mlm"]["bias"], after.params["mlm"]["bias"]
        is_chosen = np.isin(np.arange(len(bias)), np.setdiff1d(after.ids, after.ids[7::3]))
        assert not is_chosen.all() and (now[~is_chosen] == UNCHOSEN).all()
        np.testing.assert_array_equal(now[is_chosen], bias[is_chosen])
        # Pseudo-perplexity leaves them out, as it does [UNK], whatever rounds the bias.
        rounded = {**after.params, "mlm": {**after.params["mlm"], "bias": jnp.bfloat16(now)}}
        after = dataclasses.replace(after, params=rounded)
        assert (after.randomized(0).params["mlm"]["bias"] == np.where(is_chosen, 0, UNCHOSEN)).all()
        losses, counts = TextEncoder(after).masked_losses(text, 4, 4)
        _, all_counts = TextEncoder(before).masked_losses(text, 4, 4)
        left_out = [np.isin(ids, after.ids[7::3]).sum() for ids in after.encode(text)]
        assert sum(left_out) and (counts == all_counts - left_out).all()
        assert losses.max() < 1000


@KINDS
def test_a_partitioned_model_makes_one_model_a_language(way, own, config, model_type, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    every = []
    for model in stored_models(tmp_path / "models", way, own, config, model_type):
        to = tmp_path / model.language
        export.export(tmp_path / "models" / model.language, to)
        tokenizer = transformers.AutoTokenizer.from_pretrained(to)
        theirs = transformers.AutoModelForMaskedLM.from_pretrained(to).eval()
        encoded = tokenizer(SENTENCES, padding=True, return_tensors="pt")
        with torch.no_grad():
            logits = theirs(**encoded).logits[encoded.attention_mask > 0].numpy()
        first, last = model.special_ids
        ours = [
            (np.array([first, *model.ids[ids], last]), 0) for ids in model.pieces.encode(SENTENCES)
        ]
        np.testing.assert_array_equal(
            encoded.input_ids[encoded.attention_mask > 0], np.concatenate([ids for ids, _ in ours])
        )
        expected = logits_alone(model.config, model.params, ours)
        assert difference(expected, logits) < TOLERANCE
        every.append(expected[:1, :20])
    if own:  # both begin with [CLS] and differ
        assert difference(*every) > 0.01


@KINDS
def test_the_tokenizer_gives_the_ids_and_words_of_the_stored_model(
    way, own, config, model_type, tmp_path
):
    pytest.importorskip("tokenizers")
    for model in stored_models(tmp_path / "models", way, own, config, model_type):
        to = tmp_path / model.language
        export.export(tmp_path / "models" / model.language, to)
        found = HuggingFaceModel.load(to, model.language)
        texts = [*SENTENCES, "The dogs, and Zoë's “cat”!"]
        written = list(map(model.write, texts))
        assert list(map(found.write, texts)) == written
        plain = found.tokenizer.encode_batch(written, add_special_tokens=False)
        for ours, theirs, given in zip(
            model.encode(texts), found.encode(texts), plain, strict=True
        ):
            assert ours.tolist() == theirs.tolist() == given.ids
        for ours, theirs in zip(
            model.encode_words(written), found.encode_words(written), strict=True
        ):
            np.testing.assert_array_equal(ours[0], theirs[0])
            np.testing.assert_array_equal(ours[1], theirs[1])
        assert found.single_pieces() == model.single_pieces()
        assert found.special_ids == model.special_ids


def test_special_tokens_of_a_languages_own_stand_around_its_sentences(folder, tmp_path):
    pytest.importorskip("tokenizers")
    model = stored.load(folder)
    shifted = dataclasses.replace(
        model,
        config=dataclasses.replace(model.config, vocabulary_size=60),
        params=randomized(dataclasses.replace(model.config, vocabulary_size=60)),
        ids=model.ids + 7,
        normalization=Normalization(tokenize="none"),
        special_ids=(9, 10),
    )
    stored.save(folder, shifted)
    export.export(folder, tmp_path / "to")
    found = folders.load(str(tmp_path / "to"), "en")
    assert found.special_ids == (9, 10) and found.single_pieces() == shifted.single_pieces()
    (ids,) = found.encode(["“the”, Ω"])
    assert ids.tolist() == shifted.encode(["“the”, Ω"])[0].tolist() and ids[-1] == 8  # unknown
    assert found.write("“the”, Ω") == shifted.write("“the”, Ω") == '"the," Ω'
    assert folders.files(tmp_path / "to")[-1].name == "tokenizer_config.json"
    said = json.loads((tmp_path / "to" / "config.json").read_text())
    names = ("pad_token_id", "pad_index", "unk_index", "bos_token_id", "eos_token_id", "mask_index")
    assert [said[name] for name in names] == [7, 7, 8, 9, 10, 11]


def test_byte_pairs_are_joined_in_the_order_of_sentencepiece(tmp_path):
    pytest.importorskip("tokenizers")
    random = np.random.default_rng(0)
    for letters in ("ab", "abc", "abcdefgh"):
        words = ["".join(random.choice(list(letters), random.integers(1, 12))) for _ in range(600)]
        trained = pieces.train([" ".join(words[:300])], 60)
        assert trained.is_bpe and not pieces.train(words, 20, model_type="unigram").is_bpe
        model = stored.StoredModel(
            dataclasses.replace(BERT, vocabulary_size=60), {}, "en", trained, np.arange(60),
            Normalization(tokenize="none"),
        )  # fmt: skip
        hugging_face_tokenizer.save(tmp_path, model)
        import tokenizers

        found = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        for word, ids in zip(words, model.encode(words), strict=True):
            assert found.encode(word, add_special_tokens=False).ids == ids.tolist(), word


@pytest.fixture
def folder(tmp_path):
    """A stored model."""
    stored_models(tmp_path / "models", "separate", SEPARATE, LINEAR, "bpe")
    return tmp_path / "models" / "en"


def test_what_no_tokenizer_can_do_is_refused_before_anything_is_written(folder, tmp_path):
    model = stored.load(folder)
    stored.save(folder, dataclasses.replace(model, inverted=True))
    with pytest.raises(ValueError, match="in reversed order.*hugging_face.model.save writes"):
        export.export(folder, tmp_path / "to")
    assert not (tmp_path / "to").exists()
    for ids in ((2, 59), (8, 3)):  # a row that no piece has, and a piece that is not special
        with pytest.raises(ValueError, match=rf"special ids \[{ids[0]}, {ids[1]}\] are none"):
            hugging_face_tokenizer.require(dataclasses.replace(model, special_ids=ids))


@pytest.mark.parametrize("name", ["config.json", "notes.txt"])
def test_nothing_is_overwritten(folder, tmp_path, name):
    to = tmp_path / "there"
    to.mkdir()
    (to / name).write_text("mine")
    for place in (to, to / name):
        with pytest.raises(ValueError, match="--to=.*already exists; name a new folder"):
            export.export(str(folder), str(place))
    assert [path.read_text() for path in to.iterdir()] == ["mine"]


def test_the_command_writes_a_folder_or_says_what_is_wrong(folder, tmp_path):
    pytest.importorskip("tokenizers")
    command = [sys.executable, "-m", "xling_jax.export", f"--to={tmp_path / 'to'}"]
    done = subprocess.run([*command, f"--model={folder}"], capture_output=True, text=True)
    assert done.returncode == 0 and "text that is normalised already" in done.stdout
    assert {file.name for file in (tmp_path / "to").iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    command += [f"--to={tmp_path / 'other'}", f"--model={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("error: ")
    assert "model.json: no such file" in done.stderr
