"""MCP over standard input and output: one JSON message a line, without the package ``mcp``.

Its import alone takes a second of processor time, and a client starts a process for each
conversation (docs/decisions/044-mcp-over-stdio.md). Requests are answered one after the other.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

import biograft
from biograft.serve.agent_tools import INSTRUCTIONS, ToolCalls, ToolError
from biograft.serve.engine import to_json

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions of the protocol that begin with ``initialize``, oldest first."""
ABOUT = {
    "name": "biograft",
    "title": "biograft",
    "description": "Codes and names of a medical vocabulary, and the linking of text to them.",
    "version": biograft.__version__,
}
_PARSE, _REQUEST, _METHOD, _PARAMS = -32700, -32600, -32601, -32602
_MAX_LINE = 4 << 20
"""Most bytes of a message."""


class _RefusedError(Exception):
    """A request that is answered by an error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer_stdio(
    calls: ToolCalls,
    warm_up: Callable[[], object] = lambda: None,
    source: IO[bytes] | None = None,
    sink: IO[bytes] | None = None,
) -> None:
    """Answer the messages of a client until it closes the stream.

    Args:
        calls: The tools.
        warm_up: What is done in the background when the client knows the tools.
        source: Stream of messages; default: standard input.
        sink: Stream of answers; default: standard output.
    """
    read, write = source or sys.stdin.buffer, sink or sys.stdout.buffer
    try:
        while line := read.readline(_MAX_LINE):
            if not line.endswith(b"\n") and len(line) == _MAX_LINE:
                while (rest := read.readline(_MAX_LINE)) and not rest.endswith(b"\n"):
                    continue
                line = b"{"
            if not line.strip():
                continue
            answer, method = _answer(line, calls)
            if answer is not None:
                write.write(to_json(answer))
                write.write(b"\n")
                write.flush()
            if method == "tools/list":
                threading.Thread(target=_quietly, args=(warm_up,), daemon=True).start()
    except BrokenPipeError:
        return


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        return


def _answer(line: bytes, calls: ToolCalls) -> tuple[dict[str, Any] | None, str]:
    """Return the answer to a message, None to a notification, and its method."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, _PARSE, "not a JSON message of a line"), ""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return _error(None, _REQUEST, "not a JSON-RPC 2.0 message"), ""
    method, number = message.get("method"), message.get("id")
    if not isinstance(method, str) or number is None:
        return None, ""  # a notification, or an answer to nothing that was asked
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    try:
        result = _result(method, params, calls)
    except _RefusedError as error:
        return _error(number, error.code, str(error)), method
    return {"jsonrpc": "2.0", "id": number, "result": result}, method


def _result(method: str, params: dict[str, Any], calls: ToolCalls) -> dict[str, Any]:
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": ABOUT,
            "instructions": INSTRUCTIONS,
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": calls.described}
    if method != "tools/call":
        raise _RefusedError(_METHOD, "unknown method")
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _RefusedError(_PARAMS, "params: expected a name, and arguments by name")
    try:
        answer = calls.call(name, arguments)
    except ToolError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    text = to_json(answer).decode()
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": answer,
        "isError": False,
    }


def _error(number: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
