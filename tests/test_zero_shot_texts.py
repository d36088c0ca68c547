"""zero_shot.texts: which files a pair reads, and which are refused before anything is trained."""

import pytest
from small_run import ROOT, config_of

from xling_jax.experiments.zero_shot import jobs, texts


@pytest.mark.parametrize("field", ["en.train", "en.dev", "en.test", "fr.test"])
def test_a_text_without_entities_is_refused(tmp_path, field):
    for name, tag in (("some en", "B-PER"), ("some fr", "B-PER"), ("none", "O")):
        (tmp_path / name).write_text(f"{name.split()[-1]}\t{tag}\n\n")
    fields = {
        f"texts.ner.{x}": str(tmp_path / ("none" if x == field else f"some {x[:2]}"))
        for x in ("en.train", "en.dev", "en.test", "fr.test")
    }
    path = ROOT / "configs" / "zero_shot.py"
    reader = texts.LabelledReader(config_of(path, "pair=en-fr,task=ner,models=gone", fields))
    for read in (reader.manifest, lambda name, languages: reader.read(name, "-".join(languages))):
        with pytest.raises(
            ValueError, match=rf"texts\.ner\.{field}: .*none has fewer .*: give a text with more"
        ):
            read("ner", ("en", "fr"))


def test_a_pair_may_have_examples_of_its_own(tmp_path):
    fields = {}
    for name in ("all", "pair"):
        (tmp_path / name).write_text(f"{name}\tB-PER\n\n")
    for field in ("texts.ner.en.train", "texts.ner.en.dev", "texts.ner.en.test",
                  "texts.ner.fr.test", "texts.ner.zh.test"):  # fmt: skip
        fields[field] = str(tmp_path / "all")
    own = [f"texts_of_pair.en_zh.ner.en.{part}" for part in ("train", "dev", "test")]
    options = "pair=en-fr+en-zh,task=ner,models=gone"
    made = config_of(
        ROOT / "configs" / "zero_shot.py",
        options,
        {**fields, **dict.fromkeys(own, str(tmp_path / "pair"))},
    )
    reader = texts.LabelledReader(made)
    read = {pair: reader.read("ner", pair) for pair in ("en-fr", "en-zh")}
    words = {pair: own.train[0].words + own.dev[0].words for pair, own in read.items()}
    assert words == {"en-fr": ["all", "all"], "en-zh": ["pair", "pair"]}
    named = [entry["field"] for entry in reader.manifest("ner", ("en", "zh"))]
    assert named == [*own, "texts.ner.zh.test"]
    made.texts_of_pair.en_zh.ner.en.dev = ""
    with pytest.raises(ValueError, match=r"texts_of_pair\.en_zh\.ner\.en\.dev is empty: give"):
        texts.LabelledReader(made).manifest("ner", ("en", "zh"))
    made.texts_of_pair.en_zh.ner.en.train = str(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match=r"texts_of_pair\.en_zh\.ner\.en\.train: .*gone"):
        texts.LabelledReader(made).manifest("ner", ("en", "zh"))


def test_what_is_chosen_by_cannot_be_tested_on(tmp_path):
    (tmp_path / "train").write_text("train\tB-PER\n\n")
    (tmp_path / "same").write_text("same\tB-PER\n\n")
    (tmp_path / "other").write_text("other\tB-PER\n\n")
    given = {"en.train": "train", "en.dev": "same", "en.test": "same", "fr.test": "other"}
    fields = {f"texts.ner.{x}": str(tmp_path / name) for x, name in given.items()}
    path = ROOT / "configs" / "zero_shot.py"
    for search, is_refused in (("one", True), ("paper", True), ("dufter", False)):
        options = f"pair=en-fr,task=ner,models=gone,search={search}"
        reader = texts.LabelledReader(config_of(path, options, fields))
        if not is_refused:  # the last epoch of one setting is tested
            assert len(reader.manifest("ner", ("en", "fr"))) == 4
            continue
        with pytest.raises(ValueError, match=r"texts\.ner\.en\.test: .*same is also the text that"):
            reader.manifest("ner", ("en", "fr"))


def test_two_first_languages_do_not_share_parallel_text(tmp_path):
    for name in ("en", "fr"):
        (tmp_path / name).write_text("a b\n")
    fields = {f"parallel.fr.{side}": str(tmp_path / name)
              for side, name in (("first", "en"), ("second", "fr"))}  # fmt: skip
    options = "pair=en-fr+de-fr,task=ner,models=gone"
    made = config_of(ROOT / "configs" / "zero_shot.py", options, fields)
    reader = texts.LabelledReader(made)
    with pytest.raises(ValueError, match=r"parallel\.fr\.first .* de-fr and en-fr begin"):
        reader.parallel_manifest(jobs.jobs(made)[0])
