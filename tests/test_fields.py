"""fields and schema: every config is checked whole, and every field says what it may be."""

import math
from pathlib import Path

import pytest
from ml_collections import ConfigDict
from small_run import ROOT, config_of

from xling_jax import schema
from xling_jax.runs import fields
from xling_jax.runs.fields import EXPERIMENTS, of_name

CONFIGS = [
    ("fake_english", "row=all,scale=paper"),
    ("fake_english", "row=0+3,seeds=0+42,epochs=2"),
    ("bilingual", "row=all+alone,pair=en-near"),
    ("bilingual", "pair=en-fr-de,scale=paper"),
    ("similarity", "pair=en-near"),
    ("similarity", "pair=en-fr,run=somewhere"),
    ("zero_shot", "task=all,pair=en-near+en-far"),
    ("zero_shot", "task=ner,pair=en-fr,from=run,search=paper"),
    ("zero_shot", "task=nli,search=dufter"),
    ("real_xnli", "languages=en-near-middle"),
    ("real_xnli", "languages=en-de-hi,scale=paper,tasks=none"),
]
# What no field may be, whatever it is for.
NONSENSE = (
    None,
    {},
    b"x",
    "a\nb",
    "a\0b",
    -1,
    -0.5,
    math.nan,
    math.inf,
    10**39,
    object(),
    [{}],
    [-1],
)


def made(name, options=""):
    return config_of(ROOT / "configs" / f"{name}.py", options, {})


def paths(values, above=()):
    """The path of every value that has no fields of its own."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from paths(value, (*above, name))
        else:
            yield (*above, name)


@pytest.mark.parametrize(("name", "options"), CONFIGS)
def test_every_config_is_what_its_fields_may_be(name, options):
    fields.check(made(name, options))


def test_a_model_may_be_called_like_a_field():
    fields.check(made("evaluate", "model=runs/heads+runs/hidden"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_field_takes_what_means_nothing(name):
    values = made(name).to_dict()
    section = of_name(values["name"])
    every = list(paths(values))
    assert len(every) > 20
    for path in every:
        *above, last = path
        place = values
        for part in above:
            place = place[part]
        right = place[last]
        for wrong in NONSENSE:
            place[last] = wrong
            with pytest.raises(ValueError) as error:
                schema.check(values, section)
            assert f"{'.'.join(path)}=" in str(error.value) and "\n" not in str(error.value)
        place[last] = right
    schema.check(values, section)


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("fake_english", "training.learning_rate", 0.0, "give a number above 0, up to 3.4e"),
        ("fake_english", "training.epochs", True, "give a whole number from 1 to"),
        ("fake_english", "training.weight_decay", 1.5, "give a number from 0 to 1"),
        ("fake_english", "evaluators.curve", (5, 101), "a number from 0 to 100"),
        (
            "fake_english",
            "evaluators.layers",
            "x",
            "a tuple of any length, each once: a whole number",
        ),
        ("fake_english", "seeds", ("a",), "a tuple of 1 or more: a whole number"),
        ("fake_english", "overparam.heads", 0, "a whole number from 1"),
        ("fake_english", "overparam.heads", 3, "overparam.hidden=128 is not divisible by"),
        ("fake_english", "models", 3, "models=3: fields belong there: layers"),
        ("bilingual", "batches.accumulate", 0, "a whole number from 1"),
        ("bilingual", "training.decay", "x", "give 'linear', 'inverse_sqrt' or 'constant'"),
        ("bilingual", "batches.alpha", math.inf, "give a number from 0 to 100"),
        ("bilingual", "corpora.near.second.inverted", "no", "give True or False"),
        ("bilingual", "corpora.processes", {"train": "x"}, r"corpora.processes=\(fields\): give a"),
        ("similarity", "words.most", 0, "a whole number from 1"),
        ("zero_shot", "settings.ner.rates", ((1e-3,),), "a tuple of 1 or more: a tuple:"),
        ("zero_shot", "tasks", ("ner", "ner"), "each once"),
        ("real_xnli", "transfer.settings.nli.epochs", 0, "transfer.settings.nli.epochs=0"),
    ],
)
def test_a_field_that_means_nothing_is_named_with_what_it_may_be(name, field, value, message):
    values = made(name).to_dict()
    *above, last = field.split(".")
    place = values
    for part in above:
        place = place[part]
    place[last] = value
    with pytest.raises(ValueError, match=message):
        fields.check(ConfigDict(values))


def test_fields_that_lack_or_that_nobody_knows_are_named():
    values = made("fake_english").to_dict()
    section = of_name("fake_english")
    lacking = {**values, "training": {k: v for k, v in values["training"].items() if k != "clip"}}
    with pytest.raises(ValueError, match="training.clip is missing from the config: give a number"):
        schema.check(lacking, section)
    with pytest.raises(ValueError, match="models is missing from the config"):
        schema.check({k: v for k, v in values.items() if k != "models"}, section)
    with pytest.raises(ValueError, match="training.epoch: .*did you mean training.epochs"):
        schema.check({**values, "training": {**values["training"], "epoch": 3}}, section)
    with pytest.raises(ValueError, match="config.name='none': choose from fake_english"):
        of_name("none")


def test_every_package_of_an_experiment_is_registered_and_has_a_config():
    packages = {
        path.parent.name for path in (ROOT / "xling_jax/experiments").glob("*/experiment.py")
    }
    assert packages == set(EXPERIMENTS) == {path.stem for path in (ROOT / "configs").glob("*.py")}
    for name in EXPERIMENTS:
        assert callable(fields.experiment(name).run)


def test_the_page_of_the_documentation_lists_them():
    page = Path(ROOT / "docs" / "fields.md").read_text("utf-8")
    assert page == fields.page(), "write it again: python -m xling_jax.runs.fields > docs/fields.md"
