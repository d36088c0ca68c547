"""Commands that mean nothing: each ends with one line that names the thing, and writes nothing.

The cases are made from the fields of the configs; files that are damaged stand with their readers.
"""

import math

import pytest
from absl import flags
from small_run import ROOT, config_of

from xling_jax import devices, errors, fields, main, processes, schema

OPTIONS = {  # of each config, as small as it goes
    "fake_english": "row=0",
    "bilingual": "row=default,pair=en-near",
    "similarity": "pair=en-near",
    "transfer": "task=all,pair=en-near",
    "real_xnli": "languages=en-near-far",
}
# As on the command line; what a number, a flag, a tuple or a word never is.
WORDS = ("-1", "nan", "inf", "1e18", "1_0", "None", "{}", "(-1,)", "x", "")


class Accepted(BaseException):
    """A command was about to read its texts."""


def accept():
    raise Accepted


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Runs a command in this process; gives its status and what it says."""
    monkeypatch.setattr(devices, "set_cpu_devices", lambda count: None)
    monkeypatch.setattr(processes, "start", accept)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["xling_jax.main", *arguments])
        flags.FLAGS.unparse_flags()
        capsys.readouterr()
        with pytest.raises(SystemExit) as end, errors.in_one_line():
            errors.parse_flags(["xling_jax.main", *arguments])
            main.run()
        return end.value.code, capsys.readouterr().err

    yield run
    flags.FLAGS.unparse_flags()


def assert_refused(said, arguments, name, tmp_path):
    """One line with the name of what is wrong, status 1 or 2, and nothing written."""
    status, message = said(*arguments)
    assert status in (1, 2), (arguments, message)
    assert message.startswith("error: ") and message.count("\n") == 1, (arguments, message)
    assert name in message and len(message) < 1000, (arguments, message)
    assert not list(tmp_path.iterdir()), arguments


def refused(field):
    """Of `WORDS` those that are no value of a field, as Python reads them."""
    values = {
        "-1": -1, "nan": math.nan, "inf": math.inf, "1e18": 1e18, "None": None, "{}": {},
        "(-1,)": (-1,), "": "",
    }  # fmt: skip
    return [word for word in WORDS if not field.accepts(values.get(word, word))]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_field_refuses_what_it_cannot_be(name, said, tmp_path):
    config = f"--config={ROOT}/configs/{name}.py:{OPTIONS[name]}"
    values = config_of(ROOT / "configs" / f"{name}.py", OPTIONS[name], {})
    tried = 0
    for path, _, field in schema.described(values.to_dict(), fields.of_experiment(values.name)):
        if path.split(".")[0] in ("rows", "sets", "runs") or path in ("name",):
            continue
        for word in refused(field)[:2]:
            assert_refused(said, [config, f"--config.{path}={word}"], path, tmp_path)
            tried += 1
    assert tried > 30
