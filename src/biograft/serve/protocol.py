"""HTTP/1.1 as uvicorn reads it, with a limit to the time and the size of what comes before a body.

uvicorn waits for ever for the head of a request, and keeps what has come of it.
"""

from __future__ import annotations

import asyncio
import json

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 20.0
"""Until the head of a request must have come."""
MAX_HEAD = 64 << 10
"""Bytes of a head."""
_REASONS = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


class LimitedProtocol(HttpToolsProtocol):
    """A connection: closed when a head comes too slowly, is too long, or is no HTTP."""

    _n_head = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self._timer is not None:
            self._n_head += len(data)
        super().data_received(data)
        if self._timer is not None and self._n_head > MAX_HEAD:
            self._refuse(431, f"the head has more than {MAX_HEAD} bytes")

    def on_message_begin(self) -> None:
        """Expect a head."""
        super().on_message_begin()
        if self._timer is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """Start to answer."""
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "this is no HTTP request")

    def _wait(self) -> None:
        self._n_head = 0
        self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        if self._n_head:
            self._refuse(408, "the head did not arrive in time")
        else:
            self._stop_waiting()
            self.transport.close()

    def _refuse(self, status: int, detail: str) -> None:
        self._stop_waiting()
        body = json.dumps({"detail": detail}).encode()
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
