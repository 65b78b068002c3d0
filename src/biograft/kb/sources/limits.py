"""Input limits against decompression bombs, XML entity expansion and huge values.

Two limits apply to all readers and can be raised by environment variables. A compressed file may
expand to ``BIOGRAFT_MAX_EXPANSION`` MiB, or to 200 times its size if that is more; the same holds
for XML entities. A single value (a JSON value, an XML element, a file that is one document) may
have ``BIOGRAFT_MAX_VALUE`` MiB.
"""

from __future__ import annotations

import os
from pathlib import Path

from biograft.errors import ConfigError, FormatError, InputError

EXPANSION, VALUE = "BIOGRAFT_MAX_EXPANSION", "BIOGRAFT_MAX_VALUE"
RATIO = 200
"""Compressed text has typically a fifth, at least a fiftieth of its size."""
_DEFAULTS = {EXPANSION: 64, VALUE: 16}
_MIB = 1 << 20
_BUFFER_FACTOR = 4
"""The limit of a buffer, as a multiple of the expansion limit."""
_OBJECT_BYTES = 100
"""Overhead of a Python string and its container, in bytes."""


def max_expansion() -> int:
    """Return the bytes that a compressed file may expand to, whatever its size."""
    return _limit(EXPANSION)


def max_value() -> int:
    """Return the maximum bytes of a single value."""
    return _limit(VALUE)


def _limit(name: str) -> int:
    setting = os.environ.get(name, "").strip()
    if not setting:
        return _DEFAULTS[name] * _MIB
    if not (setting.isascii() and setting.isdecimal() and 0 < len(setting) < 10 and int(setting)):
        raise ConfigError(f"{name}: expected a number of MiB, found {setting!r}")
    return int(setting) * _MIB


def is_expanded(packed: int, unpacked: int) -> bool:
    """Whether a file of ``packed`` bytes must not expand to ``unpacked`` bytes."""
    return unpacked > max_expansion() and unpacked > RATIO * packed


class ExpansionLimit:
    """Checks the expansion of one file while it is read."""

    def __init__(self, path: Path) -> None:
        self._path, self._max_bytes = path, max_expansion()

    def check(self, packed: int, unpacked: int, action: str = "unpacked") -> None:
        """Raise an ``InputError`` if ``packed`` bytes have expanded to too many."""
        if unpacked > self._max_bytes and unpacked > RATIO * packed:
            raise InputError(
                f"becomes more than {self._max_bytes // _MIB} MiB and {RATIO} times its size when "
                f"{action}",
                path=self._path,
                remedy=raise_limit(EXPANSION),
            )


class BufferLimit:
    """Checks the memory of a record that is buffered until it is complete."""

    def __init__(self, subject: str, path: Path) -> None:
        self._what, self._path, self._max_bytes = subject, path, _BUFFER_FACTOR * max_expansion()
        self._size = 0

    def add(self, text: str, line: int | None = None) -> None:
        """Count a buffered text."""
        self._size += len(text) + _OBJECT_BYTES
        if self._size > self._max_bytes:
            raise FormatError(
                f"{self._what} takes more than {self._max_bytes // _MIB} MiB of memory",
                path=self._path,
                line=line,
                remedy=raise_limit(EXPANSION),
            )

    def clear(self) -> None:
        """Start over with the next record."""
        self._size = 0


def too_large(subject: str, path: Path, line: int | None = None) -> FormatError:
    """Return the error for a value above the limit."""
    return FormatError(
        f"{subject} of over {max_value() // _MIB} MiB",
        path=path,
        line=line,
        remedy=raise_limit(VALUE),
    )


def raise_limit(name: str) -> str:
    """Return the remedy that names the variable of a limit."""
    return (
        f"if the file is valid, set the environment variable {name} to more than "
        f"{_limit(name) // _MIB} (MiB)"
    )
