"""``$validate-code``: whether codes are in a code system or a value set, and what is wrong."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from biograft.kb.code_systems import (
    CodeSystem,
    CodeSystems,
    SuppliedSystem,
    canonical,
    fits,
    standards_status,
)
from biograft.kb.fhir import Resource, TerminologyError, list_in, spend
from biograft.kb.names import normalise
from biograft.kb.value_sets import ValueSet
from biograft.serve.fhir.expansion import (
    STATUSES,
    VALUE_SET_DEPRECATED,
    Languages,
    display,
    languages_of,
    same_language,
    use_statuses,
)
from biograft.serve.fhir.parameters import Coding, Parameters, issue, optional, part, to_parameters

_STEPS_OF_CODE = 50
_NO_LONGER = ("deprecated", "withdrawn")


@dataclass
class _Checked:
    """Result of checking one code."""

    given: Coding
    place: str
    entry: int | None = None
    system: CodeSystem | None = None
    right: bool = False
    misversioned: bool = False
    """Whether the code is in the value set, in another version of its system."""
    issues: list[Resource] = field(default_factory=list)
    unknown: str | None = None
    """The code system that is not known."""
    asides: list[Resource] = field(default_factory=list)
    """Issues that the message of the answer does not repeat."""

    def note(self, severity: str, code: str, kind: str, text: str, part: str = "code") -> None:
        """Add an issue about a part of the code, such as its display.

        Args:
            severity: error, warning or information.
            code: Issue code of FHIR.
            kind: Type of the issue, by HL7's list.
            text: What is wrong.
            part: Part of the code, such as its display.
        """
        place = ".".join(filter(None, (self.place, part))) or "code"
        self.issues.append(issue(severity, code, kind, text, place))


class Validation:
    """Validates the codes of one request, against a value set, a code system, or any system.

    Args:
        codes: Code systems of the store.
        asked: Parameters of the request.
        chosen: Value set that the codes are looked for in.
        system: Code system of all codes, where the operation is one of a code system.
        checks: Versions that code systems must have.
        value_sets: URLs of known value sets, which are no code systems.
    """

    def __init__(
        self,
        codes: CodeSystems,
        asked: Parameters,
        *,
        chosen: ValueSet | None = None,
        system: CodeSystem | None = None,
        checks: Mapping[str, str] | None = None,
        value_sets: Container[str] = (),
    ) -> None:
        self._checks, self._value_sets = checks or {}, value_sets
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
        checked.right = bool(inside) and not checked.misversioned
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
            text = "Coding.system must be an absolute reference, not a local reference"
            checked.note("error", "invalid", "invalid-data", text, "system")
        if self._chosen is not None and (system := self._by_value_set(checked)) is not None:
            return system
        system = self._codes.find(url, version)
        if isinstance(system, SuppliedSystem) and not system.has_codes:
            system = None
        if system is None:
            self._note_unknown_system(checked, url, version)
            return None
        if self._chosen is None and self._system is not None and system.url != self._system.url:
            text = f"the code is of {url}, not of {self._system.url}"
            checked.note("error", "invalid", "invalid-data", text, "system")
            return None
        return system

    def _note_unknown_system(self, checked: _Checked, url: str, version: str | None) -> None:
        what = None
        if url in self._value_sets:
            what = f"The Coding references a value set, not a code system ('{url}')"
        elif named := self._codes.supplement_of(url):
            what = f"CodeSystem {named} is a supplement, so can't be used as a value in "
            what += "Coding.system"
        if what is not None:
            checked.note("error", "invalid", "invalid-data", what, "system")
            return
        checked.unknown = canonical(url, version)
        text = self._codes.why_unknown(url, version, "the code cannot be validated")
        checked.note("error", "not-found", "not-found", text, "system")

    def _by_value_set(self, checked: _Checked) -> CodeSystem | None:
        """Return the system in the version that the value set has; note if the code's differs."""
        url, version = checked.given.system or "", checked.given.version
        chosen = self._chosen.included if self._chosen is not None else ()
        own = [each for each in chosen if each.system.url == url]
        missing = self._chosen.missing if self._chosen is not None else ()
        absent = next((v for u, v in missing if u == url and v), None)
        if absent and not own:
            self._note_unknown_system(checked, url, absent)
            checked.misversioned = True
            if version and version != absent:
                self._note_mismatch(checked, absent, absent)
            return None
        same = (e for e in own if e.system.version == version)
        include = next(same, own[0] if own else None)
        if include is None or not isinstance(include.system, SuppliedSystem):
            return None
        used, checks = include.system.version, self._checks
        if url in checks and not fits(used, checks[url]):
            text = version_check(url, used, checks[url])
            checked.note("error", "exception", "version-error", text, "version")
            checked.misversioned = True
        if version and used and version != used:
            self._note_mismatch(checked, used, include.stated)
            if not any(fits(each, version) for each in self._codes.known_versions(url)):
                self._note_unknown_system(checked, url, version)
        return include.system

    def _note_mismatch(self, checked: _Checked, used: str, stated: str | None) -> None:
        """Note that the version of a code is not the one that the value set has."""
        url, codes = checked.given.system or "", self._codes
        changed = codes.forced.get(url) or (None if stated else codes.versions.get(url))
        how, severity = f"'{stated or used}' in", "error"
        if changed:
            how = f"'{changed}' resulting from the version '{stated or ''}' in"
        elif not stated:
            how, severity = f"'{used}' for the versionless include in", "warning"
        text = (
            f"The code system '{url}' version {how} the ValueSet include is different to the one "
            f"in the value ('{checked.given.version}')"
        )
        checked.misversioned = True
        checked.note(severity, "invalid", "vs-invalid", text, "version")

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
            text = (
                f"The System URI could not be determined for the code '{code}' in the "
                f"{self._where.replace('value set', 'ValueSet')}"
            )
            checked.note("error", "not-found", "cannot-infer", text)
            return None
        severity = "warning" if self._chosen is not None else "error"
        text = (
            "Coding has no system. A code with no system has no defined meaning, and it cannot be "
            "validated. A system should be provided"
        )
        checked.note(severity, "invalid", "invalid-data", text, "")
        return None

    def _note_unknown_code(self, checked: _Checked, system: CodeSystem) -> None:
        if self._asked.flag("valueset-membership-only"):
            return
        named = canonical(system.url, system.version)
        if isinstance(system, SuppliedSystem) and system.content == "fragment":
            text = f"the code {checked.given.code!r} is not in {named}, which has only some codes"
            checked.note("warning", "code-invalid", "invalid-code", text)
            checked.asides.append(checked.issues[-1])
            included = () if self._chosen is None else self._chosen.included
            checked.right = self._chosen is None or any(
                e.system == system and e.listed is None and not (e.conditions or e.within)
                for e in included
            )
            return
        version = f" version '{system.version}'" if system.version else ""
        text = f"Unknown code '{checked.given.code}' in the CodeSystem '{system.url}'{version}"
        checked.note("error", "code-invalid", "invalid-code", text)

    def _check_use(self, checked: _Checked, entry: int) -> None:
        """Note a code out of use, an abstract one, and one that is spelled otherwise."""
        codes, code = self._codes, checked.given.code
        if not codes.is_active(entry):
            if self._asked.flag("activeOnly"):
                checked.right = False
            if not checked.right:
                text = f"The concept '{code}' is valid but is not active"
                checked.note("error", "business-rule", "code-rule", text)
            status = _status_of(checked.system, entry)
            text = f"The concept '{code}' has a status of {status} and its use should be reviewed"
            checked.note("warning", "business-rule", "code-comment", text, "")
        elif _status_of(checked.system, entry) == "deprecated":
            text = f"The concept '{code}' is deprecated and its use should be reviewed"
            checked.note("warning", "business-rule", "code-comment", text)
        if self._chosen is not None and _is_deprecated(self._chosen.extensions.get(entry, ())):
            text = (
                f"The presence of the concept '{code}' in the system '{checked.given.system}' in "
                f"the {self._where.replace(chr(39), '')} is marked with a status of deprecated and "
                "its use should be reviewed"
            )
            checked.note("warning", "business-rule", "code-comment", text)
            checked.asides.append(checked.issues[-1])
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
        if not names:
            return
        right = display(codes, checked.entry, self._languages)
        severity = "warning" if self._asked.flag("lenient-display-validation") else "error"
        if any(normalise(name.text) == key for name in among):
            if " ".join(given.display.split()) != given.display and not any(
                name.text == given.display for name in among
            ):
                text = f"{given.display!r} has more white space than {right!r}"
                checked.note(severity, "invalid", "invalid-display", text, "display")
            elif tags and not fitting:
                text = (
                    "There are no valid display names found for the code "
                    f"{given.system}#{given.code} for language(s) '{', '.join(tags)}'. The display "
                    f"is '{given.display}' which is a valid display for the default language"
                )
                checked.note("information", "invalid", "invalid-display", text, "display")
            elif status := _status_of_name(checked.system, checked.entry, given.display):
                text = (
                    f"'{given.display}' is no longer considered a correct display for code "
                    f"'{given.code}' (status = {status}). The correct display is \"{right}\"."
                )
                checked.note("warning", "invalid", "display-comment", text, "display")
                checked.asides.append(checked.issues[-1])
            return
        hint = f"; it is called {right!r}" if right else ""
        text = f"{given.display!r} is not a name of the code {given.code!r}{hint}"
        checked.note(severity, "invalid", "invalid-display", text, "display")

    # ---- the answer

    def _summed(self, checked: list[_Checked], *, is_concept: bool) -> Resource:
        right = [each for each in checked if each.right]
        issues: list[Resource] = []
        if self._chosen is not None and not any(e.right or e.misversioned for e in checked):
            issues.append(self._not_in_set(checked, is_concept=is_concept))
        for each in checked:
            if (
                self._chosen is not None
                and is_concept
                and not each.right
                and not each.misversioned
                and each.given.system
            ):
                named = f"{canonical(each.given.system, each.given.version)}#{each.given.code}"
                text = f"The provided code '{named}' was not found in the {self._where}"
                each.note("information", "code-invalid", "this-code-not-in-vs", text)
            for found in each.issues:
                if right and each.unknown and found["severity"] == "error":
                    issues.append({**found, "severity": "warning"})
                else:
                    issues.append(found)
        issues += self._statuses(right[0]) if right else []
        failed = [each for each in issues if each["severity"] == "error"]
        asides = [aside for each in checked for aside in each.asides]
        said = failed or [each for each in issues if _is_said(each) and each not in asides]
        message = "; ".join(sorted({each["details"]["text"] for each in said}))
        best = next(iter(right), None) or next((c for c in checked if c.entry is not None), None)
        outcome = {"resourceType": "OperationOutcome", "issue": issues}
        unknown = dict.fromkeys(
            (each.unknown, self._names(each.given.system or "")) for each in checked if each.unknown
        )
        return to_parameters(
            part("result", "Boolean", bool(right) and not failed),
            *(
                self._described(best or checked[0])
                if not is_concept or any(e.right or (e.misversioned and e.entry) for e in checked)
                else ()
            ),
            optional("message", "String", message),
            optional("codeableConcept", "CodeableConcept", self._asked.single("codeableConcept")),
            {"name": "issues", "resource": outcome} if issues else None,
            *(
                part("x-caused-by-unknown-system", "Canonical", each)
                if named
                else part("x-unknown-system", "Canonical", each.partition("|")[0])
                for each, named in unknown
            ),
        )

    def _names(self, url: str) -> bool:
        """Whether the value set, if there is one, has codes of a system."""
        if self._chosen is None:
            return True
        named = [each.url for each in self._chosen.systems] + [u for u, _ in self._chosen.missing]
        return url in named

    def _statuses(self, best: _Checked) -> list[Resource]:
        """Return notes on a code system and value set that are not in full use."""
        listed = [
            ("CodeSystem", each.resource, each.url)
            for each in (best.system,)
            if isinstance(each, SuppliedSystem)
        ]
        if self._chosen is not None and self._chosen.url:
            listed.append(("ValueSet", self._chosen.resource, self._chosen.url))
            listed += [("ValueSet", each, str(each["url"])) for each in self._chosen.used.values()]
        return [
            issue(
                "information",
                "business-rule",
                "status-check",
                f"Reference to {status} {kind} {canonical(url, resource.get('version'))}",
            )
            for kind, resource, url in listed
            for status in use_statuses(resource)
            if kind == "CodeSystem" or status in ("deprecated", "withdrawn")
        ]

    @property
    def _where(self) -> str:
        name = self._chosen.canonical if self._chosen is not None else None
        return f"value set '{name}'" if name else "value set"

    def _not_in_set(self, checked: list[_Checked], *, is_concept: bool) -> Resource:
        if is_concept:
            text = f"No valid coding was found for the {self._where}"
            return issue("error", "code-invalid", "not-in-vs", text)
        given = checked[0].given
        named = f"{canonical(given.system or '', given.version)}#{given.code}"
        text = f"The provided code '{named}' was not found in the {self._where}"
        place = "Coding.code" if checked[0].place else "code"
        made = issue("error", "code-invalid", "not-in-vs", text, place)
        if checked[0].entry is None and checked[0].system is not None:
            del made["location"]  # as of the issue that the code is unknown
        return made

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
        status = _status_of(best.system, best.entry)
        shown = status if status in STATUSES and status != "inactive" else None
        listed.append(optional("status", "Code", shown))
        return listed


def _status_of(system: CodeSystem | None, entry: int) -> str:
    """Return why a code is out of use, or that it is deprecated."""
    if not isinstance(system, SuppliedSystem):
        return "inactive"
    return system.status_of(system.concept(entry)) or "inactive"


def _status_of_name(system: CodeSystem | None, entry: int, text: str) -> str | None:
    """Return the status of a designation; None if it is in use, or the display itself."""
    if not isinstance(system, SuppliedSystem) or system.concept(entry).display == text:
        return None
    listed = [d for d in system.concept(entry).designations if d["value"] == text]
    found = [standards_status(list_in(each, "extension", "designation")) for each in listed]
    return found[0] if found and all(each in _NO_LONGER for each in found) else None


def _is_deprecated(extensions: Sequence[Resource]) -> bool:
    """Whether a value set says of one of its codes that it is deprecated."""
    return standards_status(extensions) == "deprecated" or any(
        each.get("url") == VALUE_SET_DEPRECATED
        and next((v for k, v in each.items() if k.startswith("value")), None) in (True, "true")
        for each in extensions
    )


def _is_said(found: Resource) -> bool:
    """Whether the message of an answer without errors repeats an issue."""
    kind = found["details"].get("coding", [{}])[0].get("code")
    return bool(found["severity"] == "warning" or kind == "invalid-display")


def version_check(url: str, version: str | None, wanted: str) -> str:
    """Return the message for a version that check-system-version does not allow.

    Args:
        url: URI of the code system.
        version: The version that is used.
        wanted: The version that is allowed.
    """
    return (
        f"The version '{version}' is not allowed for system '{url}': required to be '{wanted}' by "
        "a version-check parameter"
    )


def stated_versions(asked: Parameters) -> dict[str, str]:
    """Return the versions of code systems that the codes of a request state.

    Args:
        asked: The parameters of the request.
    """
    single = Coding(asked.text("system"), None, None, asked.text("systemVersion"))
    given = asked.codings("codeableConcept") or [asked.coding("coding") or single]
    return {each.system: each.version for each in given if each.system and each.version}


def not_validated(asked: Parameters, error: TerminologyError) -> Resource:
    """Return the answer where a value set cannot be read, so that nothing is in it.

    Args:
        asked: The parameters of the request.
        error: What is wrong with the value set.
    """
    found = issue("error", error.code, error.code, str(error))
    return to_parameters(
        part("result", "Boolean", False),
        part("message", "String", str(error)),
        optional("codeableConcept", "CodeableConcept", asked.single("codeableConcept")),
        {"name": "issues", "resource": {"resourceType": "OperationOutcome", "issue": [found]}},
    )
