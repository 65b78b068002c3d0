"""The service over HTTP: answers, refusals, keys, and what it keeps to itself."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from generative_store import store_in

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
from fastapi.testclient import TestClient

from biograft.clinical import assert_status
from biograft.errors import ConfigError, NotFoundError
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.serve import (
    KeyFile,
    MicroBatcher,
    QueueFullError,
    ServiceConfig,
    ServiceEngine,
    create_app,
    run_service,
)

NOTE = "Denies chest pain. Mother had type 2 diabetes."
LIMITS = ServiceConfig(max_body=4096, max_text=200, max_batch=3, max_waiting=2, max_k=5)

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(kb: KnowledgeBase) -> Iterator[TestClient]:
    with TestClient(create_app(kb.folder, config=LIMITS), base_url="http://localhost") as opened:
        yield opened


def post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


class TestLinking:
    def test_the_answers_are_those_of_a_linker(self, client, kb):
        expected = Linker.open(kb)(NOTE)
        found = post(client, "/v1/link", text=NOTE)["mentions"]
        assert [(m["start"], m["concept"], m["score"]) for m in found] == [
            (m.start, m.concept, m.candidates[0].score) for m in expected.mentions
        ]

    def test_a_request_without_texts_does_not_stop_others(self, client):
        """The time that each text takes was divided by their number."""
        assert post(client, "/v1/mentions", mentions=[]) == {"mentions": []}
        assert post(client, "/v1/link", texts=[]) == {"documents": []}
        assert post(client, "/v1/link", text="flu")["mentions"]

    def test_given_spans_are_asserted_as_by_the_library(self, client):
        text = "No fever. The cough has resolved. 否认胸痛。"
        spans = [(text.index(word), text.index(word) + len(word)) for word in ("fever", "胸痛")]
        spans.append((14, 19))
        found = post(client, "/v1/assertions", text=text, spans=spans)["assertions"]
        expected = assert_status(text, spans, None)
        assert found == [
            {"start": start, "end": end, **each.to_json()}
            for (start, end), each in zip(spans, expected, strict=True)
        ]
        assert [each["status"] for each in found] == ["absent", "absent", "present"]
        assert found[2]["axes"]["course"] == "resolved"
        assert post(client, "/v1/assertions", text=text, spans=[]) == {"assertions": []}

    @pytest.mark.parametrize("spans", [[[0, 99]], [[3, 1]], [[-1, 2]], [[1]], [[1, 2, 3]], [["a"]]])
    def test_spans_outside_the_text_are_422(self, client, spans):
        answer = client.post("/v1/assertions", json={"text": "No fever.", "spans": spans})
        assert answer.status_code == 422
        assert "spans" in answer.json()["detail"]


class TestConcepts:
    def test_a_concept_by_a_code_that_it_refers_to(self, tmp_path):
        concepts = [
            {
                "id": "C1",
                "name": "Asthma",
                "ids": [
                    {"id": "ICD10CM:J45", "kind": "xref"},
                    {"id": "SNOMEDCT:1", "kind": "xref"},
                ],
            },
            {
                "id": "C2",
                "name": "Wheeze",
                "ids": [{"id": "SNOMEDCT:1", "kind": "xref"}],
                "relations": [{"relation": "is-a", "tail": "C1"}],
            },
        ]
        engine = ServiceEngine.open(store_in(tmp_path, concepts), at_once=False)
        assert engine.concept("ICD10CM:J45")["id"] == "C1"
        assert engine.is_a("C2", "ICD10CM:J45")
        assert [each["concept"] for each in engine.neighbours("ICD10CM:J45", None, 5)] == ["C2"]
        with pytest.raises(NotFoundError, match="several refer to it: C1, C2"):
            engine.concept("SNOMEDCT:1")


class TestTerminology:
    """What is under /fhir has tests of its own; here, that the service has it, with its limits."""

    def test_codes_are_looked_up(self, client):
        asked = {"system": "http://www.nlm.nih.gov/research/umls/msh", "code": "D003924"}
        answer = client.get("/fhir/CodeSystem/$lookup", params=asked)
        assert {"name": "display", "valueString": "Diabetes Mellitus, Type 2"} in answer.json()[
            "parameter"
        ]
        assert client.post("/fhir/ValueSet/$expand", content="x" * 5000).status_code == 413
        assert 'route="/fhir/CodeSystem/$lookup"' in client.get("/metrics").text


class TestRefusals:
    @pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "q=" + "x" * 1001])
    def test_a_search_for_too_much_is_422(self, client, query):
        assert client.get(f"/v1/search?q=flu&{query}").status_code == 422

    def test_a_body_in_parts_is_counted(self, client):
        parts = (b"x" * 1000 for _ in range(10))
        assert client.post("/v1/link", content=parts, headers=JSON).status_code == 413

    def test_more_than_may_wait_is_503_and_what_was_accepted_is_answered(self, kb, monkeypatch):
        running, go_on = threading.Event(), threading.Event()
        link = ServiceEngine.link

        def held(self: ServiceEngine, jobs: Any) -> Any:
            running.set()
            go_on.wait(10)
            return link(self, jobs)

        with TestClient(
            create_app(kb.folder, config=LIMITS), base_url="http://localhost"
        ) as client:
            monkeypatch.setattr(ServiceEngine, "link", held)
            answers: list[Any] = []
            send = lambda: answers.append(client.post("/v1/link", json={"text": "flu"}))  # noqa: E731
            threads = [threading.Thread(target=send) for _ in range(6)]
            threads[0].start()
            assert running.wait(10)
            for thread in threads[1:]:
                thread.start()
            while sum(each.status_code == 503 for each in answers) < 3:
                pass
            go_on.set()
            for thread in threads:
                thread.join()
        assert sorted(each.status_code for each in answers) == [200, 200, 200, 503, 503, 503]
        refused = [each for each in answers if each.status_code == 503]
        assert all(each.headers["retry-after"] == "1" for each in refused)

    def test_a_wait_that_would_be_too_long_is_503(self):
        def run(jobs: Any) -> Any:
            time.sleep(0.05 * len(jobs))
            return jobs

        async def ask() -> list[Any]:
            batcher = MicroBatcher(run, max_batch=1, max_waiting=99, max_seconds=0.12)
            await batcher.submit(0)  # from now on it is known how long a job takes
            asked = [asyncio.create_task(batcher.submit(i)) for i in range(20)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            await batcher.close()
            return answers

        answers = asyncio.run(ask())
        refused = [each for each in answers if isinstance(each, QueueFullError)]
        accepted = [each for each in answers if not isinstance(each, QueueFullError)]
        assert accepted == list(range(len(accepted)))
        assert 1 <= len(accepted) <= 6
        assert all(each.retry_after == 1 for each in refused)

    def test_no_answer_in_time_is_503(self, kb, monkeypatch):
        done = threading.Event()
        config = ServiceConfig(timeout=0.05)
        with TestClient(
            create_app(kb.folder, config=config), base_url="http://localhost"
        ) as client:
            monkeypatch.setattr(ServiceEngine, "link", lambda self, jobs: done.wait(5))
            answer = client.post("/v1/link", json={"text": "flu"})
            done.set()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")

    def test_one_text_that_fails_does_not_fail_others(self, kb, monkeypatch, caplog):
        link = ServiceEngine.link

        def fails(self: ServiceEngine, jobs: Any) -> Any:
            if any("bad" in text for job in jobs for text in job.texts):
                raise ZeroDivisionError("bad text")
            return link(self, jobs)

        with TestClient(
            create_app(kb.folder), base_url="http://localhost", raise_server_exceptions=False
        ) as client:
            monkeypatch.setattr(ServiceEngine, "link", fails)
            statuses = [
                client.post("/v1/link", json={"text": text}).status_code for text in ("bad", "flu")
            ]
        assert statuses == [500, 200]
        assert "bad text" not in caplog.text


class TestKeys:
    @pytest.fixture
    def keys(self, tmp_path: Path) -> KeyFile:
        return KeyFile.open(tmp_path / "keys.toml", create=True)

    def test_only_hashes_are_kept(self, keys):
        key = keys.add("alice", "read")
        content = keys.path.read_text()
        assert "alice" in content
        assert key not in content
        assert KeyFile.open(keys.path).find(key).name == "alice"
        assert keys.path.stat().st_mode & 0o077 == 0

    def test_no_other_user_can_read_the_file_at_any_time(self, keys, monkeypatch):
        """Its mode was set after it had its name."""
        modes = []
        replace = Path.replace
        monkeypatch.setattr(
            Path,
            "replace",
            lambda path, target: (modes.append(path.stat().st_mode), replace(path, target)),
        )
        keys.add("another", "read")
        assert [mode & 0o077 for mode in modes] == [0]

    def test_other_machines_are_answered_only_with_keys(self, kb):
        with pytest.raises(ConfigError, match="--keys"):
            run_service(kb.folder, host="0.0.0.0")


class TestPrivacy:
    def test_neither_logs_nor_metrics_have_what_was_sent(self, client, caplog):
        caplog.set_level(logging.DEBUG)
        client.post("/v1/link", json={"text": "Mrs Miller has flu."})
        client.get("/v1/search", params={"q": "Miller"})
        client.get("/v1/concepts/Miller")
        metrics = client.get("/metrics").text
        ours = [record.getMessage() for record in caplog.records if "biograft" in record.name]
        assert any("POST /v1/link 200" in line for line in ours)
        assert "Miller" not in "".join(ours) + metrics
        assert 'route="/v1/concepts/{identifier:path}",status="404"' in metrics

    def test_there_is_no_page_that_loads_scripts_from_elsewhere(self, client):
        assert client.get("/docs").status_code == 404
        assert client.get("/redoc").status_code == 404
        assert "/v1/link" in client.get("/openapi.json").json()["paths"]


class TestReload:
    def test_requests_are_answered_while_a_new_store_is_opened(self, kb, monkeypatch):
        with TestClient(create_app(kb.folder), base_url="http://localhost") as client:
            opening, go_on = threading.Event(), threading.Event()
            reopened = ServiceEngine.open

            def slow(*given: Any, **settings: Any) -> ServiceEngine:
                opening.set()
                go_on.wait(10)
                return reopened(*given, **settings)

            monkeypatch.setattr(ServiceEngine, "open", slow)
            thread = threading.Thread(target=client.post, args=("/v1/admin/reload",))
            thread.start()
            assert opening.wait(10)
            assert client.post("/v1/link", json={"text": "flu"}).status_code == 200
            go_on.set()
            thread.join()
            assert client.post("/v1/link", json={"text": "flu"}).status_code == 200


def test_many_parents_and_children_are_cut_at_a_hundred(tmp_path):
    concepts = [{"id": "A", "name": "all", "relations": {"is-a": [f"U{n}" for n in range(150)]}}]
    concepts += [{"id": f"U{n}", "name": f"upper {n}"} for n in range(150)]
    concepts += [
        {"id": f"L{n}", "name": f"lower {n}", "relations": {"is-a": ["A"]}} for n in range(150)
    ]
    concept = ServiceEngine.open(store_in(tmp_path, concepts)).concept("A")
    assert (len(concept["parents"]), len(concept["children"])) == (100, 100)
    assert sorted(each["n"] for each in concept["relations"]) == [150, 150]


@pytest.fixture(scope="module")
def ask(kb):
    app = create_app(kb.folder, config=LIMITS, allowed_hosts=["notes.example.org"])
    with TestClient(app, base_url="http://localhost:8080") as client:
        yield client.request


class TestOtherSites:
    """Without keys, a page of another site in the user's browser is not answered."""

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            *[("localhost:8080", 200), ("LOCALHOST", 200), ("127.0.0.1:8080", 200), ("[::1]", 200)],
            *[("10.1.2.3", 200), ("notes.example.org", 200), ("evil.test", 421)],
            *[("localhost.evil.test", 421), ("127.0.0.1.evil.test:8080", 421)],
            *[("evil.test@localhost", 421), ("localhost/.evil.test", 421), ("[evil.test", 421)],
            *[("localhost.", 200), ("localhost:evil", 421), ("2130706433", 421)],
        ],
    )
    def test_names_that_others_can_give_are_refused(self, ask, host, status):
        answer = ask("GET", "/v1/search?q=flu", headers={"host": host})
        assert answer.status_code == status
        if status == 421:
            assert "add it with --allow-host" in answer.json()["detail"]
        assert ask("GET", "/healthz", headers={"host": host}).status_code == 200

    @pytest.mark.parametrize("path", ["/v1/link", "/v1/admin/reload", "/fhir"])
    @pytest.mark.parametrize(
        "origin", ["http://evil.test", "null", "http://localhost:3000", "http://127.0.0.1:8080"]
    )
    def test_requests_of_other_pages_are_refused(self, ask, origin, path):
        refused = ask("POST", path, json={"text": "flu"}, headers={"origin": origin})
        assert refused.status_code == 403

    def test_a_page_without_an_origin_of_its_own_is_refused_without_a_host_too(self, ask):
        headers = {"origin": "null", "host": ""}
        assert ask("POST", "/v1/link", json={"text": "flu"}, headers=headers).status_code == 403

    @pytest.mark.parametrize(
        "name", ["http://notes.example.org", "notes.example.org:8080", "", "a/b"]
    )
    def test_an_allowed_host_is_a_name(self, kb, name):
        with pytest.raises(ConfigError, match="expected the name alone"):
            run_service(kb.folder, allowed_hosts=[name])

    @pytest.mark.parametrize("origin", ["http://localhost:8080", "https://notes.example.org"])
    def test_the_pages_of_the_service_are_answered(self, ask, origin):
        answer = ask("POST", "/v1/link", json={"text": "flu"}, headers={"origin": origin})
        assert answer.status_code == 200

    @pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
    def test_bodies_that_are_not_json_are_refused(self, ask, kind):
        headers = {} if kind is None else {"content-type": kind}
        answer = ask("POST", "/v1/link", content=b'{"text": "flu"}', headers=headers)
        assert answer.status_code == 415
        assert ask("POST", "/fhir", content=b"{}", headers=headers).status_code == 415
        # an operation of FHIR has forms
        expected = 400 if kind and "form" in kind else 415
        path = "/fhir/ValueSet/$expand"
        assert ask("POST", path, content=b"{}", headers=headers).status_code == expected

    @pytest.mark.parametrize(
        ("site", "status"),
        [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("x", 403)],
    )
    def test_what_a_browser_marks_as_of_another_site_is_refused(self, ask, site, status):
        for method, path in (("GET", "/v1/search?q=flu"), ("GET", "/metrics"), ("POST", "/fhir")):
            own = {"resourceType": "Bundle", "type": "batch"} if method == "POST" else None
            answer = ask(method, path, json=own, headers={"sec-fetch-site": site})
            assert answer.status_code == status, (path, answer.text)
        for path in ("/", "/review", "/page/style.css", "/healthz"):  # they say nothing
            assert ask("GET", path, headers={"sec-fetch-site": site}).status_code == 200

    def test_with_keys_the_key_decides(self, kb, tmp_path):
        keys = KeyFile.open(tmp_path / "keys.toml", create=True)
        headers = {"authorization": f"Bearer {keys.add('ann', 'read')}", "host": "evil.test"}
        with TestClient(create_app(kb.folder, keys=keys.path)) as client:
            assert client.get("/v1/search?q=flu").status_code == 401
            assert client.get("/v1/search?q=flu", headers=headers).status_code == 200


@pytest.fixture(scope="module")
def asked_for_token(kb, tmp_path_factory):
    review = tmp_path_factory.mktemp("token") / "review.db"
    app = create_app(kb.folder, review=review, token="the token")
    with TestClient(app, base_url="http://localhost:8080") as client:
        yield client.request


class TestToken:
    """Without keys: browsers need it for all, programs for what is of a review or changes."""

    @pytest.fixture
    def ask(self, asked_for_token):
        return asked_for_token

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/v1/review"),
            ("GET", "/v1/review/terms?queue=a"),
            ("POST", "/v1/review/undo"),
            ("GET", "/v1/review/export?queue=a"),
            ("POST", "/v1/admin/reload"),
        ],
    )
    def test_a_review_needs_it_whoever_asks(self, ask, method, path):
        for given in (None, "Bearer", "Bearer the", "Bearer the tokens", "Basic the token", "\xff"):
            headers = {} if given is None else {"authorization": given.encode("latin-1")}
            answer = ask(method, path, headers=headers)
            assert answer.status_code == 401
            assert "biograft serve" in answer.json()["detail"]
            assert answer.headers["www-authenticate"] == "Bearer"
        for headers in ({"authorization": "Bearer the token"}, {"x-api-key": "the token"}):
            assert ask(method, path, headers=headers).status_code in (200, 404, 422)

    @pytest.mark.parametrize("path", ["/v1/search?q=flu", "/fhir/metadata", "/metrics"])
    def test_programs_need_none_for_the_rest_and_browsers_do(self, ask, path):
        assert ask("GET", path).status_code == 200
        for mark in ({"sec-fetch-site": "same-origin"}, {"origin": "http://localhost:8080"}):
            assert ask("GET", path, headers=mark).status_code == 401
            known = {**mark, "authorization": "Bearer the token"}
            assert ask("GET", path, headers=known).status_code == 200

    @pytest.mark.parametrize("path", ["/", "/review", "/page/common.js", "/healthz", "/readyz"])
    def test_the_pages_themselves_need_none(self, ask, path):
        assert ask("GET", path, headers={"sec-fetch-site": "none"}).status_code == 200


def test_every_answer_of_every_route_has_the_headers(kb, tmp_path):
    keys = KeyFile.open(tmp_path / "keys.toml", create=True)
    admin = {"authorization": f"Bearer {keys.add('ann', 'admin')}"}
    app = create_app(kb.folder, keys=keys.path, review=tmp_path / "review.db")
    seen = set()
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        for route in (each for each in app._app._app.routes if hasattr(each, "path")):
            path = re.sub(r"\{[^}]*\}", "1", route.path)
            for method in route.methods:
                for headers in (admin, {}):
                    answer = client.request(method, path, headers=headers)
                    seen.add(answer.status_code)
                    own = answer.headers
                    assert own["x-content-type-options"] == "nosniff"
                    assert own["cache-control"] == "no-store"
                    assert own["referrer-policy"] == "no-referrer"
                    assert own["x-frame-options"] == "DENY"
                    assert own["cross-origin-resource-policy"] == "same-origin"
                    policy = own["content-security-policy"]
                    assert policy.startswith("default-src 'none'; ")
                    assert "frame-ancestors 'none'" in policy
                    assert "unsafe" not in policy
                    assert policy.count("default-src") == 1
    assert {200, 401, 422} <= seen


def test_the_same_answer_at_once_and_in_a_thread(kb):
    """What needs few steps is answered in the loop once the terminology is open."""
    system = "http://www.nlm.nih.gov/research/umls/msh"
    asked = [f"CodeSystem/$lookup?system={system}&code={code}" for code in ("D003924", "x")]
    asked += [
        f"ValueSet/$expand?url={system}?fhir_vs&{rest}" for rest in ("count=3", "filter=a", "")
    ]
    app = create_app(kb.folder)
    engine = app._app._app.state.service.engine
    with TestClient(app, base_url="http://localhost") as client:
        while engine.warm_terminology is None:
            time.sleep(0.01)

        def answers() -> list[Any]:
            found = [client.get(f"/fhir/{each}") for each in asked]
            bodies = [each.json() for each in found]
            for each in bodies:
                each.get("expansion", {}).pop("identifier", None)
            return [(each.status_code, body) for each, body in zip(found, bodies, strict=True)]

        at_once = answers()
        opened, engine.warm_terminology = engine.warm_terminology, None
        assert answers() == at_once
        engine.warm_terminology = opened
        client.post("/v1/admin/reload")
        assert app._app._app.state.service.engine.warm_terminology is not None
    assert [status for status, _ in at_once] == [200, 404, 200, 200, 200]


def test_refusals_under_fhir_are_an_outcome(kb):
    with TestClient(create_app(kb.folder), base_url="http://localhost") as client:
        for headers, code in (
            ({"host": "evil.test"}, "exception"),
            ({"origin": "null"}, "forbidden"),
            ({"content-type": "text/plain"}, "not-supported"),
        ):
            answer = client.post("/fhir/ValueSet/$expand", content=b"{}", headers=headers)
            assert answer.headers["content-type"] == "application/fhir+json"
            (issue,) = answer.json()["issue"]
            assert (issue["severity"], issue["code"]) == ("error", code)
