"""The notebook for Colab: clean as it is stored, and whole when it is run from start to end."""

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import nbclient
import nbformat
import pytest
from small_run import ROOT
from test_hugging_face_text import bert

from xling_jax.runs.results import read_results

NOTEBOOK = ROOT / "launch" / "colab.ipynb"
SHELLS = {"shell", "system", "popen", "getoutput", "getstatusoutput"}
TIMEOUT = 1800  # seconds for a cell: a machine may be slow


@pytest.fixture
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


def sources(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def test_the_notebook_is_stored_without_what_it_showed(stored):
    nbformat.validate(stored)
    assert NOTEBOOK.read_bytes().isascii()
    for cell in stored.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
        assert not cell.metadata
    assert "widgets" not in stored.metadata


def names(source):
    """All that has a name in a cell: what is read, called, given or imported."""
    nodes = ast.walk(ast.parse(source))  # which magics and shell lines are not
    return {getattr(node, kind, None) for node in nodes for kind in ("id", "attr", "arg", "name")}


def test_its_cells_are_python_without_a_shell(stored):
    for source in sources(stored):
        assert SHELLS.isdisjoint(names(source))
    for other in ("os.system(x)", "from os import popen", "run(x, shell=True)", "getoutput(x)"):
        assert not SHELLS.isdisjoint(names(other))


def test_the_accelerator_is_told_by_what_google_alone_has(stored, tmp_path, monkeypatch):
    (cell,) = (source for source in sources(stored) if "def of_accelerator" in source)
    functions = [x for x in ast.parse(cell).body if isinstance(x, ast.FunctionDef)]
    found = {"os": os, "shutil": shutil, "Path": lambda path: Path(f"{tmp_path}{path}")}
    exec(compile(ast.Module(functions, []), "cell", "exec"), found)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("TPU_ACCELERATOR_TYPE", raising=False)
    vendor = tmp_path / "sys/kernel/iommu_groups/7/devices/0000:00:05.0/vendor"
    for path in (tmp_path / "dev/vfio/7", tmp_path / "dev/accel/accel0", vendor):
        path.parent.mkdir(parents=True)
        path.write_text("0x10de\n")
    assert found["of_accelerator"]() == []  # a GPU for a virtual machine, and an NPU
    vendor.write_text("0x1ae0\n")
    assert found["of_accelerator"]() == ["tpu"]
    vendor.unlink()
    assert found["of_accelerator"]() == []
    (tmp_path / "dev/accel0").touch()
    assert found["of_accelerator"]() == ["tpu"]
    (tmp_path / "dev/accel0").unlink()
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v5e-1")
    assert found["of_accelerator"]() == ["tpu"]
    monkeypatch.setattr(shutil, "which", lambda name: name)
    extras = re.findall(r'^ +"(\w+)": \[', (ROOT / "setup.py").read_text(), re.MULTILINE)
    for driver, extra in {"580.65": "cuda", "570.10": "cuda12"}.items():
        answer = subprocess.CompletedProcess([], 0, stdout=f"{driver}\n")
        found["subprocess"] = mock.Mock(run=lambda *_, answer=answer, **__: answer)
        assert found["of_accelerator"]() == [extra]
        assert {extra, "tpu"} <= set(extras)


def test_without_a_checkout_the_address_is_asked_for(stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="REPOSITORY is empty"):
        exec("\n".join(sources(stored)[:2]), {})


def fill(source, **fields):
    """A cell with fields of its form filled in."""
    for name, value in fields.items():
        source, number = re.subn(rf"(?m)^{name} = \".*\"  #", f"{name} = {str(value)!r}  #", source)
        assert number == 1, name
    return source


def outputs(notebook, kind):
    """For each cell of code, what it shows of a kind, as text."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shown = [output.get("data", {}).get(kind) for output in cell.outputs]
            shown += [output.text for output in cell.outputs if output.get("name") == kind]
            found.append("".join(filter(None, shown)))
    return found


@pytest.mark.slow
def test_the_notebook_runs_from_start_to_end(stored, tmp_path):
    runs = tmp_path / "runs"
    bert(tmp_path / "bert")
    first = next(cell for cell in stored.cells if cell.cell_type == "code")
    first.source = fill(first.source, WORKDIR=runs, MODEL=tmp_path / "bert")
    place = {"metadata": {"path": str(NOTEBOOK.parent)}}
    try:
        nbclient.NotebookClient(stored, timeout=TIMEOUT, resources=place).execute()
    finally:
        nbformat.write(stored, tmp_path / "executed.ipynb")  # to look at

    printed, pages = outputs(stored, "stdout"), outputs(stored, "text/html")
    pictures = outputs(stored, "image/png")
    *_, fake, report, pair, layers, inside, evaluated, second, library = range(len(printed))
    assert "0   original" in printed[fake] and "3   inv-order" in printed[fake]
    assert "default" in printed[pair] and "sep_emb" in printed[pair]
    assert "random_default" in printed[evaluated] and "csls" in pages[library]
    assert all(pictures[cell] for cell in (fake, pair, layers, inside))
    assert all("srcdoc" in pages[cell] for cell in (report, second))

    found = {path.parent.name: read_results(path) for path in runs.glob("*/results.json")}
    assert len(found) == 3
    mu = {result.row: result.metrics["mu"] for result in found["fake_english"]}
    assert mu["0"] > 0.15 > 0.1 > mu["3"]  # it rises where word order is the same
    near = {result.row: result.metrics for result in found["bilingual"]}
    assert near["default"]["retrieval"] > near["sep_emb"]["retrieval"]
    by_model = {result.row: result.metrics for result in found["evaluate"]}
    best = {
        name: max(x for key, x in own.items() if re.fullmatch(r"centred_en-near_\d+", key))
        for name, own in by_model.items()
    }
    assert best["default"] > best["sep_emb"] and best["default"] > best["random_default"]
