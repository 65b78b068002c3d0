"""Why an operation is refused: the HTTP status and the issue code that FHIR has for it."""

from __future__ import annotations

from typing import Any

from biograft.errors import BiograftError

ISSUE_TYPE = "http://hl7.org/fhir/tools/CodeSystem/tx-issue-type"
_STATUS = {
    "invalid": 400,
    "required": 400,
    "not-found": 404,
    "not-supported": 422,
    "too-costly": 422,
    "processing": 422,
    "exception": 500,
}
_TYPES = {"not-found": "not-found", "processing": "vs-invalid", "invalid": "invalid-data"}


class TerminologyError(BiograftError):
    """An operation cannot be carried out; ``code`` is an issue code of FHIR."""

    def __init__(
        self, code: str, message: str, status: int | None = None, *, named: str | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.status = code, status or _STATUS[code]
        self.named = named
        """The code system that is not known, where that is the reason."""

    def to_outcome(self) -> dict[str, Any]:
        """Return the error as an OperationOutcome."""
        found = issue("error", self.code, _TYPES.get(self.code), str(self))
        return {"resourceType": "OperationOutcome", "issue": [{**found, "diagnostics": str(self)}]}


def issue(
    severity: str, code: str, kind: str | None, text: str, place: str | None = None
) -> dict[str, Any]:
    """Return an issue; ``kind`` is one of HL7's types of terminology issues."""
    details: dict[str, Any] = {"text": text}
    if kind is not None:
        details = {"coding": [{"system": ISSUE_TYPE, "code": kind}], **details}
    found: dict[str, Any] = {"severity": severity, "code": code, "details": details}
    if place is not None:
        found |= {"location": [place], "expression": [place]}
    return found
