"""Text flows one way: a module imports from its own folder or from folders before it."""

import ast
from pathlib import Path

import xling_jax

ROOT = Path(xling_jax.__file__).parent
ROOMS = [
    "corpora",
    "vocabulary",
    "batches",
    "models",
    "training",
    "evaluators",
    "tasks",
    "runs",
    "report",
    "experiments",
    "export",
    "gather",
    "main",
    "notebook",
    "__init__",  # its door for users
]
FOR_ALL = {
    "linalg",
    "descriptions",
    "devices",
    "errors",
    "files",
    "lock",
    "numerals",
    "processes",
    "records",
    "schema",
}


def room(parts):
    return parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "xling_jax":
                yield rest.split(".")[0]


def test_imports_go_to_the_left():
    seen = 0
    for path in ROOT.rglob("*.py"):
        own = room(path.relative_to(ROOT).parts)
        for other in imported_rooms(path):
            seen += 1
            if other in FOR_ALL or other == own:
                continue
            assert own not in FOR_ALL, f"{path} is used by all, and imports {other}"
            assert ROOMS.index(other) < ROOMS.index(own), f"{path} imports {other}"
    assert seen > 50


def test_heavy_libraries_are_imported_only_where_they_are_used():
    heavy = {"matplotlib", "tensorflow_datasets", "grain", "gensim", "jieba", "sacremoses"}
    heavy |= {"sentencex", "tensorflow"}
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not heavy & {name.split(".")[0] for name in names}, path
