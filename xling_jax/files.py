"""Files that are whole or not there."""

import os
from pathlib import Path


def write_beside(path: Path, content: str | bytes) -> Path:
    """Writes a file beside its place, then renames it, so that no reader sees half of it.

    Folders above it are made. Returns the path.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path
