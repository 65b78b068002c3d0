"""Answers in JSON."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Response


def json_answer(
    content: Any,
    status: int = 200,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    """Answer in JSON; lone surrogates, which UTF-8 has not, are escaped."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    try:
        body = text.encode()
    except UnicodeEncodeError:
        body = json.dumps(content, separators=(",", ":")).encode()
    return Response(body, status, headers, media_type=media_type)
