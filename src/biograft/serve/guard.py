"""Guard of every request before it is read: keys, limits, time; counts and log.

Neither logs nor metrics have text, queries or ids: only the route, the status and times.

HTTP/1.1 is read as uvicorn does, with a limit to the time and the size of what comes before a body:
uvicorn waits without limit for the head of a request, and keeps what has arrived of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from fastapi import Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from biograft.language import ASKED_LANGUAGE
from biograft.linking.addresses import host_of, is_address
from biograft.serve.config import ServiceConfig
from biograft.serve.engine import json_answer
from biograft.serve.keys import KeyFile

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
            "x-content-type-options: nosniff\r\ncache-control: no-store\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("biograft.serve")
PUBLIC = ("/healthz", "/readyz", "/", "/review")
"""Routes that need no key: the page asks for one itself."""
_PROBES = ("/healthz", "/readyz")
"""Routes that answer by any name, and always: they say nothing of what is served."""
_OF_TOKEN = ("/v1/review", "/v1/admin/")
"""Routes that need the token of the service from every client; browsers need it for all."""
_OWN_SITE = (b"same-origin", b"none")
"""Values of ``Sec-Fetch-Site``: a page of the service, or what the user typed."""
_ADMIN = ("/v1/admin/", "/metrics")
_CONTROL = re.compile(rb"%([01][0-9a-f]|7f|c2%[89][0-9a-f])", re.IGNORECASE)
"""A control character of an address."""
_LATER = {"retry-after": "1"}
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"content-security-policy": b"default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
"""Default headers of every answer."""
_ISSUES = {
    400: "structure",
    401: "login",
    403: "forbidden",
    408: "timeout",
    413: "too-long",
    415: "not-supported",
    429: "throttled",
    431: "too-long",
    503: "timeout",
}
"""Issue codes of FHIR; any other status is an exception."""
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ServiceMetrics:
    """Counters of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "biograft_requests", "Requests answered", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "biograft_request_seconds",
            "Time of a request",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.in_progress = Gauge(
            "biograft_requests_in_progress", "Requests in progress", registry=self.registry
        )
        self._of: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self.mentions = Counter("biograft_mentions", "Mentions linked", registry=self.registry)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count an answer.

        Args:
            route: Path of the route.
            status: Status of the answer.
            seconds: Time that it took.
        """
        key = (route, status)
        if key not in self._of:  # finding them by their labels costs more than counting
            self._of[key] = (self.requests.labels(route, str(status)), self.seconds.labels(route))
        counter, histogram = self._of[key]
        counter.inc()
        histogram.observe(seconds)


class RefusedError(Exception):
    """The answer to a request that the application does not get.

    Args:
        status: Status of the answer.
        detail: What is wrong, and what to do.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] = {}) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers

    def answer(self, path: str) -> Response:
        """Return the answer, in JSON; under ``/fhir`` it is an OperationOutcome, in English.

        Args:
            path: Path of the request.
        """
        headers = dict(self.headers)
        if not path.startswith("/fhir"):
            return json_answer({"detail": str(self)}, self.status, headers)
        code = _ISSUES.get(self.status, "exception")
        issue = {"severity": "error", "code": code, "diagnostics": str(self)}
        content = {"resourceType": "OperationOutcome", "issue": [issue]}
        return json_answer(content, self.status, headers, "application/fhir+json")


class Guard:
    """ASGI middleware: refuses what is too much, unknown or too slow, before it is parsed.

    Args:
        app: Application behind it.
        config: Limits of the service.
        metrics: Counts requests and refusals.
        keys: Keys that are accepted; None asks for no key, and checks the host instead.
        allowed_hosts: Names of hosts that requests may use beside ``localhost`` where there are no
            keys.
        token: Where there are no keys, what a browser must send, and who changes something.
        kept: Returns the messages of the answer to a request, where it is known before.
    """

    def __init__(
        self,
        app: App,
        config: ServiceConfig,
        metrics: ServiceMetrics,
        keys: KeyFile | None,
        allowed_hosts: Iterable[str] = (),
        token: str | None = None,
        kept: Callable[[Scope], Sequence[Message]] = lambda scope: (),
    ) -> None:
        self._app, self._config, self._metrics, self._keys = app, config, metrics, keys
        self._kept = kept
        self._token = None if token is None else token.encode()
        self._hosts = frozenset({"localhost", *(host.lower() for host in allowed_hosts)})
        self._in_progress: Counts[str] = Counts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Args:
            scope: Connection, as ASGI describes it.
            receive: Gives the next event of the request.
            send: Sends an event of the answer.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                own = {name for name, _ in headers}
                headers += [each for each in _HEADERS.items() if each[0] not in own]
                message["headers"] = headers
            await send(message)

        languages = dict(scope["headers"]).get(b"accept-language", b"")
        ASKED_LANGUAGE.set("zh" if languages.lower().startswith(b"zh") else "")
        self._metrics.in_progress.inc()
        try:
            await self._admit(scope, receive, counted)
        except RefusedError as refusal:
            await refusal.answer(scope["path"])(scope, receive, counted)
        finally:
            self._metrics.in_progress.dec()
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - started
            self._metrics.count(route, status, seconds)
            log.info("%s %s %d %.1f ms", scope["method"], route, status, 1000 * seconds)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        client = str((scope.get("client") or ("local",))[0])
        path = scope["path"]
        if path in _PROBES:
            await self._run(scope, receive, send)
            return
        is_public = path in PUBLIC or path.startswith("/page/")
        if self._keys is None:
            self._check_site(headers, is_public=is_public)
            if self._token is not None and not is_public:
                self._check_token(headers, path)
        elif not is_public:
            owner = self._keys.find(_key_of(headers))
            if owner is None:
                raise RefusedError(
                    401,
                    "give a key of this service: Authorization: Bearer KEY",
                    {"www-authenticate": "Bearer"},
                )
            if not owner.allows(_role_for(scope["method"], path)):
                raise RefusedError(403, f"the role {owner.role!r} may not do this")
            client = owner.name
            scope.setdefault("state", {})["owner"] = owner
        scope.setdefault("state", {})["client"] = client
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD:
            raise RefusedError(431, f"the head has more than {MAX_HEAD} bytes")
        if _CONTROL.search(scope["raw_path"] + b"?" + scope["query_string"]):
            raise RefusedError(400, "the address has control characters")
        length = headers.get(b"content-length", b"0")
        is_empty = length == b"0" and b"transfer-encoding" not in headers
        if length.isdigit() and len(length) < 20 and int(length) > self._config.max_body:
            raise self._too_large()
        if _has_body(scope) and not is_empty and not _is_json(headers, path):
            raise RefusedError(415, "only JSON is read: send content-type: application/json")
        if self._in_progress[client] >= self._config.max_per_client:
            detail = f"{self._config.max_per_client} requests of this client are in progress"
            raise RefusedError(429, detail, _LATER)
        if messages := self._kept(scope):
            for message in messages:
                await send(message)
            return
        self._in_progress[client] += 1
        try:
            await self._run(scope, receive, send)
        finally:
            self._in_progress[client] -= 1
            if not self._in_progress[client]:
                del self._in_progress[client]

    def _check_site(self, headers: Mapping[bytes, bytes], *, is_public: bool) -> None:
        """Refuse a request that a page of another site may send by a browser of this machine.

        Such a page gives the service a name of its own (``Host``), which a name server then
        resolves to this machine, or sends to it from elsewhere (``Origin``, ``Sec-Fetch-Site``).
        An IP address is no name that could be given. Our pages may be linked to.
        """
        authority = headers.get(b"host", b"").decode("latin-1")
        host = host_of(authority)
        if authority and not is_address(host) and host not in self._hosts:
            raise RefusedError(
                421, f"Host {host or authority!r} is not allowed: add it with --allow-host"
            )
        origin = headers.get(b"origin", b"").decode("latin-1")
        sender = origin.partition("://")[2]
        is_own = sender != "" and sender.lower() == authority.lower()
        if origin and not is_own and host_of(sender) not in self._hosts - {"localhost"}:
            raise RefusedError(
                403, f"Origin {origin!r} is not allowed: add its host with --allow-host"
            )
        if not is_public and headers.get(b"sec-fetch-site", b"none") not in _OWN_SITE:
            raise RefusedError(403, "a page of another site may not ask")

    def _check_token(self, headers: Mapping[bytes, bytes], path: str) -> None:
        """Refuse a browser without the token, and any request to a review."""
        is_browser = b"sec-fetch-site" in headers or b"origin" in headers
        if not is_browser and not path.startswith(_OF_TOKEN):
            return
        if not secrets.compare_digest(_key_of(headers).encode("latin-1"), self._token or b""):
            raise RefusedError(
                401,
                "give the token of the address that `biograft serve` printed: Authorization: "
                "Bearer TOKEN",
                {"www-authenticate": "Bearer"},
            )

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application on a body that is read within the limits, and within the time."""
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            is_read = _has_body(scope) and scope["path"] not in _PROBES
            body = await self._read(receive) if is_read else b""
            async with asyncio.timeout(self._config.timeout):
                await self._app(scope, _again(body, receive), noted)
        except (asyncio.CancelledError, RefusedError):
            raise
        except TimeoutError:
            if not started:
                detail = f"not answered within {self._config.timeout:g} s; send less, or try again"
                raise RefusedError(503, detail, _LATER) from None
        except Exception as error:  # the last resort: one line, and no text of the request
            log.error("%s in %s", type(error).__name__, getattr(scope.get("route"), "path", "?"))
            if not started:
                raise RefusedError(500, "internal error; it was logged") from None

    async def _read(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._config.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return b"".join(parts)
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._config.max_body:
                        raise self._too_large()
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise RefusedError(
                408, "the body did not arrive in time", {"connection": "close"}
            ) from None

    def _too_large(self) -> RefusedError:
        detail = f"the body has more than {self._config.max_body} bytes; send less at a time"
        return RefusedError(413, detail, {"connection": "close"})


def _role_for(method: str, path: str) -> str:
    """Return the role that a request needs: changes of a review need one of their own."""
    if path.startswith(_ADMIN):
        return "admin"
    return "review" if path.startswith("/v1/review") and method not in ("GET", "HEAD") else "read"


def _is_json(headers: Mapping[bytes, bytes], path: str) -> bool:
    """Whether the body is JSON, by its type; FHIR has forms, too."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind == b"application/x-www-form-urlencoded":
        return path.startswith("/fhir/")
    return kind == b"application/json" or (
        kind.startswith(b"application/") and kind.endswith(b"+json")
    )


def _has_body(scope: Scope) -> bool:
    """Whether a body comes, by the headers, as HTTP/1.1 says it; servers of other kinds read it."""
    if scope.get("http_version") not in ("1.0", "1.1"):
        return True
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a body that was read, once more, then what comes after it."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay


def _key_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the key of a request, from either of the usual headers."""
    scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip()
