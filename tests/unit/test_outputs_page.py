"""The examples of docs/outputs.md: the commands print what the page shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from command_runs import runner_of

from biograft.cli import app
from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

PAGE = Path(__file__).parents[2] / "docs" / "outputs.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"```\n\$ (biograft link [^\n]*)\n(.*?)```\n(?:\n```json\n(.*?)```)?", TEXT, re.S
)
CHANGING = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?|biograft \d\S*?(?=,)")
"""Dates, and the version of biograft."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    build_store(BuildConfig(sources=(SourceConfig(path=Path("starter")),)), folder / "KB")
    return folder


@pytest.mark.parametrize(("command", "printed", "shown_json"), EXAMPLES)
def test_examples(folder, monkeypatch, command, printed, shown_json):
    monkeypatch.chdir(folder)
    found = runner_of(app)(*shlex.split(command)[1:]).stdout
    if shown_json:
        assert json.loads(found) == json.loads(shown_json)
    else:
        assert CHANGING.sub("", found) == CHANGING.sub("", printed)


def test_the_python_of_the_page_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.S):
        exec(compile(block, "outputs.md", "exec"), {"print": lambda *values: None})
    assert (folder / "findings.csv").read_text().count("\n") == 3
