"""Tables of lab/docs/reliability.md: what was tried, what is promised, and what attacks had found.

The first is made from the result files of several benchmarks, of which some may not have been run;
the others from ``lab/docs/reliability/promises.toml`` and ``findings.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from biograft_lab.places import LAB_DOCS, RESULTS
from biograft_lab.replication.results import read_result
from biograft_lab.replication.tables import markdown

RELIABILITY = "reliability"
PROMISES, FINDINGS = "promises.toml", "findings.toml"
_NOT_RUN = "not run"
Result = Mapping[str, Any]
Cells = tuple[str, str, str]


def reliability_tables() -> dict[str, Callable[[], str]]:
    """Return the function of each table, by the name of its mark."""
    return {
        RELIABILITY: tried,
        f"{RELIABILITY}/promises": promises,
        f"{RELIABILITY}/findings": findings,
    }


def tried() -> str:
    """Return attempts, targets and results by benchmark."""
    rows: list[tuple[str, ...]] = []
    for stem, (what, command, rows_of) in _BENCHMARKS.items():
        path = RESULTS / f"{stem}.json"
        if not path.exists():
            rows.append((what, "", _NOT_RUN, "", f"`{command}`"))
            continue
        result = read_result(path)
        made = f"`{result.get('command', command)}`"
        for number, cells in enumerate(rows_of(result)):
            rows.append((*("" if number else what, *cells), "" if number else made))
    return markdown(["", "on", "tried", "result", "command"], rows)


def _fuzz(result: Result) -> Iterator[Cells]:
    for name, reader in sorted(result["readers"].items()):
        found = reader.get("findings", 0)
        count = found if isinstance(found, int) else len(found)
        inputs = f"{reader['inputs']:,} inputs, {reader['seconds']:,.0f} s"
        yield name, inputs, _count(count, "finding")


def _faults(result: Result) -> Iterator[Cells]:
    for name, part in result["operations"].items():
        came = f"{part['refused']} errors, {part['killed']} kills, "
        came += (
            f"{part['without_effect']} without effect, {_count(len(part['problems']), 'problem')}"
        )
        yield name, f"{part['trials']} faults, {part['steps']} steps", came


def _mutants(result: Result) -> Iterator[Cells]:
    for name, part in sorted(result["modules"].items()):
        counted = part["mutants"] - part["equivalent"]
        ratio = part["killed"] / counted if counted else 1.0
        came = f"{part['killed']} killed ({ratio:.0%}), {part['survived']} survived"
        yield name, f"{part['mutants']} mutants, {part['equivalent']} equivalent", came


def _soak(result: Result) -> Iterator[Cells]:
    hours = f"{result['minutes'] / 60:g} hours"
    growth = result["growth_mib"]
    memory = {name: each[-1] - each[4] for name, each in result["memory_mib"].items()}
    compared = f"{result['answers_different']} of {result['answers_compared']} answers other than "
    for name, work in (
        ("service", f"{result['requests']:,} requests"),
        ("linker", f"{result['notes_linked']:,} notes"),
    ):
        came = f"memory {growth[name]:+.0f} MiB, in the second half {memory[name]:+.0f} MiB"
        came += f"; {compared}afresh" if name == "service" else ""
        yield name, f"{hours}, {work}", came


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


_BENCHMARKS: dict[str, tuple[str, str, Callable[[Result], Iterator[Cells]]]] = {
    "fuzz": ("hostile input", "python -m biograft_lab.scripts.fuzz_readers", _fuzz),
    "fault_injection": (
        "calls that fail, and kills",
        "python -m biograft_lab.scripts.fault_injection --json",
        _faults,
    ),
    "mutants": (
        "mutants of the code",
        "python -m biograft_lab.scripts.mutation_testing --sample 40",
        _mutants,
    ),
    "soak": ("hours of work", "python -m biograft_lab.scripts.soak --vectors --json", _soak),
}


@cache
def read_list(name: str) -> tuple[dict[str, Any], ...]:
    """Read the entries of a list in lab/docs/reliability; none if there is no such file."""
    path: Path = LAB_DOCS / "reliability" / name
    if not path.exists():
        return ()
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(content[path.stem.removesuffix("s")])


def promises() -> str:
    """Return each promise and the tests that keep it."""
    rows = [(each["promise"], _tests(each["tests"])) for each in read_list(PROMISES)]
    return markdown(["promise", "tests"], rows) if rows else f"{_NOT_RUN.capitalize()}."


def findings() -> str:
    """Return what attacks had found, with the test of each."""
    rows = [
        (str(each["number"]), each["clause"], _tests(each["test"]), each.get("note", ""))
        for each in read_list(FINDINGS)
    ]
    head = ["", "what gave way", "test", "note"]
    return markdown(head, rows) if rows else f"{_NOT_RUN.capitalize()}."


def tests_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the tests of a promise or a finding."""
    given = entry.get("tests", entry.get("test", []))
    return [given] if isinstance(given, str) else list(given)


def _tests(given: str | list[str]) -> str:
    """Shorten tests to their file and name, since the folders are long."""
    ids = [given] if isinstance(given, str) else given
    return ", ".join(f"`{each.rpartition('/')[2]}`" for each in ids if each)
