"""When to stop before the end: on an interrupt, or when the time of the session is over."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any


class Stopping:
    """Notes an interrupt instead of raising it, so that the step at hand ends and is saved.

    A second interrupt is raised at once. Signals reach only the main thread of a process; in
    another thread an interrupt is raised as ever.
    """

    def __init__(self, max_minutes: float = 0.0) -> None:
        self.interrupted = False
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else float("inf")
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether to stop after the step at hand."""
        return self.interrupted or time.monotonic() > self._deadline

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
