"""Path locks: one writer at a time to a file or folder.

The lock is a hidden file beside the path (``.NAME.lock``) that is locked with ``flock``; its text
names the process, for the error message of a second writer. The lock file is removed before the
lock is released, and a new holder checks that the file is still the one of that name: no lock of
another process is removed, and one left by a killed process does no harm. On systems without
``flock`` the file itself is the lock, unless its process is gone.
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
"""Errors where no file can be created beside a path."""
_PAUSE = 0.1


class _Held(threading.local):
    """The paths whose locks this thread holds; they cover everything below them."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()


_held = _Held()


@contextlib.contextmanager
def lock_path(target: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a path, and everything below it, for the duration of the block.

    If another process or thread holds the lock, this is an error, or waits for it. The path need
    not exist, but its parent folder must.
    """
    target = Path(os.path.realpath(target))
    if not target.name or not _held.paths.isdisjoint({target, *target.parents}):
        yield
        return
    lock = _acquire(target, wait=wait)
    _held.paths.add(target)
    try:
        yield
    finally:
        _held.paths.discard(target)
        if lock is not None:
            _release(*lock)


def is_alive(pid: int) -> bool:
    """Whether a process of this host is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _acquire(target: Path, *, wait: bool) -> tuple[Path, int] | None:
    """Acquire the lock of a path: its open file; None where no file can be created beside it."""
    path = target.with_name(f".{target.name}.lock")
    attempt = _try if _has_locks(path.parent) else _try_alone
    while True:
        try:
            file = attempt(path)
        except OSError as error:
            if error.errno in _NO_FILE and target.is_dir():
                return None  # such as a mounted volume, which is written in itself
            raise
        if file is not None:
            os.truncate(file, 0)
            os.write(file, f"{os.getpid()} {socket.gethostname()}".encode())
            return path, file
        if not wait:
            raise OutputError(
                f"{target}: written by {_holder(path)}; wait until it has ended, or choose "
                "another place"
            )
        time.sleep(_PAUSE)


def _try(path: Path) -> int | None:
    """Open and lock a lock file; None if another process holds it."""
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
        os.close(file)  # its holder has removed it meanwhile


def _try_alone(path: Path) -> int | None:
    """Create a lock file; None if a running process has it."""
    for _ in range(2):
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        pid, host = _read(path)
        if host != socket.gethostname() or is_alive(pid):
            return None
        path.unlink(missing_ok=True)
    return None


def _release(path: Path, file: int) -> None:
    is_own = _is_under(path, file)
    if fcntl is None:
        os.close(file)  # Windows removes no open file
    with contextlib.suppress(OSError):
        if is_own:
            path.unlink()
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # forked processes have the file open, too
        os.close(file)


def _has_locks(folder: Path) -> bool:
    """Whether the file system of a folder supports locks."""
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
    """Name the process that holds a lock, and since when."""
    pid, host = _read(path)
    since = ""
    with contextlib.suppress(OSError):
        since = time.strftime(" since %Y-%m-%d %H:%M:%S", time.localtime(path.stat().st_mtime))
    if pid and host == socket.gethostname():
        return f"process {pid}{since}"
    other = f"process {pid} of {host}" if pid else "another process"
    return f"{other}{since} (if it is gone, remove {path})"


def _read(path: Path) -> tuple[int, str]:
    """Read the process and host that hold a lock; 0 and empty if unknown."""
    try:
        pid, _, host = path.read_text(encoding="utf-8").partition(" ")
        return int(pid), host
    except (OSError, ValueError):
        return 0, ""
