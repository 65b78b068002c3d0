"""How large what is read may become: a few bytes of a hostile file can stand for gigabytes.

Two limits hold for all readers, and the environment can raise them. A packed file may become
``BIOGRAFT_MAX_EXPANSION`` MiB, and beyond that 200 times its own size; the same holds for the
entities of XML. One value (a JSON value, an XML element, a file that is one document) may have
``BIOGRAFT_MAX_VALUE`` MiB.
"""

from __future__ import annotations

import os
from pathlib import Path

from biograft.errors import ConfigError, FormatError, InputError

EXPANSION, VALUE = "BIOGRAFT_MAX_EXPANSION", "BIOGRAFT_MAX_VALUE"
RATIO = 200
"""Text of ours shrinks to a fifth, at the very most to a fiftieth of its size."""
_DEFAULTS = {EXPANSION: 64, VALUE: 16}
_MIB = 1 << 20
_BUFFER_FACTOR = 4
"""How much of one thing may be gathered, in what a packed file may become."""
_OBJECT_BYTES = 100
"""Bytes that Python takes for a text besides its characters, and for what holds it."""


def max_expansion() -> int:
    """Return the bytes that a packed file may become, whatever its own size."""
    return _limit(EXPANSION)


def max_value() -> int:
    """Return the bytes that one value may have."""
    return _limit(VALUE)


def _limit(name: str) -> int:
    setting = os.environ.get(name, "").strip()
    if not setting:
        return _DEFAULTS[name] * _MIB
    if not (setting.isascii() and setting.isdecimal() and 0 < len(setting) < 10 and int(setting)):
        raise ConfigError(f"{name}: expected a number of MiB, found {setting!r}")
    return int(setting) * _MIB


class ExpansionLimit:
    """Watches what the bytes of one file become, while they are read."""

    def __init__(self, path: Path) -> None:
        self._path, self._max_bytes = path, max_expansion()

    def check(self, packed: int, unpacked: int, action: str = "unpacked") -> None:
        """Refuse to go on once so many bytes have become too many."""
        if unpacked > self._max_bytes and unpacked > RATIO * packed:
            raise InputError(
                f"becomes more than {self._max_bytes // _MIB} MiB and {RATIO} times its size when "
                f"{action}",
                path=self._path,
                remedy=raise_limit(EXPANSION),
            )


class BufferLimit:
    """Watches how much is gathered of one thing until it can be told whole."""

    def __init__(self, subject: str, path: Path) -> None:
        self._what, self._path, self._max_bytes = subject, path, _BUFFER_FACTOR * max_expansion()
        self._size = 0

    def add(self, text: str, line: int | None = None) -> None:
        """Hold one more text."""
        self._size += len(text) + _OBJECT_BYTES
        if self._size > self._max_bytes:
            raise FormatError(
                f"{self._what} takes more than {self._max_bytes // _MIB} MiB of memory",
                path=self._path,
                line=line,
                remedy=raise_limit(EXPANSION),
            )

    def clear(self) -> None:
        """Begin with another such thing."""
        self._size = 0


def too_large(subject: str, path: Path, line: int | None = None) -> FormatError:
    """Say that one value is larger than a value may be."""
    return FormatError(
        f"{subject} of over {max_value() // _MIB} MiB",
        path=path,
        line=line,
        remedy=raise_limit(VALUE),
    )


def raise_limit(name: str) -> str:
    """Return how a limit is raised for a file that is as large for good reason."""
    return f"if it is what it should be, raise {name} (now {_limit(name) // _MIB} MiB)"
