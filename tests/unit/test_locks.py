"""One writer to a place, whoever else comes, and however the one before ended."""

import errno
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from biograft import artifacts
from biograft.artifacts import lock_path, new_file, new_folder, sole_writer
from biograft.errors import OutputError

HOLD = """
import sys, time
from pathlib import Path
from biograft.artifacts import lock_path
with lock_path(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
COUNT = """
import sys
from pathlib import Path
from biograft.artifacts import lock_path
place = Path(sys.argv[1])
for _ in range(150):
    with lock_path(place, wait=True):
        number = int(place.read_text())
        place.write_text(str(number + 1))
"""


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of ``x``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "x")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


@pytest.fixture(params=["system", "alone"])
def _both_ways(request, monkeypatch):
    """Locks of the system, and those where it has none."""
    if request.param == "alone":
        monkeypatch.setattr(artifacts, "fcntl", None)


@pytest.mark.usefixtures("_both_ways")
class TestOne:
    def test_nothing_is_left(self, tmp_path):
        for _ in range(2):
            with lock_path(tmp_path / "x"):
                assert names_in(tmp_path) == [".x.lock"]
            assert names_in(tmp_path) == []
        with pytest.raises(KeyboardInterrupt), lock_path(tmp_path / "x"):
            raise KeyboardInterrupt
        assert names_in(tmp_path) == []

    def test_the_holder_of_a_lock_may_write_to_the_path_and_below(self, tmp_path):
        with (
            lock_path(tmp_path / "x"),
            lock_path(tmp_path / "x" / "y"),
            lock_path(tmp_path / "x"),
        ):
            assert names_in(tmp_path) == [".x.lock"]
        assert names_in(tmp_path) == []

    def test_another_thread_may_not(self, tmp_path):
        def other():
            with lock_path(tmp_path / "x"):
                pass

        with lock_path(tmp_path / "x"), ThreadPoolExecutor(1) as pool:
            assert isinstance(pool.submit(other).exception(), OutputError)
        other()

    def test_a_link_has_the_lock_of_its_target(self, tmp_path):
        (tmp_path / "x").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "x")
        with lock_path(tmp_path / "link"):
            assert names_in(tmp_path) == [".x.lock", "link", "x"]

    def test_one_left_by_a_dead_process_hinders_nobody(self, tmp_path):
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        (tmp_path / ".x.lock").write_text(f"{gone.pid} {socket.gethostname()}")
        with lock_path(tmp_path / "x"):
            assert (tmp_path / ".x.lock").read_text().split()[0] == str(os.getpid())
        assert names_in(tmp_path) == []


class TestTwo:
    def test_the_error_names_the_holder_of_the_lock(self, tmp_path, holder):
        with pytest.raises(OutputError) as error, lock_path(tmp_path / "x"):
            pass
        found = re.match(
            r"(.*): written by process (\d+) since ([-\d]+ [:\d]+); ", str(error.value)
        )
        assert found
        assert found[1] == str(tmp_path / "x")
        assert int(found[2]) == holder.pid
        began = time.mktime(time.strptime(found[3], "%Y-%m-%d %H:%M:%S"))
        assert 0 <= time.time() - began < 600
        assert "\n" not in str(error.value)
        assert names_in(tmp_path) == [".x.lock"]

    def test_a_killed_one_holds_nothing(self, tmp_path, holder):
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with lock_path(tmp_path / "x"):
            pass
        assert names_in(tmp_path) == []

    def test_it_may_be_waited_for(self, tmp_path, holder):
        timer = threading.Timer(0.2, holder.stdin.close)
        timer.start()
        began = time.monotonic()
        with lock_path(tmp_path / "x", wait=True):
            assert time.monotonic() - began > 0.15
        timer.join()

    def test_a_folder_is_not_made_where_another_is_being_made(self, tmp_path, holder):
        with pytest.raises(OutputError, match=str(holder.pid)), new_folder(tmp_path / "x"):
            pass
        assert names_in(tmp_path) == [".x.lock"]

    def test_where_the_system_has_no_locks_the_file_is_one(self, tmp_path, monkeypatch):
        monkeypatch.setattr(artifacts, "fcntl", None)
        (tmp_path / ".x.lock").write_text(f"{os.getppid()} {socket.gethostname()}")
        (tmp_path / ".y.lock").write_text("1 elsewhere")
        (tmp_path / ".z.lock").write_text("")
        for name, message in (("x", str(os.getppid())), ("y", "1 of elsewhere"), ("z", "another")):
            with pytest.raises(OutputError, match=message), lock_path(tmp_path / name):
                pass
        assert len(names_in(tmp_path)) == 3

    def test_a_file_system_without_locks_is_noticed(self, tmp_path, monkeypatch):
        def refuse(*_):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(artifacts.fcntl, "flock", refuse)
        with lock_path(tmp_path / "x"):
            assert names_in(tmp_path) == [".x.lock"]
        assert names_in(tmp_path) == []


def test_no_two_are_in_at_once_though_the_file_comes_and_goes(tmp_path):
    """The file of a lock that is removed without care lets two in: one has the old, one the new."""
    place = tmp_path / "x"
    place.write_text("0")
    counting = [subprocess.Popen([sys.executable, "-c", COUNT, str(place)]) for _ in range(3)]
    assert [process.wait() for process in counting] == [0, 0, 0]
    assert place.read_text() == "450"
    assert names_in(tmp_path) == ["x"]


def test_a_folder_that_lies_where_nothing_can_be_made_is_written_to_all_the_same(
    tmp_path, monkeypatch
):
    def refuse(path, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    (tmp_path / "x").mkdir()
    monkeypatch.setattr(artifacts, "_try", refuse)
    with sole_writer(tmp_path / "x"):
        (tmp_path / "x" / "a").write_text("a")
    with pytest.raises(OutputError, match="choose another place"), sole_writer(tmp_path / "y"):
        pass


def test_a_file_that_came_meanwhile_is_kept(tmp_path):
    """The later of two replaced the first, though it was not allowed to replace anything."""
    second = new_file(tmp_path / "x")
    second.__enter__().write(b"second")
    (tmp_path / "x").write_text("first")
    with pytest.raises(OutputError, match="exists already"):
        second.__exit__(None, None, None)
    assert (tmp_path / "x").read_text() == "first"
    assert names_in(tmp_path) == ["x"]
