"""Why an operation is refused: the HTTP status and the issue code that FHIR has for it."""

from __future__ import annotations

from typing import Any

from biograft.errors import BiograftError

_STATUS = {
    "invalid": 400,
    "required": 400,
    "not-found": 404,
    "not-supported": 422,
    "too-costly": 422,
    "exception": 500,
}


class TerminologyError(BiograftError):
    """An operation cannot be carried out; ``code`` is an issue code of FHIR."""

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.code, self.status = code, status or _STATUS[code]

    def to_outcome(self) -> dict[str, Any]:
        """Return the error as an OperationOutcome."""
        issue = {"severity": "error", "code": self.code, "diagnostics": str(self)}
        return {"resourceType": "OperationOutcome", "issue": [issue]}
