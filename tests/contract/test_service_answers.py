"""Answers of the service on the starter, over HTTP and MCP: linking, look-ups, FHIR, the review."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
from anyio.from_thread import start_blocking_portal
from fastapi.testclient import TestClient

from biograft import __version__
from biograft.mapping import ReviewStore, ReviewTerm, SuggestedConcept
from biograft.serve import KeyFile, ServiceConfig, create_app, create_mcp_server

HERE = "http://127.0.0.1:8000"
NOTE = (
    "PMH: HTN, T2DM. Mother had breast cancer. Denies chest pain; no fever.\n"
    "Possible pneumonia, K 5.1 mmol/L. 否认高血压，胸痛3天。"
)
MESH = "http://www.nlm.nih.gov/research/umls/msh"
BELOW = f"{MESH}?fhir_vs=isa/D003920"
LIMITS = ServiceConfig(max_body=4096, max_text=500, max_batch=3, max_k=5)
VOLATILE = (
    "made_at",
    "batch",
    "identifier",
    "timestamp",
    "date",
    "lastUpdated",
    "version",
    "biograft",
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?!T)( \d\d:\d\d:\d\d)?")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Keys that differ from run to run beside times and hashes."""
GETS = {
    "search": "/v1/search?q=heart att",
    "search in Chinese": "/v1/search?q=糖尿&language=zh&limit=3",
    "search for nothing": "/v1/search?q=zzzzqq",
    "search without a text": "/v1/search",
    "concept": "/v1/concepts/D003924",
    "concept by CURIE": "/v1/concepts/MESH:D003924",
    "unknown concept": "/v1/concepts/D9999999",
    "neighbours": "/v1/neighbours/D003924",
    "neighbours of a relation": "/v1/neighbours/D003924?relation=located-in&limit=2",
    "unknown relation": "/v1/neighbours/D003924?relation=heals",
    "is a": "/v1/is-a?concept=D003924&ancestor=D003920",
    "is not a": "/v1/is-a?concept=D003920&ancestor=D003924",
    "version": "/v1/version",
    "healthz": "/healthz",
    "readyz": "/readyz",
    "no such route": "/v1/nothing",
    "no review": "/v1/review",
    "no review terms": "/v1/review/terms?queue=q",
}
POSTS: dict[str, tuple[str, Any]] = {
    "link": ("/v1/link", {"text": NOTE}),
    "link several": ("/v1/link", {"texts": ["No asthma.", "", "Flu."]}),
    "link as told": ("/v1/link", {"text": NOTE, "k": 1, "assertions": False, "threshold": 0.9}),
    "link to csv": ("/v1/link?to=csv", {"text": NOTE}),
    "link to tsv": ("/v1/link?to=tsv", {"text": NOTE}),
    "link to fhir": ("/v1/link?to=fhir", {"text": NOTE}),
    "link to omop": ("/v1/link?to=omop", {"text": NOTE}),
    "link to what is not": ("/v1/link?to=xml", {"text": NOTE}),
    "link text and texts": ("/v1/link", {"text": "a", "texts": ["b"]}),
    "link nothing": ("/v1/link", {}),
    "link what is no text": ("/v1/link", {"text": 3}),
    "link an unknown setting": ("/v1/link", {"text": "flu", "kay": 1}),
    "link unknown types": ("/v1/link", {"text": "flu", "types": ["nothing"]}),
    "link too long": ("/v1/link", {"text": "x" * 501}),
    "link too many": ("/v1/link", {"texts": ["a"] * 4}),
    "link too large": ("/v1/link", {"text": "x" * 5000}),
    "mentions": ("/v1/mentions", {"mentions": ["heart atack", "流感", "zzzz qq"]}),
    "mentions of none": ("/v1/mentions", {"mentions": []}),
    "assertions": (
        "/v1/assertions",
        {"text": "No flu. Fever, resolved.", "spans": [[3, 6], [8, 13]]},
    ),
    "assertions outside the text": ("/v1/assertions", {"text": "No flu.", "spans": [[3, 99]]}),
    "reload": ("/v1/admin/reload", {}),
}
FHIR = {
    "metadata": "metadata",
    "terminology": "metadata?mode=terminology",
    "code systems": "CodeSystem",
    "lookup": f"CodeSystem/$lookup?system={MESH}&code=D003924",
    "lookup in Chinese": f"CodeSystem/$lookup?system={MESH}&code=D003924&displayLanguage=zh",
    "lookup of what is not": f"CodeSystem/$lookup?system={MESH}&code=D9999999",
    "lookup of another system": "CodeSystem/$lookup?system=http://nowhere.example&code=1",
    "lookup without a code": f"CodeSystem/$lookup?system={MESH}",
    "right code": f"CodeSystem/$validate-code?url={MESH}&code=D001249&display=Asthma",
    "wrong display": f"CodeSystem/$validate-code?url={MESH}&code=D003924&display=Asthma",
    "wrong code": f"CodeSystem/$validate-code?url={MESH}&code=D9999999",
    "subsumes": f"CodeSystem/$subsumes?system={MESH}&codeA=D003920&codeB=D003924",
    "subsumed": f"CodeSystem/$subsumes?system={MESH}&codeA=D003924&codeB=D003920",
    "not subsumed": f"CodeSystem/$subsumes?system={MESH}&codeA=D003924&codeB=D001249",
    "value sets": "ValueSet",
    "expand below": f"ValueSet/$expand?url={BELOW}",
    "expand with a filter": f"ValueSet/$expand?url={MESH}?fhir_vs&filter=diab&count=3",
    "expand a page": f"ValueSet/$expand?url={MESH}?fhir_vs&count=2&offset=5",
    "expand what is not": "ValueSet/$expand?url=http://nowhere.example/vs",
    "member": f"ValueSet/$validate-code?url={BELOW}&system={MESH}&code=D003924",
    "no member": f"ValueSet/$validate-code?url={BELOW}&system={MESH}&code=D001249",
    "translate": f"ConceptMap/$translate?system={MESH}&code=D003924",
    "no such operation": "CodeSystem/$nothing",
    "no such resource": "Patient/1",
}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "search": [{"text": "heart att"}, {"text": "diab", "limit": 1}, {"text": "zzzzqq"}],
    "concepts": [{"ids": ["D003924", "D9999999"]}],
    "concept": [{"id": "D003924"}, {"id": "MESH:D003924"}, {"id": "D9999999"}],
    "parents": [{"id": "D003924"}],
    "children": [{"id": "D003920"}],
    "cross_references": [{"id": "D003924"}],
    "names": [{"id": "D003924", "language": "zh"}],
    "translate": [{"ids": ["D003924"]}, {"ids": ["D003924"], "mapping_set": "none"}],
    "in_value_set": [{"value_set": "<< D003920", "ids": ["D003924", "D001249", "D9999999"]}],
    "expand_value_set": [{"value_set": "<< D003920 MINUS D003920", "limit": 2}],
    "ancestors": [{"id": "D003924"}],
    "descendants": [{"id": "D003920", "limit": 2}],
    "is_a": [{"id": "D003924", "ancestor": "D003920"}, {"id": "D003920", "ancestor": "D003924"}],
    "path": [{"id": "D003924", "other": "D003922"}],
    "neighbours": [{"id": "D003924", "limit": 4}, {"id": "D003924", "relation": "heals"}],
    "link_text": [{"text": NOTE, "k": 1}],
    "map_terms": [{"terms": ["hart atack", "zzz qqq", "Hart  atack"], "k": 2}],
    "check": [
        {
            "codes": [
                {"id": "D003924", "label": "diabetes mellitus, type 2"},
                {"id": "D003924", "label": "flu"},
                {"id": "D003924", "label": "type 2 diabetes"},
                {"id": "D9999999", "label": "Asthma"},
                {"id": "D001249"},
            ]
        }
    ],
    "versions": [{}],
}
MI = SuggestedConcept("D009203", "Myocardial Infarction", 0.76)
TERMS = (
    ReviewTerm("hart atack", frequency=40, candidates=(MI, SuggestedConcept("D006323", "Arrest"))),
    ReviewTerm("mi", code="L3", context="unit: -", frequency=3, candidates=(MI,)),
    ReviewTerm("Mrs Miller", frequency=2, flag="nil"),
)


def body_of(answer: Any) -> Any:
    kind = answer.headers.get("content-type", "")
    if "json" in kind and "ndjson" not in kind:
        return answer.json()
    return _UUID.sub("<uuid>", _DAY.sub("<day>", answer.text)).replace(__version__, "<version>")


def read(answer: Any) -> dict[str, Any]:
    """Return what a client sees; the kind of an error counts, not its words."""
    kind = answer.headers.get("content-type", "")
    if answer.status_code < 400:
        return {"status": answer.status_code, "type": kind, "body": body_of(answer)}
    body = body_of(answer)
    keys = sorted(body) if isinstance(body, dict) else ""
    return {"status": answer.status_code, "type": kind, "keys": keys}


@pytest.fixture(scope="module")
def client(kb: Path) -> Iterator[TestClient]:
    with TestClient(create_app(kb, config=LIMITS), base_url=HERE) as opened:
        yield opened


@pytest.fixture(scope="module")
def ask(kb: Path) -> Iterator[Any]:
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    from mcp import Client

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(create_mcp_server(kb))) as opened,
    ):
        yield lambda method, *arguments: portal.call(getattr(opened, method), *arguments)


@pytest.mark.parametrize("name", GETS)
def test_look_ups(name, client, golden):
    golden("http", name, read(client.get(GETS[name])), VOLATILE)


@pytest.mark.parametrize("name", POSTS)
def test_texts_and_terms_are_linked(name, client, golden):
    path, body = POSTS[name]
    golden("http", name, read(client.post(path, json=body)), (*VOLATILE, "id", "fullUrl"))


def test_the_description_of_the_service(client, golden):
    """Routes with their parameters and the fields of their bodies; the words are not fixed."""
    described = client.get("/openapi.json").json()
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parameters = {
                each["name"]: [each["in"], each.get("required", False)]
                for each in operation.get("parameters", [])
            }
            golden("openapi", f"{method} {path}", [parameters, sorted(operation["responses"])])
    for name, schema in described["components"]["schemas"].items():
        fields = {
            field: each.get("type", "") for field, each in schema.get("properties", {}).items()
        }
        golden("openapi", name, {"fields": fields, "required": schema.get("required", [])})


@pytest.mark.parametrize("name", FHIR)
def test_the_terminology_service(name, client, golden):
    answer = client.get(f"/fhir/{FHIR[name]}")
    found = read(answer)
    if answer.status_code >= 400:
        issues = answer.json()["issue"]
        found["issues"] = [[each["severity"], each["code"]] for each in issues]
    golden("fhir", name, found, VOLATILE)


def test_a_batch_of_fhir(client, golden):
    entries = [
        {"request": {"method": "GET", "url": FHIR[name]}} for name in ("lookup", "wrong code")
    ]
    bundle = {"resourceType": "Bundle", "type": "batch", "entry": entries}
    headers = {"content-type": "application/fhir+json"}
    answer = client.post("/fhir", content=json.dumps(bundle), headers=headers)
    golden("fhir", "batch", read(answer), VOLATILE)


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_for_a_language_model(tool, ask, golden):
    for arguments in TOOLS[tool]:
        answer = ask("call_tool", tool, arguments)
        row = f"{tool} {json.dumps(arguments, ensure_ascii=False)}"[:80]
        golden(
            "mcp", row, answer.structured_content if not answer.is_error else "refused", VOLATILE
        )


def test_the_tools_are_described(ask, golden):
    tools = ask("list_tools").tools
    assert {tool.name for tool in tools} == TOOLS.keys()
    for tool in tools:
        schema = tool.input_schema
        golden(
            "mcp", f"tool {tool.name}", [sorted(schema["properties"]), schema.get("required", [])]
        )


def test_keys_allow_what_their_role_says(kb, tmp_path, golden):
    keys = KeyFile.open(tmp_path / "keys.toml", create=True)
    made = {role: keys.add(role, role) for role in ("read", "review", "admin")}
    asked = {
        "search": lambda c: c.get("/v1/search?q=flu"),
        "link": lambda c: c.post("/v1/link", json={"text": "flu"}),
        "fhir": lambda c: c.get("/fhir/metadata"),
        "decide": lambda c: c.post(
            "/v1/review/bulk",
            json={"action": "nil", "queue": "q", "reviewer": "x", "min_score": 1.0, "expected": 0},
        ),
        "reload": lambda c: c.post("/v1/admin/reload", json={}),
        "healthz": lambda c: c.get("/healthz"),
        "page": lambda c: c.get("/"),
    }
    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        store.add_terms(TERMS, reviewer="ann", queue="q")
    with TestClient(create_app(kb, keys=keys.path, review=place), base_url=HERE) as client:
        for role in (None, "wrong", *made):
            client.headers["x-api-key"] = made.get(role, "bg_wrong") if role else ""
            for name, request in asked.items():
                golden("http_keys", f"{role} {name}", request(client).status_code)


def test_the_life_of_a_review(kb, tmp_path, golden):
    """Queue, decisions, a late one, comments, bulk, undo, history, export, findings of a note."""
    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        store.add_terms(TERMS, reviewer="ann", queue="q")
        store.add_terms(TERMS, reviewer="ann", queue="two", approvals=2)
    steps: list[tuple[str, str, Any]] = [
        ("queues", "", None),
        ("terms", "terms?queue=q", None),
        ("approve", "terms/1/decision", {"action": "approve", "version": 1, "comment": "clear"}),
        ("a late decision", "terms/1/decision", {"action": "nil", "version": 1}),
        (
            "another concept",
            "terms/2/decision",
            {
                "action": "approve",
                "version": 1,
                "concept": "D008944",
                "name": "Mitral",
                "relation": "close",
            },
        ),
        ("nil", "terms/3/decision", {"action": "nil", "version": 1}),
        ("first of two", "terms/4/decision", {"action": "approve", "version": 1}),
        ("the same twice", "terms/4/decision", {"action": "approve", "version": 2}),
        (
            "second of two",
            "terms/4/decision",
            {"action": "approve", "version": 2, "reviewer": "bob"},
        ),
        ("reject", "terms/5/decision", {"action": "reject", "version": 1, "reviewer": "bob"}),
        ("comment", "terms/5/comment", {"text": "ask the ward"}),
        ("unknown action", "terms/1/decision", {"action": "maybe", "version": 2}),
        ("unknown term", "terms/999/decision", {"action": "nil", "version": 1}),
        ("term", "terms/1", None),
        ("bulk of others", "bulk", {"action": "nil", "queue": "q", "expected": 9, "min_score": 0}),
        ("undo", "undo", {"event": 7}),
        ("bulk", "bulk", {"action": "approve", "queue": "q", "expected": 1, "min_score": 0.7}),
        ("undo of nothing", "undo", {}),
        (
            "finding",
            "findings",
            {"text": "hart", "suggested": "D009203", "decision": "wrong", "concept": "D009203"},
        ),
        (
            "other finding",
            "findings",
            {"text": "hart", "suggested": "D009203", "decision": "other", "concept": "D006321"},
        ),
        ("wrong finding", "findings", {"text": "flu", "decision": "correct"}),
        ("open terms", "terms?queue=q&status=open", None),
        ("history", "history?queue=q", None),
        ("export", "export?queue=q", None),
        ("worksheet", "export?queue=two&to=csv", None),
        ("queues at the end", "", None),
    ]
    volatile = ("batch", "updated_at", "at")
    with TestClient(create_app(kb, review=place), base_url=HERE) as client:
        for name, path, body in steps:
            url = f"/v1/review/{path}".rstrip("/")
            if body is None:
                answer = client.get(url)
            else:
                answer = client.post(url, json={"reviewer": "ann", **body})
            golden("http_review", name, read(answer), volatile)
