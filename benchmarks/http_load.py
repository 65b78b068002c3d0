"""A small HTTP/1.1 client for load on a local service: keep-alive connections, answers in full.

Clients such as httpx need more processor time for a request than the service does, and would
measure themselves.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_MAX_OUTSTANDING = 512
"""Requests that the open loop has under way; more are counted as not sent."""


class Answer(NamedTuple):
    """What came back: status, head and body; status 0: the connection broke."""

    status: int
    head: bytes
    body: bytes


class Connection(asyncio.Protocol):
    """One connection: a request at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to write."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that no answer comes any more."""
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(0, b"", b""))

    def data_received(self, data: bytes) -> None:
        """Collect an answer, and hand it over when it is whole."""
        self._buffer += data
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            return
        head = self._buffer[:end]
        length = _LENGTH.search(head)
        whole = end + len(_HEAD_END) + (int(length[1]) if length else 0)
        if len(self._buffer) < whole or self._answer is None:
            return
        body = self._buffer[end + len(_HEAD_END) : whole]
        self._buffer = self._buffer[whole:]
        self._answer.set_result(Answer(int(head[9:12]), head, body))

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def send(self, request: bytes) -> Answer:
        """Send a request and return its answer."""
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport is None:
            return Answer(0, b"", b"")
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


@dataclass
class Load:
    """What a run of requests measured."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    """Seconds of the requests that were answered 200."""
    statuses: Counter[int] = field(default_factory=Counter)
    bodies: dict[int, set[bytes]] = field(default_factory=dict)
    """The different bodies of status 200, by the number of the request."""
    without_retry_after: int = 0
    not_sent: int = 0

    def add(self, number: int, answer: Answer, seconds: float) -> None:
        """Count an answer."""
        self.statuses[answer.status] += 1
        if answer.status == 200:
            self.latencies.append(seconds)
            self.bodies.setdefault(number, set()).add(answer.body)
        elif answer.status in (429, 503) and b"retry-after:" not in answer.head.lower():
            self.without_retry_after += 1

    def to_json(self) -> dict[str, float]:
        """Return requests a second and percentiles in milliseconds."""
        figures = {"per_second": round(len(self.latencies) / self.seconds, 1)}
        if self.latencies:
            for name, share in (("p50", 50), ("p95", 95), ("p99", 99)):
                figures[f"{name}_ms"] = round(1e3 * float(np.percentile(self.latencies, share)), 2)
        return figures


def get(path: str, **query: str) -> bytes:
    """Return a GET request."""
    asked = "&".join(f"{key}={quote(value)}" for key, value in query.items())
    return f"GET {path}?{asked} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    """Return a POST request of JSON."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def connect(port: int, number: int = 0) -> Connection:
    """Open a connection; each number under 250 is another client address of this machine."""
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(
        Connection, "127.0.0.1", port, local_addr=(f"127.0.0.{1 + number}", 0)
    )
    return made


async def closed_loop(
    port: int, requests: Sequence[bytes], clients: int, seconds: float, addresses: int = 4
) -> Load:
    """Let some clients send one request after the other."""
    load, numbers = Load(), itertools.cycle(range(len(requests)))
    end = time.perf_counter() + seconds

    async def client(which: int) -> None:
        connection = await connect(port, which % addresses)
        while (started := time.perf_counter()) < end:
            number = next(numbers)
            answer = await connection.send(requests[number])
            load.add(number, answer, time.perf_counter() - started)
            if not connection.is_open:
                connection = await connect(port, which % addresses)
        connection.close()

    started = time.perf_counter()
    await asyncio.gather(*(client(which) for which in range(clients)))
    load.seconds = time.perf_counter() - started
    return load


async def open_loop(
    port: int,
    requests: Sequence[bytes],
    per_second: float,
    seconds: float,
    *,
    addresses: int = 8,
    from_due: bool = True,
) -> Load:
    """Send at a fixed rate, however long the answers take.

    Times count from when a request was due, or from when it was sent: the client may be late.
    """
    load, numbers = Load(), itertools.cycle(range(len(requests)))
    free: list[Connection] = []
    under_way: set[asyncio.Task[None]] = set()

    async def one(number: int, due: float) -> None:
        connection = free.pop() if free else await connect(port, len(under_way) % addresses)
        begun = due if from_due else time.perf_counter()
        answer = await connection.send(requests[number])
        load.add(number, answer, time.perf_counter() - begun)
        if connection.is_open:
            free.append(connection)

    started = time.perf_counter()
    for i in range(int(per_second * seconds)):
        due = started + i / per_second
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        if len(under_way) >= _MAX_OUTSTANDING:
            load.not_sent += 1
            continue
        task = asyncio.create_task(one(next(numbers), due))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        if i % 64 == 0:
            await asyncio.sleep(0)  # where it is behind, answers are read all the same
    await asyncio.gather(*under_way)
    load.seconds = time.perf_counter() - started
    for connection in free:
        connection.close()
    return load
