"""The review over HTTP: queue, decisions, conflicts, bulk, undo, export; who may do what."""

from __future__ import annotations

import io
import logging
import re
import zipfile
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
from fastapi.testclient import TestClient
from review_places import end_all_connections, postgresql, stop

from biograft.mapping import ReviewStore, ReviewTerm, SuggestedConcept
from biograft.serve import KeyFile, create_app

MI = SuggestedConcept("D009203", "Myocardial Infarction", 0.76)
TERMS = (
    ReviewTerm("hart atack", frequency=40, candidates=(MI, SuggestedConcept("D006323", "Arrest"))),
    ReviewTerm("mi", frequency=3, candidates=(MI,)),
    ReviewTerm("Mrs Miller", frequency=2, flag="nil"),
)


@pytest.fixture(scope="module")
def server():
    with postgresql() as url:
        yield url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def app(request, kb, tmp_path_factory):
    place = tmp_path_factory.mktemp("review") / "review.db"
    if request.param == "postgresql":
        place = request.getfixturevalue("server")
    opened = create_app(kb.folder, review=place)
    with ReviewStore.open(place) as store:
        yield opened, store


@pytest.fixture
def queue(request, app):
    app[1].add_terms(TERMS, reviewer="ann", queue=request.node.name)
    return request.node.name


@pytest.fixture
def client(app):
    with TestClient(app[0], base_url="http://localhost") as opened:
        yield opened


def terms(client: Any, queue: str, **where: Any) -> list[Any]:
    answer = client.get("/v1/review/terms", params={"queue": queue, **where})
    assert answer.status_code == 200, answer.text
    return answer.json()["terms"]


def decide(client: Any, term: Any, action: str, who: str = "ann", **more: Any) -> Any:
    body = {"action": action, "version": term["version"], "reviewer": who, **more}
    return client.post(f"/v1/review/terms/{term['id']}/decision", json=body)


def test_a_stale_version_is_409_with_the_term_as_it_is(client, queue):
    (first, *_) = terms(client, queue)
    assert decide(client, first, "approve").status_code == 200
    late = decide(client, first, "nil", "bob")
    assert late.status_code == 409
    assert "by ann" in late.json()["detail"]
    assert late.json()["term"]["status"] == "approved"
    assert decide(client, late.json()["term"], "nil", "bob").json()["status"] == "nil"


def test_a_change_that_is_sent_again_is_answered_again(client, queue):
    (first, *_) = terms(client, queue)
    change = "0123456789abcdef"
    answers = [decide(client, first, "approve", change=change).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["batch"] == change
    body = {"event": answers[0]["event"], "reviewer": "ann", "change": change[::-1]}
    undone = [client.post("/v1/review/undo", json=body).json() for _ in range(2)]
    assert undone[0] == undone[1]
    assert undone[0]["status"] == "open"
    late = client.post("/v1/review/undo", json={**body, "change": "0" * 16})
    assert (late.status_code, late.json()["term"]["version"]) == (409, undone[0]["version"])


def test_a_finding_that_another_reviewer_judged_is_not_judged_unseen(client):
    body = {"text": "sugar disease", "concept": "D009203", "decision": "wrong", "reviewer": "ann"}
    first = client.post("/v1/review/findings", json=body).json()
    assert first["status"] == "rejected"
    other = {**body, "decision": "correct", "reviewer": "bob"}
    late = client.post("/v1/review/findings", json=other)
    assert (late.status_code, late.json()["term"]["status"]) == (409, "rejected")
    own = {**body, "decision": "correct", "version": 0}  # another tab of the same reviewer
    assert client.post("/v1/review/findings", json=own).status_code == 409
    assert client.post("/v1/review/findings", json={**body, "version": 0}).status_code == 200
    seen = {**other, "version": late.json()["term"]["version"] + 1}
    assert client.post("/v1/review/findings", json=seen).json()["status"] == "approved"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("terms/1/decision", {"action": "approve", "version": 1}, 422),
        ("terms/1/decision", {"action": "approve", "reviewer": "a"}, 422),
        ("terms/1/comment", {"text": "x" * 3000, "reviewer": "a"}, 422),
        ("bulk", {"action": "nil", "queue": "q", "expected": 1, "reviewer": "a"}, 422),
        ("undo", {"event": 99999, "reviewer": "a"}, 404),
    ],
)
def test_wrong_requests_are_refused(client, queue, path, body, status):
    answer = client.post(f"/v1/review/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert "detail" in answer.json()


def test_readiness_knows_the_database(kb, tmp_path):
    with postgresql() as url:
        app = create_app(kb.folder, review=url)
        with TestClient(app, base_url="http://localhost") as client:
            assert client.get("/readyz").json() == {"status": "ready"}
            end_all_connections(url)
            assert client.get("/readyz").status_code == 200  # another one is opened
            body = {"text": "cold", "concept": "D009203", "decision": "wrong", "reviewer": "ann"}
            assert client.post("/v1/review/findings", json=body).status_code == 200
            stop(url)
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == 503
            answer = client.post("/v1/review/findings", json=body)
            assert answer.status_code == 503
            assert "try again" in answer.json()["detail"]


@pytest.mark.parametrize("number", [1 << 63, 1 << 64, 10**50])
def test_numbers_that_no_database_holds_are_refused_in_words(client, queue, number):
    body = {"action": "nil", "version": number, "reviewer": "a"}
    for answer in (
        client.post("/v1/review/terms/1/decision", json=body),
        client.post("/v1/review/undo", json={"event": number, "reviewer": "a"}),
        client.get(f"/v1/review/terms/{number}"),
        client.get("/v1/review/terms", params={"queue": queue, "offset": str(number)}),
    ):
        assert answer.status_code == 422
        assert "expected 9223372036854775807 or less" in answer.json()["detail"]


def test_only_concepts_of_the_knowledge_base_are_approved(kb, tmp_path):
    place = tmp_path / "review.db"
    unknown = (SuggestedConcept("D9", "Of an older release", 0.9),)
    with ReviewStore.open(place, create=True) as store:
        store.add_terms([*TERMS, ReviewTerm("old", candidates=unknown)], reviewer="a", queue="q")
    with TestClient(create_app(kb.folder, review=place), base_url="http://localhost") as client:
        (old,) = terms(client, "q", text="old")
        (first,) = terms(client, "q", text="hart")
        for refused in (
            decide(client, old, "approve"),
            decide(client, first, "approve", concept="D9"),
        ):
            assert refused.status_code == 422
            assert refused.json()["detail"] == (
                "concept: no concept of the knowledge base has the id 'D9'"
            )
        body = {"action": "approve", "queue": "q", "reviewer": "a", "min_score": 0.8, "expected": 1}
        done = client.post("/v1/review/bulk", json=body).json()
        assert (done["n_changed"], done["n_skipped"]) == (0, 1)
        said = {"text": "new words", "reviewer": "a", "decision": "other", "concept": "D9"}
        assert client.post("/v1/review/findings", json=said).status_code == 422
        queues = [each["queue"] for each in client.get("/v1/review").json()["queues"]]
        assert queues == ["q"]
        assert decide(client, old, "reject").json()["status"] == "rejected"


def test_each_role_may_do_what_it_says_and_the_key_names_the_reviewer(kb, tmp_path):
    keys = KeyFile.open(tmp_path / "keys.toml", create=True)
    read, ann, bob = (
        keys.add(*each) for each in (("eve", "read"), ("ann", "review"), ("bob", "review"))
    )
    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        store.add_terms(TERMS, reviewer="ann", queue="q", approvals=2)
    with TestClient(
        create_app(kb.folder, keys=keys.path, review=place), base_url="http://localhost"
    ) as client:
        assert client.get("/review").status_code == 200
        assert client.get("/v1/review").status_code == 401
        client.headers["x-api-key"] = read
        (first, *_) = terms(client, "q")
        assert decide(client, first, "approve").status_code == 403
        client.headers["x-api-key"] = ann
        assert client.get("/v1/review").json()["reviewer"] == "ann"
        proposed = decide(client, first, "approve", "bob").json()  # a name given counts nothing
        assert (proposed["status"], proposed["reviewer"]) == ("proposed", "ann")
        assert decide(client, proposed, "approve", "bob").status_code == 409
        client.headers["x-api-key"] = bob
        assert decide(client, proposed, "approve").json()["second_reviewer"] == "bob"


def test_a_blind_second_opinion_sees_no_first_one_over_http(kb, tmp_path):
    keys = KeyFile.open(tmp_path / "keys.toml", create=True)
    ann, bob = (keys.add(name, "review") for name in ("ann", "bob"))
    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        store.add_terms(TERMS, reviewer="eve", queue="q", approvals=2)
        store.set_approvals("q", 2, blind=True)
    app = create_app(kb.folder, keys=keys.path, review=place)
    with TestClient(app, base_url="http://localhost") as client:

        def answers(key: str) -> list[str]:
            client.headers["x-api-key"] = key
            paths = ("", "/terms?queue=q", "/terms/1", "/history?queue=q", "/agreement?queue=q")
            paths += ("/terms?queue=q&status=open", "/export?queue=q&to=csv", "/export?queue=q")
            paths += ("/terms?queue=q&waits_for=bob", "/terms/1?reviewer=ann", "/terms/2")
            found = [client.get(f"/v1/review{path}") for path in paths]
            assert {answer.status_code for answer in found} == {200}
            return [re.sub(r"(sets/|mapping_date: ).*", "", answer.text) for answer in found]

        before = answers(bob)
        client.headers["x-api-key"] = ann
        (first, second, *_) = terms(client, "q")
        assert decide(client, first, "nil", comment="none of these").json()["reviewer"] == "ann"
        assert decide(client, second, "approve").json()["status"] == "proposed"
        assert answers(bob) == before
        late = decide(client, {**first, "version": 9}, "approve")
        assert late.status_code == 409
        assert "ann" not in late.text
        done = decide(client, first, "approve")
        assert (done.json()["status"], done.json()["second_reviewer"]) == ("disputed", "ann")
        (different,) = client.get("/v1/review/agreement?queue=q").json()["disagreements"]
        assert [each["reviewer"] for each in different["opinions"]] == ["ann", "bob"]


def test_neither_logs_nor_metrics_have_terms(client, queue, caplog):
    caplog.set_level(logging.DEBUG)
    (own,) = terms(client, queue, text="Miller")
    decide(client, own, "approve", comment="Miller, again")
    decide(client, own, "nil", comment="Miller")
    decide(client, own, "nil", comment="Miller")
    metrics = client.get("/metrics").text
    # the client of the test logs what it asks for; the service does not
    said = "".join(r.getMessage() for r in caplog.records if not r.name.startswith("httpx"))
    assert "/v1/review/terms/{term_id}/decision" in said
    assert "Miller" not in said + metrics


def test_the_concept_stands_beside_the_term_with_why_it_was_found(client, queue):
    (first, *_) = terms(client, queue, text="hart")
    path = f"/v1/review/terms/{first['id']}/concept"
    found = client.get(path).json()
    assert (found["id"], found["status"], found["vocabulary"]) == ("D009203", "current", "MESH")
    assert {"definitions", "names", "parents", "children", "relations"} <= found.keys()
    assert found["why"]["name"]["text"].lower() in {"heart attack", "heart attacks"}
    assert found["why"]["similarity"] > 0.8
    other = client.get(path, params={"concept": "D006323"}).json()
    assert other["id"] == "D006323"
    assert client.get(path, params={"concept": "D999"}).json()["status"] == "missing"


def test_a_term_gets_a_second_target_over_http(client, queue):
    (first,) = terms(client, queue, text="hart")
    said = {"concept": "D006323", "name": "Heart Arrest", "relation": "related", "reviewer": "ann"}
    said["change"] = "00112233445566ff"
    added = client.post(f"/v1/review/terms/{first['id']}/targets", json=said).json()
    assert (added["part"], added["relation"], added["status"]) == (
        "Heart Arrest",
        "related",
        "approved",
    )
    (other,) = client.get(f"/v1/review/terms/{first['id']}").json()["targets"]
    assert other["id"] == added["id"]
    unknown = client.post(
        f"/v1/review/terms/{first['id']}/targets",
        json={**said, "concept": "D999", "change": "1" * 16},
    )
    assert unknown.status_code == 422
    undone = client.post("/v1/review/undo", json={"batch": said["change"], "reviewer": "ann"})
    assert undone.json()["n_changed"] == 2
    assert client.get(f"/v1/review/terms/{first['id']}").json()["targets"] == []


def test_a_sample_over_http_and_a_bulk_that_leaves_what_is_doubtful(client, queue):
    where = {"queue": queue, "reviewer": "ann", "min_score": 0.7}
    sample = client.get("/v1/review/sample", params=where).json()
    assert sample["left"] == {}
    assert {each["text"] for each in sample["to_check"]} == {"hart atack", "mi"}
    for each in sample["to_check"]:
        decide(client, each, "approve")
    checked = client.get("/v1/review/sample", params=where).json()
    assert (checked["n_terms"], checked["n_checked"]) == (0, len(sample["to_check"]))
    body = {"action": "approve", "queue": queue, "reviewer": "ann", "min_score": 0.0}
    body |= {"expected": 0, "leave_risky": True}
    assert client.post("/v1/review/bulk", json=body).json()["n_changed"] == 0


@pytest.mark.parametrize("to", ["sssom", "csv", "xlsx", "usagi", "omop", "fhir", "all"])
def test_each_format_is_exported_also_with_a_key(kb, tmp_path, to):
    keys = KeyFile.open(tmp_path / "keys.toml", create=True)
    key = keys.add("eve", "read")
    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        store.add_terms(TERMS, reviewer="ann", queue="q")
        store.decide(store.items("q")[0].id, "approve", reviewer="ann", relation="broad")
    app = create_app(kb.folder, keys=keys.path, review=place)
    with TestClient(app, base_url="http://localhost", headers={"x-api-key": key}) as client:
        answer = client.get("/v1/review/export", params={"queue": "q", "to": to})
    assert answer.status_code == 200, answer.text
    if to == "fhir":
        (group,) = answer.json()["group"]
        (element,) = group["element"]
        assert element["code"] == "hart atack"
        assert element["target"][0]["equivalence"] == "wider"
    elif to == "all":
        names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
        assert {"review.sssom.tsv", "review.csv", "review.usagi.csv", "review.json"} <= set(names)
    elif to in ("csv", "sssom"):
        assert "hart atack" in answer.text
    elif to in ("usagi", "omop"):  # this knowledge base has no ids of OMOP
        assert answer.text.lower().startswith(("sourcecode,", "source_code,"))
        assert answer.headers["x-left-out"]
    else:
        assert answer.content[:2] == b"PK"
