"""One writer to a place: who writes there holds a lock, and it ends with the process that does.

The lock is a hidden file beside the place (``.NAME.lock``) on which the system keeps a lock of its
own (``flock``); the file says which process it is, for the message to a second one. Whoever
releases the lock removes the file while still holding it, and whoever gets a lock looks whether
the file is still the one under that name: so it is never another's that is removed, and one left
by a killed process hinders nobody. Where the system has no such locks, that the file is there is
the lock, unless its process is gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from biograft.errors import OutputError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_NO_FILE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG}
"""What it says where nothing can be made beside a place."""
_PAUSE = 0.1


class _Mine(threading.local):
    """The places whose locks this thread holds; what lies below them is its own, too."""

    def __init__(self) -> None:
        self.places: set[Path] = set()


_mine = _Mine()


@contextlib.contextmanager
def lock_place(target: Path, *, wait: bool = False) -> Iterator[None]:
    """Let nobody else write to a place, or below it, as long as the block lasts.

    If another process does, or another thread, that is an error, unless it shall be waited for.
    A file or folder need not be there yet, but the folder that it lies in.
    """
    target = Path(os.path.realpath(target))
    if not target.name or not _mine.places.isdisjoint({target, *target.parents}):
        yield
        return
    held = _acquire(target, wait=wait)
    _mine.places.add(target)
    try:
        yield
    finally:
        _mine.places.discard(target)
        if held is not None:
            _release(*held)


def is_alive(pid: int) -> bool:
    """Whether a process of this host is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _acquire(target: Path, *, wait: bool) -> tuple[Path, int] | None:
    """Take the lock of a place: its file, open; none where no file can be made beside the place."""
    path = target.with_name(f".{target.name}.lock")
    attempt = _try if _has_locks(path.parent) else _try_alone
    while True:
        try:
            file = attempt(path)
        except OSError as error:
            if error.errno in _NO_FILE and target.is_dir():
                return None  # such as a folder that a container was given, written in itself
            raise
        if file is not None:
            os.truncate(file, 0)
            os.write(file, f"{os.getpid()} {socket.gethostname()}".encode())
            return path, file
        if not wait:
            raise OutputError(
                f"{target}: {_holder(path)} is writing there; wait until it has ended, or choose "
                "another place"
            )
        time.sleep(_PAUSE)


def _try(path: Path) -> int | None:
    """Open the file of a lock and lock it; none if another holds it."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_under(path, file):
                return file
        except BlockingIOError:
            os.close(file)
            return None
        except OSError:
            os.close(file)
            raise
        os.close(file)  # whoever held it has removed it meanwhile


def _try_alone(path: Path) -> int | None:
    """Make the file of a lock; none if another has, and is not gone."""
    for _ in range(2):
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        pid, host = _read(path)
        if host != socket.gethostname() or is_alive(pid):
            return None
        path.unlink(missing_ok=True)
    return None


def _release(path: Path, file: int) -> None:
    mine = _is_under(path, file)
    if fcntl is None:
        os.close(file)  # Windows removes no open file
    with contextlib.suppress(OSError):
        if mine:
            path.unlink()
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # processes that were forked have the file open, too
        os.close(file)


def _has_locks(folder: Path) -> bool:
    """Whether the file system of a folder knows locks."""
    if fcntl is None:
        return False
    try:
        file = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _is_under(path: Path, file: int) -> bool:
    """Whether an open file is the one that has this name now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    pid, host = _read(path)
    if pid and host == socket.gethostname():
        return f"process {pid}"
    other = f"process {pid} of {host}" if pid else "another process"
    return f"{other} (if it is gone, remove {path})"


def _read(path: Path) -> tuple[int, str]:
    """Read which process of which host holds a lock; 0 and nothing if that is not said."""
    try:
        pid, _, host = path.read_text(encoding="utf-8").partition(" ")
        return int(pid), host
    except (OSError, ValueError):
        return 0, ""
