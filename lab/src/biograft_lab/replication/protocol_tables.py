"""Tables of linking by protocol: every system in the results, beside lexical search.

Rows of several seeds are one line: the mean of their values and interval bounds, and the largest p.
Folds of a set are one line, too: the mean, with the interval of a mean of independent folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erfc, sqrt
from statistics import fmean
from typing import Any, NamedTuple

from biograft.evaluation.analysis import ErrorCause
from biograft_lab.replication.linking_dictionaries import IDS, MENTIONS, NAMES
from biograft_lab.replication.protocols import PROTOCOLS
from biograft_lab.replication.results import Row, without_fold
from biograft_lab.replication.tables import markdown

_Z = 1.96
_ADDED = {
    NAMES: ", more names",
    IDS: ", more names and ids",
    MENTIONS: ", training terms as names",
}
"""Additions to the dictionary of the protocol."""


class _Value(NamedTuple):
    """A value in percent with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1f} ({self.low:.1f}–{self.high:.1f})"


class _Line(NamedTuple):
    """A system on a split of a set, its seeds and folds united."""

    n: int
    value: _Value
    difference: _Value | None
    """To lexical search; None for lexical search itself."""
    p: float

    @property
    def cells(self) -> tuple[str, str]:
        """The difference with its interval, and p."""
        if self.difference is None:
            return "", ""
        by, low, high = self.difference
        p = f"{self.p:.3f}" if self.p >= 0.001 else "< 0.001"
        return f"{by:+.1f} ({low:+.1f} to {high:+.1f})", p


_FLOOR = "lexical"
_Systems = dict[tuple[str, str], dict[str, _Line]]
"""(Set, system) -> split -> line."""


def side_by_side(result: Mapping[str, Any]) -> str:
    """Return the test splits by all protocols: F1 of raw text, else acc@1."""
    shown = {name: rules for name, rules in PROTOCOLS.items() if not rules.whole}
    by_protocol = {name: _systems(result["rows"], name) for name in shown}
    systems = dict.fromkeys(key for found in by_protocol.values() for key in found)
    lines = []
    for name, system in sorted(systems, key=lambda key: _order(result["rows"], key)):
        found = [lines.get((name, system), {}).get("test") for lines in by_protocol.values()]
        if any(found):
            lines.append([name, system, *(str(line.value) if line else "" for line in found)])
    heads = [rules.title for rules in shown.values()]
    return markdown(["set", "system", *heads], lines)


def best_on_dev(result: Mapping[str, Any]) -> str:
    """Return lexical search and, by each protocol, the system that is the best on dev.

    Test values stand for both; which system it is follows its value.
    """
    shown = {name: rules for name, rules in PROTOCOLS.items() if not rules.whole}
    by_protocol = {name: _systems(result["rows"], name) for name in shown}
    lines = []
    for name in dict.fromkeys(without_fold(row["set"]) for row in result["rows"]):
        floor, best = [], []
        for systems in by_protocol.values():
            of_set = {
                system: splits
                for (other, system), splits in systems.items()
                if other == name and {"dev", "test"} <= splits.keys()
            }
            first = max(of_set, key=lambda system: of_set[system]["dev"].value, default="")
            floor.append(str(of_set[_FLOOR]["test"].value) if _FLOOR in of_set else "")
            best.append(f"{of_set[first]['test'].value} {first}" if first else "")
        lines += [[name, _FLOOR, *floor], [name, "best on dev", *best]]
    heads = [rules.title for rules in shown.values()]
    return markdown(["set", "system", *heads], lines)


def one_protocol(protocol: str, result: Mapping[str, Any]) -> str:
    """Return dev and test by one protocol, with the paired test against lexical search."""
    systems, lines = _systems(result["rows"], protocol), []
    for name, system in sorted(systems, key=lambda key: _order(result["rows"], key)):
        splits = systems[name, system]
        dev, test = splits.get("dev"), splits.get("test")
        cells = [f"{test.n:,}" if test else "", str(dev.value) if dev else ""]
        cells += [str(test.value), *test.cells] if test else ["", "", ""]
        lines.append([name, system, *cells])
    head = ["set", "system", "test mentions", "dev", "test", "test, minus lexical", "p"]
    return markdown(head, lines)


def tests_of(rows: Sequence[Row], protocol: str) -> dict[tuple[str, str], str]:
    """Return the test values by a protocol, by set and system."""
    systems = _systems(rows, protocol)
    return {key: str(of["test"].value) for key, of in systems.items() if "test" in of}


def causes(result: Mapping[str, Any]) -> str:
    """Return the errors on dev by cause."""
    counts: dict[tuple[str, str, str], dict[str, list[int]]] = {}
    for row in result["rows"]:
        if row["split"] == "dev" and "causes" in row:
            key = (without_fold(row["set"]), _system(row), PROTOCOLS[row["protocol"]].title)
            found = counts.setdefault(key, {})
            for cause, n in row["causes"].items():
                found.setdefault(cause, []).append(n)
    lines = [
        [name, system, title, *(f"{sum(found[cause]):,}" for cause in map(str, ErrorCause))]
        for (name, system, title), found in counts.items()
    ]
    return markdown(["set", "system", "protocol", *map(str, ErrorCause)], lines)


def _order(rows: Sequence[Row], key: tuple[str, str]) -> tuple[int, int]:
    """Order by the first row of the set, then by that of the system."""
    sets = list(dict.fromkeys(without_fold(row["set"]) for row in rows))
    systems = list(dict.fromkeys(_system(row) for row in rows))
    return sets.index(key[0]), systems.index(key[1])


def _system(row: Row) -> str:
    more = next((what for end, what in _ADDED.items() if row["dictionary"].endswith(end)), "")
    return f"{row['config']}{more}"


def _systems(rows: Sequence[Row], protocol: str) -> _Systems:
    metric = "f1" if PROTOCOLS[protocol].text else "acc@1"
    grouped: dict[tuple[str, str, str], dict[str, list[Row]]] = {}
    for row in rows:
        if row["protocol"] == protocol:
            key = (without_fold(row["set"]), _system(row), row["split"])
            grouped.setdefault(key, {}).setdefault(row["set"], []).append(row)
    systems: _Systems = {}
    for (name, system, split), folds in grouped.items():
        lines = [_over_seeds(of_fold, metric) for of_fold in folds.values()]
        systems.setdefault((name, system), {})[split] = _over_folds(lines)
    return systems


def _over_seeds(rows: Sequence[Row], metric: str) -> _Line:
    value = _mean([_Value(row[metric], *row["intervals"][metric]) for row in rows])
    tests = [row["against_lexical"][metric] for row in rows if "against_lexical" in row]
    differences = [_Value(test["difference"], *test["interval"]) for test in tests]
    difference = _mean(differences) if differences else None
    p = max((test["randomisation_p"] for test in tests), default=1.0)
    return _Line(rows[0]["n"], value, difference, p)


def _mean(values: Sequence[_Value]) -> _Value:
    return _Value(*(fmean(column) for column in zip(*values, strict=True)))


def _over_folds(lines: Sequence[_Line]) -> _Line:
    if len(lines) == 1:
        return lines[0]
    differences = [line.difference for line in lines if line.difference is not None]
    difference, p = None, 1.0
    if differences:
        difference = _independent(differences)
        error = (difference.high - difference.value) / _Z
        p = erfc(abs(difference.value) / error / sqrt(2)) if error else 1.0
    n = sum(line.n for line in lines)
    return _Line(n, _independent([line.value for line in lines]), difference, p)


def _independent(values: Sequence[_Value]) -> _Value:
    """Return the mean of independent values with its interval."""
    mean = fmean(value.value for value in values)
    half = sqrt(sum(((value.high - value.low) / 2) ** 2 for value in values)) / len(values)
    return _Value(mean, mean - half, mean + half)


_FINDINGS = {
    "spans_f1": "spans",
    "f1": "span and concept",
    "documents_f1": "concepts of a document",
}
_VARIANTS = {
    "names": "names by normal forms",
    "context": "with short forms, coordinations, NIL",
    "misspelt": "and misspelt names (default)",
    "reworded": "and names in other words",
    "model": "trained model",
    "both": "trained model and names",
}


def text_linking(result: Mapping[str, Any]) -> str:
    """Return F1 of findings in running text, on test, by what the linker may do."""
    rows = []
    for name, variants in result["splits"]["test"].items():
        for variant, row in variants.items():
            values = [_Value(row[key], *row["intervals"][key]) for key in _FINDINGS]
            rows.append([name, _VARIANTS[variant], *map(str, values)])
    return markdown(["set", "the linker finds", *_FINDINGS.values()], rows)
