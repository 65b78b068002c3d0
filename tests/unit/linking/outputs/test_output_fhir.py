"""FHIR R4: what each finding becomes, and that the resources are valid."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter

import pytest

from biograft.kb.vocabularies import coding
from biograft.linking import Candidate, LinkedDocument, LinkedMention, Linker, link_chunks
from biograft.linking.outputs.fhir import EXTENSION, resource_type
from biograft.text.documents import Document

STORE = [
    {"id": "D003924", "name": "Diabetes", "type": "T047"},
    {"id": "D009203", "name": "Heart attack", "type": "T047"},
    {"id": "HP:0001945", "name": "Fever", "type": "T184"},
    {"id": "LOINC:2345-7", "name": "Glucose", "type": "T059"},
    {"id": "D014859", "name": "Warfarin", "type": "T121"},
    {
        "id": "C0004096",
        "name": "Asthma",
        "type": "T047",
        "ids": [{"id": "SNOMEDCT_US:195967001", "kind": "xref"}],
    },
]
TEXT = (
    "Diabetes. No fever. Possible asthma. History of heart attack. Mother had asthma. "
    "Return if fever. Glucose was measured. Warfarin. No family history of diabetes."
)
REQUIRED = {
    "Condition": {"subject"},
    "Observation": {"status", "code"},
    "FamilyMemberHistory": {"status", "patient", "relationship"},
    "DocumentReference": {"status", "content"},
}
"""Elements of minimum cardinality 1, by the specification (R4)."""


@pytest.fixture
def base(store_of):
    return store_of(STORE, "FHIR")


@pytest.fixture
def losses():
    return Counter()


@pytest.fixture
def bundle(base, losses):
    def make(text=TEXT, *, identifier="note 1", linker=None, **settings):
        linked = (linker or Linker.open(base))(Document(identifier, text))
        (line,) = link_chunks([linked], "fhir", base, losses, **settings)
        assert line.endswith("}\n")
        return json.loads(line)

    return make


def resources(bundle):
    return [entry["resource"] for entry in bundle.get("entry", [])]


def first_code(concept):
    return concept["coding"][0]["code"]


def position(resource):
    (extension,) = resource["extension"]
    assert extension["url"] == EXTENSION
    return {
        part["url"]: next(value for key, value in part.items() if key.startswith("value"))
        for part in extension["extension"]
    }


def test_relatives_observations_and_what_is_no_fact(bundle, losses):
    others = [each for each in resources(bundle()) if each["resourceType"] != "Condition"]
    family, observation = others
    assert family["resourceType"] == "FamilyMemberHistory"
    assert first_code(family["relationship"]) == "MTH"
    assert family["relationship"]["text"] == "Mother"
    assert family["condition"][0]["code"]["text"] == "asthma"
    assert observation["resourceType"] == "Observation"
    assert observation["code"]["coding"] == [
        {"system": "http://loinc.org", "code": "2345-7", "display": "Glucose"}
    ]
    assert losses == {
        "hypothetical findings": 1,
        "findings that are neither conditions nor observations": 1,
        "absent or possible findings of the family": 1,
    }


def test_conditional_findings_are_left_out(bundle, losses):
    assert resources(bundle("Fever on exertion.")) == []
    assert losses == {"conditional findings": 1}


@pytest.mark.parametrize(
    ("text", "verified", "clinical"),
    [
        ("Asthma.", "confirmed", "active"),
        ("Active asthma.", "confirmed", "active"),
        ("The asthma has resolved.", "confirmed", "resolved"),
        ("History of asthma, resolved.", "confirmed", "resolved"),
        ("History of asthma.", "confirmed", "inactive"),
        ("Asthma in remission.", "confirmed", "remission"),
        ("Recurrent asthma.", "confirmed", "recurrence"),
        ("Relapse of asthma.", "confirmed", "relapse"),
        ("Possible asthma.", "provisional", "active"),
        ("Fever versus asthma.", "differential", "active"),
        ("Differential Diagnosis: asthma", "differential", "active"),
        ("Asthma is unlikely.", "unconfirmed", "active"),
        ("No asthma.", "refuted", None),
        ("No recurrence of asthma.", "refuted", None),
    ],
)
def test_statuses_of_conditions(bundle, text, verified, clinical):
    condition = resources(bundle(text))[-1]
    assert first_code(condition["verificationStatus"]) == verified
    said = condition.get("clinicalStatus")
    assert (None if said is None else first_code(said)) == clinical


def test_plans_are_no_conditions_and_the_course_is_in_the_extension(bundle, losses):
    assert resources(bundle("Scheduled for asthma. Fever is planned.")) == []
    assert losses["planned findings"] == 2
    (condition,) = resources(bundle("The asthma has resolved."))
    assert position(condition)["course"] == "resolved"
    assert "polarity" not in position(condition)


def test_a_value_stands_with_its_observation(bundle):
    first, second = resources(bundle("Glucose 8.2 mmol/L. Glucose was measured."))
    assert (first["valueString"], "dataAbsentReason" in first) == ("8.2 mmol/L", False)
    assert ("valueString" in second, "dataAbsentReason" in second) == (False, True)
    assert position(first)["measurement"] == "8.2 mmol/L"


def test_only_the_text_of_mentions_is_written_unless_asked(bundle):
    private = "Mr Smith of 12 High Street has diabetes."
    assert "Smith" not in json.dumps(bundle(private))
    reference, condition = resources(bundle(private, include_text=True))
    assert reference["resourceType"] == "DocumentReference"
    data = reference["content"][0]["attachment"]["data"]
    assert base64.b64decode(data).decode() == private
    assert condition["evidence"][0]["detail"][0]["reference"] == f"urn:uuid:{reference['id']}"


def test_ids_are_the_same_again_and_differ_within_and_between_documents(bundle):
    first, again, other = bundle(), bundle(), bundle(TEXT + " ")
    assert first == again
    ids = [each["id"] for each in (*resources(first), *resources(other), first, other)]
    assert len(set(ids)) == len(ids)


def check_structure(bundle):
    """Check by hand what the specification demands of these resources."""
    assert (bundle["resourceType"], bundle["type"]) == ("Bundle", "collection")
    assert bundle.get("entry") != []
    for entry in bundle.get("entry", []):
        resource = entry["resource"]
        assert entry["fullUrl"] == f"urn:uuid:{resource['id']}"
        assert re.fullmatch(r"[A-Za-z0-9\-.]{1,64}", resource["id"])
        assert REQUIRED[resource["resourceType"]] <= set(resource)
        if resource["resourceType"] == "Condition":
            verified = resource.get("verificationStatus")
            assert (
                verified is None
                or "clinicalStatus" in resource
                or (first_code(verified) == "refuted")
            )
    for value in values_of(bundle):
        assert value not in (None, "", [], {})
        if isinstance(value, str):
            assert re.fullmatch(r"[ \r\n\t\S]+", value)


def values_of(value):
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from values_of(each)


ODD = [
    "",
    "no finding here",
    "Diabetes.\x00 Control\x1b characters, \ud83d fever\n\nasthma",
    "😀 fever",
    "Glucose 8.2 mmol/L",
]


@pytest.mark.parametrize("text", [TEXT, *ODD])
@pytest.mark.parametrize("identifier", ["note 1", "", " \x00 "])
def test_the_structure_is_that_of_the_specification(bundle, text, identifier):
    check_structure(bundle(text, identifier=identifier))
    check_structure(bundle(text, identifier=identifier, include_text=True, all_ids=True))


@pytest.mark.parametrize("text", [TEXT, *ODD])
def test_an_independent_library_accepts_the_resources(bundle, text):
    """R4B has the resources used here as R4 has them."""
    validator = pytest.importorskip("fhir.resources.R4B.bundle").Bundle
    for include_text in (False, True):
        made = bundle(text, include_text=include_text, all_ids=True)
        read = validator.model_validate_json(json.dumps(made))
        assert len(read.entry or []) == len(made.get("entry", []))
        assert json.loads(read.model_dump_json()) == made


def test_without_assertions_no_status_is_claimed(base, bundle):
    (condition,) = resources(bundle("No diabetes.", linker=Linker.open(base, assertions=False)))
    assert {"clinicalStatus", "verificationStatus"}.isdisjoint(condition)


def test_mentions_without_a_concept_are_counted(base, losses):
    linked = LinkedDocument(Document("1", "zzz"), (LinkedMention(0, 3, "zzz", "zzz"),))
    (line,) = link_chunks([linked], "fhir", base, losses)
    assert "entry" not in json.loads(line)
    assert losses == {"mentions without a concept": 1}


def test_preferred_and_all_ids(bundle):
    (condition,) = resources(bundle("Asthma.", prefer=["SNOMEDCT_US"]))
    snomed = {"system": "http://snomed.info/sct", "code": "195967001"}
    assert condition["code"]["coding"] == [snomed]
    (condition,) = resources(bundle("Asthma.", all_ids=True))
    own = {"system": "http://www.nlm.nih.gov/research/umls", "code": "C0004096"}
    assert condition["code"]["coding"] == [{**own, "display": "Asthma"}, snomed]


@pytest.mark.parametrize(
    ("identifier", "vocabulary", "expected"),
    [
        ("HP:0001250", "HP", ("http://human-phenotype-ontology.org", "HP:0001250")),
        ("MONDO:0005148", "MONDO", ("http://purl.obolibrary.org/obo/mondo.owl", "MONDO:0005148")),
        ("73211009", "SNOMEDCT", ("http://snomed.info/sct", "73211009")),
        ("ICD10CM:E11.9", "ICD10CM", ("http://hl7.org/fhir/sid/icd-10-cm", "E11.9")),
        ("X:  1", "X", (None, "X: 1")),
    ],
)
def test_code_systems(identifier, vocabulary, expected):
    made = coding(identifier, vocabulary)
    assert (made.get("system"), made["code"]) == expected


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((), "Condition"),
        (("disease_ontology",), "Condition"),
        (("T033",), "Condition"),
        (("C14", "C23"), "Condition"),
        (("F03",), "Condition"),
        (("D03",), None),
        (("T121", "T109"), None),
        (("T121", "T047"), "Condition"),
        (("observable entity",), "Observation"),
        (("procedure",), None),
    ],
)
def test_semantic_types_choose_the_resource(types, expected):
    assert resource_type(types) == expected


def test_a_generated_mention_may_lack_types(base):
    candidate = Candidate("X1", "thing", "thing", 1.0)
    linked = LinkedMention(0, 5, "thing", "thing", (candidate,), "X1")
    (line,) = link_chunks([LinkedDocument(Document("1", "thing"), (linked,))], "fhir", base)
    (condition,) = resources(json.loads(line))
    assert condition["code"]["coding"] == [{"code": "X1", "display": "thing"}]
