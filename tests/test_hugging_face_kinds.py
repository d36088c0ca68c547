"""models.hugging_face: every architecture that is read, in every type that weights come in."""

import pytest
from weights import TOLERANCE, difference, logits_alone, padded, randomize_theirs, some_sentences

from xling_jax.models.hugging_face import model as hugging_face

BERT = {
    "vocab_size": 130, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 80, "max_position_embeddings": 202,
}  # fmt: skip
XLM = {
    "vocab_size": 130, "emb_dim": 48, "n_layers": 2, "n_heads": 3, "max_position_embeddings": 202,
}  # fmt: skip
KINDS = {
    "bert": ("Bert", "ForMaskedLM", BERT, 0),
    "roberta": ("Roberta", "ForMaskedLM", {**BERT, "type_vocab_size": 2, "pad_token_id": 1}, 2),
    "xlm-r": ("XLMRoberta", "ForMaskedLM", {**BERT, "type_vocab_size": 1, "pad_token_id": 1}, 2),
    "xlm": ("XLM", "WithLMHeadModel", XLM, 0),
    "xlm-languages": ("XLM", "WithLMHeadModel", {**XLM, "n_langs": 2}, 0),
}


# In float32 test_hugging_face.py and test_hugging_face_xlm.py have the others.
CASES = [(kind, dtype) for kind in KINDS for dtype in ("bfloat16", "float16")]
CASES += [("roberta", "float32"), ("xlm-r", "float32")]


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_the_logits_are_those_of_transformers(kind, dtype, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    name, suffix, fields, first_position = KINDS[kind]
    torch.manual_seed(0)
    model = getattr(transformers, name + suffix)(getattr(transformers, f"{name}Config")(**fields))
    randomize_theirs(model)
    model.to(getattr(torch, dtype)).save_pretrained(tmp_path)
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, dtype=torch.float32).eval()

    config, params = hugging_face.load(tmp_path)
    assert config.positions == 202 - first_position
    assert config.token_types == 1 or "oberta" not in name.lower()  # others were never trained
    sentences = [(ids, n % config.token_types) for ids, n in some_sentences(config)]
    tokens, positions, types, mask = (torch.tensor(x, dtype=torch.long) for x in padded(sentences))
    inputs = {} if kind == "xlm" else {"langs" if name == "XLM" else "token_type_ids": types}
    with torch.no_grad():
        logits = model(
            input_ids=tokens, position_ids=positions + first_position, attention_mask=mask, **inputs
        ).logits
    assert difference(logits_alone(config, params, sentences), logits[mask > 0].numpy()) < TOLERANCE
