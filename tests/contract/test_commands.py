"""Every command: exit status, keys and numbers of ``--json``, and the kind of error.

A file ``commands/<name>.txt`` is a session in a folder with the files of ``commands/inputs``, the
starter (``KB``) and its index (``INDEX``). Each line is a command line of biograft and a row of the
golden file of the same name; ``< FILE`` is its standard input, ``show FILE`` reads a file.
"""

from __future__ import annotations

import csv
import json
import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from command_line import Ran, run_command, run_process
from golden_files import GoldenFiles

from biograft.cli import make_app

HERE = Path(__file__).parent
SESSIONS = sorted((HERE / "commands").glob("*.txt"))
VOLATILE = ("seconds", "bytes", "peak_gib", "tables_gib", "key")
MACHINE = ("doctor",)
"""Commands that describe the machine: only their keys are compared."""


def rows_of(session: Path) -> dict[str, str]:
    """Return the command lines of a session by the names of their rows; repeated ones differ."""
    rows: dict[str, str] = {}
    times: Counter[str] = Counter()
    for line in filter(None, session.read_text("utf-8").splitlines()):
        times[line] += 1
        rows[line if times[line] == 1 else f"{line} # {times[line]}"] = line
    return rows


@pytest.fixture
def desk(tmp_path, monkeypatch, kb, index):
    """The folder of a session."""
    shutil.copytree(HERE / "commands" / "inputs", tmp_path, dirs_exist_ok=True)
    shutil.copytree(kb, tmp_path / "KB")
    shutil.copytree(index, tmp_path / "INDEX")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name: str) -> Any:
    """Read a file that a command wrote: JSON, JSON lines, cells of a table, or lines."""
    path = Path(name)
    if path.is_dir():
        return {each.name: read(str(each)) for each in sorted(path.iterdir())}
    if path.suffix == ".parquet":
        return pl.read_parquet(path).rows(named=True)
    lines = path.read_text("utf-8").splitlines()
    if path.suffix == ".html":
        return {tag: "\n".join(lines).count(f"<{tag}") for tag in ("article", "mark", "tr")}
    if path.suffix in (".json", ".jsonl"):
        return Ran(0, "\n".join(lines), "").json
    if path.suffix in (".csv", ".tsv"):
        rows = csv.reader(lines, delimiter="," if path.suffix == ".csv" else "\t")
        return [[number(cell) for cell in row] for row in rows]
    return lines


def number(cell: str) -> str | float:
    try:
        return float(cell) if "." in cell else cell
    except ValueError:
        return cell


def answer(ran: Ran, machine: bool) -> dict[str, Any]:
    """Return what is compared of a command: no wording."""
    value: dict[str, Any] = {"status": ran.status}
    if ran.status == 2:
        value["error"] = ran.kind
        assert ran.err.startswith("Usage: ") or ran.error
    if ran.out:
        try:
            value["json"] = sorted(ran.json) if machine else ran.json
        except json.JSONDecodeError:
            value["lines"] = ran.out.splitlines()
    return value


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_commands(session, desk, golden):
    for row, line in rows_of(session).items():
        if line.startswith("show "):
            golden(session.stem, row, read(line.removeprefix("show ")), VOLATILE)
            continue
        command, _, source = line.partition(" < ")
        text = Path(source).read_text("utf-8") if source else ""
        ran = run_command(command, text=text)
        golden(session.stem, row, answer(ran, command.startswith(MACHINE)), VOLATILE)


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_no_golden_row_is_left_of_a_line_that_went(session):
    assert set(GoldenFiles().rows(session.stem)) == set(rows_of(session))


@pytest.mark.parametrize("line", ["kb search KB flu --json", "kb search nowhere flu", "kb nothing"])
def test_a_process_answers_as_the_call_does(desk, line):
    process, call = run_process(line), run_command(line)
    assert (process.status, process.out, process.err) == (call.status, call.out, call.err)


def commands(command: Any, path: str = "") -> list[str]:
    """List the commands of a group, with those of its groups."""
    if not hasattr(command, "commands"):
        return [path]
    below = command.commands.items()
    return [name for each, part in below for name in commands(part, f"{path} {each}".strip())]


def test_every_command_is_covered_or_says_why_not():
    listed = set(commands(typer.main.get_command(make_app())))
    run = [line for session in SESSIONS for line in rows_of(session)]
    covered = {name for name in listed if any(f"{line} ".startswith(f"{name} ") for line in run)}
    left_out = tomllib.loads((HERE / "not_covered.toml").read_text("utf-8"))
    assert listed - covered == set(left_out)
    assert all(left_out.values())
