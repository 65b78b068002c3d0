"""Answers in JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import Response


def to_json(content: Any) -> bytes:
    """Return JSON in UTF-8; lone surrogates, which UTF-8 has not, are escaped."""
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":")).encode()


def json_answer(
    content: Any,
    status: int = 200,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    """Answer in JSON."""
    from fastapi import Response  # the tools of biograft mcp, which need to_json, run without it

    return Response(to_json(content), status, headers, media_type=media_type)
