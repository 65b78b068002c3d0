"""Requests that are damaged, hostile or odd: refused cleanly, never a status of 500."""

from __future__ import annotations

import itertools
import json
import re
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
from fastapi.testclient import TestClient
from served_app import served

from biograft.kb import KnowledgeBase
from biograft.serve import ServiceConfig, create_app, guard


@pytest.fixture(scope="module")
def app(kb: KnowledgeBase) -> Any:
    return create_app(kb, config=ServiceConfig(max_body=1 << 20), allowed_hosts=["testserver"])


@pytest.fixture(scope="module")
def client(app: Any) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as opened:
        yield opened


def refused(answer: Any, *statuses: int) -> str:
    assert answer.status_code in statuses, (answer.status_code, answer.text)
    content = answer.json()
    assert set(content) == {"detail"}
    detail = content["detail"]
    assert isinstance(detail, str)
    assert "\n" not in detail
    assert "pydantic" not in detail
    return detail


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"text": 3}, "text: expected a text"),
            ({"text": "a", "k": 0}, "k: expected 1 or more"),
            ({"text": "a", "k": "3"}, "k: expected a whole number"),
            ({"text": "a", "threshold": 2}, "threshold: expected a number from 0 to 1, found 2.0"),
            ({"text": "a", "Miller": 1}, "body: a field that is not known here"),
            ({"texts": "flu"}, "texts: expected a list"),
            ({"texts": ["a", None]}, "texts.1: expected a text"),
            ([], "body: expected an object"),
        ],
    )
    def test_one_plain_line_says_what_is_wrong(self, client, body, expected):
        assert refused(client.post("/v1/link", json=body), 422) == expected

    @pytest.mark.parametrize(
        "body",
        [
            b"[" * 100_000,
            b'{"text":' * 5_000 + b"1" + b"}" * 5_000,
            b'{"text": "\xff\xfe"}',
            b"\x00" * 100,
            b'{"text": "a"',
            b'{"text": 1e999999}',
            b'{"text": ' + b"9" * 5_000 + b"}",
        ],
    )
    def test_damaged_json(self, client, body):
        headers = {"content-type": "application/json"}
        refused(client.post("/v1/link", content=body, headers=headers), 400, 422)

    @pytest.mark.parametrize(
        "kind", ["text/plain", "application/xml", "a", "", "\t;;;=", "x/" * 99]
    )
    def test_other_content_types(self, client, kind):
        headers = {"content-type": kind}
        refused(client.post("/v1/link", content=b'{"text": "flu"}', headers=headers), 415, 422)

    def test_odd_texts_are_linked(self, client):
        body = b'{"texts": ["\\ud800", "\\u0000 flu", "\\ufeff", "\\u202e flu", "a\\u0301"]}'
        answer = client.post("/v1/link", content=body, headers={"content-type": "application/json"})
        found = answer.json()["documents"]
        assert [[m["concept"] for m in each["mentions"]] for each in found] == [
            [],
            ["D007251"],
            [],
            ["D007251"],
            [],
        ]


ODD = (2**63, 2**64, -(2**63) - 1, 10**400, 1e308, True, [], {}, "1e999", "\0", "\x1b[31m", "a\x7f")
"""Values that no parameter has: numbers of more than 64 bits, control characters, other types."""


@pytest.fixture(scope="module")
def described(client: TestClient) -> Any:
    return client.get("/openapi.json").json()


def own_paths(described: Any) -> dict[str, Any]:
    return {path: each for path, each in described["paths"].items() if path.startswith("/v1/")}


class TestOddValues:
    def test_every_parameter_of_every_route(self, client, described):
        for path, operations in own_paths(described).items():
            for method, operation in operations.items():
                parameters = operation.get("parameters", ())
                for name, value in itertools.product([p["name"] for p in parameters], ODD):
                    query = dict.fromkeys((p["name"] for p in parameters if p.get("required")), "1")
                    query[name] = str(value)
                    filled = re.sub(
                        r"{(\w+)[^}]*}", lambda m, q=query: quote(q.pop(m[1]), ""), path
                    )
                    answer = client.request(method, filled, params=query)
                    if answer.status_code != 200:
                        refused(answer, 400, 404, 405, 415, 422)

    def test_every_field_of_every_body(self, client, described):
        known = {"text": "flu", "mentions": ["flu"], "spans": [[0, 1]], "action": "nil"}
        known |= {"version": 1, "queue": "q", "expected": 1, "reviewer": "ann"}
        for path, operations in own_paths(described).items():
            for method, operation in operations.items():
                if "requestBody" not in operation:
                    continue
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                fields = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
                for name, value in itertools.product(fields["properties"], ODD):
                    own = {key: known[key] for key in fields["properties"] if key in known}
                    body = json.dumps({**own, name: value})
                    answer = client.request(
                        method,
                        path.replace("{term_id}", "1"),
                        content=body,
                        headers={"content-type": "application/json"},
                    )
                    if answer.status_code != 200:
                        refused(answer, 400, 404, 409, 422)


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "concepts/%2e%2e/%2e%2e/etc/passwd",
            "concepts/%ff%fe",
            "concepts/%2500",
            "concepts/",
            "concepts/" + "x" * 900,
            "neighbours/%F0%9F%98%80",
            "concepts/..%5c..%5c",
            "nothing",
            "concepts//etc/passwd",
        ],
    )
    def test_paths_lead_nowhere_else(self, client, path):
        answer = client.get(f"/v1/{path}")
        refused(answer, 404)

    @pytest.mark.parametrize("character", ["%00", "%0d%0a", "%1B", "%7f", "%C2%85"])
    @pytest.mark.parametrize(
        "path",
        ["concepts/D1{}set-cookie:a=b", "search?q=a{}b", "neighbours/D1?relation={}", "none?{}=1"],
    )
    def test_control_characters_in_an_address_are_400(self, client, path, character):
        answer = client.get(f"/v1/{path.format(character)}")
        assert "control characters" in refused(answer, 400)
        assert "set-cookie" not in answer.headers

    def test_control_characters_are_an_outcome_of_fhir(self, client):
        answer = client.get("/fhir/CodeSystem?url=x%0a")
        assert answer.status_code == 400
        assert answer.json()["issue"][0]["code"] == "structure"

    def test_an_id_that_is_too_long_is_422(self, client):
        refused(client.get("/v1/concepts/" + "x" * 2000), 422)
        refused(client.get("/v1/is-a", params={"concept": "x" * 2000, "ancestor": "a"}), 422)

    def test_large_headers_and_other_methods(self, client):
        refused(client.get("/v1/search?q=a", headers={"x-large": "x" * 70_000}), 431)
        refused(client.delete("/v1/link"), 405)
        refused(client.put("/v1/search?q=a"), 405)


@pytest.fixture(scope="module")
def port(kb: KnowledgeBase) -> Iterator[int]:
    app = create_app(kb)
    with served(app, log_level="critical", http=guard.LimitedProtocol) as address:
        yield int(address.rpartition(":")[2])


class TestConnections:
    """A real server: what comes before a request is whole."""

    @staticmethod
    def talk(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
        """Send parts, and return all that comes back until the connection is closed."""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as made:
            for part in parts:
                try:
                    made.sendall(part)
                except OSError:
                    break
                time.sleep(pause)
            found = b""
            try:
                while data := made.recv(65536):
                    found += data
            except ConnectionResetError:
                pass
            return found

    @pytest.mark.parametrize(
        "data",
        [
            b"\x16\x03\x01\x02\x00\x01",
            b"hello\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n",
            b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        ],
    )
    def test_garbage_is_400_in_json(self, port, data):
        head, _, body = self.talk(port, data).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400")
        assert set(json.loads(body)) == {"detail"}

    def test_a_slow_head_is_closed(self, port, monkeypatch):
        monkeypatch.setattr(guard, "HEAD_SECONDS", 0.3)
        answer = self.talk(port, b"GET /healthz HTTP/1.1\r\n", b"host: a\r\n", pause=0.05)
        assert answer.startswith(b"HTTP/1.1 408")
        assert self.talk(port) == b""  # nothing is sent at all

    def test_a_head_without_end_is_closed(self, port):
        lines = (b"x-%d: %s\r\n" % (i, b"x" * 8000) for i in range(20))
        answer = self.talk(port, b"GET /healthz HTTP/1.1\r\nhost: a\r\n", *lines)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431")

    def test_health_is_answered_whatever_a_client_holds(self, port):
        """64 slow bodies of an address made /healthz 429 for it."""
        head = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"
        head += b"content-type: application/json\r\n\r\n"
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(70)]
        for number, each in enumerate(held):
            each.sendall(head % (b"/healthz" if number > 64 else b"/v1/link"))
        try:
            one = b"GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            while b" 429 " not in self.talk(port, one % b"/v1/version"):
                time.sleep(0.05)
            for path in (b"/healthz", b"/readyz"):
                assert b" 200 " in self.talk(port, one % path)
        finally:
            for each in held:
                each.close()

    def test_requests_in_a_row_are_answered_in_order(self, port):
        one = b"GET /%s HTTP/1.1\r\nhost: localhost\r\n%s\r\n"
        answer = self.talk(
            port, one % (b"healthz", b"") + one % (b"v1/nothing", b"connection: close\r\n")
        )
        first, second = answer.index(b'{"status":"ok"}'), answer.index(b"404")
        assert first < second


def test_the_service_does_what_its_description_says(app):
    """Requests made from the OpenAPI description: no 500, and every answer is as described."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [each.ok() for each in schema.get_all_operations()]
    operations = [each for each in operations if "admin" not in each.path]
    assert len(operations) >= 7
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.checks.response_schema_conformance,
        schemathesis.checks.content_type_conformance,
        schemathesis.checks.status_code_conformance,
    ]

    def run(operation: Any) -> None:
        @settings(
            max_examples=3,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            case.call_and_validate(checks=checks)

        check()

    for operation in operations:
        run(operation)
