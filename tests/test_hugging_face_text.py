"""Models of transformers with their tokenizers: the states of text are those of transformers."""

import json

import jax
import numpy as np
import pytest

from xling_jax.batches import labelled
from xling_jax.batches.labelled import CLASSIFIER
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.models import folders, heads
from xling_jax.models.bert import BertConfig
from xling_jax.models.hugging_face import fine_tuned
from xling_jax.models.hugging_face import model as hugging_face
from xling_jax.models.hugging_face.text import HuggingFaceModel
from xling_jax.models.task_heads import HeadConfig
from xling_jax.models.text_model import NO_WORD

WORDS = "the dog cat bird sees likes hears a small big old and sleeps runs run ning".split()
SENTENCES = ["the dog sees a small cat", "running birds and the old zebra.", "a", "the " * 40]

ROBERTA = dict(
    max_position_embeddings=62, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2,
    layer_norm_eps=1e-5, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
    intermediate_size=40, initializer_range=0.3, hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)  # fmt: skip


def bert(folder, seed=0):
    """A BERT with WordPiece pieces; returns its tokenizer."""
    tokenizers = pytest.importorskip("tokenizers")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    names = [*special, *WORDS, "##ning", "##s", ".", "▁"]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({name: n for n, name in enumerate(names)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    config = BertConfig(
        vocabulary_size=len(names), layers=2, hidden=24, intermediate=40, heads=3, positions=60,
        dropout=0.0, initial_sd=0.3,
    )  # fmt: skip
    hugging_face.save(folder, config, heads.initial_params(config, seed))
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def xlm_roberta(folder):
    """An XLM-R with SentencePiece pieces, whose positions begin behind the padding's; the same."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    pytest.importorskip("torch")
    names = ["<s>", "<pad>", "</s>", "<unk>", *(f"▁{word}" for word in WORDS), "ning", "s", "."]
    scores = [(name, 0.0 if n < 4 else -2.0) for n, name in enumerate(names)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, unk_id=3))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    config = transformers.XLMRobertaConfig(vocab_size=len(names), **ROBERTA)
    transformers.XLMRobertaForMaskedLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def xlm(folder):
    """An XLM with byte pairs that end words; the same."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    pytest.importorskip("torch")
    merges = []
    for word in WORDS:  # joined from the left to the right
        letters = [*word[:-1], word[-1] + "</w>"]
        starts = ["".join(letters[:n]) for n in range(1, len(letters))]
        merges += zip(starts, letters[1:], strict=True)
    merges = list(dict.fromkeys(merges))
    letters = sorted({part for word in WORDS for part in (*word, word[-1] + "</w>")})
    names = ["<s>", "</s>", "<pad>", "<unk>", ".</w>", *letters, *map("".join, merges)]
    vocabulary = {name: n for n, name in enumerate(dict.fromkeys(names))}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocabulary, merges, unk_token="<unk>", end_of_word_suffix="</w>")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("</s>", 1), ("<s>", 0))
    config = transformers.XLMConfig(
        vocab_size=len(vocabulary), max_position_embeddings=60, emb_dim=24, n_layers=2, n_heads=3,
        init_std=0.3, embed_init_std=0.3, dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    transformers.XLMWithLMHeadModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def roberta(folder):
    """A RoBERTa with pieces of bytes; the same."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("tokenizers")
    pytest.importorskip("torch")
    tokenizer = bytes_tokenizer()
    config = transformers.RobertaConfig(vocab_size=tokenizer.get_vocab_size(), **ROBERTA)
    transformers.RobertaForMaskedLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def bytes_tokenizer():
    """Byte pairs that are joined from the left to the right, with blanks before words."""
    tokenizers = pytest.importorskip("tokenizers")
    level = tokenizers.pre_tokenizers.ByteLevel
    merges = []
    for word in (*(f"Ġ{word}" for word in WORDS), "ning"):
        merges += [(word[:n], word[n]) for n in range(1, len(word))]
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(level.alphabet())]
    names += dict.fromkeys(a + b for a, b in merges)
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {name: n for n, name in enumerate(dict.fromkeys(names))}, list(dict.fromkeys(merges))
        )
    )
    tokenizer.pre_tokenizer = level(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def their_states(tokenizer, model, sentence):
    """Every layer's states of a sentence without its special tokens, [L, pieces, D]."""
    torch = pytest.importorskip("torch")
    ids = tokenizer.encode(sentence).ids
    if len(ids) > 60:  # what is longer than the model is cut
        ids = [*ids[:59], ids[-1]]
    with torch.no_grad():
        states = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
    return np.stack([state[0, 1:-1].numpy() for state in states])


KINDS = pytest.mark.parametrize("kind", [bert, xlm_roberta, xlm, roberta])


@KINDS
def test_sentences_are_the_means_of_the_states_of_transformers(kind, tmp_path):
    tokenizer = kind(tmp_path)
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    found = TextEncoder(HuggingFaceModel.load(tmp_path, "en")).sentences(SENTENCES)
    for number, sentence in enumerate(SENTENCES):
        expected = their_states(tokenizer, model, sentence).mean(axis=1)
        np.testing.assert_allclose(found[:, number], expected, atol=2e-5)


@KINDS
@pytest.mark.parametrize("of_words", [True, False])
def test_a_fine_tuned_encoder_is_a_classifier_of_transformers(kind, of_words, tmp_path):
    kind(tmp_path / "encoder")
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model = HuggingFaceModel.load(tmp_path / "encoder", "en")
    random = np.random.default_rng(0)
    output = {"kernel": random.normal(size=(24, 3)), "bias": random.normal(size=3)}
    head, labels = HeadConfig(CLASSIFIER, 3), ["B-X", "I-X", "O"]
    encoder = {name: model.params[name] for name in ("embeddings", "layers")}
    fine_tuned.save(tmp_path / "tuned", model, encoder, head, {"output": output}, labels, of_words)
    texts = ["the dog sees", "a small cat runs"]
    # Words that have labels are given one by one, each as behind another.
    first, second = [x for x, _ in model.encode_words(texts)] if of_words else model.encode(texts)
    made = labelled.pair(first, second, model.special_ids, 60, model.config.token_types > 1)
    ids, types = (torch.tensor(each[0])[None] for each in (made.rows, made.types))
    auto = transformers.AutoModel.from_pretrained(tmp_path / "encoder").eval()
    named = {"token_type_ids": types} if model.config.token_types > 1 else {}
    named |= {"attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        states = auto(ids, **named).last_hidden_state[0].numpy()
    expected = states @ output["kernel"] + output["bias"]
    kinds = transformers.AutoModelForTokenClassification
    if not of_words:
        kinds, expected = transformers.AutoModelForSequenceClassification, expected[0]
    theirs = kinds.from_pretrained(tmp_path / "tuned").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "tuned")
    encoded = tokenizer("the dog sees", "a small cat runs", return_tensors="pt")
    assert encoded["input_ids"].tolist() == ids.tolist()
    with torch.no_grad():
        found = theirs(**encoded).logits[0].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert [theirs.config.id2label[n] for n in range(3)] == labels
    again = HuggingFaceModel.load(tmp_path / "tuned", "en")  # as an encoder, without its head
    assert "mlm" not in again.params
    jax.tree.map(np.testing.assert_array_equal, again.params, encoder)


@pytest.mark.parametrize("of_bytes", ["pre-tokenizer", "normalizer"])
def test_a_fine_tuned_model_reads_words_wherever_its_bytes_are_made(of_bytes, tmp_path):
    tokenizer = bytes_tokenizer()
    from tokenizers import Regex, normalizers, pre_tokenizers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut = [pre_tokenizers.Digits(individual_digits=True), level]
    if of_bytes == "normalizer":
        tokenizer.normalizer = normalizers.ByteLevel()
        cut = [pre_tokenizers.Split(Regex("Ġ"), "merged_with_next")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cut)
    config = BertConfig(
        vocabulary_size=tokenizer.get_vocab_size(), layers=1, hidden=24, intermediate=8, heads=1,
        positions=20,
    )  # fmt: skip
    hugging_face.save(tmp_path / "encoder", config, heads.initial_params(config, 0))
    tokenizer.save(str(tmp_path / "encoder" / "tokenizer.json"))
    model = HuggingFaceModel.load(tmp_path / "encoder", "en")
    head, output = HeadConfig(CLASSIFIER, 2), {"kernel": np.ones((24, 2)), "bias": np.zeros(2)}
    encoder = {name: model.params[name] for name in ("embeddings", "layers")}
    fine_tuned.save(tmp_path / "t", model, encoder, head, {"output": output}, ["a", "b"], True)
    again = HuggingFaceModel.load(tmp_path / "t", "en")
    (ids, _) = model.encode_words(["the dog 12"])[0]
    words = {"sequence": ["the", "dog", "12"], "is_pretokenized": True}
    given = again.tokenizer.encode(**words, add_special_tokens=False)
    assert given.ids == ids.tolist() == again.encode_words(["the dog 12"])[0][0].tolist()


@KINDS
def test_words_are_told_apart_in_text(kind, tmp_path):
    kind(tmp_path)
    model = HuggingFaceModel.load(tmp_path, "en")
    written = model.write("Running birds, dogs.")
    ((ids, word_of),) = model.encode_words([written])
    assert written.split() == ["Running", "birds", ",", "dogs", "."] and len(ids) == len(word_of)
    assert set(word_of.tolist()) - {NO_WORD} == {0, 1, 2, 3, 4}
    assert (np.diff(word_of) >= 0).all() and (word_of == 1).sum() == (3 if kind is xlm else 2)


@KINDS
def test_single_pieces_are_words_with_a_row_of_their_own(kind, tmp_path):
    kind(tmp_path)
    model = HuggingFaceModel.load(tmp_path, "en")
    some = model.single_pieces(["dog", "running", "zebra", "cat"])
    assert some.keys() == {"dog", "cat"}  # the vocabulary cannot write "zebra"
    every = model.single_pieces()
    letters = {word for word in every if len(word) == 1}
    if kind is roberta:  # what its words are joined from
        letters |= {word[:n] for word in WORDS for n in range(1, len(word))} - set(WORDS)
    assert every.keys() - letters == set(WORDS) - letters and every["dog"] == some["dog"]


def test_every_piece_is_a_word_where_none_is_marked():
    tokenizers = pytest.importorskip("tokenizers")
    level = tokenizers.models.WordLevel({"[UNK]": 0, "dog": 1, "cat": 2}, unk_token="[UNK]")
    config = BertConfig(vocabulary_size=3, layers=1, hidden=8, intermediate=8, heads=1, positions=9)
    model = HuggingFaceModel(config, {}, "en", tokenizers.Tokenizer(level), 0)
    assert model.single_pieces() == {"dog": 1, "cat": 2}


def test_pieces_of_bytes_have_the_blank_before_their_word(tmp_path):
    tokenizer = bytes_tokenizer()
    config = BertConfig(
        vocabulary_size=tokenizer.get_vocab_size(), layers=1, hidden=8, intermediate=8, heads=1,
        positions=40,
    )  # fmt: skip
    hugging_face.save(tmp_path, config, heads.initial_params(config, 0))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = HuggingFaceModel.load(tmp_path, "en")
    names = tokenizer.get_vocab()
    assert model.mask_id == names["<mask>"] and model.unknown is None
    ((ids, word_of),) = model.encode_words(["dog é running"])
    assert ids[0] == names["Ġdog"] and word_of.tolist() == [0, 1, 1, 1, 2, 2]
    assert model.encode(["the dog"])[0][-1] == names["Ġdog"]  # the first has no blank before it
    assert model.encode_alone(["dog"])[0].tolist() == [names["Ġdog"]]
    found = model.single_pieces(["dog", "running", "é"])
    assert found == {"dog": names["Ġdog"]} and set(model.single_pieces()) >= set(WORDS)


def test_what_can_write_all_bytes_needs_no_unknown_piece(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    names = ["<s>", "</s>", "dog", *(f"<0x{byte:02X}>" for byte in range(256))]
    for missing, vocabulary in enumerate((names, names[:-1])):
        ids = {name: number for number, name in enumerate(vocabulary)}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(ids, [], byte_fallback=True))
        tokenizer.post_processor = tokenizers.processors.BertProcessing(("</s>", 1), ("<s>", 0))
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        config = BertConfig(
            vocabulary_size=len(vocabulary), layers=1, hidden=8, intermediate=8, heads=1,
            positions=20,
        )  # fmt: skip
        hugging_face.save(tmp_path, config, heads.initial_params(config, 0))
        if missing:
            with pytest.raises(ValueError, match="tokenizer.json: model.unk_token"):
                HuggingFaceModel.load(tmp_path, "en")
        else:
            model = HuggingFaceModel.load(tmp_path, "en")
            assert model.unknown is None and len(model.encode(["é"])[0]) == 2
            assert not model.single_pieces(["é"])


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda x: x["model"]["vocab"].update(dog=99), "piece 'dog' has the id 99, and the model"),
        (lambda x: x["model"]["vocab"].update(dog=7), "'cat' .*same id 7|'dog' .*same id 7"),
        (lambda x: x["model"]["vocab"].update(dog=-1), "cannot be read"),
        (lambda x: x["model"]["vocab"].update(dog=6.5), "cannot be read"),
        (lambda x: x["model"]["vocab"].update(dog="6"), "cannot be read"),
        (lambda x: x["model"].update(unk_token="[UNJ]"), "model.unk_token='.UNJ.': the vocab"),
        (lambda x: x["model"]["vocab"].pop("[UNK]"), "model.unk_token='.UNK.': the vocab"),
        (lambda x: x["model"]["vocab"].pop("[SEP]"), "puts '.SEP.' of id 3 .* gives it None"),
        (lambda x: x["post_processor"].update(cls=["[CLS]", 999]), "puts '.CLS.' of id 999"),
        (lambda x: x.update(post_processor=None), "puts 0 special tokens around a sentence"),
    ],
)
def test_a_tokenizer_that_is_not_the_models_is_refused_when_it_is_loaded(change, message, tmp_path):
    bert(tmp_path)
    path = tmp_path / "tokenizer.json"
    fields = json.loads(path.read_text("utf-8"))
    change(fields)
    path.write_text(json.dumps(fields), "utf-8")
    with pytest.raises(ValueError, match=f"tokenizer.json.*({message})"):
        HuggingFaceModel.load(tmp_path, "en")


@pytest.mark.parametrize(
    ("kind", "field", "value", "message"),
    [
        (bert, "do_lower_case", False, "normalizer.lowercase=True"),
        (bert, "strip_accents", False, "normalizer.strip_accents=True"),
        (bert, "tokenize_chinese_chars", False, "normalizer.handle_chinese_chars=True"),
        (roberta, "add_prefix_space", True, "pre_tokenizer.add_prefix_space=False"),
        (bert, "add_prefix_space", True, ""),  # which a BERT does not have
        (bert, "do_lower_case", None, ""),
        (bert, "tokenizer_class", "BertTokenizer", ""),
    ],
)
def test_two_files_that_contradict_each_other_are_refused(kind, field, value, message, tmp_path):
    kind(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({field: value}), "utf-8")
    if message:
        with pytest.raises(ValueError, match=f"_config.json: {field}={value}, .*{message}"):
            HuggingFaceModel.load(tmp_path, "en")
    else:
        HuggingFaceModel.load(tmp_path, "en")


@pytest.mark.parametrize(
    ("kind", "part", "name", "value", "message"),
    [
        (bert, "normalizer", "lowercase", False, "do_lower_case is missing, so it is True"),
        (bert, "normalizer", "strip_accents", False, "strip_accents is missing, so it is True"),
        (bert, "normalizer", "handle_chinese_chars", False, "chars is missing, so it is True"),
        (roberta, "pre_tokenizer", "add_prefix_space", True, "space is missing, so it is False"),
    ],
)
def test_a_setting_that_is_missing_is_what_transformers_takes(
    kind, part, name, value, message, tmp_path
):
    kind(tmp_path)
    transformers = pytest.importorskip("transformers")
    path = tmp_path / "tokenizer.json"
    fields = json.loads(path.read_text("utf-8"))
    fields[part][name] = value
    path.write_text(json.dumps(fields), "utf-8")
    text, theirs = "dog Thé中", []
    for settings in (None, {}, {"tokenizer_class": "PreTrainedTokenizerFast"}):
        if settings is not None:
            (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
        ids = transformers.AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"]
        if settings:
            model = HuggingFaceModel.load(tmp_path, "en")
            assert ids == [model.special_ids[0], *model.encode([text])[0], model.special_ids[1]]
            assert ids not in theirs
        else:
            theirs.append(ids)
            with pytest.raises(ValueError, match=f"{message}, but .*{part}.{name}={value}"):
                HuggingFaceModel.load(tmp_path, "en")


def test_a_flipped_bit_gives_a_model_or_an_error_that_names_the_file(tmp_path):
    bert(tmp_path)
    random = np.random.default_rng(0)
    refused = 0
    for path in folders.files(tmp_path):
        whole = path.read_bytes()
        for _ in range(10):
            content = bytearray(whole)
            content[random.integers(len(whole))] ^= 1 << random.integers(8)
            path.write_bytes(content)
            try:
                model = HuggingFaceModel.load(tmp_path, "en")
            except ValueError as error:
                assert path.name in str(error)
                refused += 1
            else:  # no digest tells a weight from another one
                assert all(np.isfinite(x).all() for x in jax.tree.leaves(model.params))
        path.write_bytes(whole)
    assert 10 < refused < 30


@pytest.mark.parametrize("names", [[], ["[CLS]"], ["[CLS]", "[SEP]"]])
def test_special_tokens_that_are_not_described_are_told_with_the_file(names, tmp_path):
    bert(tmp_path)
    path = tmp_path / "tokenizer.json"
    fields = json.loads(path.read_text("utf-8"))
    ids = {"[CLS]": 2, "[SEP]": 3}
    places = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ids]
    places.insert(1, {"Sequence": {"id": "A", "type_id": 0}})
    described = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in names}
    fields["post_processor"] = {
        "type": "TemplateProcessing", "single": places, "pair": places,
        "special_tokens": described,
    }  # fmt: skip
    path.write_text(json.dumps(fields), "utf-8")
    if len(names) == 2:
        assert HuggingFaceModel.load(tmp_path, "en").special_ids == (2, 3)
    else:
        with pytest.raises(ValueError, match="tokenizer.json cannot be read: .*restore the file"):
            HuggingFaceModel.load(tmp_path, "en")


@pytest.mark.parametrize("unknown", [99, -1, None, 1.5])
def test_a_unigram_model_needs_a_piece_for_what_it_cannot_write(unknown, tmp_path):
    xlm_roberta(tmp_path)
    path = tmp_path / "tokenizer.json"
    fields = json.loads(path.read_text("utf-8"))
    fields["model"]["unk_id"] = unknown
    path.write_text(json.dumps(fields), "utf-8")
    with pytest.raises(ValueError, match="tokenizer.json"):
        HuggingFaceModel.load(tmp_path, "en")


@KINDS
def test_what_is_missing_is_named(kind, tmp_path):
    kind(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"a": 1, "a": 2}')
    with pytest.raises(ValueError, match="tokenizer.json: an object has 'a' twice"):
        HuggingFaceModel.load(tmp_path, "en")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="tokenizer.json: model is missing"):
        HuggingFaceModel.load(tmp_path, "en")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"tokenizer.json: no such file; AutoTokenizer"):
        HuggingFaceModel.load(tmp_path, "en")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model.safetensors: no such file"):
        hugging_face.require(tmp_path)
