"""``$closure`` beside brute force over all pairs of codes, and lists of resources by pages."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from terminology_client import opened
from test_supplied import COLOURS, URL, ask
from test_translate import a_map, package

from biograft.errors import BiograftError
from biograft.kb import CodeSystems, KnowledgeBase
from biograft.kb.fhir import Work
from biograft.serve.fhir.closure import ClosureTables
from biograft.serve.fhir.parameters import Parameters

MESH = "http://www.nlm.nih.gov/research/umls/msh"


@pytest.fixture(scope="module")
def kb(starter: Any) -> KnowledgeBase:
    return KnowledgeBase.open(starter)


@pytest.fixture
def client(starter_client: Any) -> Any:
    return starter_client


def concepts(*codes: str, system: str = MESH) -> list[tuple[str, Any]]:
    return [("concept", {"system": system, "code": code}) for code in codes]


def told(answer: Any) -> list[tuple[str, str, str]]:
    """Return (system, code, ancestor) of each relation of an answer."""
    return [
        (group["source"], element["code"], target["code"])
        for group in answer.get("group", [])
        for element in group["element"]
        for target in element["target"]
    ]


@pytest.mark.parametrize("seed", range(6))
def test_relations_are_those_of_all_pairs(kb, seed):
    random_, systems = random.Random(seed), CodeSystems(kb)
    mesh = systems.known(MESH)
    some = random_.sample(systems.members(mesh).tolist(), 60)
    above = {row for each in some for row in systems.ancestors(systems.row(each))}
    entries = sorted({*some, *systems.of_rows(mesh, sorted(above)).tolist()})
    random_.shuffle(entries)
    codes = [systems.code(each) for each in entries]
    right = {
        (MESH, systems.code(a), systems.code(b))
        for a in entries
        for b in entries
        if a != b and systems.is_a(systems.row(a), systems.row(b))
    }
    assert len(right) > 40
    tables = ClosureTables(systems)
    versions = [int(tables.answer(Parameters([("name", "t")]))["version"])]
    found: list[tuple[str, str, str]] = []
    later: dict[int, list[tuple[str, str, str]]] = {versions[0]: []}
    while codes:
        batch = [codes.pop() for _ in range(min(len(codes), random_.randrange(1, 9)))]
        again = random_.sample(sorted({c for _, c, _ in found}), min(len(found), 1))
        answer = tables.answer(Parameters([("name", "t"), *concepts(*batch, *again)]))
        new = told(answer)
        found += new
        for since in later.values():
            since.extend(new)
        later[int(answer["version"])] = []
    assert len(found) == len(set(found))
    assert set(found) == right
    for version, expected in later.items():
        repeated = tables.answer(Parameters([("name", "t"), ("version", str(version))]))
        assert sorted(told(repeated)) == sorted(expected)


class TestClosure:
    def test_over_http(self, client):
        begun = client.post("/fhir/$closure", json=_parameters(name="a"))
        assert begun.json()["version"] == "0"
        assert "group" not in begun.json()
        for code, said in (("D003924", []), ("D003920", [(MESH, "D003924", "D003920")])):
            answer = client.post("/fhir/$closure", json=_parameters(name="a", concept=code)).json()
            assert told(answer) == said
        (target,) = answer["group"][0]["element"][0]["target"]
        assert target == {"code": "D003920", "equivalence": "subsumes"}
        headers = {"accept": "application/fhir+json; fhirVersion=5.0"}
        again = _parameters(name="a", version="0")
        answer = client.post("/fhir/$closure", json=again, headers=headers).json()
        (target,) = answer["group"][0]["element"][0]["target"]
        assert target == {"code": "D003920", "relationship": "source-is-narrower-than-target"}
        begun = client.post("/fhir/$closure", json=_parameters(name="a")).json()
        assert begun["version"] == "0"
        assert "group" not in client.post("/fhir/$closure", json=again).json()

    @pytest.mark.parametrize(
        ("given", "status"),
        [
            ({}, 400),
            ({"name": "unknown", "concept": "D003920"}, 404),
            ({"name": "b", "version": "7"}, 404),
            ({"name": "b", "version": "x"}, 400),
            ({"name": "b", "version": "0", "concept": "D003920"}, 400),
            ({"name": "b", "concept": "nothing"}, 404),
        ],
    )
    def test_refusals(self, client, given, status):
        client.post("/fhir/$closure", json=_parameters(name="b"))
        answer = client.post("/fhir/$closure", json=_parameters(**given))
        assert answer.status_code == status
        assert answer.json()["resourceType"] == "OperationOutcome"

    def test_the_memory_is_bounded(self, kb):
        systems = CodeSystems(kb)
        tables = ClosureTables(systems, max_tables=2, max_cells=60)
        for name in "abc":
            tables.answer(Parameters([("name", name)]))
        with pytest.raises(BiograftError, match="no closure table 'a'"):
            tables.answer(Parameters([("name", "a"), *concepts("D003920")]))
        mesh = systems.known(MESH)
        codes = [systems.code(e) for e in systems.members(mesh).tolist()[:200]]
        with pytest.raises(BiograftError, match="too many codes"):
            tables.answer(Parameters([("name", "b"), *concepts(*codes)]))
        assert tables.answer(Parameters([("name", "b"), ("version", "0")]))["version"] == "0"

    def test_work_that_ends_early_changes_nothing(self, kb):
        tables = ClosureTables(CodeSystems(kb))
        tables.answer(Parameters([("name", "a")]))
        asked = Parameters([("name", "a"), *concepts("D003924", "D003920")])
        with Work(max_steps=3).counted(), pytest.raises(BiograftError, match="too much work"):
            tables.answer(asked)
        assert told(tables.answer(asked)) == [(MESH, "D003924", "D003920")]


def _parameters(concept: str | None = None, **texts: str) -> dict[str, Any]:
    listed: list[dict[str, Any]] = [{"name": k, "valueString": v} for k, v in texts.items()]
    if concept:
        listed.append({"name": "concept", "valueCoding": {"system": MESH, "code": concept}})
    return {"resourceType": "Parameters", "parameter": listed}


@pytest.fixture(scope="module")
def served(starter: Any, tmp_path_factory: Any) -> Any:
    sets = {
        f"package/ValueSet-{n}.json": {
            "resourceType": "ValueSet",
            "id": "same",
            "url": f"urn:set:{n}",
            "version": str(n % 2),
            "name": f"Set{n}",
            "title": f"The set {n}",
            "status": "draft" if n % 3 else "active",
            "compose": {"include": [{"system": URL}]},
            "expansion": {"contains": []},
        }
        for n in range(25)
    }
    files = {"package/C.json": COLOURS, "package/M.json": a_map(), **sets}
    path = package(tmp_path_factory.mktemp("lists") / "ours.tgz", files)
    return opened(starter, fhir=[path])


class TestLists:
    @staticmethod
    def urls(client: Any, path: str) -> list[str]:
        """Follow the pages of a list."""
        found, seen = [], set()
        while path:
            assert path not in seen
            seen.add(path)
            bundle = client.get(path).json()
            found += [each["resource"]["url"] for each in bundle.get("entry", [])]
            links = {each["relation"]: each["url"] for each in bundle["link"]}
            path = links.get("next", "")
        assert len(found) == bundle["total"]
        return found

    @pytest.mark.parametrize("count", [1, 4, 25, 100])
    def test_pages(self, served, count):
        whole = self.urls(served, "/fhir/ValueSet")
        assert self.urls(served, f"/fhir/ValueSet?_count={count}") == whole
        assert [f"urn:set:{n}" for n in range(25)] == [u for u in whole if u.startswith("urn:set")]
        assert f"{MESH}?fhir_vs" in whole

    @pytest.mark.parametrize(
        ("query", "fits"),
        [
            ("name=set1", lambda n: str(n).startswith("1")),
            ("name:exact=Set1", lambda n: n == 1),
            ("title:contains=set%202", lambda n: str(n).startswith("2")),
            ("url=urn:set:7", lambda n: n == 7),
            ("url=urn:set:7|0", lambda n: False),
            ("version=1&_count=3", lambda n: n % 2),
            ("status=draft&name=Set&_count=5", lambda n: n % 3),
        ],
    )
    def test_searches(self, served, query, fits):
        right = [f"urn:set:{n}" for n in range(25) if fits(n)]
        assert self.urls(served, f"/fhir/ValueSet?{query}") == right

    def test_a_resource_is_read_by_its_id(self, served):
        for kind, url in (
            ("CodeSystem", URL),
            ("ConceptMap", "urn:map"),
            ("ValueSet", "urn:set:9"),
        ):
            (entry,) = served.get(f"/fhir/{kind}", params={"url": url}).json()["entry"]
            brief = entry["resource"]
            assert not {"concept", "group", "expansion"} & set(brief)
            assert brief["meta"]["tag"][0]["code"] == "SUBSETTED"
            whole = served.get(f"/fhir/{kind}/{brief['id']}").json()
            assert whole["url"] == url
            assert {"concept", "group", "expansion"} & set(whole)
        assert served.get("/fhir/ConceptMap/none").status_code == 404

    def test_operations_of_one_resource(self, served):
        (entry,) = served.get("/fhir/ConceptMap?url=urn:map").json()["entry"]
        identifier = entry["resource"]["id"]
        asked = {"system": "urn:a", "code": "x"}
        found = served.get(f"/fhir/ConceptMap/{identifier}/$translate", params=asked).json()
        assert found["parameter"][0]["valueBoolean"] is True

    def test_the_description_has_every_route(self, served):
        described = served.get("/openapi.json").json()["paths"]
        paths = [each for each in described if each.startswith("/fhir/")]
        assert {"/fhir/CodeSystem/$lookup", "/fhir/$closure", "/fhir/ValueSet/{id}"} <= set(paths)
        ids = [e["operationId"] for p in paths for e in described[p].values()]
        assert len(ids) == len(set(ids))
        assert set(described["/fhir/ConceptMap/$translate"]) == {"get", "post"}
        assert json.dumps(described)


def test_expressions_are_refused_where_the_store_has_no_codes(client):
    filter_ = {"property": "constraint", "op": "=", "value": "<< red"}
    own = {
        "resourceType": "ValueSet",
        "url": "urn:own",
        "compose": {"include": [{"system": URL, "filter": [filter_]}]},
    }
    refused = ask(client, "ValueSet/$expand", COLOURS, own, url="urn:own", status=422)
    assert "not supported" in refused["issue"][0]["diagnostics"]
    url = f"{URL}?fhir_vs=ecl/<<red"
    assert ask(client, "ValueSet/$expand", COLOURS, url=url, status=422)


def test_few_concepts_have_the_codes_that_many_have(kb, monkeypatch):
    systems, random_ = CodeSystems(kb), random.Random(3)
    for system in systems:
        for n in (0, 1, 5, 60):
            rows = random_.sample(range(len(kb)), n)
            few = systems.of_rows(system, rows).tolist()
            monkeypatch.setattr("biograft.kb.code_systems._FEW", -1)
            assert systems.of_rows(system, rows).tolist() == few
            monkeypatch.undo()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/fhir/CodeSystem/mesh", 200),
        ("GET", "/fhir/CodeSystem/none", 404),
        ("GET", "/fhir/CodeSystem/mesh/$lookup", 404),
        ("GET", "/fhir/CodeSystem/mesh/$subsumes?codeA=D003920&codeB=D003924", 200),
        ("GET", "/fhir/CodeSystem/", 404),
        ("GET", "/fhir/CodeSystem/a/b/c", 404),
        ("GET", "/fhir/$closure", 400),
        ("POST", "/fhir/metadata", 404),
        ("DELETE", "/fhir/CodeSystem/mesh", 404),
        ("GET", "/fhirs", 404),
        ("GET", "/fhir/Patient/1", 404),
    ],
)
def test_routes_that_are_looked_up(client, method, path, status):
    assert client.request(method, path).status_code == status
