"""The guard before an application: limits at their borders, who is counted, what fails late."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from biograft.serve import KeyFile, ServiceConfig
from biograft.serve.guard import Guard, ServiceMetrics

LEAST = 1024
"""The smallest limit of a body."""
START = {"type": "http.response.start", "status": 200, "headers": []}
BODY = {"type": "http.response.body", "body": b"ok"}


async def answers(scope, receive, send):
    """Read the body, and answer."""
    await receive()
    await send(START)
    await send(BODY)


class Asker:
    """Sends requests to a guard, and notes what comes back.

    Args:
        app: The application behind it.
        keys: Keys that are accepted.
        limits: Limits of the service.
    """

    def __init__(self, app: Any = answers, keys: KeyFile | None = None, **limits: Any) -> None:
        self.guard = Guard(app, ServiceConfig(**limits), ServiceMetrics(), keys)

    async def ask(
        self, method="GET", *, path="/v1/version", client="10.0.0.1", parts=(), **headers
    ) -> list[Any]:
        """Return the messages that a request is answered by.

        Args:
            method: Method of the request.
            path: Its path.
            client: Address of who asks.
            parts: Parts of its body.
            headers: Its headers, ``_`` for ``-``.
        """
        left = list(parts) or [b""]
        sent: list[Any] = []

        async def receive():
            if not left:
                return {"type": "http.disconnect"}
            part = left.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(left)}

        async def send(message):
            sent.append(message)

        named = {key.replace("_", "-"): value for key, value in headers.items()}
        if parts:
            named = {"content-type": "application/json", "transfer-encoding": "chunked"} | named
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "client": (client, 1),
            "headers": [(key.encode(), str(value).encode()) for key, value in named.items()],
        }
        await self.guard(scope, receive, send)
        return sent

    def status(self, *given: Any, **more: Any) -> int:
        """Return the status of one request."""
        return int(asyncio.run(self.ask(*given, **more))[0]["status"])


@pytest.mark.parametrize(("size", "status"), [(LEAST, 200), (LEAST + 1, 413)])
def test_a_body_may_be_as_large_as_the_limit(size, status):
    asker = Asker(max_body=LEAST)
    assert asker.status("POST", parts=[b"x" * (size - 1), b"x"]) == status
    assert asker.status("POST", parts=[b"x" * size], content_length=size) == status


def test_what_comes_after_a_refused_body_is_not_read_as_a_request():
    asker = Asker(max_body=LEAST)
    for more in ({}, {"content_length": 2000}):
        start, body = asyncio.run(asker.ask("POST", parts=[b"x" * 2000], **more))
        assert (b"connection", b"close") in start["headers"]
        assert set(json.loads(body["body"])) == {"detail"}


@pytest.mark.parametrize(("n", "status"), [(64 << 10, 200), ((64 << 10) + 1, 431)])
def test_a_head_may_be_as_large_as_the_limit(n, status):
    assert Asker().status(x_long="x" * (n - len("x-long"))) == status


class Held:
    """An application that answers when it is let."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, scope, receive, send):
        await self.go.wait()
        await answers(scope, receive, send)


async def held_statuses(asker: Asker, held: Held, *clients: dict[str, Any]) -> list[int]:
    """Return the statuses of requests that are all in progress at once."""
    asked = [asyncio.create_task(asker.ask(**each)) for each in clients]
    await asyncio.sleep(0.01)
    held.go.set()
    found = [(await each)[0]["status"] for each in asked]
    held.go.clear()
    return found


def test_as_many_requests_of_a_client_are_in_progress_as_the_limit_says():
    async def run():
        held = Held()
        asker = Asker(held, max_per_client=2)
        one, other = {"client": "10.0.0.1"}, {"client": "10.0.0.2"}
        for _ in range(3):  # what was answered is not counted, refused or not
            statuses = await held_statuses(asker, held, one, one, one, other)
            assert statuses == [200, 200, 429, 200]

    asyncio.run(run())


def test_the_limit_is_of_a_key_wherever_it_is_used(tmp_path):
    async def run():
        held, keys = Held(), KeyFile.open(tmp_path / "keys.toml", create=True)
        ann, bob = ({"authorization": f"Bearer {keys.add(n, 'read')}"} for n in ("ann", "bob"))
        asker = Asker(held, keys, max_per_client=1)
        asked = [
            {"client": "10.0.0.1", **ann},
            {"client": "10.0.0.2", **ann},
            {"client": "10.0.0.1", **bob},
        ]
        assert await held_statuses(asker, held, *asked) == [200, 429, 200]

    asyncio.run(run())


async def late(scope, receive, send):
    """Begin an answer, and never end it."""
    await send(START)
    await asyncio.sleep(10)


async def broken(scope, receive, send):
    raise ValueError("patient Smith")


async def broken_late(scope, receive, send):
    await send(START)
    raise ValueError("patient Smith")


async def never(scope, receive, send):
    await asyncio.sleep(10)


@pytest.mark.parametrize(
    ("app", "statuses"),
    [(never, [503, None]), (late, [200]), (broken, [500, None]), (broken_late, [200])],
)
def test_an_answer_that_has_begun_is_not_followed_by_another(app, statuses, caplog):
    asker = Asker(app, timeout=0.05)
    sent = asyncio.run(asker.ask())
    assert [each.get("status") for each in sent] == statuses
    assert "Smith" not in caplog.text
    assert "Smith" not in str(sent)


def test_a_body_that_does_not_come_is_408():
    async def run():
        asker = Asker(timeout=0.05)

        async def nothing():
            await asyncio.sleep(10)

        sent: list[Any] = []

        async def send(message):
            sent.append(message)

        kind = [(b"content-type", b"application/json"), (b"content-length", b"9")]
        scope = {
            "type": "http",
            "method": "POST",
            "http_version": "1.1",
            "path": "/v1/link",
            "raw_path": b"/v1/link",
            "query_string": b"",
            "client": None,
            "headers": kind,
        }
        await asker.guard(scope, nothing, send)
        return sent

    start, _ = asyncio.run(run())
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]


def test_what_is_counted_is_what_was_answered():
    asker = Asker(max_body=LEAST)
    asker.status()
    asker.status("POST", parts=[b"x" * 2000])
    registry = asker.guard._metrics.registry
    count = lambda status: registry.get_sample_value(  # noqa: E731
        "biograft_requests_total", {"route": "other", "status": status}
    )
    assert (count("200"), count("413"), count("500")) == (1, 1, None)
    assert registry.get_sample_value("biograft_requests_in_progress") == 0
    assert registry.get_sample_value("biograft_request_seconds_count", {"route": "other"}) == 2


def test_other_connections_are_the_applications(tmp_path):
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    guard = Guard(app, ServiceConfig(), ServiceMetrics(), None)
    with contextlib.suppress(StopAsyncIteration):
        asyncio.run(guard({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]
