"""A second writer that comes while a first one is at work, and what one leaves that is killed."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from biograft.artifacts import lock_path


def elsewhere(work: Callable[[], Any]) -> BaseException | None:
    """Do something in another thread; give what it ended with."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).exception()


@contextlib.contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    """Let another hold a place while the block lasts."""
    begun, done = Event(), Event()

    def hold() -> None:
        with lock_path(path):
            begun.set()
            done.wait(60)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        try:
            assert begun.wait(60)
            yield
        finally:
            done.set()
            held.result()


def leave_working_file(target: Path) -> None:
    """Leave what a process leaves that is killed while it writes a file."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    target.parent.mkdir(parents=True, exist_ok=True)
    name = f".{target.name}.{socket.gethostname()}.{ended.pid}-0a1b2c3d.writing"
    (target.parent / name).write_bytes(b"{")
