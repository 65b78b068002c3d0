"""``$validate-code``: whether codes are in a code system or a value set, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.kb.code_systems import CodeSystem, CodeSystems, SuppliedSystem, canonical
from biograft.kb.fhir import Resource, spend
from biograft.kb.names import normalise
from biograft.kb.value_sets import ValueSet
from biograft.serve.fhir.expansion import Languages, display, languages_of, same_language
from biograft.serve.fhir.parameters import Coding, Parameters, issue, optional, part, to_parameters

_STEPS_OF_CODE = 50


@dataclass
class _Checked:
    """Result of checking one code."""

    given: Coding
    place: str
    entry: int | None = None
    system: CodeSystem | None = None
    right: bool = False
    issues: list[Resource] = field(default_factory=list)
    unknown: str | None = None
    """The code system that is not known."""

    def note(self, severity: str, code: str, kind: str, text: str, part: str = "code") -> None:
        """Add an issue about a part of the code, such as its display.

        Args:
            severity: error, warning or information.
            code: Issue code of FHIR.
            kind: Type of the issue, by HL7's list.
            text: What is wrong.
            part: Part of the code, such as its display.
        """
        place = f"{self.place}.{part}" if self.place else part
        self.issues.append(issue(severity, code, kind, text, place))


class Validation:
    """Validates the codes of one request, against a value set, a code system, or any system.

    Args:
        codes: Code systems of the store.
        asked: Parameters of the request.
        chosen: Value set that the codes are looked for in.
        system: Code system of all codes, where the operation is one of a code system.
    """

    def __init__(
        self,
        codes: CodeSystems,
        asked: Parameters,
        *,
        chosen: ValueSet | None = None,
        system: CodeSystem | None = None,
    ) -> None:
        self._codes, self._asked, self._chosen, self._system = codes, asked, chosen, system
        self._languages: Languages = languages_of(asked, chosen)
        self._infers = asked.flag("inferSystem")

    def answer(self) -> Resource:
        """Return the answer for the codes of the request."""
        whole = self._asked.codings("codeableConcept")
        if whole is not None:
            checked = [
                self._check(each, f"CodeableConcept.coding[{i}]") for i, each in enumerate(whole)
            ]
        else:
            checked = [self._check_single()]
        return self._summed(checked, is_concept=whole is not None)

    def _check_single(self) -> _Checked:
        single = self._asked.coding("coding")
        if single is not None:
            return self._check(single, "Coding")
        code = self._asked.required("code")
        version = self._asked.text("systemVersion")
        if version is None and self._chosen is None:
            version = self._asked.text("version")
        given = Coding(self._asked.text("system"), code, self._asked.text("display"), version)
        self._infers = True
        return self._check(given, "")

    # ---- one code

    def _check(self, given: Coding, place: str) -> _Checked:
        spend(_STEPS_OF_CODE)
        checked = _Checked(given, place)
        if given.code is None:
            checked.note("error", "required", "invalid-data", "a code is missing")
            return checked
        system = self._system_of(checked)
        if system is None:
            return checked
        checked.system = system
        entries = self._codes.resolve(system, given.code)
        if not entries:
            self._note_unknown_code(checked, system)
            return checked
        inside = [e for e in entries if self._chosen is None or self._chosen.has(e, self._codes)]
        checked.entry = (inside or entries)[0]
        checked.right = bool(inside)
        self._check_use(checked, checked.entry)
        if not self._asked.flag("valueset-membership-only"):
            self._check_display(checked, entries)
        return checked

    def _system_of(self, checked: _Checked) -> CodeSystem | None:
        """Return the code system of a code, or say why there is none."""
        url, version = checked.given.system, checked.given.version
        if url is None:
            return self._inferred(checked)
        if ":" not in url:
            text = f"{url!r}: a system is an absolute URI"
            checked.note("error", "invalid", "invalid-data", text, "system")
            return None
        system = self._codes.find(url, version)
        named = canonical(url, version)
        if isinstance(system, SuppliedSystem) and not system.has_codes:
            system = None
        if system is None:
            checked.unknown = named
            also = self._codes.known_versions(url)
            text = f"the code system {named!r} is not known{also}, so the code cannot be validated"
            checked.note("error", "not-found", "not-found", text, "system")
            return None
        if self._chosen is None and self._system is not None and system.url != self._system.url:
            text = f"the code is of {url}, not of {self._system.url}"
            checked.note("error", "invalid", "invalid-data", text, "system")
            return None
        return system

    def _inferred(self, checked: _Checked) -> CodeSystem | None:
        """Return the one system that has a code, among those that the value set has."""
        if self._system is not None:
            return self._system
        code = checked.given.code or ""
        if self._infers and self._chosen is not None:
            systems = self._chosen.systems
            fitting = [
                system
                for system in systems
                if any(self._chosen.has(e, self._codes) for e in self._codes.resolve(system, code))
            ]
            if len(fitting) == 1:
                return fitting[0]
            if not fitting and len(systems) == 1:
                return systems[0]
            found = "in several code systems" if fitting else "in no code system"
            text = f"the system cannot be inferred: the code {code!r} is {found} of the value set"
            checked.note("error", "not-found", "cannot-infer", text)
            return None
        severity = "warning" if self._chosen is not None else "error"
        text = "a code without a system has no meaning, and cannot be validated"
        checked.note(severity, "invalid", "invalid-data", text, "system")
        return None

    def _note_unknown_code(self, checked: _Checked, system: CodeSystem) -> None:
        named = canonical(system.url, system.version)
        if isinstance(system, SuppliedSystem) and system.content == "fragment":
            text = f"the code {checked.given.code!r} is not in {named}, which has only some codes"
            checked.note("warning", "code-invalid", "invalid-code", text)
            checked.right = self._chosen is None
            return
        text = f"the code {checked.given.code!r} is not in the code system {named!r}"
        checked.note("error", "code-invalid", "invalid-code", text)

    def _check_use(self, checked: _Checked, entry: int) -> None:
        """Note a code out of use, an abstract one, and one that is spelled otherwise."""
        codes, code = self._codes, checked.given.code
        if not codes.is_active(entry):
            if self._asked.flag("activeOnly"):
                checked.right = False
            text = f"the code {code!r} is not in use any more"
            checked.note("warning", "business-rule", "code-comment", text)
        if not isinstance(checked.system, SuppliedSystem):
            return
        if checked.system.is_abstract(entry) and self._asked.is_false("abstract"):
            text = f"the code {code!r} is abstract, and abstract codes are not accepted here"
            checked.note("error", "business-rule", "code-rule", text)
            checked.right = False
        if (spelled := codes.code(entry)) != code:
            text = f"the code {code!r} is written {spelled!r}; the code system ignores case"
            checked.note("information", "business-rule", "code-rule", text)

    def _check_display(self, checked: _Checked, entries: list[int]) -> None:
        given, codes = checked.given, self._codes
        if given.display is None or checked.entry is None:
            return
        key = normalise(given.display)
        names = [
            name
            for row in dict.fromkeys(codes.row(e) for e in entries)
            for name in codes.names(row)
        ]
        own = {checked.entry: ""} if self._chosen is None else self._chosen.displays
        if normalise(own.get(checked.entry, "")) == key:
            return
        tags = self._languages.tags
        fitting = [
            n
            for n in names
            if not n.language or any(same_language(n.language, tag) for tag in tags)
        ]
        among = fitting if tags and fitting else names
        if not names or any(normalise(name.text) == key for name in among):
            return
        right = display(codes, checked.entry, self._languages)
        hint = f"; it is called {right!r}" if right else ""
        text = f"{given.display!r} is not a name of the code {given.code!r}{hint}"
        severity = "warning" if self._asked.flag("lenient-display-validation") else "error"
        checked.note(severity, "invalid", "invalid-display", text, "display")

    # ---- the answer

    def _summed(self, checked: list[_Checked], *, is_concept: bool) -> Resource:
        right = [each for each in checked if each.right]
        issues: list[Resource] = []
        if self._chosen is not None and not right:
            issues.append(self._not_in_set(checked, is_concept=is_concept))
        for each in checked:
            if (
                self._chosen is not None
                and is_concept
                and not each.right
                and each.entry is not None
            ):
                text = f"the code {each.given.code!r} is not in the {self._where}"
                each.note("information", "code-invalid", "this-code-not-in-vs", text)
            for found in each.issues:
                if right and each.unknown and found["severity"] == "error":
                    issues.append({**found, "severity": "warning"})
                else:
                    issues.append(found)
        failed = [each for each in issues if each["severity"] == "error"]
        said = failed or [each for each in issues if each["severity"] == "warning"]
        message = "; ".join(each["details"]["text"] for each in said)
        best = next(iter(right), None) or next((c for c in checked if c.entry is not None), None)
        outcome = {"resourceType": "OperationOutcome", "issue": issues}
        unknown = dict.fromkeys(each.unknown for each in checked if each.unknown)
        return to_parameters(
            part("result", "Boolean", bool(right) and not failed),
            *self._described(best or checked[0]),
            optional("message", "String", message),
            optional("codeableConcept", "CodeableConcept", self._asked.single("codeableConcept")),
            {"name": "issues", "resource": outcome} if issues else None,
            *(part("x-caused-by-unknown-system", "Canonical", each) for each in unknown),
        )

    @property
    def _where(self) -> str:
        name = self._chosen.canonical if self._chosen is not None else None
        return f"value set {name}" if name else "value set"

    def _not_in_set(self, checked: list[_Checked], *, is_concept: bool) -> Resource:
        given = ", ".join(f"{each.given.system or ''}#{each.given.code or ''}" for each in checked)
        text = f"{given}: not in the {self._where}"
        place = "CodeableConcept" if is_concept else ("Coding.code" if checked[0].place else "code")
        return issue("error", "code-invalid", "not-in-vs", text, place)

    def _described(self, best: _Checked) -> list[Resource | None]:
        """Return the code against which it was validated, and what is known of it."""
        url = best.system.url if best.system else best.given.system
        listed: list[Resource | None] = [
            optional("code", "Code", best.given.code),
            optional("system", "Uri", url),
            optional("version", "String", best.system and best.system.version),
        ]
        if best.entry is None:
            return listed
        codes = self._codes
        shown = display(codes, best.entry, self._languages, self._chosen)
        listed.append(optional("display", "String", shown))
        if (spelled := codes.code(best.entry)) != best.given.code:
            listed.append(part("normalized-code", "Code", spelled))
        if not codes.is_active(best.entry):
            listed.append(part("inactive", "Boolean", True))
            if isinstance(best.system, SuppliedSystem):
                status = best.system.status_of(best.system.concept(best.entry))
                listed.append(optional("status", "Code", status))
        return listed
