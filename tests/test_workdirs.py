"""Where a run may work: folders that can be written to, by one process at a time."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xling_jax import lock
from xling_jax.runs import workdirs


def test_a_second_process_is_refused_until_the_first_has_ended_or_was_killed(tmp_path):
    code = (
        "import sys, pathlib; from xling_jax import lock; "
        "held = lock.take(pathlib.Path(sys.argv[1])); print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    for end in (subprocess.Popen.kill, lambda process: process.communicate("\n")):
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "held\n"
            with pytest.raises(ValueError) as error:
                workdirs.lock(tmp_path)
            message = str(error.value)
            assert f"in use by process {process.pid} on " in message and " since 2" in message
            assert sys.executable in message and "another --workdir" in message
            end(process)
        kept = workdirs.lock(tmp_path)
        assert workdirs.lock(tmp_path) is kept and kept.is_sure
        del kept
    assert not (tmp_path / lock.NAME).exists()


def test_a_lock_leaves_that_of_a_folder_in_the_place_of_its_own(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    held = workdirs.lock(folder)
    folder.rename(tmp_path / "moved")
    folder.mkdir()
    (folder / lock.NAME).touch()
    del held
    assert (folder / lock.NAME).exists()


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert not workdirs.lock(tmp_path).is_sure
    assert "has no locks" in capsys.readouterr().err


def test_a_lock_of_another_user_is_named(tmp_path, monkeypatch):
    """Root may open every file, so who may not is played."""
    opened, path = os.open, tmp_path / lock.NAME

    def refuse(file, flags, *mode):
        if Path(file) == path and flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opened(file, flags, *mode)

    monkeypatch.setattr(lock.os, "open", refuse)
    with pytest.raises(ValueError, match=r"cannot write there \(Permission denied\); choose"):
        workdirs.lock(tmp_path)
    path.touch()
    with pytest.raises(ValueError, match=r"\.lock is another user's\. If that run has ended"):
        workdirs.lock(tmp_path)
    held = opened(path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(ValueError, match="is in use by another process. Wait until it ends"):
        workdirs.lock(tmp_path)
    os.close(held)


@pytest.mark.parametrize("name", ["sep[0]", "a*", "b?", "c\\d"])
def test_a_workdir_that_orbax_would_take_for_a_pattern_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="checkpoints below such a folder cannot be read again"):
        workdirs.lock(tmp_path / name / "run")
    (tmp_path / "plain").symlink_to(tmp_path / name)
    with pytest.raises(ValueError, match="choose a path without"):
        workdirs.lock(tmp_path / "plain")
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_a_bucket_is_no_workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="gs:/bucket/run is no folder of a file system; mount"):
        workdirs.lock(Path("gs://bucket/run"))
    assert not any(tmp_path.iterdir())


def test_a_workdir_where_nothing_can_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"--workdir=.*file/run: cannot write there"):
        workdirs.lock(tmp_path / "file" / "run")
