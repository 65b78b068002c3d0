"""Code systems and value sets that a request brings (``tx-resource``), and batches."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

MESH = "http://www.nlm.nih.gov/research/umls/msh"
URL = "http://example.org/colours"
ALL = "http://example.org/colours-all"
R5 = "http://hl7.org/fhir/5.0/StructureDefinition/extension-ValueSet.expansion"
COLOURS: dict[str, Any] = {
    "resourceType": "CodeSystem",
    "url": URL,
    "version": "1.2.0",
    "name": "Colours",
    "status": "active",
    "language": "en",
    "caseSensitive": True,
    "valueSet": ALL,
    "content": "complete",
    "property": [
        {"code": "status", "uri": "http://hl7.org/fhir/concept-properties#status", "type": "code"},
        {"code": "notSelectable", "type": "boolean"},
        {"code": "warm", "type": "boolean"},
    ],
    "concept": [
        {
            "code": "red",
            "display": "Red",
            "definition": "As blood",
            "designation": [{"language": "de", "value": "Rot"}],
            "property": [{"code": "warm", "valueBoolean": True}],
            "concept": [
                {"code": "crimson", "display": "Crimson"},
                {
                    "code": "minium",
                    "display": "Minium",
                    "property": [{"code": "status", "valueCode": "retired"}],
                },
            ],
        },
        {
            "code": "cold",
            "display": "Cold colours",
            "property": [{"code": "notSelectable", "valueBoolean": True}],
            "concept": [{"code": "blue", "display": "Blue", "definition": "As the sky"}],
        },
    ],
}


def value_set(*include: dict[str, Any], exclude: Any = (), **given: Any) -> dict[str, Any]:
    compose: dict[str, Any] = {"include": [{"system": URL, **each} for each in include]}
    if exclude:
        compose["exclude"] = [{"system": URL, **each} for each in exclude]
    return {"resourceType": "ValueSet", "status": "active", "compose": compose, **given}


def ask(client: Any, path: str, *resources: Any, status: int = 200, **values: Any) -> Any:
    """Send Parameters with ``tx-resource``; a key ``name__valueType`` gives the type of a value."""
    parameter = [{"name": "tx-resource", "resource": each} for each in resources]
    for key, value in values.items():
        name, _, kind = key.partition("__")
        parameter.append({"name": name.replace("_", "-"), kind or "valueString": value})
    body = {"resourceType": "Parameters", "parameter": parameter}
    answer = client.post(f"/fhir/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def flat(contains: list[Any]) -> list[str]:
    return [code for each in contains for code in [each["code"], *flat(each.get("contains", []))]]


def codes(expanded: Any) -> list[str]:
    return flat(expanded["expansion"].get("contains", []))


def values(parameters: Any) -> dict[str, Any]:
    found = {}
    for each in parameters["parameter"]:
        found[each["name"]] = next(v for k, v in each.items() if k != "name")
    return found


def kinds(parameters: Any) -> list[tuple[str, str, str]]:
    """Return severity, type and place of each issue."""
    issues = values(parameters).get("issues", {"issue": []})["issue"]
    return [
        (i["severity"], i["details"]["coding"][0]["code"], i.get("expression", [""])[0])
        for i in issues
    ]


@pytest.fixture
def client(starter_client: Any) -> Any:
    return starter_client


class TestExpand:
    def test_all_codes_stand_below_their_parents(self, client):
        found = ask(client, "ValueSet/$expand", COLOURS, url=ALL)
        top = found["expansion"]["contains"]
        assert [each["code"] for each in top] == ["red", "cold"]
        assert [each["code"] for each in top[0]["contains"]] == ["crimson", "minium"]
        assert top[1]["abstract"] is True
        assert top[0]["contains"][1]["inactive"] is True
        assert found["expansion"]["total"] == 5
        used = [p for p in found["expansion"]["parameter"] if p["name"] == "used-codesystem"]
        assert used == [{"name": "used-codesystem", "valueUri": f"{URL}|1.2.0"}]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"excludeNested__valueBoolean": True}, "red crimson minium cold blue"),
            ({"activeOnly__valueBoolean": True}, "red crimson cold blue"),
            ({"count__valueInteger": 2, "offset__valueInteger": 1}, "crimson minium"),
            ({"filter": "bl"}, "blue"),
        ],
    )
    def test_pages_and_choices(self, client, given, expected):
        found = ask(client, "ValueSet/$expand", COLOURS, url=ALL, **given)
        assert codes(found) == expected.split()
        echoed = {each["name"] for each in found["expansion"]["parameter"]}
        assert {key.partition("__")[0] for key in given} <= echoed

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ([("concept", "is-a", "red")], "red crimson minium"),
            ([("concept", "descendent-of", "red")], "crimson minium"),
            ([("concept", "is-not-a", "red")], "cold blue"),
            ([("concept", "child-of", "cold")], "blue"),
            ([("concept", "generalizes", "blue")], "blue cold"),
            ([("concept", "in", "red,blue")], "red blue"),
            ([("concept", "not-in", "red,blue")], "crimson minium cold"),
            ([("code", "regex", "(c|b).*")], "crimson cold blue"),
            ([("display", "regex", ".*colours")], "cold"),
            ([("warm", "=", "true")], "red"),
            ([("warm", "exists", "false")], "crimson minium cold blue"),
            ([("status", "in", "retired,other")], "minium"),
            ([("concept", "is-a", "red"), ("concept", "regex", ".*m.*")], "crimson minium"),
        ],
    )
    def test_filters(self, client, filters, expected):
        listed = [dict(zip(("property", "op", "value"), f, strict=True)) for f in filters]
        composed = value_set({"filter": listed}, url="http://example.org/vs")
        asked = {"url": "http://example.org/vs", "excludeNested__valueBoolean": True}
        found = ask(client, "ValueSet/$expand", COLOURS, composed, **asked)
        assert sorted(codes(found)) == sorted(expected.split())
        for code in ("red", "blue", "minium"):
            asked = {"url": "http://example.org/vs", "system": URL, "code": code}
            member = values(ask(client, "ValueSet/$validate-code", COLOURS, composed, **asked))
            assert member["result"] is (code in expected.split())

    def test_a_text_is_searched_in_the_store_and_in_all_systems_of_the_request(self, client):
        other = "http://example.org/temperatures"
        degrees = [{"code": code, "display": f"Cold {code}"} for code in ("1", "2")]
        supplied = {**COLOURS, "url": other, "valueSet": f"{other}-all", "concept": degrees}
        composed = value_set({}, url="http://x.org/1")
        composed["compose"]["include"] += [
            {"system": other},
            {"system": MESH, "concept": [{"code": "D003139"}, {"code": "D003920"}]},
        ]
        asked = {"url": "http://x.org/1", "filter": "cold"}
        found = ask(client, "ValueSet/$expand", COLOURS, supplied, composed, **asked)
        assert sorted(codes(found)) == ["1", "2", "D003139", "cold"]
        assert found["expansion"]["total"] == 4

    def test_value_sets_include_others(self, client):
        first = value_set({"concept": [{"code": "red", "display": "Rouge"}]}, url="http://x.org/1")
        second = value_set(exclude=[{"concept": [{"code": "blue"}]}], url="http://x.org/2")
        second["compose"]["include"] = [
            {"valueSet": ["http://x.org/1"]},
            {"valueSet": [ALL]},
            {"system": MESH, "concept": [{"code": "D003920"}]},
        ]
        found = ask(client, "ValueSet/$expand", COLOURS, first, second, url="http://x.org/2")
        assert codes(found) == ["red", "crimson", "minium", "cold", "D003920"]
        assert found["expansion"]["contains"][0]["display"] == "Rouge"
        first["compose"]["include"] = [{"valueSet": ["http://x.org/2"]}]
        outcome = ask(
            client, "ValueSet/$expand", COLOURS, first, second, url="http://x.org/2", status=422
        )
        assert "includes itself" in outcome["issue"][0]["details"]["text"]

    def test_codes_out_of_use_are_left_out_where_the_value_set_says_so(self, client):
        composed = value_set({}, url="http://x.org/1")
        composed["compose"]["inactive"] = False
        asked = {"url": "http://x.org/1", "excludeNested__valueBoolean": True}
        assert "minium" not in codes(ask(client, "ValueSet/$expand", COLOURS, composed, **asked))
        asked = {"url": "http://x.org/1", "system": URL, "code": "minium"}
        found = ask(client, "ValueSet/$validate-code", COLOURS, composed, **asked)
        assert values(found)["result"] is False

    def test_languages_and_properties(self, client):
        asked = {"url": ALL, "count__valueInteger": 1, "includeDesignations__valueBoolean": True}
        found = ask(
            client,
            "ValueSet/$expand",
            COLOURS,
            **asked,
            displayLanguage="de",
            property="definition",
        )
        (red,) = found["expansion"]["contains"]
        assert red["display"] == "Rot"
        assert {each["value"] for each in red["designation"]} == {"Red"}  # the others
        assert red["extension"] == [
            {
                "url": f"{R5}.contains.property",
                "extension": [
                    {"url": "code", "valueCode": "definition"},
                    {"url": "value", "valueString": "As blood"},
                ],
            }
        ]
        asked = {"url": ALL, "excludeNested__valueBoolean": True, "displayLanguage": "de, *;q=0"}
        whole = ask(client, "ValueSet/$expand", COLOURS, **asked)["expansion"]["contains"]
        assert [each.get("display") for each in whole] == ["Rot", None, None, None, None]

    def test_a_version_is_chosen(self, client):
        older = deepcopy(COLOURS) | {"version": "1.1.0", "concept": [{"code": "grey"}]}
        composed = value_set({}, url="http://x.org/1")
        path, asked = "ValueSet/$expand", {"url": "http://x.org/1", "count__valueInteger": 9}
        both = (COLOURS, older, composed)
        assert len(codes(ask(client, path, *both, **asked))) == 5
        for name in ("system_version", "force_system_version"):
            rule = {f"{name}__valueUri": f"{URL}|1.1.0"}
            assert codes(ask(client, path, *both, **asked, **rule)) == ["grey"]
        composed["compose"]["include"][0]["version"] = "3.0.0"
        outcome = ask(client, path, *both, **asked, status=404)
        assert "1.1.0 or 1.2.0" in outcome["issue"][0]["details"]["text"]

    def test_a_supplement_adds_names(self, client):
        french = {
            "resourceType": "CodeSystem",
            "url": "http://x.org/french",
            "content": "supplement",
            "supplements": URL,
            "status": "active",
            "concept": [{"code": "red", "designation": [{"language": "fr", "value": "Rouge"}]}],
        }
        asked = {"url": ALL, "count__valueInteger": 1, "displayLanguage": "fr"}
        found = ask(client, "ValueSet/$expand", COLOURS, french, **asked)
        assert found["expansion"]["contains"][0]["display"] == "Red"  # not asked for
        used = {"useSupplement": "http://x.org/french"}
        found = ask(client, "ValueSet/$expand", COLOURS, french, **asked, **used)
        assert found["expansion"]["contains"][0]["display"] == "Rouge"
        outcome = ask(client, "ValueSet/$expand", COLOURS, **asked, **used, status=404)
        assert "Required supplement not found" in outcome["issue"][0]["details"]["text"]
        asked = {"url": f"{MESH}?fhir_vs", **used}
        outcome = ask(client, "ValueSet/$expand", french, status=422, **asked)
        assert outcome["issue"][0]["code"] == "not-supported"


class TestValidateCode:
    @pytest.mark.parametrize(
        ("coding", "result", "expected"),
        [
            ({"code": "red", "display": "red"}, True, []),
            ({"code": "red", "display": "Rot"}, True, []),
            (
                {"code": "red", "display": "Green"},
                False,
                [("error", "invalid-display", "Coding.display")],
            ),
            (
                {"code": "RED"},
                False,
                [("error", "not-in-vs", "Coding.code"), ("error", "invalid-code", "Coding.code")],
            ),
            ({"code": "minium"}, True, [("warning", "code-comment", "Coding")]),
            (
                {"code": "red", "system": "http://x.org"},
                False,
                [("error", "not-in-vs", "Coding.code"), ("error", "not-found", "Coding.system")],
            ),
            (
                {"code": "red", "version": "9"},
                False,
                [
                    ("warning", "vs-invalid", "Coding.version"),
                    ("error", "not-found", "Coding.system"),
                ],
            ),
        ],
    )
    def test_what_is_wrong_is_said_where_it_is(self, client, coding, result, expected):
        asked = {"url": ALL, "coding__valueCoding": {"system": URL, **coding}}
        found = ask(client, "ValueSet/$validate-code", COLOURS, **asked)
        assert values(found)["result"] is result
        assert kinds(found) == expected
        assert ("message" in values(found)) is bool(expected)
        unknown = {"x-caused-by-unknown-system", "x-unknown-system"}.intersection(values(found))
        assert bool(unknown) is any(kind == "not-found" for _, kind, _ in expected)

    def test_a_display_may_be_accepted_with_a_warning(self, client):
        asked = {"url": ALL, "coding__valueCoding": {"system": URL, "code": "red", "display": "X"}}
        found = ask(
            client,
            "ValueSet/$validate-code",
            COLOURS,
            **asked,
            lenient_display_validation__valueBoolean=True,
        )
        assert values(found)["result"] is True
        assert kinds(found) == [("warning", "invalid-display", "Coding.display")]
        assert values(found)["display"] == "Red"

    def test_a_system_is_inferred(self, client):
        asked = {"url": ALL, "inferSystem__valueBoolean": True}
        found = values(ask(client, "ValueSet/$validate-code", COLOURS, **asked, code="red"))
        assert (found["result"], found["system"], found["version"]) == (True, URL, "1.2.0")
        both = value_set({}, url="http://x.org/1")
        both["compose"]["include"].append({"system": "http://x.org/b"})
        other = deepcopy(COLOURS) | {"url": "http://x.org/b"}
        asked["url"] = "http://x.org/1"
        found = ask(client, "ValueSet/$validate-code", COLOURS, other, both, **asked, code="red")
        assert values(found)["result"] is False
        assert ("error", "cannot-infer", "code") in kinds(found)

    def test_one_of_several_codings_is_enough(self, client):
        listed = [{"system": MESH, "code": "D003920"}, {"system": URL, "code": "blue"}]
        asked = {"url": ALL, "codeableConcept__valueCodeableConcept": {"coding": listed}}
        found = ask(client, "ValueSet/$validate-code", COLOURS, **asked)
        assert (values(found)["result"], values(found)["code"]) == (True, "blue")
        assert kinds(found) == [
            ("information", "this-code-not-in-vs", "CodeableConcept.coding[0].code")
        ]
        listed.pop()
        found = ask(client, "ValueSet/$validate-code", COLOURS, **asked)
        assert values(found)["result"] is False
        assert ("error", "not-in-vs", "") in kinds(found)

    def test_case_and_fragments(self, client):
        system = deepcopy(COLOURS) | {"caseSensitive": False}
        asked = {"url": URL, "code": "RED"}
        found = values(ask(client, "CodeSystem/$validate-code", system, **asked))
        assert (found["result"], found["normalized-code"]) == (True, "red")
        system = deepcopy(COLOURS) | {"content": "fragment"}
        found = ask(client, "CodeSystem/$validate-code", system, **asked)
        assert values(found)["result"] is True
        assert kinds(found) == [("warning", "invalid-code", "code")]
        system["content"] = "not-present"
        asked["url"] = ALL
        ask(client, "ValueSet/$validate-code", system, value_set({}, url=ALL), status=404, **asked)

    def test_abstract_codes(self, client):
        asked = {"url": ALL, "system": URL, "code": "cold"}
        found = ask(client, "ValueSet/$validate-code", COLOURS, **asked)
        assert values(found)["result"] is True
        asked["abstract__valueBoolean"] = False
        found = ask(client, "ValueSet/$validate-code", COLOURS, **asked)
        assert values(found)["result"] is False
        assert ("error", "code-rule", "code") in kinds(found)

    def test_many_at_once(self, client):
        def one(code: str) -> Any:
            parameter = [
                {"name": "url", "valueUri": ALL},
                {"name": "coding", "valueCoding": {"system": URL, "code": code}},
            ]
            return {"resourceType": "Parameters", "parameter": parameter}

        body = {
            "resourceType": "Parameters",
            "parameter": [
                {"name": "tx-resource", "resource": COLOURS},
                *({"name": "validation", "resource": one(code)} for code in ("red", "pink")),
            ],
        }
        answer = client.post("/fhir/ValueSet/$batch-validate-code", json=body).json()
        results = [values(each["resource"])["result"] for each in answer["parameter"]]
        assert results == [True, False]


class TestLookupAndSubsumes:
    def test_a_code_of_the_request_is_looked_up(self, client):
        asked = {"system": URL, "code": "red"}
        found = ask(client, "CodeSystem/$lookup", COLOURS, **asked)
        told = values(found)
        assert (told["name"], told["version"], told["display"]) == ("Colours", "1.2.0", "Red")
        assert told["definition"] == "As blood"

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ("red", "crimson", "subsumes"),
            ("blue", "cold", "subsumed-by"),
            ("red", "blue", "not-subsumed"),
            ("red", "red", "equivalent"),
        ],
    )
    def test_subsumption(self, client, first, second, expected):
        asked = {"system": URL, "codeA": first, "codeB": second}
        assert values(ask(client, "CodeSystem/$subsumes", COLOURS, **asked))["outcome"] == expected


class TestBatchAndForms:
    def test_a_bundle_of_requests_is_answered_one_by_one(self, client):
        lookup = f"CodeSystem/$lookup?system={MESH}&code="
        entry = [
            {"request": {"method": "GET", "url": f"{lookup}D003920"}},
            {"request": {"method": "GET", "url": f"/{lookup}D1"}},
            {
                "request": {"method": "POST", "url": "ValueSet/$expand"},
                "resource": value_set({"system": MESH, "concept": [{"code": "D003920"}]}),
            },
            {"request": {"method": "GET", "url": "Patient/1"}},
            {},
        ]
        body = {"resourceType": "Bundle", "type": "batch", "entry": entry}
        answer = client.post("/fhir", json=body).json()
        assert answer["type"] == "batch-response"
        statuses = [each["response"]["status"] for each in answer["entry"]]
        assert statuses == ["200", "404", "200", "404", "400"]
        assert codes(answer["entry"][2]["resource"]) == ["D003920"]
        body["type"] = "transaction"
        assert client.post("/fhir", json=body).status_code == 422

    def test_xml_is_refused(self, client):
        path = "/fhir/metadata"
        assert client.get(path, headers={"accept": "application/fhir+xml"}).status_code == 406
        assert client.get(path, headers={"accept": "text/html, application/xml"}).status_code == 200
        content = {"content-type": "application/fhir+xml"}
        answer = client.post("/fhir/ValueSet/$expand", content="<a/>", headers=content)
        assert answer.status_code == 415
        assert answer.json()["resourceType"] == "OperationOutcome"

    def test_value_sets_of_all_codes_are_read(self, client):
        bundle = client.get("/fhir/ValueSet", params={"url": f"{MESH}?fhir_vs"}).json()
        (resource,) = [each["resource"] for each in bundle["entry"]]
        assert client.get(f"/fhir/ValueSet/{resource['id']}").json() == resource
        expanded = client.get(f"/fhir/ValueSet/{resource['id']}/$expand?count=3").json()
        assert (expanded["url"], len(codes(expanded))) == (f"{MESH}?fhir_vs", 3)
        assert client.get("/fhir/ConceptMap").json()["total"] == 0
        assert client.put("/fhir/ValueSet/x", json=resource).status_code in (404, 405)

    def test_the_header_chooses_the_language(self, client):
        asked = {"system": MESH, "code": "D003924"}
        found = client.get(
            "/fhir/CodeSystem/$lookup", params=asked, headers={"accept-language": "zh-CN, en;q=0.5"}
        ).json()
        assert values(found)["display"] == "2型糖尿病"


STRUCTURE = "http://hl7.org/fhir/StructureDefinition/"
SUPPLEMENT: dict[str, Any] = {
    "resourceType": "CodeSystem",
    "url": "http://example.org/more",
    "version": "2",
    "content": "supplement",
    "supplements": URL,
    "property": [{"code": "wave", "uri": "http://example.org/wave"}],
    "concept": [
        {
            "code": "blue",
            "designation": [{"language": "fr", "value": "Bleu"}],
            "extension": [{"url": f"{STRUCTURE}codesystem-label", "valueString": "b)"}],
            "property": [{"code": "wave", "valueString": "470 nm"}],
        }
    ],
}


class TestDetails:
    """What HL7's tests want to be noted, with a code system of our own."""

    @staticmethod
    def check(client, resources=(), **given):
        answer = ask(client, "CodeSystem/$validate-code", COLOURS, *resources, url=URL, **given)
        return values(answer)["result"], kinds(answer), values(answer).get("message")

    @pytest.mark.parametrize("shown", ["Cold  colours", " Cold colours", "Cold colours\t"])
    def test_more_white_space_in_a_display_is_an_error(self, client, shown):
        right, found, _ = self.check(client, code="cold", display=shown)
        assert (right, found) == (False, [("error", "invalid-display", "display")])
        right, found, _ = self.check(client, code="cold", display="cold Colours")
        assert (right, found) == (True, [])

    def test_a_display_in_the_default_language_only_is_noted(self, client):
        right, found, said = self.check(client, code="blue", display="Blue", displayLanguage="de")
        assert (right, found) == (True, [("information", "invalid-display", "display")])
        assert "language(s) 'de'" in said
        assert self.check(client, code="red", display="Rot", displayLanguage="de")[1] == []

    def test_a_display_that_is_withdrawn_is_noted(self, client):
        changed = deepcopy(COLOURS)
        status = {"url": f"{STRUCTURE}structuredefinition-standards-status"}
        changed["concept"][0]["designation"][0]["extension"] = [
            {**status, "valueCode": "withdrawn"}
        ]
        answer = ask(
            client, "CodeSystem/$validate-code", changed, url=URL, code="red", display="Rot"
        )
        assert kinds(answer) == [("warning", "display-comment", "display")]
        assert values(answer)["result"] is True

    @pytest.mark.parametrize(
        ("system", "said"),
        [(ALL, "references a value set"), ("http://example.org/more", "is a supplement")],
    )
    def test_what_is_no_code_system_is_said(self, client, system, said):
        known = value_set({}, url=ALL)
        asked = {"coding__valueCoding": {"system": system, "code": "red"}}
        answer = ask(
            client, "ValueSet/$validate-code", COLOURS, known, SUPPLEMENT, url=ALL, **asked
        )
        assert ("error", "invalid-data", "Coding.system") in kinds(answer)
        assert said in values(answer)["message"]

    def test_a_supplement_adds_names_with_their_source_and_properties(self, client):
        given = (client, "CodeSystem/$lookup", COLOURS, SUPPLEMENT)
        found = ask(*given, system=URL, code="blue", useSupplement="http://example.org/more")
        assert values(found)["used-supplement"] == "http://example.org/more|2"
        parts = [p["part"] for p in found["parameter"] if p["name"] == "designation"]
        sources = {p[-1]["valueString"]: [x for x in p if x["name"] == "source"] for p in parts}
        assert sources["Bleu"] == [
            {"name": "source", "valueCanonical": "http://example.org/more|2"}
        ]
        assert sources["Blue"] == []
        expanded = ask(
            *(client, "ValueSet/$expand", COLOURS, SUPPLEMENT),
            url=ALL,
            property="wave",
            useSupplement="http://example.org/more",
        )
        shown = {e["extension"][0]["valueCode"]: e for e in expanded["expansion"]["extension"]}
        assert set(shown) == {"label", "wave", "status"}
        assert shown["wave"]["extension"][1]["valueUri"] == "http://example.org/wave"

    def test_a_value_set_says_more_of_its_codes_than_the_code_system(self, client):
        said = [
            {"url": f"{STRUCTURE}valueset-deprecated", "valueBoolean": True},
            {"url": f"{STRUCTURE}valueset-label", "valueString": "1."},
            {"url": "http://example.org/ours", "valueString": "left out"},
        ]
        own = value_set({"concept": [{"code": "blue", "extension": said}]}, url="urn:own")
        found = ask(client, "ValueSet/$expand", COLOURS, own, url="urn:own")
        urls = [e["url"] for e in found["expansion"]["contains"][0]["extension"]]
        assert urls == [f"{STRUCTURE}valueset-deprecated", f"{R5}.contains.property"]
        answer = ask(
            client, "ValueSet/$validate-code", COLOURS, own, url="urn:own", system=URL, code="blue"
        )
        assert kinds(answer) == [("warning", "code-comment", "code")]
        assert "message" not in values(answer)

    def test_groups_are_known_by_the_uri_of_the_property(self, client):
        changed = deepcopy(COLOURS)
        changed["property"][1]["uri"] = "http://hl7.org/fhir/concept-properties#notSelectable"
        changed["property"][1]["code"] = "group"
        changed["concept"][0]["property"].append({"code": "group", "valueBoolean": True})
        top = ask(client, "ValueSet/$expand", changed, url=ALL)["expansion"]["contains"]
        assert [each.get("abstract", False) for each in top] == [True, False]

    def test_a_fragment_leaves_the_expansion_open(self, client):
        found = ask(client, "ValueSet/$expand", {**COLOURS, "content": "fragment"}, url=ALL)
        assert f"{STRUCTURE}valueset-unclosed" in [
            e["url"] for e in found["expansion"]["extension"]
        ]
        named = {p["name"]: p for p in found["expansion"]["parameter"]}
        assert named["used-fragment"]["valueUri"] == f"{URL}|1.2.0"

    def test_versions_of_value_sets_that_are_included(self, client):
        old = value_set({"concept": [{"code": "red"}]}, url="urn:in", version="1")
        new = value_set({"concept": [{"code": "blue"}]}, url="urn:in", version="2")
        outer = {"resourceType": "ValueSet", "compose": {"include": [{"valueSet": ["urn:in"]}]}}
        given = {"url": "urn:out"}
        for wanted, expected in (
            ({}, ["blue"]),
            ({"default-valueset-version": "urn:in|1"}, ["red"]),
        ):
            found = ask(
                client, "ValueSet/$expand", COLOURS, old, new, {**outer, **given}, **given, **wanted
            )
            assert codes(found) == expected

    def test_a_batch_shares_its_parameters(self, client):
        each = {"coding": {"system": URL, "code": "blue", "display": "wrong"}}
        asked = [
            {
                "name": "validation",
                "resource": {
                    "resourceType": "Parameters",
                    "parameter": [{"name": "coding", "valueCoding": each["coding"]}, *more],
                },
            }
            for more in ([], [{"name": "lenient-display-validation", "valueBoolean": False}])
        ]
        shared = [
            {"name": "tx-resource", "resource": COLOURS},
            {"name": "url", "valueUri": ALL},
            {"name": "lenient-display-validation", "valueBoolean": True},
        ]
        body = {"resourceType": "Parameters", "parameter": [*shared, *asked]}
        answer = client.post("/fhir/ValueSet/$batch-validate-code", json=body).json()
        results = [values(p["resource"])["result"] for p in answer["parameter"]]
        assert results == [True, False]
