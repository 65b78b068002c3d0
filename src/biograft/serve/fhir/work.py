"""Work limits of a request: codes that it reads, visits and writes.

A small request can ask for very much: value sets that include each other, filters over whole
systems, batches of these. The work of one HTTP request is counted, however many entries it has,
and refused as too costly at a limit, or when no client waits any more.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sized
from contextvars import ContextVar
from typing import TypeVar

from biograft.serve.fhir.errors import TerminologyError

Rows = TypeVar("Rows", bound=Sized)
AT_ONCE = 8
"""Codes that are gone through in a step, as an array."""


class Work:
    """The work of one request.

    Args:
        seconds: Time until its answer is of no use any more.
        max_steps: Steps that it may take, of about a microsecond each.

    """

    def __init__(self, seconds: float = math.inf, max_steps: float = math.inf) -> None:
        self._until, self._left = time.monotonic() + seconds, max_steps

    def stop(self) -> None:
        """Refuse every further step."""
        self._until = -math.inf

    def spend(self, steps: int) -> None:
        """Count steps.

        Args:
            steps: Number of steps.

        Raises:
            TerminologyError: There were too many steps, or they took too long.

        """
        self._left -= steps
        if self._left < 0 or time.monotonic() > self._until:
            raise TerminologyError(
                "too-costly", "the request needs too much work; send less at a time"
            )

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is done within the context."""
        token = _WORK.set(self)
        try:
            yield
        finally:
            _WORK.reset(token)


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


def spend(steps: int = 1) -> None:
    """Count steps of the request in progress; outside of a request nothing is counted.

    Args:
        steps: Number of steps.

    """
    work = _WORK.get()
    if work is not None:
        work.spend(steps)


def counted(rows: Rows) -> Rows:
    """Return rows that were found one by one, after counting a step for each.

    Args:
        rows: Rows, as a walk through a hierarchy found them.

    """
    spend(len(rows))
    return rows
