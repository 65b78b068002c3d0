"""Decode a JSON text that must be fit for a store."""

from __future__ import annotations

import json
from typing import Any


def decode_json(text: str) -> Any:
    """Decode JSON; half a surrogate pair, which no file can hold, is a ``ValueError`` too.

    >>> decode_json('"x"')
    'x'
    """
    value = json.loads(text)
    if "\\ud" in text or "\\uD" in text:  # only such an escape can bring one
        json.dumps(value, ensure_ascii=False).encode()
    return value


def peek_object(text: str) -> dict[str, Any]:
    """Decode an object to recognise a file by; empty if the text is none.

    >>> peek_object('{"id": 1}'), peek_object("prose")
    ({'id': 1}, {})
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
