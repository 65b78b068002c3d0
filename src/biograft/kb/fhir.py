"""FHIR resources: how their parts are read, the work they may cost, and why one is refused.

A small resource can ask for very much: value sets that include each other, filters over whole code
systems. The codes that it reads and visits are counted while a request is answered.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sized
from contextvars import ContextVar
from typing import Any, TypeVar

from biograft.errors import BiograftError

Resource = dict[str, Any]


class TerminologyError(BiograftError):
    """An operation cannot be carried out; ``code`` is an issue code of FHIR.

    Args:
        code: Issue code of FHIR.
        message: What is wrong, for the outcome.
        status: HTTP status; default: that of the issue code.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.code, self.status = code, status
        """HTTP status of the answer; None: that of the code."""


Rows = TypeVar("Rows", bound=Sized)
AT_ONCE = 8
"""Codes that are gone through in a step, as an array."""
_UNCHECKED = 500
"""Steps after which the time is looked at."""


class Work:
    """The work of one request: counted steps, and its processor time.

    Args:
        seconds: Time until its answer is of no use any more.
        max_steps: Steps that it may take, and microseconds of processor time that it may use.

    """

    def __init__(self, seconds: float = math.inf, max_steps: float = math.inf) -> None:
        self._until, self._left, self._max_steps = time.monotonic() + seconds, max_steps, max_steps
        self._checked_at, self._started = max_steps, 0.0
        self.spent = False
        """Whether a step was refused."""

    def stop(self) -> None:
        """Refuse every further step."""
        self._until, self._checked_at = -math.inf, math.inf

    def spend(self, steps: int) -> None:
        """Count steps.

        Args:
            steps: Number of steps.

        Raises:
            TerminologyError: There were too many steps, or they took too long.

        """
        self._left -= steps or 1  # so that the time is looked at
        if self._left > self._checked_at:
            return
        used = 1e6 * (time.thread_time() - self._started)
        if min(self._left, self._max_steps - used) < 0 or time.monotonic() > self._until:
            self.spent = True
            raise TerminologyError(
                "too-costly", "the request needs too much work; send less at a time"
            )
        self._checked_at = max(self._left - _UNCHECKED, 0)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is done within the context, in one thread."""
        self._started = time.thread_time()
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


def text_in(container: Any, name: str, place: str) -> str | None:
    """Return a text of a JSON object, or None.

    Args:
        container: The object.
        name: Key of the text.
        place: Place of the object, for messages.
    """
    if not isinstance(container, dict):
        raise TerminologyError("invalid", f"{place}: expected an object")
    value = container.get(name)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise TerminologyError("invalid", f"{place}.{name}: expected a text that is not empty")
    return value


def required_in(container: Any, name: str, place: str) -> str:
    """Return a text of a JSON object that must be there.

    Args:
        container: The object.
        name: Key of the text.
        place: Place of the object, for messages.
    """
    value = text_in(container, name, place)
    if value is None:
        raise TerminologyError("required", f"{place}.{name}: missing")
    return value


def list_in(container: Any, name: str, place: str) -> list[Any]:
    """Return a list of a JSON object; empty if it is missing.

    Args:
        container: The object.
        name: Key of the list.
        place: Place of the object, for messages.
    """
    if not isinstance(container, dict):
        raise TerminologyError("invalid", f"{place}: expected an object")
    value = container.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise TerminologyError("invalid", f"{place}.{name}: expected a list")
    return value
