"""Pages in two languages: their commands run and print what the page shows, their recipes load."""

from __future__ import annotations

import ast
import io
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from biograft.cli import app
from biograft.recipe import Recipe

ROOT = Path(__file__).parents[2]
CHINESE = [ROOT / "README.zh.md", *sorted((ROOT / "docs" / "zh").glob("*.md"))]
SHOWN = [ROOT / "README.md", ROOT / "README.zh.md"]
SHOWN += [ROOT / "docs" / name for name in ("evaluation.md", "linking.md", "tutorial.md")]
SHOWN += [page for page in CHINESE[1:] if "$ biograft kb build starter" in page.read_text("utf-8")]
"""Pages with commands on the built-in knowledge base, beside what they print."""


def original(page):
    if page.parent == ROOT:
        return ROOT / "README.md"
    names = {"terminology.md": "mapping.md"}
    return ROOT / "docs" / names.get(page.name, page.name)


def blocks(page, language=""):
    """Return the fenced blocks of a language."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


def shown_commands(page):
    """Return the commands on the built-in knowledge base, each with the lines that follow it.

    Of a README all commands run; they may call programs of the shell.
    """
    for block in blocks(page):
        if block.startswith("$ ") and (page.parent == ROOT or "kb build starter" in block):
            for part in block.split("$ ")[1:]:
                command, *output = part.splitlines()
                yield command, output


@pytest.fixture
def starter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")


@pytest.mark.parametrize("page", SHOWN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_shown_commands_print_what_the_page_shows(page, starter, run_main, monkeypatch):
    monkeypatch.setenv("BIOGRAFT_LANG", "zh" if page in CHINESE else "en")
    commands = list(shown_commands(page))
    assert len(commands) >= 2
    for command, output in commands:
        shown = printed(command, run_main, monkeypatch)
        if " kb build " not in command and " map " not in command:
            assert matches(shown.splitlines(), output), shown


def printed(command, run_main, monkeypatch):
    """Run a command as a shell would, biograft within this process."""
    text = None
    for part in command.split(" | "):
        words = shlex.split(part)
        if words[0] == "biograft":
            quiet = ["-q"] if words[2] == "build" or words[1] == "link" else []
            if text is not None:
                given = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
                monkeypatch.setattr(sys, "stdin", given)
            done = run_main(*words[1:], *quiet)
            finds = words[1] == "verify"  # something wrong, which is shown
            assert done.code == finds, done.err
            text = done.out
        else:
            text = subprocess.run(
                part, shell=True, check=True, input=text, stdout=subprocess.PIPE, encoding="utf-8"
            ).stdout
    return text


def matches(lines, shown):
    """Return True if the lines are those shown, where ``...`` stands for any number of lines."""
    pattern = "".join(r"(.*\n)*" if x == "..." else re.escape(x) + r"\n" for x in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


@pytest.mark.parametrize("page", CHINESE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_pages_in_both_languages_link_to_each_other(page):
    assert original(page).exists()
    for one, other in ((page, original(page)), (original(page), page)):
        links = re.findall(r"\]\(([^)#]+)\)", one.read_text("utf-8")[:300])
        assert other in [(one.parent / link).resolve() for link in links], one


@pytest.mark.parametrize("page", CHINESE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_chinese_pages_have_the_commands_of_the_english_ones(page):
    """What a Chinese page calls, with its options, the English page or the command line has."""
    programs = {
        match[0]
        for match in re.finditer(r"biograft [a-z]+(?: [a-z]+)?", original(page).read_text())
    }
    tree = {" ".join(path) for path in _commands(app)}
    for block in blocks(page):
        for called in re.findall(r"biograft ([a-z]+)(?: ([a-z]+))?", block):
            both = " ".join(filter(None, called))
            assert called[0] in tree or both in tree or f"biograft {both}" in programs


def _commands(program):
    import typer

    def walk(command, path=()):
        inner = getattr(command, "commands", {})
        if not inner:
            yield path
        for name, each in inner.items():
            yield from walk(each, (*path, name))

    return walk(typer.main.get_command(program))


@pytest.mark.parametrize("page", CHINESE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_recipes_and_python_of_chinese_pages(page, tmp_path):
    for number, block in enumerate(blocks(page, "toml")):
        values = tomllib.loads(block)
        english = [tomllib.loads(each) for each in blocks(original(page), "toml")]
        assert {**values, "about": ""} in [{**each, "about": ""} for each in english]
        if "kind" in values:
            path = tmp_path / f"{number}.toml"
            path.write_text(block, encoding="utf-8")
            assert Recipe.load(path).about == values["about"]
    for block in blocks(page, "python"):
        ast.parse(block)
