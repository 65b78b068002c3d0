"""A second writer that comes while a first one is at work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from biograft.locks import lock_path


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
