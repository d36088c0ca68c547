"""setup.py: a wheel has every file that the package needs."""

import shutil
import subprocess
import sys
import zipfile

from small_run import ROOT


def test_a_wheel_has_all_modules_templates_stylesheets_and_tables(tmp_path):
    """Built from a copy, so that nothing is left in the checkout."""
    source = tmp_path / "source"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "xling_jax", source / "xling_jax", ignore=without)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = "from setuptools import build_meta; build_meta.build_wheel('..')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = (ROOT / "xling_jax").rglob("*")
    in_tree = {
        path.relative_to(ROOT).as_posix()
        for path in package
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert in_wheel == in_tree
    kinds = {name.rsplit(".", 1)[1] for name in in_wheel}
    assert kinds >= {"py", "j2", "css", "csv"}
