"""The program: help and documentation of every command, version, wrong use."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from biograft.cli import app
from biograft.kb.sources import FORMATS

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "README.zh.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "zh").glob("*.md")),
]


OTHER_PROGRAMS = re.compile(
    r"benchmarks/\w+\.py[^`\n]*|\bbiograft (?:probe|replicate) [^`\n]*(?:\\\n[^`\n]*)*"
)
"""Calls of benchmarks, and of commands that the laboratory adds."""


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


TREE = dict(walk(typer.main.get_command(app)))
COMMANDS = [path for path, command in TREE.items() if not hasattr(command, "commands")]


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_every_command_argument_and_option_has_help(run_main, path):
    command = TREE[path]
    assert command.help
    for parameter in command.params:
        assert parameter.help, f"{' '.join(path)}: {parameter.name}"
    done = run_main(*path, "--help")
    assert (done.code, done.err) == (0, "")
    for parameter in command.params:
        assert parameter.param_type_name == "argument" or parameter.opts[-1] in done.out


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_is_documented(path):
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert re.search(rf"biograft {' '.join(path)}\b", text)


def test_every_format_is_documented():
    page = (ROOT / "docs" / "knowledge-base.md").read_text(encoding="utf-8")
    assert [name for name in FORMATS if f"`{name}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_documented_options_exist(page):
    parameters = [p for command in TREE.values() for p in command.params]
    known = {opt for p in parameters for opt in (*p.opts, *p.secondary_opts)}
    known |= {"--help", "--full", "--sets", "--platform"}  # of others: a benchmark, the lab, pip
    text = OTHER_PROGRAMS.sub("", page.read_text(encoding="utf-8"))
    documented = set()
    for call in re.findall(r"\bbiograft (?:[a-z]+ )[^`\n]*(?:\\\n[^`\n]*)*", text):
        documented |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", call))
    documented |= set(re.findall(r"`(--[a-z][a-z-]+)", text))
    assert documented - known == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ("kb", "nope"),
        ("kb", "info", "KB", "--nope"),
        ("kb", "show", "KB", "x", "-k", "-1"),
    ],
)
def test_wrong_use_is_exit_code_2_with_a_hint(run_main, arguments):
    done = run_main(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: biograft" in done.err
    assert "Traceback" not in done.err


def test_an_error_without_end_is_cut(run_main):
    """Guards: one message had 1.2 MB."""
    done = run_main("kb", "show", "gone", "x" * 50_000)
    assert done.code == 2
    done = run_main("recipe", "show", "x" * 50_000)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert len(done.err) < 5000


INTERRUPTED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores in the background

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "biograft.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from biograft.__main__ import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_an_interrupt_during_imports_is_no_traceback():
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_the_program_is_interrupted_as_before_once_it_runs(monkeypatch):
    seen = []
    monkeypatch.setattr("biograft.cli.main", lambda: seen.append(signal.getsignal(signal.SIGINT)))
    before = signal.getsignal(signal.SIGINT)
    importlib.import_module("biograft.__main__").main()
    assert seen == [before]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(sys.platform == "win32", reason="streams are closed as in POSIX")
@pytest.mark.parametrize("number", [0, 1, 2])
def test_closed_streams_are_no_traceback(number, tmp_path):
    """Guards: ``biograft kb search KB TEXT >&-`` ended in 50 lines, and files got its output."""
    (tmp_path / "a.csv").write_text("id,name\nX:1,fever\n")
    words = ["kb", "build", str(tmp_path / "a.csv"), "-o", str(tmp_path / "KB"), "--quiet"]
    command = ["sh", "-c", f'exec "$@" {number}{"<&-" if number == 0 else ">&-"}', "sh"]
    for each in (words, ["kb", "search", str(tmp_path / "KB"), "fever"]):
        command_line = [*command, sys.executable, "-m", "biograft", *each]
        done = subprocess.run(command_line, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert ("X:1" in done.stdout) == (number != 1)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
def test_paths_that_are_not_utf8_are_one_line(tmp_path):
    """Guards: 60 lines of UnicodeEncodeError."""
    source = tmp_path / os.fsdecode(b"a\xff.csv")
    source.write_text("id,name\nX:1,fever\n")
    (tmp_path / "b.csv").write_text("id,name\nX:1,fever\n")
    bad = tmp_path / os.fsdecode(b"KB\xff\xfe")
    for words in (
        ["kb", "build", source, "-o", tmp_path / "KB"],
        ["kb", "build", tmp_path / "b.csv", "-o", bad],
    ):
        command = [sys.executable, "-m", "biograft", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        last = done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
        assert last.endswith(": holds bytes that are not UTF-8; rename it")
        assert "\\udcff" in last
    assert not list(tmp_path.glob("KB*"))
