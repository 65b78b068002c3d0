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
