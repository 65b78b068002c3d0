"""HL7's tests of terminology services: which cases pass, and which fail for a known reason."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULT = BENCHMARKS / "results" / "tx_ecosystem.json"


@pytest.fixture(scope="module")
def suite() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import tx_ecosystem

        yield tx_ecosystem
    sys.modules.pop("tx_ecosystem")


@pytest.mark.long
def test_the_cases_that_fail_are_those_with_a_reason(suite, shared_data, tmp_path):
    data = shared_data(suite.SUITE).parents[1]
    with suite.served(tmp_path) as client:
        outcomes = [suite.run_case(client, case) for case in suite.read_cases(data)]
    assert len(outcomes) == 597
    failed = {f"{e.case.group}/{e.case.name}" for e in outcomes if not e.passed["texts"]}
    assert failed == set(suite.expected_failures())
    assert suite.count(outcomes) == json.loads(RESULT.read_text())["groups"]


def test_the_table_of_the_guide_is_that_of_the_result_file(suite):
    page = (BENCHMARKS.parent / "docs" / "service.md").read_text(encoding="utf-8")
    assert suite.to_markdown(json.loads(RESULT.read_text())) in page


def test_the_table_of_look_ups_is_that_of_its_result_file(suite):
    import terminology_load

    page = (BENCHMARKS.parent / "docs" / "service.md").read_text(encoding="utf-8")
    result = json.loads((BENCHMARKS / "results" / "terminology_load.json").read_text())
    assert terminology_load.markdown(result) in page


COMPARED = [
    ({"a": 1}, {"a": 1}, True),
    ({"a": 1}, {"a": 2}, False),
    ({"a": 1}, {"a": True}, False),
    ({"a": 1}, {"a": 1, "b": 1}, False),
    ({"a": 1, "b": 1}, {"a": 1}, False),
    ({"$optional-properties$": ["b"], "a": 1, "b": 1}, {"a": 1}, True),
    ({"$optional-properties$": ["b"], "a": 1, "b": 1}, {"a": 1, "b": 2}, False),
    ({"$count-arrays$": ["a"], "a": [1, 2]}, {"a": [3, 4]}, True),
    ({"$count-arrays$": ["a"], "a": [1, 2]}, {"a": [3]}, False),
    ([1, 2], [2, 1], True),
    ([1, 1], [1], False),
    ([{"$optional$": True, "a": 1}, {"a": 2}], [{"a": 2}], True),
    ([{"$optional$": True, "a": 1}, {"a": 2}], [{"a": 2}, {"a": 3}], False),
    ([{"$optional$": "!tx.fhir.org", "a": 1}], [], True),
    ([{"$optional$": "tx.fhir.org", "a": 1}], [], False),
    ([{"$optional$": "warning:version", "a": 1}], [], True),
    ([{"$optional$": "version:4", "a": 1}], [], True),
    ([{"$optional$": "version:5", "a": 1}], [], False),
    ("$choice:a|b$", "b", True),
    ("$choice:a|b$", "c", False),
    ("$fragments:one|two$", "Two and ONE", True),
    ("$fragments:one|two$", "one", False),
    ("$external:1:one$", "is one", True),
    ("$external:1:one$", "two", False),
    ("$external:1$", "anything", True),
    ("$uuid$", "urn:uuid:8acdbfdc-e9d2-11ed-a05b-0242ac120003", True),
    ("$uuid$", "8", False),
    ("$instant$", "2026-11-28T00:00:00Z", True),
    ("$id$", "a b", False),
]


@pytest.mark.parametrize(("expected", "actual", "same"), COMPARED)
def test_answers_are_compared_by_the_rules_of_the_suite(
    suite: ModuleType, expected: Any, actual: Any, same: bool
):
    assert (suite.Comparison().differences(expected, actual) == []) == same


def test_wording_can_be_ignored(suite):
    expected = {"name": "message", "valueString": "one"}
    other = {"name": "message", "valueString": "two"}
    assert suite.Comparison().differences(expected, other)
    assert not suite.Comparison(texts=False).differences(expected, other)
    assert suite.Comparison(texts=False).differences(expected, {"name": "message"})
