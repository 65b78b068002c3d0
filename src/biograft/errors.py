"""Everything biograft raises on purpose, in one tree.

    BiograftError                 the user can fix it; the command line prints it as one line
    |-- InputError                a file that was given cannot be used as it is
    |   |-- FormatError           its content is not what the format says
    |   |-- EncodingError         its bytes are not in the encoding that was expected
    |   `-- UnrecognisedError     no reader knows the content
    |-- ConfigError               an option or a configuration file is wrong
    |-- StoreError                a knowledge base folder is missing, damaged or of another version
    |-- OutputError               the result cannot be written (exists already, disk full)
    |-- NotFoundError             an id, a name or a registry entry that does not exist
    |-- ConflictError             another user changed it meanwhile, or must do it
    `-- MissingExtraError         a package of an optional extra is not installed

A message says what was found, what was expected, and what to do. Any other exception that
leaves biograft is a bug.
"""

from __future__ import annotations

import importlib
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

_ESCAPED = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, halves of surrogate pairs, line and paragraph separators."""
_WHITESPACE = "\t\n\v\f\r"
_BIDI = frozenset(map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))
"""Marks, overrides and isolates, which reorder the text around them."""


def visible(text: str) -> str:
    r"""Return a text on one line in which nothing acts on the terminal.

    Line breaks and tabs become spaces. Other control characters, and those that reorder text
    (bidirectional overrides), become escapes.

    >>> visible("flu\x1b[31m\nfever\u202e")
    'flu\\x1b[31m fever\\u202e'
    """
    if text.isprintable():  # such as all but a few names
        return text
    return "".join(map(_visible_char, text))


def _visible_char(char: str) -> str:
    if char in _WHITESPACE:
        return " "
    if char in _BIDI or unicodedata.category(char) in _ESCAPED:
        return char.encode("unicode_escape").decode()
    return char


SHOWN_TEXT = 80
"""Characters of a faulty line that an error message shows."""
LISTED_TEXT = 1100
"""Characters of a list of known words that an error message shows."""
_BEGINNING, _END = 1100, 400
"""Characters kept at the beginning and end of a message that is too long."""


class BiograftError(Exception):
    """Base of all errors that the user can fix.

    A message is one line of bounded length, whatever of a file it quotes, and safe for a terminal.
    """

    def __init__(self, message: str = "") -> None:
        line = visible(message)
        if len(line) > _BEGINNING + _END:
            line = f"{line[:_BEGINNING]} ... {line[-_END:]}"
        super().__init__(line)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let processes pass errors on, whatever arguments a subclass is made of."""
        return _revive, (type(self), str(self), self.__dict__)


def _revive(kind: type[BiograftError], message: str, state: dict[str, Any]) -> BiograftError:
    error = kind.__new__(kind, message)
    error.__dict__.update(state)
    return error


class InputError(BiograftError):
    """A file that was given cannot be used as it is.

    Args:
        problem: What is wrong, in a few words.
        path: The file.
        line: Line of the file, counted from 1.
        text: What was found there; long texts are shortened.
        remedy: What to do about it.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path,
        line: int | None = None,
        text: str | None = None,
        remedy: str = "",
    ) -> None:
        position = f"{path}:{line}" if line else f"{path}"
        found = f" (found: {shorten(text)!r})" if text is not None else ""
        advice = f"; {remedy}" if remedy else ""
        super().__init__(f"{position}: {problem}{found}{advice}")
        self.problem, self.path, self.line = problem, Path(path), line
        self.text, self.remedy = text, remedy


class FormatError(InputError):
    """The content of a file is not what its format says."""


class EncodingError(InputError):
    """The bytes of a file are not in the encoding that was expected."""


class UnrecognisedError(InputError):
    """No reader knows the content of a file."""


class ConfigError(BiograftError):
    """An option or a configuration file is wrong."""


class StoreError(BiograftError):
    """A knowledge base folder is missing, damaged or of another version."""


class OutputError(BiograftError):
    """The result cannot be written."""


class NotFoundError(BiograftError):
    """An id, a name or a registry entry that does not exist."""


class ConflictError(BiograftError):
    """Concurrent change, or a second approval is required."""


class MissingExtraError(BiograftError):
    """A package of an optional extra is not installed.

    Args:
        extra: Name of the extra.
        purpose: What needs it, as the beginning of the sentence.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs an optional package; run: pip install 'biograft[{extra}]'"
        )
        self.extra = extra


EXTRAS = {"openpyxl": "tables", "polars": "build", "pyarrow": "build"}
"""The extra with a package that more than one module imports."""


def missing_extra(error: ModuleNotFoundError, purpose: str) -> MissingExtraError:
    """Return the error for a module of an extra that is not installed; others are raised again.

    Args:
        error: Error of the import.
        purpose: What needs the module, as the beginning of the sentence.
    """
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        raise error
    return MissingExtraError(extra, purpose)


def import_extra(module: str, purpose: str) -> Any:
    """Import a module of an extra, or say how to install it.

    Args:
        module: Name of the module.
        purpose: What needs it, as the beginning of the sentence.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise missing_extra(error, purpose) from error


class EncoderWarning(UserWarning):
    """The pooling of an encoder is stated nowhere, and the default may be wrong."""


def shorten(text: str, length: int = SHOWN_TEXT) -> str:
    """Cut a text to what fits in a message.

    Args:
        text: A text.
        length: Largest number of characters.
    """
    return text if len(text) <= length else text[: length - 3] + "..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known words exist: the nearest where one is near, else as many as fit in a line.

    Args:
        word: The word that is not known.
        known: Words that are known.
    """
    names = sorted(known)
    if len(word) <= SHOWN_TEXT and (close := get_close_matches(word, names, n=1)):
        return f"did you mean {close[0]!r}?"
    n_shown, room = 0, LISTED_TEXT
    while n_shown < len(names) and (room := room - len(names[n_shown]) - 2) >= 0:
        n_shown += 1
    more = f" and {len(names) - n_shown:,} more" if n_shown < len(names) else ""
    return f"known: {', '.join(names[:n_shown])}{more}"
