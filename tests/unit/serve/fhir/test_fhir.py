"""The FHIR terminology service over HTTP: look-ups, subsumption, expansion, translation."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from generative_store import store_in

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings, strategies as st
from terminology_client import opened

from biograft.errors import ConfigError
from biograft.kb import (
    BuildConfig,
    KnowledgeBase,
    build_store,
    make_value_set,
    read_value_set,
)
from biograft.kb.sources import SourceConfig
from biograft.serve import parse_systems

MESH = "http://www.nlm.nih.gov/research/umls/msh"
HP = "http://human-phenotype-ontology.org"
ICD10 = "http://hl7.org/fhir/sid/icd-10-cm"
SNOMED = "http://snomed.info/sct"
LAB = "http://example.org/lab"
DIABETES, TYPE_2 = "D003920", "D003924"

CONCEPTS = [
    {
        "id": "HP:0001250",
        "name": "Seizure",
        "names": [{"text": "癫痫发作", "language": "zh", "kind": "preferred"}, {"text": "Fit"}],
        "ids": [
            {"id": "HP:0001275", "kind": "alternate"},
            {"id": "SNOMEDCT:91175000", "kind": "alternate"},
            {"id": "ICD10CM:R56.9", "kind": "xref"},
        ],
    },
    {
        "id": "HP:0002197",
        "name": "Generalized-onset seizure",
        "relations": [{"relation": "is-a", "tail": "HP:0001250"}],
        "ids": [{"id": "SNOMEDCT:246545002", "kind": "alternate"}],
    },
    {"id": "LAB:GLU", "name": "Glucose"},
    {"id": "X77", "name": "Sodium"},
]


@pytest.fixture
def client(starter_client: TestClient) -> TestClient:
    return starter_client


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A store with old ids, codes of another vocabulary, cross-references and local ids."""
    return opened(store_in(tmp_path_factory.mktemp("fhir"), CONCEPTS).folder, LAB=LAB)


def checked(answer: Any, status: int = 200) -> dict[str, Any]:
    """Return a resource that has the shape of its kind, by ``fhir.resources`` where installed."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/fhir+json"
    resource: dict[str, Any] = answer.json()
    kind = resource["resourceType"]
    if kind == "Parameters":
        for each in resource["parameter"]:
            kinds = ("part", "resource")
            values = [key for key in each if key.startswith("value") or key in kinds]
            assert "name" in each
            assert len(values) == 1
    try:
        module = importlib.import_module(f"fhir.resources.R4B.{kind.lower()}")
    except ImportError:
        return resource
    getattr(module, kind).model_validate(resource)
    return resource


def get(client: TestClient, path: str, /, **query: Any) -> dict[str, Any]:
    return checked(client.get(f"/fhir/{path}", params=query))


def post(client: TestClient, path: str, /, **values: Any) -> dict[str, Any]:
    """Send Parameters; a key ``name__valueType`` gives the type of a value."""
    parameter = []
    for key, value in values.items():
        name, _, kind = key.partition("__")
        parameter.append({"name": name, kind or "valueString": value})
    body = {"resourceType": "Parameters", "parameter": parameter}
    return checked(client.post(f"/fhir/{path}", json=body))


def refused(client: TestClient, status: int, code: str, path: str, /, **query: Any) -> None:
    outcome = checked(client.get(f"/fhir/{path}", params=query), status)
    assert [each["code"] for each in outcome["issue"]] == [code]


def values(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that have one value."""
    found = {}
    for each in parameters["parameter"]:
        keys = [key for key in each if key.startswith("value")]
        if keys:
            found[each["name"]] = each[keys[0]]
    return found


def parts(parameters: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [
        values({"parameter": each["part"]})
        for each in parameters["parameter"]
        if each["name"] == name
    ]


def properties(parameters: dict[str, Any], code: str) -> list[Any]:
    return [each["value"] for each in parts(parameters, "property") if each["code"] == code]


def codes(value_set: dict[str, Any]) -> list[str]:
    return [each["code"] for each in value_set["expansion"].get("contains", [])]


class TestSelfDescription:
    def test_capabilities(self, client):
        statement = get(client, "metadata")
        assert statement["fhirVersion"] == "4.0.1"
        offered = {
            f"{each['type']}/${operation['name']}"
            for each in statement["rest"][0]["resource"]
            for operation in each["operation"]
        }
        for path in offered:  # each is there: it asks for what is missing
            assert client.get(f"/fhir/{path}").status_code == 400
        assert "ValueSet/$expand" in offered

    def test_what_is_not_there_is_404(self, client):
        refused(client, 404, "not-found", "CodeSystem/none")
        refused(client, 404, "not-supported", "Patient/1")
        refused(client, 406, "not-supported", "metadata", _format="application/fhir+xml")


class TestLookup:
    def test_names_in_a_language(self, client):
        asked = {"system": MESH, "code": TYPE_2}
        found = get(client, "CodeSystem/$lookup", **asked, displayLanguage="zh-CN")
        assert values(found)["display"] == "2型糖尿病"
        found = get(client, "CodeSystem/$lookup", **asked, displayLanguage="fr")
        assert values(found)["display"] == "Diabetes Mellitus, Type 2"
        found = get(client, "CodeSystem/$lookup", **asked, property="lang.zh")
        assert {each["language"] for each in parts(found, "designation")} == {"zh"}

    def test_post_form_and_query_give_the_same(self, client):
        path = "CodeSystem/$lookup"
        expected = get(client, path, system=MESH, code=TYPE_2)
        coding = {"system": MESH, "code": TYPE_2}
        assert post(client, path, coding__valueCoding=coding) == expected
        assert post(client, path, system__valueUri=MESH, code__valueCode=TYPE_2) == expected
        assert checked(client.post(f"/fhir/{path}", data=coding)) == expected
        assert get(client, path, coding=f"{MESH}|{TYPE_2}") == expected

    @pytest.mark.parametrize("code", ["HP:0001250", "0001250", "hp:0001250"])
    def test_codes_have_a_prefix_or_none(self, small, code):
        found = get(small, "CodeSystem/$lookup", system=HP, code=code)
        assert values(found)["display"] == "Seizure"

    def test_an_old_id_is_inactive(self, small):
        found = get(small, "CodeSystem/$lookup", system=HP, code="HP:0001275")
        assert properties(found, "inactive") == [True]

    def test_a_code_of_another_vocabulary_has_parents_in_it(self, small):
        found = get(small, "CodeSystem/$lookup", system=SNOMED, code="246545002")
        assert properties(found, "parent") == ["91175000"]
        assert properties(found, "inactive") == [False]

    def test_local_code_systems(self, small):
        found = get(small, "CodeSystem/$lookup", system=LAB, code="GLU")
        assert values(found)["display"] == "Glucose"
        found = get(small, "CodeSystem/$lookup", system="urn:biograft:kb", code="X77")
        assert values(found)["display"] == "Sodium"


class TestValidateCode:
    def test_one_of_several_codings_is_enough(self, client):
        concept = {
            "coding": [{"system": "http://x.org", "code": "1"}, {"system": MESH, "code": TYPE_2}]
        }
        path = "CodeSystem/$validate-code"
        assert values(post(client, path, codeableConcept__valueCodeableConcept=concept))["result"]
        concept["coding"].pop()
        found = values(post(client, path, codeableConcept__valueCodeableConcept=concept))
        assert found["result"] is False


class TestSubsumes:
    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            (DIABETES, TYPE_2, "subsumes"),
            (TYPE_2, DIABETES, "subsumed-by"),
            (TYPE_2, TYPE_2, "equivalent"),
            (TYPE_2, "D001249", "not-subsumed"),
        ],
    )
    def test_in_both_directions(self, client, first, second, expected):
        asked = {"codeA": first, "codeB": second}
        found = get(client, "CodeSystem/$subsumes", system=MESH, **asked)
        assert values(found) == {"outcome": expected}
        assert get(client, "CodeSystem/mesh/$subsumes", **asked) == found
        codings = {
            f"coding{which}__valueCoding": {"system": MESH, "code": code}
            for which, code in (("A", first), ("B", second))
        }
        assert post(client, "CodeSystem/$subsumes", **codings) == found


class TestExpand:
    def test_pages_add_up(self, client):
        url = f"{MESH}?fhir_vs"
        whole = codes(get(client, "ValueSet/$expand", url=url))
        assert len(whole) == len(set(whole)) == 863
        paged = []
        for offset in range(0, 1000, 250):
            page = get(client, "ValueSet/$expand", url=url, offset=offset, count=250)
            assert page["expansion"]["total"] == 863
            paged += codes(page)
        assert paged == whole
        assert not codes(get(client, "ValueSet/$expand", url=url, count=0))

    def test_a_filter_is_what_somebody_types(self, client):
        found = get(
            client, "ValueSet/$expand", url=f"{MESH}?fhir_vs", filter="type 2 diab", count=1
        )
        assert codes(found) == [TYPE_2]
        below = f"{MESH}?fhir_vs=isa/{DIABETES}"
        found = get(client, "ValueSet/$expand", url=below, filter="diab")
        assert set(codes(found)) == {DIABETES, "D003922", "D003924", "D016640"}
        assert not codes(get(client, "ValueSet/$expand", url=below, filter="asthma"))

    def test_names_and_languages(self, client):
        asked = {"url": f"{MESH}?fhir_vs=isa/{TYPE_2}", "displayLanguage": "zh"}
        (found,) = get(client, "ValueSet/$expand", **asked)["expansion"]["contains"]
        assert found["display"] == "2型糖尿病"
        assert "designation" not in found
        named = get(client, "ValueSet/$expand", **asked, includeDesignations="true")
        listed = named["expansion"]["contains"][0]["designation"]
        others = {each["value"] for each in listed}
        assert {"T2DM", "Diabetes Mellitus, Type 2"} <= others
        assert "2型糖尿病" not in others  # that is the display

    def test_codes_of_another_vocabulary(self, small):
        found = get(small, "ValueSet/$expand", url=f"{SNOMED}?fhir_vs")
        assert codes(found) == ["91175000", "246545002"]
        found = get(small, "ValueSet/$expand", url=f"{SNOMED}?fhir_vs=isa/91175000")
        assert codes(found) == ["91175000", "246545002"]
        assert codes(get(small, "ValueSet/$expand", url=f"{LAB}?fhir_vs")) == ["GLU"]

    @pytest.mark.parametrize(
        ("include", "exclude", "expected"),
        [
            ([{"filter": ["concept", "is-a", DIABETES]}], [], "D003920 D003922 D003924 D016640"),
            ([{"filter": ["concept", "descendent-of", DIABETES]}], [], "D003922 D003924 D016640"),
            ([{"filter": ["parent", "=", DIABETES]}], [], "D003922 D003924 D016640"),
            ([{"filter": ["code", "=", TYPE_2]}], [], TYPE_2),
            ([{"concept": [TYPE_2, "D1", DIABETES]}], [], "D003924 D003920"),
            ([{"concept": [TYPE_2]}, {"concept": [DIABETES, TYPE_2]}], [], "D003924 D003920"),
            (
                [{"filter": ["concept", "is-a", DIABETES]}],
                [{"concept": [TYPE_2]}],
                "D003920 D003922 D016640",
            ),
            (
                [{"filter": ["concept", "is-a", DIABETES]}],
                [{"filter": ["concept", "descendent-of", DIABETES]}],
                DIABETES,
            ),
        ],
    )
    def test_composed_value_sets(self, client, include, exclude, expected):
        def composed(given: dict[str, Any]) -> dict[str, Any]:
            made: dict[str, Any] = {"system": MESH}
            if "concept" in given:
                made["concept"] = [{"code": code} for code in given["concept"]]
            if "filter" in given:
                made["filter"] = [
                    dict(zip(("property", "op", "value"), given["filter"], strict=True))
                ]
            return made

        compose: dict[str, Any] = {"include": [composed(each) for each in include]}
        if exclude:
            compose["exclude"] = [composed(each) for each in exclude]
        value_set = {"resourceType": "ValueSet", "status": "active", "compose": compose}
        found = post(client, "ValueSet/$expand", valueSet__resource=value_set)
        assert codes(found) == expected.split()
        assert codes(checked(client.post("/fhir/ValueSet/$expand", json=value_set))) == codes(found)
        for code in (TYPE_2, DIABETES):
            asked = {"valueSet__resource": value_set, "system": MESH, "code": code}
            member = values(post(client, "ValueSet/$validate-code", **asked))
            assert member["result"] is (code in codes(found))

    def test_the_service_and_the_commands_find_the_same_members(self, client, starter):
        kb = KnowledgeBase.open(starter)
        for expression in (f"<< {DIABETES}", f"<{DIABETES} MINUS D003924", f">{DIABETES}"):
            wanted = read_value_set(kb, expression).ids
            resource = make_value_set(kb, expression)
            found = post(client, "ValueSet/$expand", valueSet__resource=resource)
            assert sorted(codes(found)) == sorted(wanted)
            url = f"{MESH}?fhir_vs=ecl/{expression}"
            assert sorted(codes(get(client, "ValueSet/$expand", url=url))) == sorted(wanted)

    def test_refusals(self, client, monkeypatch):
        path, whole = "ValueSet/$expand", f"{MESH}?fhir_vs"
        refused(client, 422, "not-supported", path, url=f"{MESH}?fhir_vs=refset/{DIABETES}")
        refused(client, 404, "not-found", path, url="http://example.org/vs")
        refused(client, 404, "not-found", path, url=f"{MESH}?fhir_vs=isa/D1")
        refused(client, 400, "required", path)
        refused(client, 400, "invalid", path, url=whole, count=-1)
        refused(client, 422, "not-supported", path, url=whole, context="http://example.org")
        monkeypatch.setattr("biograft.serve.fhir.expansion.MAX_EXPANSION", 100)
        refused(client, 422, "too-costly", path, url=whole)
        refused(client, 422, "too-costly", path, url=whole, count=101)
        assert len(codes(get(client, path, url=whole, count=100))) == 100


class TestTranslate:
    @staticmethod
    def matches(found: dict[str, Any]) -> list[tuple[str, str, str]]:
        return [
            (each["equivalence"], each["concept"]["system"], each["concept"]["code"])
            for each in parts(found, "match")
        ]

    def test_ids_of_a_concept_are_equivalent_and_references_related(self, small):
        path = "ConceptMap/$translate"
        found = get(small, path, system=HP, code="HP:0001250")
        assert values(found)["result"] is True
        expected = [("equivalent", SNOMED, "91175000"), ("relatedto", ICD10, "R56.9")]
        assert self.matches(found) == expected
        found = get(small, path, system=HP, code="HP:0001250", targetsystem=ICD10)
        assert self.matches(found) == expected[1:]
        found = get(small, path, system=HP, code="HP:0001250", target=f"{SNOMED}?fhir_vs")
        assert self.matches(found) == expected[:1]

    def test_back(self, small):
        path = "ConceptMap/$translate"
        found = get(small, path, system=SNOMED, code="91175000", targetsystem=HP)
        assert self.matches(found)[0] == ("equivalent", HP, "HP:0001250")
        found = get(small, path, system=ICD10, code="R56.9")
        assert self.matches(found) == [("relatedto", HP, "HP:0001250")]
        found = get(small, path, system=HP, code="HP:0001275", targetsystem=HP)
        assert self.matches(found) == [("equal", HP, "HP:0001250")]

    def test_concepts_that_are_said_to_be_the_same(self, client):
        path, local = "ConceptMap/$translate", "urn:biograft:kb"
        found = get(client, path, system=local, code="BG:0003", targetsystem=MESH)
        assert self.matches(found) == [("relatedto", MESH, DIABETES)]
        found = get(client, path, system=MESH, code=DIABETES)
        assert ("relatedto", local, "BG:0003") in self.matches(found)


class TestSystemOption:
    def test_names_and_uris(self):
        assert parse_systems(["LAB=http://x.org/a=b"]) == {"LAB": "http://x.org/a=b"}

    @pytest.mark.parametrize("given", [["LAB"], ["=http://x"], ["LAB=x y"], ["A=urn:x", "B=urn:x"]])
    def test_refusals(self, given):
        with pytest.raises(ConfigError, match="--system"):
            parse_systems(given)

    def test_a_source_of_names_has_a_uri(self, tmp_path):
        table = tmp_path / "wards.csv"
        table.write_text("id,name\n1,Ward one\n2,Ward two\n")
        build_store(BuildConfig(sources=(SourceConfig(path=table),)), tmp_path / "KB")
        source = KnowledgeBase.open(tmp_path / "KB").sources[0]
        client = opened(tmp_path / "KB", **{source: LAB})
        assert codes(get(client, "ValueSet/$expand", url=f"{LAB}?fhir_vs")) == ["1", "2"]


PATHS = (
    *("metadata", "CodeSystem", "CodeSystem/mesh", "CodeSystem/mesh/$subsumes"),
    *("CodeSystem/$lookup", "CodeSystem/$validate-code", "CodeSystem/$subsumes"),
    *("ValueSet/$expand", "ValueSet/$validate-code", "ConceptMap/$translate"),
)
NAMES = st.sampled_from(
    "url system code coding codeableConcept codeA codeB codingA codingB display property filter "
    "count offset includeDesignations displayLanguage targetsystem target valueSet mode".split()
)
TEXTS = st.one_of(
    st.sampled_from(
        [MESH, f"{MESH}?fhir_vs", f"{MESH}?fhir_vs=isa/{TYPE_2}", TYPE_2, "-", "*", ""]
    ),
    st.text(max_size=8),
    st.integers().map(str),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                "system code display coding compose include exclude concept filter property op "
                "value valueSet resourceType".split()
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
VALUE_SETS = st.builds(
    lambda include, exclude: {
        "resourceType": "ValueSet",
        "compose": {"include": include, "exclude": exclude},
    },
    st.lists(ANYTHING, max_size=2) | ANYTHING,
    st.lists(ANYTHING, max_size=2) | ANYTHING,
)
FUZZ = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class TestOddRequests:
    @FUZZ
    @given(path=st.sampled_from(PATHS), query=st.lists(st.tuples(NAMES, TEXTS), max_size=4))
    def test_no_query_fails(self, client, path, query):
        pairs = [(name, text.encode("utf-8", "replace").decode()) for name, text in query]
        answer = client.get(f"/fhir/{path}", params=pairs)
        assert answer.status_code in (200, 400, 404, 422)
        assert "resourceType" in answer.json()

    @FUZZ
    @given(
        path=st.sampled_from([path for path in PATHS if "$" in path]),
        given=st.lists(
            st.tuples(NAMES, st.sampled_from(["valueCoding", "resource"]), ANYTHING | VALUE_SETS),
            max_size=4,
        ),
    )
    def test_no_parameters_fail(self, client, path, given):
        parameter = [{"name": name, key: value} for name, key, value in given]
        body = json.dumps({"resourceType": "Parameters", "parameter": parameter})
        answer = client.post(f"/fhir/{path}", content=body)
        assert answer.status_code in (200, 400, 404, 422)
        assert "resourceType" in answer.json()

    @pytest.mark.parametrize(
        "body", [b"[" * 5000, b"{", b"\xff", b"[]", b'{"resourceType": "Patient"}', b"3"]
    )
    def test_what_is_no_resource_is_400(self, client, body):
        outcome = checked(client.post("/fhir/ValueSet/$expand", content=body), 400)
        assert outcome["issue"][0]["code"] == "invalid"
