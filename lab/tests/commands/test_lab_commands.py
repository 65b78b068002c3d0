"""The commands that the laboratory adds to ``biograft``: listed, loaded, helped, documented."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import typer

from biograft.cli import make_app
from biograft_lab.places import DOCS, LAB_DOCS, RESULTS

NAMES = {"probe": ("attention", "cloze", "similarity"), "replicate": ("list", "report", "run")}
PAGES = [*LAB_DOCS.glob("*.md"), *DOCS.glob("*.md")]


def group(name):
    """Return a group as ``biograft NAME`` loads it."""
    return typer.main.get_command(make_app(name)).commands[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_group_has_its_commands_with_help_and_documentation(name):
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = group(name).commands
    assert tuple(sorted(commands)) == NAMES[name]
    for inner, command in commands.items():
        assert command.help
        assert all(parameter.help for parameter in command.params)
        assert "--json" in {option for p in command.params for option in p.opts}
        assert re.search(rf"biograft {name} {inner}\b", text)


@pytest.mark.parametrize("name", NAMES)
def test_documented_options_exist(name):
    parameters = [p for command in group(name).commands.values() for p in command.params]
    known = {option for p in parameters for option in (*p.opts, *p.secondary_opts)}
    calls = re.compile(rf"\bbiograft {name} [^`\n]*(?:\\\n[^`\n]*)*")
    for page in PAGES:
        for call in calls.findall(page.read_text(encoding="utf-8")):
            assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", call)) <= known, (page, call)


def test_the_help_of_biograft_lists_them_and_imports_nothing():
    code = (
        "import sys\nfrom biograft.cli import main\nsys.argv = ['biograft', '--help']\n"
        "try:\n    main()\nfinally:\n"
        "    print([name for name in sys.modules if name.startswith('biograft_lab')])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in NAMES:
        assert re.search(rf"^  {name} +from the package biograft-lab$", done.stdout, re.MULTILINE)
    assert done.stdout.splitlines()[-1] == "[]"


def test_their_help_is_translated(run_main, monkeypatch):
    monkeypatch.setenv("BIOGRAFT_LANG", "zh")
    assert "重新检验论文的结论" in run_main("replicate", "--help").out
    assert "完形填空" in run_main("probe", "--help").out


def test_claims_have_verdicts_outside_a_clone(run_main, monkeypatch, tmp_path):
    """Every claim of every paper was "not run" there: the results were those of the clone."""
    monkeypatch.chdir(tmp_path)
    verdicts = [row["verdict"] for row in run_main("replicate", "list", "--json").json]
    assert len(verdicts) > 50
    assert verdicts.count("not run") < len(verdicts)


def test_the_results_are_part_of_the_package():
    from importlib.resources import files

    assert len(list(RESULTS.glob("*.json"))) > 10
    assert (files("biograft_lab") / "results" / "linking-protocols.json").is_file()
