"""``ConceptMap/$translate`` by maps of a request, mapping sets and a review, beside plain loops."""

from __future__ import annotations

import io
import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
from terminology_client import opened
from test_supplied import COLOURS, URL, ask, values

from biograft.errors import BiograftError
from biograft.mapping import MappingRow, MappingSet, ReviewStore, ReviewTerm, SuggestedConcept
from biograft.serve.fhir.content import read_content

A, B, C = "urn:a", "urn:b", "urn:c"
R4 = {
    "source-is-narrower-than-target": "wider",
    "source-is-broader-than-target": "narrower",
    "equivalent": "equivalent",
    "related-to": "relatedto",
    "not-related-to": "disjoint",
}
BACK = {"wider": "narrower", "narrower": "wider"}
MESH = "http://www.nlm.nih.gov/research/umls/msh"
PATH = "ConceptMap/$translate"


@pytest.fixture
def client(starter_client: Any) -> Any:
    return starter_client


def parts(answer: Any) -> list[dict[str, Any]]:
    """Return the parts of each match."""
    return [
        {part["name"]: next(v for k, v in part.items() if k != "name") for part in each["part"]}
        for each in answer["parameter"]
        if each["name"] == "match"
    ]


def pairs(answer: Any) -> list[tuple[str, Any, Any]]:
    return [
        (m["equivalence"], m.get("concept", {}).get("system"), m.get("concept", {}).get("code"))
        for m in parts(answer)
    ]


def made_map(random_: random.Random, r5: bool) -> dict[str, Any]:
    groups = []
    for source, target in ((A, B), (A, C), (B, A)):
        elements = []
        for code in random_.sample("stuvwxyz", 5):
            targets = []
            for other in random_.sample("stuvwxyz", random_.randrange(3)):
                how = random_.choice(list(R4))
                named = {"relationship": how} if r5 else {"equivalence": R4[how]}
                targets.append({"code": other, **named})
            elements.append({"code": code, "target": targets} if targets else {"code": code})
        groups.append({"source": source, "target": target, "element": elements})
    return {"resourceType": "ConceptMap", "url": "urn:map", "group": groups}


def expected(given: dict[str, Any], system: str, code: str, wanted: str | None, reverse: bool):
    """Translate by going through every mapping."""
    found = []
    for group in given["group"]:
        ends = group["target" if reverse else "source"], group["source" if reverse else "target"]
        if ends[0] != system or wanted not in (None, ends[1]):
            continue
        for element in group["element"]:
            for each in element.get("target", [{"code": None, "equivalence": "unmatched"}]):
                how = each.get("equivalence") or R4[each["relationship"]]
                own, other = element["code"], each["code"]
                if reverse:
                    own, other, how = other, own, BACK.get(how, how)
                if own == code:
                    found.append((how, ends[1] if other else None, other))
    return found


@pytest.mark.parametrize("r5", [False, True])
def test_maps_of_a_request_as_plain_loops_say(client, r5):
    random_ = random.Random(7 + r5)
    n_found = 0
    for _ in range(200):
        given = made_map(random_, r5)
        system, code = random_.choice([A, B, C]), random_.choice("stuvwxyz")
        wanted, reverse = random_.choice([None, A, B, C]), random_.random() < 0.4
        more: dict[str, Any] = {"reverse__valueBoolean": True} if reverse else {}
        if wanted:
            more["targetsystem"] = wanted
        answer = ask(client, PATH, given, url="urn:map", system=system, code=code, **more)
        right = expected(given, system, code, wanted, reverse)
        assert sorted(pairs(answer), key=str) == sorted(right, key=str)
        assert values(answer)["result"] == any(
            how not in ("unmatched", "disjoint") for how, _, _ in right
        )
        n_found += len(right)
    assert n_found > 40


def a_map(**more: Any) -> dict[str, Any]:
    element = {"code": "x", "target": [{"code": "1", "equivalence": "wider", **more}]}
    group = {"source": A, "target": B, "element": [element]}
    return {"resourceType": "ConceptMap", "url": "urn:map", "version": "2", "group": [group]}


class TestMaps:
    def test_parameters_of_r4_and_r5(self, client):
        given = a_map()
        found = ask(client, PATH, given, system=A, code="x")
        (match,) = parts(found)
        assert match == {
            "equivalence": "wider",
            "concept": {"system": B, "code": "1"},
            "source": "urn:map",
        }
        (match,) = parts(ask(client, PATH, given, system=A, sourceCode="x"))
        assert (match["relationship"], match["originMap"]) == (
            "source-is-narrower-than-target",
            "urn:map|2",
        )
        for more in (
            {"sourceCoding": {"system": A, "code": "x"}},
            {"coding": {"system": A, "code": "x"}},
            {
                "codeableConcept": {
                    "coding": [{"system": C, "code": "x"}, {"system": A, "code": "x"}]
                }
            },
        ):
            ((name, value),) = more.items()
            kind = "CodeableConcept" if name == "codeableConcept" else "Coding"
            assert pairs(ask(client, PATH, given, **{f"{name}__value{kind}": value})) == [
                ("wider", B, "1")
            ]

    def test_back(self, client):
        given = a_map()
        back = ask(client, PATH, given, system=B, code="1", reverse__valueBoolean=True)
        assert pairs(back) == [("narrower", A, "x")]
        (match,) = parts(ask(client, PATH, given, targetSystem=B, targetCode="1"))
        assert match["source"] == {"system": A, "code": "x"}
        assert match["concept"] == {"system": B, "code": "1"}
        assert match["equivalence"] == "wider"
        none = ask(client, PATH, given, targetSystem=B, targetCode="1", sourceSystem=C)
        assert values(none)["result"] is False

    def test_one_map_by_url_version_or_as_a_resource(self, client):
        other = {**a_map(), "version": "1"}
        other["group"] = [{"source": A, "target": C, "element": a_map()["group"][0]["element"]}]
        asked = {"system": A, "code": "x"}
        for url, target in (("urn:map", B), ("urn:map|1", C), ("urn:map|2", B)):
            assert pairs(ask(client, PATH, a_map(), other, url=url, **asked)) == [
                ("wider", target, "1")
            ]
        found = ask(client, PATH, a_map(), conceptMap__resource=other, **asked)
        assert pairs(found) == [("wider", C, "1")]
        refused = ask(client, PATH, a_map(), url="urn:map|3", status=404, **asked)
        assert "no concept map" in refused["issue"][0]["diagnostics"]

    @pytest.mark.parametrize(
        ("unmapped", "expected"),
        [
            ({"mode": "provided"}, ("relatedto", B, "q")),
            ({"mode": "use-source-code", "relationship": "equivalent"}, ("equivalent", B, "q")),
            ({"mode": "fixed", "code": "other"}, ("relatedto", B, "other")),
            ({"mode": "other-map", "url": "urn:second"}, ("equal", C, "9")),
            ({"mode": "other-map", "otherMap": "urn:second"}, ("equal", C, "9")),
            ({"mode": "other-map", "url": "urn:map"}, None),
            ({}, None),
        ],
    )
    def test_codes_that_a_map_does_not_list(self, client, unmapped, expected):
        given, second = a_map(), {**a_map(), "url": "urn:second"}
        given["group"][0]["unmapped"] = unmapped
        element = {"code": "q", "target": [{"code": "9", "equivalence": "equal"}]}
        second["group"] = [{"source": A, "target": C, "element": [element]}]
        answer = ask(client, PATH, given, second, url="urn:map", system=A, code="q")
        assert pairs(answer) == ([expected] if expected else [])
        assert values(answer)["result"] is (expected is not None)

    def test_a_code_without_a_map(self, client):
        given = a_map()
        given["group"][0]["element"] = [{"code": "x", "noMap": True}]
        given["group"][0]["unmapped"] = {"mode": "fixed", "code": "other"}
        answer = ask(client, PATH, given, url="urn:map", system=A, code="x")
        assert pairs(answer) == [("unmatched", None, None)]
        assert values(answer)["result"] is False

    def test_dependencies_and_products(self, client):
        depends = {"property": "urn:sex", "system": C, "value": "f"}
        product = {"property": "urn:side", "system": C, "value": "l"}
        given = a_map(dependsOn=[depends], product=[product])
        asked = {"url": "urn:map", "system": A, "code": "x"}
        (match,) = parts(answer := ask(client, PATH, given, **asked))
        assert values(answer)["result"] is False
        assert "urn:sex" in values(answer)["message"]
        assert match["dependsOn"][0] == {"name": "element", "valueUri": "urn:sex"}
        assert match["product"][1] == {"name": "concept", "valueCoding": {"system": C, "code": "l"}}

        def with_sex(code: str) -> Any:
            concept = {"coding": [{"system": C, "code": code}]}
            said = [
                {"name": "element", "valueUri": "urn:sex"},
                {"name": "concept", "valueCodeableConcept": concept},
            ]
            return ask(client, PATH, given, dependency__part=said, **asked)

        assert values(with_sex("f"))["result"] is True
        assert parts(with_sex("m")) == []

    def test_the_value_set_of_the_answer(self, client):
        given = a_map()
        within = {"include": [{"system": URL, "concept": [{"code": "red"}]}]}
        reds = {"resourceType": "ValueSet", "url": "urn:reds", "compose": within}
        targets = [{"code": c, "equivalence": "equal"} for c in ("red", "blue")]
        element = [{"code": "x", "target": targets}]
        given["group"] = [{"source": A, "target": URL, "element": element}]
        asked = {"system": A, "code": "x", "target": "urn:reds"}
        answer = ask(client, PATH, given, reds, COLOURS, **asked)
        assert pairs(answer) == [("equal", URL, "red")]
        given["targetUri"] = "urn:reds"
        assert len(pairs(ask(client, PATH, given, **asked))) == 2
        assert ask(client, PATH, a_map(), **{**asked, "target": "urn:none"}, status=404)

    @pytest.mark.parametrize(
        "broken",
        [
            {
                "group": [
                    {"element": [{"code": "x", "target": [{"code": "1", "equivalence": "?"}]}]}
                ]
            },
            {"group": [{"element": "x"}]},
            {"group": ["x"]},
            {"group": [{"element": [{"code": "x", "target": [{"dependsOn": [{}]}]}]}]},
        ],
    )
    def test_damaged_maps(self, client, broken):
        given = {"resourceType": "ConceptMap", "url": "urn:map", **broken}
        assert ask(client, PATH, given, system=A, code="x", status=400)


def test_mapping_sets(starter: Path, tmp_path: Path):
    own = {
        "subject_source": "source:tests",
        "mapping_justification": "semapv:ManualMappingCuration",
    }
    rows = [
        MappingRow(subject_id="code:GLU", subject_label="sugar", object_id="MESH:D003920", **own),
        MappingRow(
            subject_id="code:GLU",
            predicate_id="skos:broadMatch",
            object_id="MESH:D000067877",
            **own,
        ),
        MappingRow(
            subject_id="code:GLU", predicate_modifier="Not", object_id="MESH:D009369", **own
        ),
        MappingRow(subject_id="code:NONE", object_id="sssom:NoTermFound", **own),
        MappingRow(subject_id="HP:0000819", object_id="MESH:D003920", **own),
    ]
    path = tmp_path / "lab.sssom.tsv"
    prefixes = {"source": "https://lab.example/", "code": "https://lab.example/tests/code/"}
    MappingSet(rows=rows, prefixes=prefixes, id="https://lab.example/map").write(path)
    client = opened(starter, fhir=[path])
    lab, url = "https://lab.example/tests", "https://lab.example/map"
    found = ask(client, PATH, system=lab, code="GLU")
    assert pairs(found) == [("equivalent", MESH, "D003920"), ("wider", MESH, "D000067877")]
    assert parts(found)[0]["source"] == url
    assert values(ask(client, PATH, url=url, system=lab, code="NONE"))["result"] is False
    back = ask(client, PATH, url=url, system=MESH, code="D003920", reverse__valueBoolean=True)
    hp = "http://human-phenotype-ontology.org"
    assert pairs(back) == [("equivalent", lab, "GLU"), ("equivalent", hp, "HP:0000819")]


def test_a_review_is_translated_as_it_stands(starter: Path, tmp_path: Path):
    with ReviewStore.open(tmp_path / "labs.db", create=True) as review:
        client = opened(starter, review=review)
        terms = [
            ReviewTerm(text, text, "", 1, "", (SuggestedConcept("D003920"),), "")
            for text in ("sugar", "none")
        ]
        review.add_terms(terms, reviewer="ann", queue="lab tests")
        asked = {"system": "urn:biograft:source:lab%20tests", "code": "sugar"}
        assert values(ask(client, PATH, **asked))["result"] is False
        items = {each.term.text: each for each in review.items("lab tests")}
        review.decide(items["sugar"].id, "approve", reviewer="ann", version=items["sugar"].version)
        found = ask(client, PATH, **asked)
        assert pairs(found) == [("equivalent", MESH, "D003920")]
        assert parts(found)[0]["source"] == "urn:biograft:review:lab%20tests"
        event = review.history("lab tests")[-1]
        review.undo(max(event.id, review.revision()), reviewer="ann")
        assert values(ask(client, PATH, **asked))["result"] is False


def package(path: Path, files: dict[str, Any], *, name: str = "package/package.json") -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member, content in {name: {"name": "ours"}, **files}.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


class TestPackages:
    def test_a_package_is_served(self, starter, tmp_path):
        reds = {
            "include": [
                {"system": URL, "filter": [{"property": "concept", "op": "is-a", "value": "red"}]}
            ]
        }
        files = {
            "package/.index.json": {"files": []},
            "package/CodeSystem-colours.json": COLOURS,
            "package/ValueSet-reds.json": {
                "resourceType": "ValueSet",
                "url": "urn:reds",
                "compose": reds,
            },
            "package/ConceptMap-map.json": a_map(),
            "package/other/CodeSystem-example.json": {**COLOURS, "url": "urn:example"},
            "package/Patient-1.json": {"resourceType": "Patient"},
        }
        client = opened(starter, fhir=[package(tmp_path / "ours.tgz", files)])
        assert ask(client, "ValueSet/$expand", url="urn:reds")["expansion"]["total"] == 3
        found = ask(client, "CodeSystem/$lookup", system=URL, code="blue")
        assert values(found)["display"] == "Blue"
        assert pairs(ask(client, PATH, url="urn:map", system=A, code="x")) == [("wider", B, "1")]
        assert ask(client, "CodeSystem/$lookup", system="urn:example", code="red", status=404)
        # what a request brings comes before what is served, and changes nothing of it
        other = {**COLOURS, "concept": [{"code": "blue", "display": "Azure"}]}
        found = ask(client, "CodeSystem/$lookup", other, system=URL, code="blue")
        assert values(found)["display"] == "Azure"
        more = {
            "resourceType": "CodeSystem",
            "url": "urn:more",
            "content": "supplement",
            "supplements": URL,
            "concept": [{"code": "blue", "designation": [{"language": "fr", "value": "Bleu"}]}],
        }
        asked = {"system": URL, "code": "blue"}
        for _ in range(2):
            found = ask(client, "CodeSystem/$lookup", more, useSupplement="urn:more", **asked)
            assert json.dumps(found).count("Bleu") == 1
        assert "Bleu" not in json.dumps(ask(client, "CodeSystem/$lookup", **asked))

    @pytest.mark.parametrize(
        ("url", "known_as"),
        [
            ("http://x.org/colours", "colours"),
            ("http://x.org/colours/", "colours"),
            ("http://x.org/all colours_1", "all-colours-1"),
            ("urn:oid:1.2.3", "urn-oid-1.2.3"),
            ("http://x.org/颜色", "resource"),
            ("http://x.org/" + "x" * 99, "x" * 56),
        ],
    )
    def test_a_resource_without_an_id_gets_one_of_its_url(self, tmp_path, url, known_as):
        own = {key: value for key, value in COLOURS.items() if key != "id"}
        files = {f"package/C{n}.json": {**own, "url": url, "version": str(n)} for n in range(2)}
        found = read_content([package(tmp_path / "ours.tgz", files)]).of("CodeSystem")
        assert [each["id"] for each in found] == [known_as, f"{known_as}-2"]

    @pytest.mark.parametrize(
        ("files", "said"),
        [
            ({"package/CodeSystem-a.json": b"{"}, "is not JSON"),
            ({"package/CodeSystem-a.json": {"resourceType": "CodeSystem"}}, "it has no url"),
            ({"package/ConceptMap-a.json": {**a_map(), "group": 7}}, "expected a list"),
            ({"../CodeSystem-a.json": COLOURS}, "holds no CodeSystem"),
            ({"/package/CodeSystem-a.json": COLOURS}, "holds no CodeSystem"),
            ({}, "holds no CodeSystem"),
        ],
    )
    def test_damaged_packages(self, tmp_path, files, said):
        with pytest.raises(BiograftError, match=said) as error:
            read_content([package(tmp_path / "ours.tgz", files)])
        assert "\n" not in str(error.value)
        assert "ours.tgz" in str(error.value)
        assert [each.name for each in tmp_path.iterdir()] == ["ours.tgz"]

    def test_what_is_no_package(self, tmp_path):
        path = package(
            tmp_path / "ours.tgz", {"package/C.json": COLOURS}, name="package/other.json"
        )
        with pytest.raises(BiograftError, match=r"no package/package\.json"):
            read_content([path])

    def test_links_are_not_followed(self, tmp_path):
        outside = tmp_path / "secret.json"
        outside.write_text(json.dumps(COLOURS))
        path = tmp_path / "ours.tgz"
        with tarfile.open(path, "w:gz") as tar:
            for name, target in (("package/package.json", ""), ("package/C.json", str(outside))):
                info = tarfile.TarInfo(name)
                info.type, info.linkname = (tarfile.SYMTYPE, target) if target else (b"0", "")
                tar.addfile(info, io.BytesIO())
        with pytest.raises(BiograftError):
            read_content([path])

    def test_resources_that_are_too_large_or_packed_too_well(self, tmp_path, monkeypatch):
        monkeypatch.setenv("BIOGRAFT_MAX_VALUE", "1")
        path = package(tmp_path / "ours.tgz", {"package/C.json": b" " * (3 << 20)})
        with pytest.raises(BiograftError):
            read_content([path])
