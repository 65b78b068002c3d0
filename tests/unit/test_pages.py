"""Pages in two languages: their commands run and print what the page shows, their recipes load."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.recipes.recipe import Recipe

ROOT = Path(__file__).parents[2]
CHINESE = [ROOT / "README.zh.md", *sorted((ROOT / "docs" / "zh").glob("*.md"))]
SHOWN = [ROOT / "README.md", ROOT / "README.zh.md"]
SHOWN += [ROOT / "docs" / name for name in ("linking.md", "tutorial.md")]
SHOWN += [ROOT / "docs" / "zh" / name for name in ("linking.md", "tutorial.md")]
"""Pages with commands on the built-in knowledge base, beside what they print."""


def original(page):
    if page.parent == ROOT:
        return ROOT / "README.md"
    return ROOT / "docs" / page.name


def blocks(page, language=""):
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shown_commands(page):
    """The commands on the built-in knowledge base, each with the lines that follow it."""
    for block in blocks(page):
        if "$ biograft kb build starter" in block:
            for part in block.split("$ ")[1:]:
                command, *output = part.splitlines()
                yield command, output


@pytest.fixture
def starter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", SHOWN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_shown_commands_print_what_the_page_shows(page, starter):
    commands = list(shown_commands(page))
    assert len(commands) >= 2
    for command, output in commands:
        before, _, called = command.rpartition(" | ")
        stdin = before.removeprefix("printf ").strip("'").replace("\\n", "\n") or None
        words = shlex.split(called)
        assert words[0] == "biograft"
        builds = words[2] == "build"
        quiet = ["-q"] if builds or words[1] == "link" else []
        done = CliRunner().invoke(app, [*words[1:], *quiet], input=stdin)
        assert done.exit_code == 0, done.output
        if not builds:
            assert done.stdout.splitlines() == output


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


@pytest.mark.parametrize("page", CHINESE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_to_sections_lead_somewhere(page):
    for target, section in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8")):
        other = (page.parent / target).resolve() if target else page
        titles = re.findall(r"^#+ (.+)$", other.read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}
        assert section in anchors, f"{page.name}: {target}#{section}"
