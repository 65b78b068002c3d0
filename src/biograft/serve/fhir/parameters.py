"""Input and output of FHIR operations: parameters, issues, and their parts.

They are read from a query, a form or a resource, and written as a resource.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from biograft.kb.fhir import Resource, TerminologyError, list_in, text_in

ISSUE_TYPE = "http://hl7.org/fhir/tools/CodeSystem/tx-issue-type"
STATUS = {
    "invalid": 400,
    "required": 400,
    "not-found": 404,
    "not-supported": 422,
    "too-costly": 422,
    "processing": 422,
    "version-error": 422,
    "exception": 500,
}
_TYPES = {
    "not-found": "not-found",
    "processing": "vs-invalid",
    "invalid": "invalid-data",
    "version-error": "version-error",
}

_WITHOUT_LOCATION = ("invalid-code", "this-code-not-in-vs", "status-check")


def outcome_of(error: TerminologyError) -> Resource:
    """Return an error as an OperationOutcome.

    Args:
        error: The error.
    """
    code = "exception" if error.code == "version-error" else error.code
    found = issue("error", code, _TYPES.get(error.code), str(error))
    return {"resourceType": "OperationOutcome", "issue": [{**found, "diagnostics": str(error)}]}


def issue(
    severity: str, code: str, kind: str | None, text: str, place: str | None = None
) -> dict[str, Any]:
    """Return an issue; ``kind`` is one of HL7's types of terminology issues.

    Args:
        severity: error, warning or information.
        code: Issue code of FHIR.
        kind: Type of the issue, by HL7's list.
        text: What is wrong.
        place: Place in the request.
    """
    details: dict[str, Any] = {"text": text}
    if kind is not None:
        details = {"coding": [{"system": ISSUE_TYPE, "code": kind}], **details}
    found: dict[str, Any] = {"severity": severity, "code": code, "details": details}
    if place is not None and kind in _WITHOUT_LOCATION and severity != "warning":
        found["expression"] = [place]
    elif place is not None:
        found |= {"location": [place], "expression": [place]}
    return found


_MAX_DIGITS = 9
FORM = "application/x-www-form-urlencoded"


class Coding(NamedTuple):
    """A code, its system and its display; each may be missing."""

    system: str | None
    code: str | None
    display: str | None = None
    version: str | None = None


class Parameters:
    """The parameters of a request; reading one checks its type.

    Args:
        pairs: Name and value of each parameter.
        accept_language: The header of this name: languages where the parameters state none.
        is_r5: Whether the answer is to be one of FHIR R5, where it differs.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, Any]],
        accept_language: str | None = None,
        *,
        is_r5: bool = False,
    ) -> None:
        self._values: dict[str, list[Any]] = {}
        self.is_r5 = is_r5
        """Whether the answer is to be one of FHIR R5, where it differs."""
        self.accept_language = accept_language
        """The header of this name: languages where the parameters state none."""
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    @classmethod
    def read(
        cls,
        query: Iterable[tuple[str, str]],
        media_type: str,
        body: bytes,
        accept_language: str | None = None,
        *,
        is_r5: bool = False,
    ) -> Parameters:
        """Read a query, and a body that is a form, Parameters, or a ValueSet to expand.

        Args:
            query: The query.
            media_type: Content type of the body.
            body: The body.
            accept_language: The header of this name.
            is_r5: Whether the answer is to be one of FHIR R5, where it differs.
        """
        pairs: list[tuple[str, Any]] = list(query)
        if media_type.partition(";")[0].strip().lower() == FORM:
            pairs += parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        elif body.strip():
            pairs += pairs_of(parse_json(body))
        return cls(pairs, accept_language, is_r5=is_r5)

    def with_values(self, pairs: Sequence[tuple[str, Any]], without: str = "") -> Parameters:
        """Return these parameters, where others do not replace them; resources are added.

        Args:
            pairs: Names and values of the others.
            without: Name of a parameter that is left out.
        """
        replaced = {without, *(name for name, _ in pairs)} - {"tx-resource"}
        kept = [(k, v) for k, values in self._values.items() if k not in replaced for v in values]
        return Parameters([*kept, *pairs], self.accept_language, is_r5=self.is_r5)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def all_texts(self, name: str) -> list[str]:
        """Return the values of a parameter that may be repeated.

        Args:
            name: Name of the parameter.
        """
        for value in self._values.get(name, ()):
            if not isinstance(value, str) or not value.strip():
                raise TerminologyError("invalid", f"{name}: expected a text that is not empty")
        return list(self._values.get(name, ()))

    def text(self, name: str) -> str | None:
        """Return the value of a parameter, or None.

        Args:
            name: Name of the parameter.
        """
        self.single(name)
        return next(iter(self.all_texts(name)), None)

    def required(self, name: str) -> str:
        """Return the value of a parameter that must be given.

        Args:
            name: Name of the parameter.
        """
        value = self.text(name)
        if value is None:
            raise TerminologyError("required", f"{name}: missing")
        return value

    def flag(self, name: str) -> bool:
        """Return whether a parameter is true; it is false if it is missing.

        Args:
            name: Name of the parameter.
        """
        value = self.single(name)
        if value in (None, False, "false"):
            return False
        if value in (True, "true"):
            return True
        raise TerminologyError("invalid", f"{name}: expected true or false")

    def is_false(self, name: str) -> bool:
        """Return whether a parameter is given, and false.

        Args:
            name: Name of the parameter.
        """
        return name in self._values and not self.flag(name)

    def number(self, name: str) -> int | None:
        """Return a number that is not negative, or None.

        Args:
            name: Name of the parameter.
        """
        value = self.single(name)
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            value = int(value) if len(value) <= _MAX_DIGITS else None
            if value is None:
                raise TerminologyError("invalid", f"{name}: too large")
        if value is None and name not in self._values:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
            raise TerminologyError("invalid", f"{name}: expected a number from 0 on")
        return value

    def values(self, name: str, kind: str) -> list[Any]:
        """Return the values of a parameter, read as a type of FHIR; none if it is missing.

        Args:
            name: Name of the parameter.
            kind: Type of the value.
        """
        if name not in self:
            return []
        if kind == "Boolean":
            return [self.flag(name)]
        return [self.number(name)] if kind == "Integer" else self.all_texts(name)

    def coding(self, name: str) -> Coding | None:
        """Return a Coding, or None; in a query it is written ``system|code``.

        Args:
            name: Name of the parameter.
        """
        value = self.single(name)
        if value is None:
            return None
        if isinstance(value, str):
            system, bar, code = value.rpartition("|")
            return Coding(system if bar else None, code)
        return coding_of(value, name)

    def codings(self, name: str) -> list[Coding] | None:
        """Return the Codings of a CodeableConcept, or None.

        Args:
            name: Name of the parameter.
        """
        value = self.single(name)
        if value is None:
            return None
        listed = value.get("coding") if isinstance(value, dict) else None
        if not isinstance(listed, list) or not listed:
            raise TerminologyError("invalid", f"{name}: expected a CodeableConcept with coding")
        return [coding_of(each, name) for each in listed]

    def resource(self, name: str, kind: str) -> Resource | None:
        """Return a resource of a kind, or None.

        Args:
            name: Name of the parameter.
            kind: Type of the resource.
        """
        value = self.single(name)
        if value is None:
            return None
        if not isinstance(value, dict) or value.get("resourceType") != kind:
            raise TerminologyError("invalid", f"{name}: expected a resource of type {kind}")
        return value

    def resources(self, name: str, *kinds: str) -> list[Resource]:
        """Return the resources of a parameter that may be repeated.

        Args:
            name: Name of the parameter.
            kinds: Types of resources that are accepted.
        """
        for value in self._values.get(name, ()):
            if not isinstance(value, dict) or value.get("resourceType") not in kinds:
                raise TerminologyError("invalid", f"{name}: expected {' or '.join(kinds)}")
        return list(self._values.get(name, ()))

    def all_values(self, name: str) -> list[Any]:
        """Return the values of a parameter as they are.

        Args:
            name: Name of the parameter.
        """
        return list(self._values.get(name, ()))

    def single(self, name: str) -> Any:
        """Return the value of a parameter as it is; None if it is missing.

        Args:
            name: Name of the parameter.
        """
        values = self._values.get(name, [None])
        if len(values) > 1:
            raise TerminologyError("invalid", f"{name}: given {len(values)} times; give it once")
        return values[0]


def coding_of(value: Any, place: str) -> Coding:
    """Return a Coding of a request.

    Args:
        value: The object.
        place: Place of the object, for messages.
    """
    return Coding(*(text_in(value, key, place) for key in ("system", "code", "display", "version")))


def parse_json(body: bytes) -> Any:
    """Return what a body of JSON says.

    Args:
        body: The body.
    """
    try:
        return json.loads(body)
    except RecursionError:
        raise TerminologyError("invalid", "body: nested too deeply") from None
    except ValueError:
        raise TerminologyError("invalid", "body: expected JSON") from None


def pairs_of(content: Any) -> list[tuple[str, Any]]:
    """Return the parameters of a resource: of type Parameters, or a ValueSet to expand.

    Args:
        content: The body.
    """
    kind = content.get("resourceType") if isinstance(content, dict) else None
    if kind == "ValueSet":
        return [("valueSet", content)]
    if kind != "Parameters":
        raise TerminologyError("invalid", "body: expected a resource of type Parameters")
    pairs = []
    for each in list_in(content, "parameter", "Parameters"):
        name = text_in(each, "name", "Parameters.parameter")
        keys = [key for key in each if key in ("resource", "part") or key.startswith("value")]
        values = [each[key] for key in keys]
        if name is None or len(values) != 1 or values[0] is None:
            raise TerminologyError(
                "invalid", "Parameters.parameter: expected a name and one value or resource"
            )
        pairs.append((name, values[0]))
    return pairs


def list_of_parts(asked: Parameters, name: str) -> list[dict[str, Any]]:
    """Return the values of the parts of a parameter, by name, each time that it is given.

    Args:
        asked: The parameters of the request.
        name: Name of the parameter.
    """
    return [
        dict(pairs_of({"resourceType": "Parameters", "parameter": each}))
        for each in asked.all_values(name)
    ]


def part(name: str, kind: str, value: Any) -> Resource:
    """Return a parameter of an answer, such as ``part("result", "Boolean", True)``.

    Args:
        name: Name of the parameter.
        kind: Type of the value.
        value: The value.
    """
    return {"name": name, f"value{kind}": value}


def optional(name: str, kind: str, value: Any) -> Resource | None:
    """Return a parameter of an answer; None without a value.

    Args:
        name: Name of the parameter.
        kind: Type of the value.
        value: The value.
    """
    return part(name, kind, value) if value else None


def coding(system: str | None, code: str, display: str | None) -> Resource:
    """Return a Coding, of what is known of it.

    Args:
        system: The code system.
        code: The code.
        display: The name.
    """
    known = {"system": system, "code": code, "display": display}
    return {key: value for key, value in known.items() if value}


def parts(name: str, *inner: Resource | None) -> Resource:
    """Return a parameter that has parts; those that are None are left out.

    Args:
        name: Name of the parameter.
        inner: The parts; None is left out.
    """
    return {"name": name, "part": [each for each in inner if each is not None]}


def to_parameters(*listed: Resource | None) -> Resource:
    """Return a resource of type Parameters; those that are None are left out.

    Args:
        listed: The parts.
    """
    return {
        "resourceType": "Parameters",
        "parameter": [each for each in listed if each is not None],
    }
