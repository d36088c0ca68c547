"""Commands that mean nothing: each ends with one line that names the thing, and writes nothing.

The cases are made from the fields of the configs; files that are damaged stand with their readers.
"""

import math

import pytest
from absl import flags
from small_run import ROOT, config_of

from xling_jax import devices, errors, main, processes, schema
from xling_jax.runs.fields import of_name

OPTIONS = {  # of each config, as small as it goes
    "fake_english": "row=0",
    "bilingual": "row=default,pair=en-near",
    "similarity": "pair=en-near",
    "zero_shot": "task=all,pair=en-near",
    "real_xnli": "languages=en-near-middle",
}
# On the command line, and what Python makes of it.
WORDS = {"-1": -1, "nan": math.nan, "1e18": 1e18, "(-1,)": (-1,), "{}": {}, "x": "x"}


class Accepted(BaseException):
    """A command was about to read its texts."""


def accept():
    raise Accepted


def forget():
    """Makes Abseil ready for another command."""
    flags.FLAGS.unparse_flags()
    for name in [name for name in flags.FLAGS if name.startswith("config.")]:
        delattr(flags.FLAGS, name)


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Runs a command in this process; gives its status and what it says."""
    monkeypatch.setattr(devices, "set_cpu_devices", lambda count: None)
    monkeypatch.setattr(processes, "start", accept)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["xling_jax.main", *arguments])
        forget()
        capsys.readouterr()
        with pytest.raises(SystemExit) as end, errors.in_one_line():
            errors.parse_flags(["xling_jax.main", *arguments])
            main.run()
        return end.value.code, capsys.readouterr().err

    yield run
    forget()


def assert_refused(said, arguments, name, tmp_path):
    """One line with the name of what is wrong, status 1 or 2, and nothing written."""
    try:
        status, message = said(*arguments)
    except Accepted:
        raise AssertionError(f"accepted: {arguments}") from None
    assert status in (1, 2), (arguments, message)
    assert message.startswith("error: ") and message.count("\n") == 1, (arguments, message)
    assert name in message and len(message) < 1000, (arguments, message)
    assert not list(tmp_path.iterdir()), arguments


def refused(field):
    """Of `WORDS` those that are no value of a field, nor the only one of a tuple."""
    return [
        word
        for word, value in WORDS.items()
        if not any(map(field.accepts, (word, value, (word,), (value,), ((word,),), ((value,),))))
    ]


def cases():
    """A command for each of two wrong values of every field of every config."""
    for name, options in OPTIONS.items():
        file = ROOT / "configs" / f"{name}.py"
        values = config_of(file, options, {})
        section = of_name(values.name)
        for path, _, field in schema.described(values.to_dict(), section):
            if path.split(".")[0] not in ("rows", "sets"):  # in which commands set nothing
                for word in refused(field)[:2]:
                    yield [f"--config={file}:{options}", f"--config.{path}={word}"], path


def test_every_field_refuses_what_it_cannot_be(said, tmp_path):
    every = list(cases())
    assert len(every) > 300 and len({path for _, path in every}) > 150
    for arguments, path in every:
        assert_refused(said, arguments, path, tmp_path)


FAKE, BILINGUAL, SIMILARITY, TRANSFER, XNLI = (f"{ROOT}/configs/{name}.py" for name in OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ([], "config"),
        (["--config"], "config"),
        (["--config="], "config"),
        (["--config=none.py"], "none.py"),
        ([f"--config={ROOT}/configs"], "configs"),
        ([f"--config={ROOT}/configs/fake_englsh.py"], "fake_english.py"),
        (["--config=/dev/null"], "/dev/null"),
        ([f"--config={ROOT}/README.md"], "README.md"),
        ([f"--config={ROOT}/xling_jax/__init__.py"], "__init__.py"),
        ([f"--config={FAKE}", "more"], "'more'"),
        ([f"--config={FAKE}", "--more=1"], "more"),
        ([f"--config={FAKE}", "--config.more=1"], "--config.more"),
        ([f"--config={FAKE}", "--config.training.epoch=1"], "training.epochs"),
        ([f"--config={FAKE}", "--config.training=1"], "training"),
        ([f"--config={FAKE}", "--config.training.epochs"], "training.epochs"),
        ([f"--config={FAKE}", "--config.training.epochs=1.5"], "training.epochs"),
        ([f"--config={FAKE}", "--config.training.epochs=abc"], "training.epochs"),
        ([f"--config={FAKE}", "--config.profile=maybe"], "profile"),
        ([f"--config={FAKE}", "--config.rows.0=bogus"], "rows.0"),
        ([f"--config={FAKE}", "--workdir="], "workdir"),
        ([f"--config={FAKE}", "--process=x"], "process"),
        ([f"--config={FAKE}:row"], "row"),
        ([f"--config={FAKE}:row=0,row=3"], "row"),
        ([f"--config={FAKE}:rows=0"], "rows"),
        ([f"--config={FAKE}:seeds=a"], "seeds"),
        ([f"--config={FAKE}:seeds=0++1"], "seeds"),
        ([f"--config={FAKE}:seeds=1_0"], "seeds"),
        ([f"--config={FAKE}:seeds=4294967296"], "seeds"),
        ([f"--config={FAKE}:epochs=0"], "epochs"),
        ([f"--config={FAKE}:epochs=-1"], "epochs"),
        ([f"--config={FAKE}:epochs=1e3"], "epochs"),
        ([f"--config={FAKE}:scale=huge"], "scale"),
        ([f"--config={BILINGUAL}:pair=en-en"], "en"),
        ([f"--config={BILINGUAL}:pair=-"], "pair"),
        ([f"--config={BILINGUAL}:pair=en-processes"], "processes"),
        ([f"--config={BILINGUAL}:pair=near-far"], "near-far"),
        ([f"--config={BILINGUAL}:pair=en-near-fr"], "en-near-fr"),
        ([f"--config={SIMILARITY}:pair=en"], "pair"),
        ([f"--config={TRANSFER}:task=ccg"], "task"),
        ([f"--config={TRANSFER}:task=ner+ner"], "task"),
        ([f"--config={TRANSFER}:search=all"], "search"),
        ([f"--config={TRANSFER}:pair=en-near+en-fr"], "pair"),
        ([f"--config={XNLI}:languages=en"], "languages"),
        ([f"--config={XNLI}:tasks=pos"], "tasks"),
    ],
)
def test_a_command_that_means_nothing_is_refused(arguments, name, said, tmp_path):
    assert_refused(said, arguments, name, tmp_path)
