"""experiment: options, fingerprints, and workdirs that must not be mixed."""

import json

import pytest
from ml_collections import ConfigDict

from xling_jax import experiment

ROWS = {"0": "original"}
TEXTS = [{"source": "a.txt", "language": "en", "sha256": "1" * 64}]


def config(**changes):
    made = ConfigDict(
        {
            "name": "fake_english",
            "scale": "laptop",
            "row": "0",
            "training": {"epochs": 2, "steps_per_call": 10, "save_every": 0},
            "batches": {"row_lengths": (24, 40)},
            "devices": {"cpu": 0},
        }
    )
    made.update_from_flattened_dict(changes)
    return made


def test_options_are_read_over_their_defaults():
    read = experiment.parse_options("row=8,scale=paper", {"row": "0", "scale": "", "seeds": "0"})
    assert read == {"row": "8", "scale": "paper", "seeds": "0"}


@pytest.mark.parametrize("argument", ["rows=8", "row", "row=", "=8"])
def test_an_unknown_option_is_refused_with_the_names_there_are(argument):
    with pytest.raises(ValueError, match="unknown option .* names from row, scale"):
        experiment.parse_options(argument, {"row": "0", "scale": ""})


def test_seeds_are_whole_numbers():
    assert experiment.integers("seeds", "0+42") == (0, 42)
    with pytest.raises(ValueError, match="seeds='0,1'"):
        experiment.integers("seeds", "0,1")


def test_the_same_experiment_finds_what_it_stored(tmp_path):
    first = experiment.describe(config(), TEXTS, ROWS) | {"groups": [[["0", 0]]]}
    assert experiment.stored(tmp_path, first) is None
    experiment.store(tmp_path, first)
    again = experiment.stored(tmp_path, experiment.describe(config(), TEXTS, ROWS) | {"groups": []})
    assert again == json.loads((tmp_path / "config.json").read_text())
    assert again["groups"] == [[["0", 0]]] and again["versions"]["jax"]


def test_fields_without_effect_on_the_numbers_may_change(tmp_path):
    experiment.store(tmp_path, experiment.describe(config(), TEXTS, ROWS))
    changes = {"training.steps_per_call": 99, "training.save_every": 7, "devices.cpu": 2}
    assert experiment.stored(tmp_path, experiment.describe(config(**changes), TEXTS, ROWS))


def test_another_config_is_refused_naming_what_differs(tmp_path):
    experiment.store(tmp_path, experiment.describe(config(), TEXTS, ROWS))
    changed = config(**{"training.epochs": 3, "row": "8"})
    with pytest.raises(ValueError) as error:
        experiment.stored(tmp_path, experiment.describe(changed, TEXTS, ROWS))
    message = str(error.value)
    assert "training.epochs: 2 there, 3 now" in message and "row: 0 there, 8 now" in message
    assert "row_lengths" not in message and "--workdir" in message


def test_another_text_is_refused_naming_it(tmp_path):
    experiment.store(tmp_path, experiment.describe(config(), TEXTS, ROWS))
    with pytest.raises(ValueError, match="the content of a.txt"):
        other = [{**TEXTS[0], "sha256": "2" * 64}]
        experiment.stored(tmp_path, experiment.describe(config(), other, ROWS))


def test_a_workdir_where_nothing_can_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"--workdir=.*file/run: cannot write there"):
        experiment.require_writable(tmp_path / "file" / "run")
