"""Every field of every config given what it cannot be: one line names it, and nothing is written.

Files that are damaged stand with their readers.
"""

import math
import re
import sys

from small_run import ROOT, config_of

from xling_jax import processes, schema
from xling_jax.runs.fields import of_name

OPTIONS = {  # of each config, as small as it goes
    "fake_english": "row=0",
    "bilingual": "row=default,pair=en-near",
    "similarity": "pair=en-near",
    "zero_shot": "task=all,pair=en-near",
    "real_xnli": "languages=en-near-middle",
    "evaluate": "row=models",
}
# On the command line, and what Python makes of it.
WORDS = {"-1": -1, "nan": math.nan, "1e18": 1e18, "(-1,)": (-1,), "{}": {}, "x": "x"}


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


def test_every_field_refuses_what_it_cannot_be(said, monkeypatch):
    monkeypatch.setattr(processes, "start", sys.exit)  # where a command is accepted
    every = list(cases())
    assert len(every) > 300 and len({path for _, path in every}) > 150
    for arguments, path in every:
        line = said(arguments)
        assert re.match(rf"error: (--config\.)?{re.escape(path)}=", line), (arguments, line)
        assert len(line) < 1000, arguments
