"""Small requests that ask for very much: harmless, or refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from terminology_client import opened

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
from biograft.kb.fhir import TerminologyError, Work, spend

MESH = "http://www.nlm.nih.gov/research/umls/msh"
ONE = {"system": MESH, "concept": [{"code": "D003924"}]}


def value_set(number: int, *include: Any, **more: Any) -> dict[str, Any]:
    compose = {"include": list(include), **more}
    return {"resourceType": "ValueSet", "url": f"http://x.org/{number}", "compose": compose}


def nested(depth: int, times: int = 1) -> list[dict[str, Any]]:
    """Value sets, each of which includes the one before, as often as is wanted."""
    return [value_set(0, ONE)] + [
        value_set(n, *[{"valueSet": [f"http://x.org/{n - 1}"]}] * times)
        for n in range(1, depth + 1)
    ]


def parameters(resources: list[Any], **values: str) -> dict[str, Any]:
    listed = [{"name": "tx-resource", "resource": each} for each in resources]
    listed += [{"name": name, "valueString": value} for name, value in values.items()]
    return {"resourceType": "Parameters", "parameter": listed}


def costly(times: int) -> list[Any]:
    """Value sets of all codes, each with a condition that is tried on every code."""
    every = {"system": MESH, "filter": [{"property": "code", "op": "not-in", "value": "D003924"}]}
    return [value_set(0, *[every] * times)]


def refused(answer: Any) -> str:
    assert answer.status_code == 422, answer.text
    (issue,) = answer.json()["issue"]
    assert issue["code"] == "too-costly"
    assert "\n" not in issue["diagnostics"]
    return str(issue["diagnostics"])


@pytest.fixture(scope="module")
def client(starter_client: Any) -> Any:
    return starter_client


class TestNesting:
    @pytest.mark.parametrize("times", [1, 2, 20])
    def test_value_sets_that_include_each_other_again_and_again(self, client, times):
        started = time.process_time()
        body = parameters(nested(48, times), url="http://x.org/48")
        answer = client.post("/fhir/ValueSet/$expand", json=body).json()
        assert [each["code"] for each in answer["expansion"]["contains"]] == ["D003924"]
        code = parameters(nested(48, times), url="http://x.org/48", system=MESH, code="D003924")
        found = client.post("/fhir/ValueSet/$validate-code", json=code).json()["parameter"]
        assert found[0] == {"name": "result", "valueBoolean": True}
        assert time.process_time() - started < 1

    def test_a_value_set_is_left_out_as_often(self, client):
        twice = [{"valueSet": ["http://x.org/48"]}] * 2
        sets = [*nested(48, 2), value_set(99, {"system": MESH}, exclude=twice)]
        body = parameters(sets, url="http://x.org/99", count="1")
        answer = client.post("/fhir/ValueSet/$expand", json=body).json()
        everything = client.get(f"/fhir/ValueSet/$expand?url={MESH}?fhir_vs&count=1").json()
        assert answer["expansion"]["total"] == everything["expansion"]["total"] - 1

    def test_fifty_are_as_deep_as_they_may_be(self, client):
        body = parameters(nested(49), url="http://x.org/49")
        assert client.post("/fhir/ValueSet/$expand", json=body).status_code == 200
        body = parameters(nested(50), url="http://x.org/50")
        line = refused(client.post("/fhir/ValueSet/$expand", json=body))
        assert "nested too deeply" in line

    def test_one_that_includes_itself_is_refused(self, client):
        own = value_set(0, {"valueSet": ["http://x.org/0"]})
        body = parameters([own], url="http://x.org/0")
        answer = client.post("/fhir/ValueSet/$expand", json=body)
        assert answer.status_code == 422
        assert "includes itself" in answer.json()["issue"][0]["diagnostics"]


@pytest.fixture(scope="module")
def limited(starter: Path) -> Any:
    return opened(starter, max_steps=20_000)


class TestWork:
    def test_a_request_of_too_many_steps_is_refused(self, limited):
        sets = [value_set(n, *costly(9)[0]["compose"]["include"]) for n in range(100)]
        sets.append(value_set(100, *({"valueSet": [each["url"]]} for each in sets)))
        body = parameters(sets, url="http://x.org/100")
        assert "too much work" in refused(limited.post("/fhir/ValueSet/$expand", json=body))

    def test_a_search_through_contained_value_sets_is_counted(self, limited):
        contained = [
            *({"resourceType": "ValueSet"} for _ in range(1000)),
            {**costly(1)[0], "id": "a"},
        ]
        own = value_set(0, *[{"valueSet": ["#a"]}] * 30)
        body = parameters([{**own, "contained": contained}], url="http://x.org/0", count="1")
        assert "too much work" in refused(limited.post("/fhir/ValueSet/$expand", json=body))

    def test_the_entries_of_a_batch_are_counted_together(self, limited):
        resource = parameters(costly(1), url="http://x.org/0", count="1")
        entry = {"request": {"method": "POST", "url": "ValueSet/$expand"}, "resource": resource}
        bundle = {"resourceType": "Bundle", "type": "batch", "entry": [entry] * 50}
        answer = limited.post("/fhir", json=bundle)
        statuses = [each["response"]["status"] for each in answer.json()["entry"]]
        assert (statuses[0], statuses[-1]) == ("200", "422")
        assert statuses == sorted(statuses)
        assert (
            limited.get(f"/fhir/CodeSystem/$lookup?system={MESH}&code=D003924").status_code == 200
        )

    @pytest.mark.parametrize(("n", "status"), [(1000, 200), (1001, 422)])
    def test_a_batch_has_at_most_a_thousand_entries(self, client, n, status):
        entry = {"request": {"method": "GET", "url": "ConceptMap"}}
        bundle = {"resourceType": "Bundle", "type": "batch", "entry": [entry] * n}
        answer = client.post("/fhir", json=bundle)
        assert answer.status_code == status
        if status == 422:
            assert "at most 1000" in refused(answer)

    def test_many_parents_are_read_in_time(self, client):
        """Each parent was searched for in a list of all children."""
        concepts = [{"code": "top"}] + [
            {"code": f"{n}", "property": [{"code": "parent", "valueCode": "top"}]}
            for n in range(30_000)
        ]
        system = {"resourceType": "CodeSystem", "url": "http://x.org/s", "concept": concepts}
        body = parameters([system], system="http://x.org/s", codeA="top", codeB="7")
        started = time.process_time()
        answer = client.post("/fhir/CodeSystem/$subsumes", json=body).json()
        assert answer["parameter"] == [{"name": "outcome", "valueCode": "subsumes"}]
        assert time.process_time() - started < 5

    def test_as_many_languages_as_are_spoken(self, client):
        tags = ",".join(f"{a}{b}" for a in "abcde" for b in "abcdefghij")
        address = f"/fhir/ValueSet/$expand?url={MESH}?fhir_vs&count=1&displayLanguage="
        assert client.get(address + tags).status_code == 200
        assert "at most 50 languages" in refused(client.get(f"{address}{tags},zz"))

    def test_a_filter_is_no_text(self, client):
        address = f"/fhir/ValueSet/$expand?url={MESH}?fhir_vs&filter="
        assert client.get(address + "a" * 1000).status_code == 200
        assert "at most 1000" in refused(client.get(address + "a" * 1001))

    @pytest.mark.parametrize(
        ("length", "status"), [(40, 200), (1 << 16, 200), (1 + (1 << 16), 422)]
    )
    def test_a_pattern_is_tried_on_all_values(self, client, length, status):
        pytest.importorskip("pyarrow")
        texts = ["a" * length, "b", "a" * 30_000, "a" * 30_000, "b", "aa"]
        concepts = [{"code": f"{n}", "display": text} for n, text in enumerate(texts)]
        own = {"resourceType": "CodeSystem", "url": "http://x.org/s", "concept": concepts}
        matching = {"property": "display", "op": "regex", "value": "a+"}
        chosen = value_set(0, {"system": "http://x.org/s", "filter": [matching]})
        body = parameters([own, chosen], url="http://x.org/0")
        answer = client.post("/fhir/ValueSet/$expand", json=body)
        assert answer.status_code == status
        if status == 200:
            found = [each["code"] for each in answer.json()["expansion"]["contains"]]
            assert sorted(found) == ["0", "2", "3", "5"]

    def test_processor_time_is_counted_and_steps_are(self):
        def use(seconds: float) -> None:
            until = time.thread_time() + seconds
            while time.thread_time() < until:
                spend(0)

        work = Work(max_steps=1_000_000)
        with work.counted(), pytest.raises(TerminologyError, match="too much work"):
            use(3)
        assert work.spent
        work = Work(max_steps=20_000)
        with work.counted():
            spend(20_000)
            assert not work.spent
            with pytest.raises(TerminologyError, match="too much work"):
                spend()

    def test_work_ends_when_nobody_waits(self):
        with Work(seconds=-1).counted(), pytest.raises(Exception, match="too much work"):
            spend()
        work = Work()
        with work.counted():
            spend()
            work.stop()
            with pytest.raises(Exception, match="too much work"):
                spend()
        spend()  # outside of a request
