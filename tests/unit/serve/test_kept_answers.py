"""Answers about codes that the service keeps, and the turns of clients at costly requests."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
import httpx
from fastapi import FastAPI
from fastapi.testclient import TestClient

from biograft.kb import KnowledgeBase, NameSuggestions
from biograft.mapping import ReviewStore
from biograft.serve import ServiceConfig, Terminology
from biograft.serve.fhir.routes import FhirRoutes
from biograft.serve.guard import Guard, ServiceMetrics

MESH = "http://www.nlm.nih.gov/research/umls/msh"
CODE = f"system={MESH}&code=D003924"
ASKED = {
    "lookup": f"CodeSystem/$lookup?{CODE}",
    "validate-code": f"CodeSystem/$validate-code?url={MESH}&code=D003924&display=diabetes",
    "validate-code of one": "CodeSystem/mesh/$validate-code?code=D003924",
    "validate-code of a value set": f"ValueSet/$validate-code?url={MESH}?fhir_vs&{CODE}",
    "subsumes": f"CodeSystem/$subsumes?system={MESH}&codeA=D003920&codeB=D003924",
    "translate": f"ConceptMap/$translate?{CODE}",
}


class Answering(Terminology):
    """A terminology that counts what it is asked."""

    n = 0

    def _codes(self, asked: Any) -> Any:
        self.n += 1
        return super()._codes(asked)


class Served:
    """A client of the guarded routes of a terminology, which can be exchanged."""

    def __init__(self, terminology: Terminology) -> None:
        self.terminology = terminology
        self.routes = FhirRoutes(FastAPI(), self.current, warm=self.current)
        self.metrics = ServiceMetrics()
        guard = Guard(self.routes, ServiceConfig(), self.metrics, None, kept=self.routes.kept)
        self.client = TestClient(guard, base_url="http://localhost")

    def current(self) -> Terminology:
        return self.terminology

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(f"/fhir/{path}", headers=headers)


@pytest.fixture
def terminology(kb: KnowledgeBase) -> Answering:
    return Answering(kb, NameSuggestions(kb))


@pytest.fixture
def served(terminology: Answering) -> Served:
    return Served(terminology)


@pytest.mark.parametrize("kind", ASKED)
def test_an_answer_about_a_code_is_computed_once(served, terminology, kind):
    first = served.get(ASKED[kind])
    asked = terminology.n
    again = served.get(ASKED[kind])
    assert first.status_code == 200
    assert terminology.n == asked > 0
    assert (again.content, dict(again.headers)) == (first.content, dict(first.headers))
    assert again.headers["cache-control"] == "no-store"
    counted = {tuple(each.labels.values()): each.value for each in samples(served.metrics)}
    ((route, status),) = counted
    assert route.startswith("/fhir/")
    assert "D003924" not in route
    assert (status, counted[route, status]) == ("200", 2)


def samples(metrics: ServiceMetrics) -> list[Any]:
    (collected,) = metrics.requests.collect()
    return [each for each in collected.samples if each.name.endswith("_total")]


@pytest.mark.parametrize(
    "path", [f"ValueSet/$expand?url={MESH}?fhir_vs&count=1", "CodeSystem?_count=1", "CodeSystem/x"]
)
def test_all_else_is_not_kept(served, path):
    """A list has the address of the service; an expansion has an identifier of its own."""
    other = served.get(path, host="127.0.0.1:1").text
    assert ("127.0.0.1" in other) == ("_count" in path)
    again = served.get(path).text
    assert (again == other) == (path == "CodeSystem/x")
    assert not served.routes._kept


def test_what_an_answer_depends_on_is_told_apart(served):
    plain = served.get(ASKED["lookup"])
    assert served.get(ASKED["lookup"], accept="application/fhir+xml").status_code == 406
    assert served.get(ASKED["lookup"]).content == plain.content
    n = len(served.routes._kept)
    for languages in (["zh"], ["en"], ["zh", "en"], ["en", "zh"], ["zh, en"]):
        headers = [("accept-language", each) for each in languages]
        for _ in range(2):
            assert served.client.get(f"/fhir/{ASKED['lookup']}", headers=headers).is_success
    assert len(served.routes._kept) == n + 5


def test_a_body_is_read_even_where_the_answer_without_it_is_kept(served):
    path = f"/fhir/{ASKED['lookup']}"
    extra = {"resourceType": "Parameters", "parameter": [{"name": "code", "valueCode": "x"}]}
    parts = {"content": iter([json.dumps(extra).encode()])}
    parts["headers"] = {"content-type": "application/json"}
    for _ in range(2):
        for method in ("GET", "POST"):
            assert served.client.request(method, path).status_code == 200
            empty = {**parts, "content": iter([])}
            assert served.client.request(method, path, **empty).status_code == 200
            for body in ({"json": extra}, {**parts, "content": iter([json.dumps(extra).encode()])}):
                assert served.client.request(method, path, **body).status_code == 400


def test_who_may_not_ask_gets_nothing_that_is_kept(served):
    assert served.get(ASKED["lookup"]).status_code == 200
    assert served.get(ASKED["lookup"], host="evil.test").status_code == 421
    assert served.get(ASKED["lookup"], origin="http://evil.test").status_code == 403
    assert served.get(ASKED["lookup"], **{"sec-fetch-site": "cross-site"}).status_code == 403


def test_another_store_answers_anew(served, kb):
    served.get(ASKED["lookup"])
    served.terminology = other = Answering(kb, NameSuggestions(kb))
    assert served.get(ASKED["lookup"]).status_code == 200
    assert other.n == 1


def test_translations_by_a_review_are_not_kept(kb, tmp_path):
    review = ReviewStore.open(tmp_path / "review.db", create=True)
    served = Served(Answering(kb, NameSuggestions(kb), review=lambda: review))
    for _ in range(2):
        assert served.get(ASKED["lookup"]).status_code == 200
    assert len(served.routes._kept) == 1
    for _ in range(2):
        assert served.get(ASKED["translate"]).status_code == 200
    assert len(served.routes._kept) == 1
    review.close()


def test_no_more_than_some_bytes_are_kept(served, monkeypatch):
    monkeypatch.setattr("biograft.serve.fhir.routes._KEPT_BYTES", 1 << 18)
    path = f"CodeSystem/$validate-code?url={MESH}&code=D003924&_="
    served.get(path + "x" * 300)  # a thousandth of all is less
    assert not served.routes._kept
    monkeypatch.setattr("biograft.serve.fhir.routes._KEPT_BYTES", 1 << 19)
    for n in range(1500):
        served.get(f"{path}{n}")
    kept = [size for _, size, _ in served.routes._kept.values()]
    assert 500 < len(kept) < 1500
    assert served.routes._kept_bytes == sum(kept) <= 1 << 19
    asked = served.terminology.n
    served.get(f"{path}1499")
    assert served.terminology.n == asked
    served.get(f"{path}0")
    assert served.terminology.n == asked + 1


def test_a_client_has_one_costly_request_at_a_time(kb: KnowledgeBase):
    """One client cannot take both threads: another one is answered meanwhile."""
    running, most, let_go = [0], [0], threading.Event()

    class Slow(Terminology):
        def _codes(self, asked: Any) -> Any:
            if asked.text("filter") == "slow":
                running[0] += 1
                most[0] = max(most[0], running[0])
                let_go.wait(20)
                running[0] -= 1
            return super()._codes(asked)

    terminology = Slow(kb, NameSuggestions(kb))
    routes = FhirRoutes(FastAPI(), lambda: terminology)

    path = f"ValueSet/$expand?url={MESH}?fhir_vs&count=1&filter="

    async def named(scope: Any, receive: Any, send: Any) -> None:
        who = dict(scope["headers"])[b"who"].decode()
        await routes({**scope, "state": {"client": who}}, receive, send)

    async def ask(client: httpx.AsyncClient, who: str, text: str) -> None:
        answer = await client.get(f"/fhir/{path}{text}", headers={"who": who})
        assert answer.status_code == 200

    async def run() -> None:
        transport = httpx.ASGITransport(named)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            many = [asyncio.create_task(ask(client, "greedy", "slow")) for _ in range(6)]
            await asyncio.sleep(0.1)
            for _ in range(3):
                await asyncio.wait_for(ask(client, "other", "quick"), 10)
            assert running == [1]
            let_go.set()
            await asyncio.gather(*many)

    asyncio.run(run())
    assert most == [1]
