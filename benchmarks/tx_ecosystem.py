"""HL7's tests of terminology services (FHIR terminology ecosystem, mode general): cases passed.

Each case is a request with the code systems and value sets that it needs (sent as `tx-resource`),
and the answer that is expected. Three counts:

strict     the answer is the expected one by the suite's own rules: marked parts may be missing,
           placeholders (`$uuid$`, `$choice:...$`, `$fragments:...$`, `$external:...$`) match their
           kind, the order of lists does not matter; narrative, `meta`, `diagnostics` and extensions
           that the suite does not manage are left out
texts      the same, whatever the wording of messages is
substance  the same result, codes and displays (of a validation, of an expansion); errors as errors

The suite is written for R5. The service speaks R4, whose extensions for `expansion.property` are
read as such. Cases that are expected to fail, by `texts`, have their reasons in
`tx_ecosystem_failures.toml`.

    BIOGRAFT_DATA=... python benchmarks/tx_ecosystem.py --json
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.testclient import TestClient
from machine import describe_command, describe_commit
from script_options import add_data, run_with, start_parser

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, NameSuggestions, build_store
from biograft.kb.sources import SourceConfig
from biograft.serve import Terminology
from biograft.serve.fhir.routes import FhirRoutes

SUITE = "fhir/tx-ecosystem-tests.tar.gz"
FAILURES = Path(__file__).with_name("tx_ecosystem_failures.toml")
LEVELS = ("strict", "texts", "substance")
_ROUTES = {
    "expand": "ValueSet/$expand",
    "validate-code": "ValueSet/$validate-code",
    "batch-validate": "ValueSet/$batch-validate-code",
    "cs-validate-code": "CodeSystem/$validate-code",
    "lookup": "CodeSystem/$lookup",
    "translate": "ConceptMap/$translate",
}
_PAGES = {"metadata": "metadata", "term-caps": "metadata?mode=terminology"}
_FHIR_VERSION = "4.0.1"
_MARKERS = ("$optional$", "$optional-properties$", "$count-arrays$", "$only$")
_KINDS = {
    "$$": r"(?s).*",
    "$id$": r"[A-Za-z0-9.-]{1,64}",
    "$uuid$": r"(urn:uuid:)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "$url$": r"[a-z][a-z0-9+.-]*:\S+",
    "$token$": r"[0-9A-Za-z_][0-9A-Za-z_.-]*",
    "$string$": r"(?s)\S(.*\S)?",
    "$date$": r"\d{4}(-\d\d(-\d\d(T.*)?)?)?",
    "$instant$": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
    "$semver$": r"\d+\.\d+(\.\d+)?(-[0-9A-Za-z.-]+)?",
    "$version$": re.escape(_FHIR_VERSION),
}
_MANAGED = re.compile(
    r"http://hl7\.org/fhir/(test/|StructureDefinition/(codesystem-(alternate|conceptOrder|label)"
    r"|coding-sctdescid|itemWeight|rendering-|structuredefinition-standards-status|translation|valueset-(concept-definition|unclosed"
    r"|conceptOrder|deprecated|label|supplement)|alternate-code-))"
)
_R5 = "http://hl7.org/fhir/5.0/StructureDefinition/extension-ValueSet.expansion."
_MESSAGES = ("text", "message")


class Case(NamedTuple):
    """One test: a request, and the answers that are right."""

    group: str
    name: str
    operation: str
    request: dict[str, Any] | None
    headers: dict[str, str]
    responses: list[dict[str, Any]]
    """More than one where the suite leaves a choice."""
    status: str
    """``4xx`` or ``2xx``."""


def read_cases(data: Path) -> list[Case]:
    """Read the cases of mode general."""
    with tarfile.open(data / SUITE) as packed:
        files = {
            each.name.partition("tests/")[2]: packed.extractfile(each).read()  # type: ignore[union-attr]
            for each in packed.getmembers()
            if each.name.endswith(".json")
        }

    def read(name: str) -> Any:
        return json.loads(files[name].decode("utf-8-sig"))

    return [
        _read_case(suite, test, read)
        for suite in read("test-cases.json")["suites"]
        for test in suite["tests"]
        if suite.get("mode", "general") == "general" and test.get("mode", "general") == "general"
    ]


def _read_case(suite: dict[str, Any], test: dict[str, Any], read: Any) -> Case:
    request = None
    if "request" in test:
        request = read(test["request"])
        extra = read(test.get("profile", "parameters-default.json"))["parameter"]
        supplied = [
            {"name": "tx-resource", "resource": read(name)} for name in suite.get("setup", ())
        ]
        given = [each for each in extra if each["name"] != "uuid"]
        request["parameter"] = [*request.get("parameter", ()), *given, *supplied]
    headers = {name: test[name] for name in ("Accept-Language",) if name in test}
    answers = [test[key] for key in ("response", "response2") if key in test]
    return Case(
        suite["name"],
        test["name"],
        test["operation"],
        request,
        headers,
        [read(name) for name in answers],
        test.get("http-code", ""),
    )


# ---- comparison


class Comparison:
    """Compares answers with expected ones.

    Args:
        texts: Whether the wording of messages counts.
    """

    def __init__(self, *, texts: bool = True) -> None:
        self._texts = texts

    def differences(self, expected: Any, actual: Any, path: str = "") -> list[str]:
        """Return what is different, as paths."""
        if isinstance(expected, dict):
            return self._objects(expected, actual, path)
        if isinstance(expected, list):
            return self._lists(expected, actual, path)
        if isinstance(expected, str) and isinstance(actual, str):
            return [] if self._same_text(expected, actual) else [f"{path}: {expected} / {actual}"]
        same = type(expected) is type(actual) and expected == actual
        return [] if same else [f"{path}: {expected} / {actual}"]

    def _objects(self, expected: dict[str, Any], actual: Any, path: str) -> list[str]:
        if not isinstance(actual, dict):
            return [f"{path}: expected an object"]
        free = expected.get("$optional-properties$", ())
        counted = expected.get("$count-arrays$", ())
        wanted = {key: value for key, value in expected.items() if key not in _MARKERS}
        found = [f"{path}.{key}: not expected" for key in actual if key not in wanted]
        is_message = wanted.get("name") in _MESSAGES
        for key, value in wanted.items():
            if key not in actual:
                if key not in free and "*" not in free and not _all_optional(value):
                    found.append(f"{path}.{key}: missing")
            elif key in counted:
                if len(value) != len(actual[key]):
                    found.append(f"{path}.{key}: {len(value)} / {len(actual[key])}")
            elif self._texts or not (key in _MESSAGES or (is_message and key == "valueString")):
                found += self.differences(value, actual[key], f"{path}.{key}")
        return found

    def _lists(self, expected: list[Any], actual: Any, path: str) -> list[str]:
        if not isinstance(actual, list):
            return [f"{path}: expected a list"]
        left, found = list(actual), []
        for each in sorted(expected, key=_is_optional):
            fitting = next((a for a in left if not self.differences(each, a, path)), None)
            if fitting is not None:
                left.remove(fitting)
            elif not _is_optional(each):
                near = next((a for a in left if _key(a) == _key(each)), None)
                label = f"{path}[{_key(each)}]"
                if near is None:
                    found.append(f"{label}: missing")
                else:
                    left.remove(near)
                    found += self.differences(each, near, label)
        return found + [f"{path}[{_key(each)}]: not expected" for each in left]

    def _same_text(self, expected: str, actual: str) -> bool:
        if expected in _KINDS:
            return re.fullmatch(_KINDS[expected], actual) is not None
        rest = expected.strip("$").partition(":")[2]
        if expected.startswith("$choice:"):
            return actual in rest.split("|")
        if expected.startswith("$fragments:"):
            return all(each.lower() in actual.lower() for each in rest.split("|"))
        if expected.startswith("$external"):
            pieces = rest.partition(":")[2]
            return all(each.lower() in actual.lower() for each in pieces.split("|"))
        return expected.replace("$version$", _FHIR_VERSION) == actual


def _is_optional(given: Any) -> bool:
    rule = given.get("$optional$") if isinstance(given, dict) else None
    if not isinstance(rule, str):
        return bool(rule)
    kind, _, value = rule.partition(":")
    return rule.startswith("!") or kind == "warning" or _FHIR_VERSION.startswith(value or "?")


def _all_optional(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_optional, value))


def _key(given: Any) -> str:
    if not isinstance(given, dict):
        return str(given)
    details = given.get("details", {}).get("coding", [{}])[0].get("code")
    return str(given.get("name") or details or given.get("code") or given.get("url") or "")


def normalised(content: Any) -> Any:
    """Return an answer without what is not compared, and with R5's places for R4's extensions."""
    if isinstance(content, list):
        return [normalised(each) for each in content]
    if not isinstance(content, dict):
        return content
    made = {key: normalised(each) for key, each in content.items() if key not in ("meta",)}
    if "issue" in made and "resourceType" in made:
        issues = [{k: v for k, v in i.items() if k != "diagnostics"} for i in made["issue"]]
        made["issue"] = issues
        made.pop("text", None)
    for each in made.pop("extension", []):
        if each["url"].startswith(_R5):
            made.setdefault("property", []).append(_as_property(each))
        elif ":" not in each["url"] or _MANAGED.match(each["url"]):
            made.setdefault("extension", []).append(each)
    return made


def _as_property(extension: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for each in extension["extension"]:
        ((key, value),) = ((k, v) for k, v in each.items() if k != "url")
        made[each["url"] + (key[5:] if each["url"] == "value" else "")] = value
    return made


def substance(content: Any) -> Any:
    """Return what an answer says: the result with its code, the codes of an expansion, an error."""
    kind = content.get("resourceType")
    if kind == "OperationOutcome":
        return "error"
    if kind == "ValueSet":
        listed = _contained(content["expansion"].get("contains", ()))
        return sorted((e.get("system"), e.get("code"), e.get("display")) for e in listed)
    if kind == "Parameters":
        named = content.get("parameter", ())
        return {
            each["name"]: next((v for k, v in each.items() if k.startswith("value")), None)
            for each in named
            if each["name"] in ("result", "display", "outcome") and not each.get("$optional$")
        }
    return kind


def _contained(listed: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in listed:
        yield each
        yield from _contained(each.get("contains", ()))


# ---- runs


class Outcome(NamedTuple):
    """What a service answered to a case, and where it differs by ``texts``."""

    case: Case
    passed: dict[str, bool]
    differences: list[str]
    answer: Any


def run_case(client: TestClient, case: Case) -> Outcome:
    """Send a case, and compare the answer."""
    if case.request is None:
        answered = client.get(f"/fhir/{_PAGES[case.operation]}")
    else:
        url = f"/fhir/{_ROUTES[case.operation]}"
        answered = client.post(url, json=case.request, headers=case.headers)
    answer = normalised(answered.json())
    is_right = _is_status(answered.status_code, case)
    strict, texts = (
        min((Comparison(texts=mind).differences(e, answer) for e in case.responses), key=len)
        for mind in (True, False)
    )
    said = [substance(e) == substance(answer) for e in case.responses]
    passed = {
        "strict": is_right and not strict,
        "texts": is_right and not texts,
        "substance": is_right and (any(said) or not texts),
    }
    status = [] if is_right else [f"status {answered.status_code}"]
    return Outcome(case, passed, [*status, *(texts or strict)], answer)


def _is_status(status: int, case: Case) -> bool:
    if case.status:
        return str(status)[0] == case.status[0]
    if status < 300:
        return True
    return any(each["resourceType"] == "OperationOutcome" for each in case.responses[1:])


def served(work: Path) -> TestClient:
    """Return a client of the terminology routes on a small knowledge base."""
    names = work / "concepts.csv"
    names.write_text("id,name\nLOCAL:1,one\n", encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=names),)), work / "kb")
    kb = KnowledgeBase.open(work / "kb")
    terminology = Terminology(kb, NameSuggestions(kb), {})
    return TestClient(FhirRoutes(FastAPI(), lambda: terminology))


def run_all(data: Path) -> list[Outcome]:
    """Run every case of mode general."""
    with tempfile.TemporaryDirectory() as work, served(Path(work)) as client:
        return [run_case(client, case) for case in read_cases(data)]


def count(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """Count the cases that passed, by group."""
    groups = dict.fromkeys(each.case.group for each in outcomes)
    return {
        group: {
            "cases": sum(each.case.group == group for each in outcomes),
            **{
                level: sum(e.passed[level] for e in outcomes if e.case.group == group)
                for level in LEVELS
            },
        }
        for group in groups
    }


def expected_failures() -> dict[str, str]:
    """Return the reason of each case, ``group/name``, that is expected to fail by ``texts``."""
    listed = tomllib.loads(FAILURES.read_text(encoding="utf-8"))["reason"]
    return {name: each["why"] for each in listed for name in each["cases"]}


def to_markdown(result: dict[str, Any]) -> str:
    """Write the table of the guide."""
    rows = ["| group | cases | strict | texts ignored | substance |", "|---|---|---|---|---|"]
    groups = result["groups"]
    total = {key: sum(each[key] for each in groups.values()) for key in ("cases", *LEVELS)}
    for name, each in [*groups.items(), ("**all**", total)]:
        rows.append(" | ".join([f"| {name}", *(str(each[k]) for k in ("cases", *LEVELS))]) + " |")
    return "\n".join(rows)


def measure(options: argparse.Namespace) -> None:
    """Run, and print."""
    if options.markdown:
        print(to_markdown(json.loads(options.markdown.read_text())))
        return
    outcomes = run_all(options.data)
    if options.show:
        for each in outcomes:
            if options.show in f"{each.case.group}/{each.case.name}" and each.differences:
                print(f"{each.case.group}/{each.case.name}", *each.differences, sep="\n    ")
        return
    result = {
        "groups": count(outcomes),
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("tx_ecosystem.py", sys.argv[1:]),
    }
    print(json.dumps(result) if options.json else to_markdown(result))


def main() -> None:
    """Measure, and print the counts."""
    parser = start_parser(__doc__)
    parser.add_argument("--markdown", type=Path, help="print the table of a result file")
    parser.add_argument("--show", help="print differences of the cases with this in their name")
    parser.add_argument("--json", action="store_true", help="one line")
    add_data(parser)
    run_with(measure, parser.parse_args())


if __name__ == "__main__":
    main()
