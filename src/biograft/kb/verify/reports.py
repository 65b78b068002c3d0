"""Reports of a verification: text, JSON lines, JUnit for test runners, SARIF for code review."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import biograft
from biograft.errors import visible
from biograft.kb.verify.check import IdFinding
from biograft.kb.verify.judge import Status

REPORTS = ("text", "json", "junit", "sarif")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    Status.UNKNOWN_ID: "No concept of the knowledge base has the id.",
    Status.RETIRED: "The id is retired.",
    Status.LABEL_OF_ANOTHER: "The label is a name of another concept.",
    Status.MISSPELT_LABEL: "The label is a misspelt name.",
    Status.WRONG_VOCABULARY: "The id is not of an expected vocabulary.",
    Status.WRONG_BRANCH: "The concept is outside the expected branch.",
    Status.NOT_IN_VALUE_SET: "The concept is not in the value set.",
    Status.NEWER_ID: "The id may be newer than the knowledge base.",
    Status.UNKNOWN_LABEL: "The label is no name of the concept.",
}


def write_report(form: str, findings: Iterable[IdFinding], files: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of a report.

    Args:
        form: One of ``REPORTS``.
        findings: What is wrong, file by file.
        files: All files that are verified.
    """
    if form == "text":
        yield from (visible(str(finding)) for finding in findings)
    elif form == "json":
        yield from (json.dumps(each.to_json(), ensure_ascii=False) for each in findings)
    elif form == "junit":
        yield ElementTree.tostring(_junit(list(findings), files), "unicode", xml_declaration=True)
    else:
        yield json.dumps(_sarif(findings), ensure_ascii=False, indent=1)


def _junit(findings: list[IdFinding], files: Sequence[Path]) -> ElementTree.Element:
    """Make a suite of every file, with a case for each error; a file without any passes."""
    root = ElementTree.Element("testsuites")
    n_failures = 0
    for path in map(str, files):
        errors = [each for each in findings if each.path == path and each.level == "error"]
        n_failures += len(errors)
        counts = {"tests": str(max(len(errors), 1)), "failures": str(len(errors))}
        suite = ElementTree.SubElement(root, "testsuite", {"name": visible(path), **counts})
        if not errors:
            _case(suite, path)
        for each in errors:
            kind = {"type": str(each.status), "message": visible(f"{each.id}: {each.message}")}
            case = _case(suite, f"{each.place} {each.id}")
            ElementTree.SubElement(case, "failure", kind).text = visible(str(each))
    root.set("failures", str(n_failures))
    return root


def _case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    described = {"classname": "biograft.verify", "name": visible(name)}
    return ElementTree.SubElement(suite, "testcase", described)


def _sarif(findings: Iterable[IdFinding]) -> dict[str, Any]:
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "biograft",
                        "version": biograft.__version__,
                        "rules": [
                            {"id": str(status), "shortDescription": {"text": text}}
                            for status, text in _RULES.items()
                        ],
                    }
                },
                "results": [
                    {
                        "ruleId": str(each.status),
                        "level": each.level,
                        "message": {"text": f"{each.id}: {each.message}"},
                        "locations": [{"physicalLocation": _place(each)}],
                    }
                    for each in findings
                ],
            }
        ],
    }


def _place(finding: IdFinding) -> dict[str, Any]:
    uri = Path(finding.path).as_posix()
    region = {"startLine": max(finding.line, 1), "startColumn": max(finding.column, 1)}
    return {"artifactLocation": {"uri": uri}, "region": region}
