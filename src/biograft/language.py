"""The language of the reader: what the command line prints for people, files and JSON never."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

ASKED_LANGUAGE: ContextVar[str] = ContextVar("asked_language", default="")
"""``zh`` where the request in progress prefers Chinese (``Accept-Language``); empty: any other."""


class Reader:
    """The reader of the command line; in Python and in the service English."""

    def __init__(self) -> None:
        self.language = ""
        """Language of the concept names that a terminal shows; empty: preferred names."""
        self.translate: Callable[[str], str] = str
        """Translates words and lines; unknown ones stay."""


READER = Reader()
