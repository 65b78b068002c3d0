"""Errors and names of the service in Chinese: what a page in Chinese shows, who gets English."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
from fastapi.testclient import TestClient

from biograft.mapping import ReviewStore, ReviewTerm, SuggestedConcept
from biograft.serve import KeyFile, ServiceConfig, create_app

LIMITS = ServiceConfig(max_body=4096, max_text=200, max_batch=3, max_k=5)
ENGLISH = re.compile(r"(?<![\w.-])[A-Za-z]{2,} [a-z]{2,}(?![\w.=-])")
LITERAL = re.compile(r"`[^`]*`|'[^']*'|Bearer \w+")
PAGE = {"accept-language": "zh"}


@pytest.fixture(scope="module")
def client(kb, tmp_path_factory):
    place = tmp_path_factory.mktemp("review") / "review.db"
    app = create_app(kb.folder, config=LIMITS, review=place)
    with TestClient(app, base_url="http://localhost") as opened, ReviewStore.open(place) as store:
        term = ReviewTerm("心梗", candidates=(SuggestedConcept("D009203", "心肌梗死"),))
        store.add_terms([term], reviewer="王敏")
        yield opened


def is_chinese(text):
    return re.search("[\u4e00-\u9fff]", text) and not ENGLISH.search(LITERAL.sub(" ", text))


DECISION = {"action": "approve", "version": 0, "reviewer": "王敏"}
WRONG = [
    ("v1/link", {}, 422),
    ("v1/link", {"text": "头痛" * 200}, 422),
    ("v1/link", {"texts": ["头痛"] * 9}, 422),
    ("v1/link", {"text": 5}, 422),
    ("v1/link", {"text": "头痛", "k": 0}, 422),
    ("v1/link", {"text": "头痛", "k": "many"}, 422),
    ("v1/link", {"text": "头痛", "nope": 1}, 422),
    ("v1/link", {"text": "头痛", "types": 3}, 422),
    ("v1/link", {"text": "头痛", "types": ["nope"]}, 422),
    ("v1/link?to=nope", {"text": "头痛"}, 422),
    ("v1/link", {"text": "头" * 5000}, 413),
    ("v1/mentions", {"mentions": "头痛"}, 422),
    ("v1/assertions", {"text": "头痛", "spans": [[0, 99]]}, 422),
    ("v1/export", {"to": "nope", "documents": []}, 422),
    ("v1/open", {"files": []}, 422),
    ("v1/agreement", {}, 422),
    ("v1/search", None, 422),
    ("v1/search?q=头痛&limit=0", None, 422),
    ("v1/search?q=头痛&limit=x", None, 422),
    ("v1/concepts/无此编号", None, 404),
    ("v1/neighbours/D000001?limit=0", None, 422),
    ("v1/review/terms?queue=无此队列", None, 404),
    ("v1/review/terms/99", None, 404),
    ("v1/review/terms?queue=review&min_score=9", None, 422),
    ("v1/review/terms?queue=review&status=nope", None, 422),
    ("v1/review/sample?queue=review", None, 422),
    ("v1/review/terms/1/decision", {"action": "nope"}, 422),
    ("v1/review/terms/1/decision", {**DECISION, "version": 9}, 409),
    ("v1/review/terms/1/decision", {**DECISION, "reviewer": ""}, 422),
    ("v1/review/terms/1/decision", {**DECISION, "version": 1, "concept": "X1"}, 422),
    ("v1/review/terms/1/targets", {"concept": "X1", "reviewer": "王敏"}, 422),
    ("v1/review/bulk", {"action": "approve", "queue": "review", "reviewer": "王敏"}, 422),
    ("v1/review/undo", {"event": 99, "reviewer": "王敏"}, 404),
    ("v1/review/undo", {"reviewer": "王敏"}, 422),
    ("v1/review/findings", {"text": "头痛", "decision": "correct", "reviewer": "王敏"}, 422),
    ("v1/review/export?queue=review&to=nope", None, 422),
]


@pytest.mark.parametrize(("path", "body", "status"), WRONG)
def test_an_error_is_chinese_where_the_page_is(client, path, body, status):
    answers = []
    for headers in (PAGE, {}, {"accept-language": "en-US,zh;q=0.5"}):
        method = "GET" if body is None else "POST"
        answers.append(client.request(method, f"/{path}", json=body, headers=headers))
    assert [each.status_code for each in answers] == [status] * 3, answers[0].text
    chinese, *others = [each.json()["detail"] for each in answers]
    assert is_chinese(chinese), chinese
    assert not any(is_chinese(each) for each in others)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
    ],
)
def test_a_refusal_is_chinese(client, headers, status):
    answer = client.post("/v1/link", content=b'{"text": "a"}', headers=PAGE | headers)
    assert answer.status_code == status
    assert is_chinese(answer.json()["detail"]), answer.text


def test_refusals_of_keys_are_chinese(kb, tmp_path):
    keys = tmp_path / "keys.toml"
    key = KeyFile.open(keys, create=True).add("王敏", "read")
    with TestClient(create_app(kb.folder, keys=keys), base_url="http://localhost") as client:
        unknown = client.get("/v1/version", headers=PAGE)
        role = client.post("/v1/admin/reload", headers={**PAGE, "x-api-key": key})
    assert (unknown.status_code, role.status_code) == (401, 403)
    assert is_chinese(unknown.json()["detail"])
    assert is_chinese(role.json()["detail"])


def test_a_concept_of_another_release_is_explained_in_chinese(client):
    answer = client.get("/v1/review/terms/1/concept", params={"concept": "X1"}, headers=PAGE)
    assert answer.json()["status"] == "missing"
    assert is_chinese(answer.json()["detail"])


@pytest.mark.parametrize("to", ["omop", "usagi", "all"])
def test_what_an_export_leaves_out_may_be_named_in_chinese(client, to):
    """A header cannot hold Chinese: such an export was an internal error."""
    client.post("/v1/review/terms/1/decision", json={**DECISION, "version": 1})
    answer = client.get("/v1/review/export", params={"queue": "review", "to": to})
    assert answer.status_code == 200
    assert "心梗" in unquote(answer.headers["x-left-out"])


def test_what_a_format_loses_is_said_in_the_language_of_the_page(client):
    mention = {"start": 0, "end": 2, "concept": "D006261", "types": ["symptom"]}
    asked = {"documents": [{"text": "头痛", "mentions": [{**mention, "status": "absent"}]}]}
    answer = client.post("/v1/export?to=conll", json=asked, headers=PAGE)
    assert answer.status_code == 200, answer.text
    assert is_chinese(unquote(answer.headers["x-lost"]))


def test_concepts_are_named_in_the_language_of_the_page(client):
    def names(headers):
        def ask(path, body=None):
            method = "GET" if body is None else "POST"
            return client.request(method, f"/v1/{path}", json=body, headers=headers).json()

        (mention,) = ask("link", {"text": "否认心梗"})["mentions"]
        (term,) = ask("mentions", {"mentions": ["心梗"]})["mentions"]
        (hit, *_) = ask("search?q=心梗")["concepts"]
        concept = ask("concepts/D009203")
        others = ask("neighbours/D009203")["neighbours"]
        return {mention["name"], term["name"], hit["name"], concept["name"]}, concept, others

    for _ in range(2):  # searches are kept
        chinese, concept, others = names(PAGE)
        assert chinese == {"心肌梗死"}
        assert names({})[0] == {"Myocardial Infarction"}
    assert all(is_chinese(each["name"]) for each in (*concept["parents"], *others))


def test_errors_of_fhir_are_english(client):
    """There the header asks for the language of names, and clients compare texts of issues."""
    headers = {"accept-language": "zh-CN"}
    params = {"system": "urn:none", "code": "X"}
    answer = client.get("/fhir/CodeSystem/$lookup", params=params, headers=headers)
    assert answer.status_code in (404, 422)
    assert not re.search("[\u4e00-\u9fff]", answer.text)
