"""FHIR R4: a Bundle a document, with a resource a finding.

Disorders become a ``Condition``, tests and measurements an ``Observation``, and findings of
relatives a ``FamilyMemberHistory``. What the text does not state as a fact about the patient or a
relative is left out and counted, so that no reader takes it for one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from biograft.clinical import AXES, Assertion
from biograft.kb.vocabularies import coding
from biograft.linking.candidates import LinkedDocument, LinkedMention
from biograft.linking.outputs.findings import DECIMALS
from biograft.linking.outputs.output import Documents, Output, OutputRun

Resource = dict[str, Any]

EXTENSION = "urn:biograft:fhir:mention"
"""URL of the extension with the position of a finding in its text, and what the text says of it."""
_DOCUMENT = "urn:biograft:fhir:document"
_NAMESPACE = uuid5(NAMESPACE_URL, "urn:biograft:fhir")
_TERMINOLOGY = "http://terminology.hl7.org/CodeSystem"
_ABSENT_REASON = "http://hl7.org/fhir/StructureDefinition/data-absent-reason"
_NO_PATIENT = {"extension": [{"url": _ABSENT_REASON, "valueCode": "unknown"}]}
"""Reference to a patient, who is required and whom the text alone does not name."""

CONDITION, OBSERVATION, FAMILY = "Condition", "Observation", "FamilyMemberHistory"
_CONDITION_TYPES = {
    *("t019", "t020", "t033", "t037", "t046", "t047", "t048", "t049", "t184", "t190", "t191"),
    *("f03", "scr3", "disorder", "disease", "finding", "symptom", "sign or symptom", "phenotype"),
}
_OBSERVATION_TYPES = {
    *("t034", "t059", "t201"),
    *("observable entity", "test", "laboratory test", "measurement", "observation"),
}
_OTHER_TYPES = {
    *("drug", "chemical", "substance", "product", "medicinal product", "clinical drug"),
    *("organism", "species", "anatomy", "body structure", "procedure", "gene", "protein", "cell"),
    *("qualifier value", "physical object", "person", "occupation", "device", "environment"),
}
_LISTED_TYPE = re.compile(r"t\d{3}|[a-z]\d{2}|scr\d")
"""A type of the UMLS, or a category of MeSH."""
_RELATIVES = {
    "mother": "MTH",
    "father": "FTH",
    "parent": "PRN",
    "sister": "SIS",
    "brother": "BRO",
    "sibling": "SIB",
    "son": "SON",
    "daughter": "DAU",
    "child": "CHILD",
    "aunt": "AUNT",
    "uncle": "UNCLE",
    "cousin": "COUSN",
    "grandmother": "GRMTH",
    "grandfather": "GRFTH",
    "grandparent": "GRPRN",
    "niece": "NIECE",
    "nephew": "NEPHEW",
    "wife": "WIFE",
    "husband": "HUSB",
    "母亲": "MTH",
    "父亲": "FTH",
    "姐姐": "SIS",
    "妹妹": "SIS",
    "哥哥": "BRO",
    "弟弟": "BRO",
    "祖母": "GRMTH",
    "祖父": "GRFTH",
    "外祖母": "GRMTH",
    "外祖父": "GRFTH",
}
_FAMILY_MEMBER = "FAMMEMB"
_VERIFIED = {"confirmed": "confirmed", "possible": "provisional", "unlikely": "unconfirmed"}
"""Verification status by certainty."""
_DIFFERENTIAL = re.compile(r"differential|\bddx|\bvs\b|versus|鉴别")


def bundle(linked: LinkedDocument, run: OutputRun) -> Resource:
    """Return the Bundle of a document; equal documents have equal ids.

    Args:
        linked: Linked document.
        run: Settings of the output; counts what is left out.
    """
    document = linked.document
    digest = hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).hexdigest()
    own = uuid5(_NAMESPACE, f"{_clean(document.id)}\0{digest}")
    resources: list[Resource] = []
    source = None
    if run.config.include_text and document.text:
        resources.append(_document_reference(linked, own))
        source = f"urn:uuid:{resources[0]['id']}"
    for position, mention in enumerate(linked.mentions):
        reason = _left_out(mention)
        if reason:
            run.losses[reason] += 1
            continue
        key = f"{mention.start}\0{mention.end}\0{mention.concept}\0{position}"
        resource = _resource(mention, document.id, run, source)
        resources.append({**resource, "id": str(uuid5(own, key))})
    values: Resource = {"resourceType": "Bundle", "id": str(own), "type": "collection"}
    if name := _clean(document.id):
        values["identifier"] = {"system": _DOCUMENT, "value": name}
    if resources:
        values["entry"] = [
            {"fullUrl": f"urn:uuid:{resource['id']}", "resource": resource}
            for resource in resources
        ]
    return values


def resource_type(types: tuple[str, ...]) -> str | None:
    """Return which resource holds a finding, by its semantic types; None if none does.

    Types of the UMLS, MeSH and SNOMED CT are known, and words such as "disease"; a type that is
    not known is taken for one of conditions.

    >>> resource_type(("T047",)), resource_type(("T059",)), resource_type(("drug",))
    ('Condition', 'Observation', None)
    """
    codes = [code.lower() for code in types]
    if any(code in _CONDITION_TYPES or re.fullmatch(r"c\d{2}", code) for code in codes):
        return CONDITION
    if any(code in _OBSERVATION_TYPES for code in codes):
        return OBSERVATION
    # of the types of UMLS and MeSH the conditions are known
    others = [code in _OTHER_TYPES or _LISTED_TYPE.fullmatch(code) for code in codes]
    return None if codes and all(others) else CONDITION


def _left_out(mention: LinkedMention) -> str:
    """Return why a finding has no resource; nothing if it has one."""
    kind, uncertain = resource_type(mention.types), mention.negated or mention.uncertain
    reasons = {
        "mentions without a concept": mention.concept is None,
        "findings that are neither conditions nor observations": kind is None,
        "planned findings": mention.assertion is not None and mention.assertion.planned,
        "hypothetical findings": mention.hypothetical,
        "conditional findings": mention.conditional,
        "findings of other persons": mention.other_person,
        "absent or possible findings of the family": mention.family and uncertain,
        "absent or possible observations": kind == OBSERVATION and uncertain,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _resource(
    mention: LinkedMention, document: str, run: OutputRun, source: str | None
) -> Resource:
    kind = FAMILY if mention.family else resource_type(mention.types)
    values: Resource = {"resourceType": kind, "extension": [_extension(mention, document)]}
    code = _code(mention, run)
    if kind == FAMILY:
        return {
            **values,
            "status": "partial",
            "patient": _NO_PATIENT,
            "relationship": _relationship(mention),
            "condition": [{"code": code}],
        }
    reference = [{"reference": source}]
    if kind == OBSERVATION:
        # the value as the text has it, which is not parsed
        text = _clean("; ".join(each.text for each in mention.measurements))
        unknown = {"dataAbsentReason": _concept("data-absent-reason", "unknown")}
        values |= {"status": "preliminary", "code": code}
        values |= {"valueString": text} if text else unknown
        return {**values, "derivedFrom": reference} if source else values
    values |= {**_condition_status(mention), "code": code, "subject": _NO_PATIENT}
    return {**values, "evidence": [{"detail": reference}]} if source else values


def _condition_status(mention: LinkedMention) -> Resource:
    """Return the two statuses of a Condition; none where the linker does not say.

    A refuted condition has no clinical status. One of the past is inactive, unless the text says
    that it is resolved.
    """
    said = mention.assertion
    if said is None:
        return {}
    if said.negated:
        return {"verificationStatus": _concept("condition-ver-status", "refuted")}
    words = " ".join(each.text.lower() for each in said.triggers)
    clinical = "active"
    if said.resolved:
        clinical = "resolved"
    elif said.historical:
        clinical = "remission" if "remission" in words else "inactive"
    elif said.recurrent:
        clinical = "relapse" if "relaps" in words else "recurrence"
    verified = _VERIFIED[said.certainty]
    if said.certainty == "possible" and _is_differential(said):
        verified = "differential"
    return {
        "clinicalStatus": _concept("condition-clinical", clinical),
        "verificationStatus": _concept("condition-ver-status", verified),
    }


def _is_differential(said: Assertion) -> bool:
    """Whether it is one of several diagnoses: by its words, or by a section that makes it so."""
    words = [trigger.text.lower() for trigger in said.evidence("certainty")]
    return not words or any(_DIFFERENTIAL.search(each) for each in words)


def _concept(system: str, code: str) -> Resource:
    return {"coding": [{"system": f"{_TERMINOLOGY}/{system}", "code": code}]}


def _code(mention: LinkedMention, run: OutputRun) -> Resource:
    """Return the CodeableConcept: the reported id, others if asked for, the text as written."""
    own = mention.concept or ""
    ids = dict.fromkeys((run.ids.chosen(own), *(run.ids.all(own) if run.config.all_ids else ())))
    codings = {each: coding(each, run.ids.vocabulary(each)) for each in ids}
    name, text = _clean(mention.name or ""), _clean(mention.text)
    if own in codings and name:  # the name in another vocabulary is not known
        codings[own]["display"] = name
    return {"coding": [*codings.values()], **({"text": text} if text else {})}


def _relationship(mention: LinkedMention) -> Resource:
    """Return the relative that the text names, or else a family member."""
    triggers = mention.assertion.triggers if mention.assertion else ()
    for text in (trigger.text for trigger in triggers if trigger.flag == "family"):
        for word in re.findall(r"[A-Za-z]+|[^\x00-\x7f]+", text):
            if code := _RELATIVES.get(word.lower()):
                return {**_concept("v3-RoleCode", code), "text": word}
    return _concept("v3-RoleCode", _FAMILY_MEMBER)


def _extension(mention: LinkedMention, document: str) -> Resource:
    """Return the extension that says where a finding is, and what is known of it beside."""
    section, first, axes = mention.section, mention.candidates[0], mention.axes or {}
    values: list[tuple[str, str, Any]] = [
        ("document", "valueString", _clean(document)),
        ("start", "valueUnsignedInt", mention.start),
        ("end", "valueUnsignedInt", mention.end),
        ("text", "valueString", _clean(mention.text)),
        ("status", "valueCode", mention.status),
        *((axis, "valueCode", said) for axis, said in axes.items() if said != AXES[axis][""]),
        ("section", "valueString", _clean(section or "")),
        ("measurement", "valueString", _clean("; ".join(m.text for m in mention.measurements))),
        ("score", "valueDecimal", round(first.score, DECIMALS)),
        ("probability", "valueDecimal", mention.probability and round(mention.probability, 6)),
    ]
    parts = [{"url": url, key: value} for url, key, value in values if value not in (None, "")]
    return {"url": EXTENSION, "extension": parts}


def _document_reference(linked: LinkedDocument, own: UUID) -> Resource:
    """Return the text of a document as a resource."""
    data = linked.document.text.encode("utf-8", "replace")
    attachment = {
        "contentType": "text/plain; charset=utf-8",
        "data": base64.b64encode(data).decode(),
        **({"title": _clean(linked.document.id)} if _clean(linked.document.id) else {}),
    }
    return {
        "resourceType": "DocumentReference",
        "id": str(uuid5(own, "text")),
        "status": "current",
        "content": [{"attachment": attachment}],
    }


def _clean(text: str) -> str:
    """Return a text as FHIR allows it: without control characters, and not of spaces alone."""
    kept = (" " if unicodedata.category(char) in ("Cc", "Cs") else char for char in text)
    return "".join(kept).strip()


def _lines(documents: Documents, run: OutputRun) -> Iterator[str]:
    for linked in documents:
        yield json.dumps(bundle(linked, run), ensure_ascii=False) + "\n"


OUTPUT = Output(chunks=_lines, media_type="application/fhir+ndjson; charset=utf-8", resumable=True)
