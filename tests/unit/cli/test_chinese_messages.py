"""Every error that the code raises, every option and every reason for a rejected row in Chinese."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from itertools import product
from pathlib import Path

import pytest
import typer

import biograft
from biograft.catalogue import Catalogue
from biograft.cli import app
from biograft.linking.outputs import fhir
from biograft.mapping import findings
from biograft.serve import schemas
from biograft.text.formats import DOCUMENT_FORMATS
from biograft.text.formats.format import Feature

HOME = Path(biograft.__file__).parent
TEXTS = tomllib.loads((HOME / "cli" / "messages" / "zh.toml").read_text("utf-8"))
CATALOGUE = Catalogue.open("zh")
ERRORS = {
    *("InputError", "FormatError", "EncodingError", "UnrecognisedError", "ConfigError"),
    *("StoreError", "OutputError", "NotFoundError", "ConflictError"),
}
OF_SECOND = {"RefusedError", "_refuse", "MissingExtraError", "import_extra"}
"""What takes its message as the second argument."""
REASONS = {"note", "reject", "doubt", "filter"}
PLACES = [chr(0xE000 + k) for k in range(40)]
CHINESE = re.compile("[\u4e00-\u9fff]")
LITERAL = re.compile(
    r"`[^`]*`|'[^']*'|\"[^\"]*\"|\[[^\]]*\]|biograft [a-z ]+|robot convert|torchrun .*|"
    r"accelerate launch|gradient checkpointing"
)
"""Commands, quoted words and the tables of a recipe."""
ENGLISH = re.compile(r"(?<![\w.-])[A-Za-z]{2,} [a-z]{2,}(?![\w.=-])")
"""Two words of a sentence, beside names of options, formats and metrics."""


def constants():
    """Return the texts that a module calls by a name in capitals."""
    found = {}
    for path in HOME.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                found |= {getattr(node.targets[0], "id", ""): str(node.value.value)}
    return found


CONSTANTS = constants()


def templates(node):
    """Return the texts that an expression may be; ``{}`` stands for a value."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.Name):
        return [CONSTANTS.get(node.id, "{}")]
    if isinstance(node, ast.IfExp):
        return templates(node.body) + templates(node.orelse)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in templates(value)]
    if isinstance(node, ast.FormattedValue):
        inner = node.value
        return templates(inner) if isinstance(inner, ast.IfExp | ast.JoinedStr) else ["{}"]
    if isinstance(node, ast.JoinedStr):
        return ["".join(parts) for parts in product(*map(templates, node.values))]
    if isinstance(node, ast.BinOp):
        return ["".join(parts) for parts in product(templates(node.left), templates(node.right))]
    return ["{}"]


def said_by(node):
    """Return the messages of an error or of a rejected row, and those that a service answers."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [value for key, value in pairs if getattr(key, "value", "") == "detail"]
    if isinstance(node, ast.Assign):
        (target,) = node.targets[-1:]
        names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
        values = getattr(node.value, "elts", [node.value])
        return [v for n, v in zip(names, values, strict=False) if n == "detail"]
    if not isinstance(node, ast.Call):
        return []
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    said = node.args[:1] if name in ERRORS | REASONS else []
    said += node.args[1:2] if name in OF_SECOND else []
    return said + [k.value for k in node.keywords if k.arg == "remedy" and name in ERRORS]


def messages():
    """Yield where a message is made, and its text."""
    for path in sorted(HOME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for text in (text for each in said_by(node) for text in templates(each)):
                if ENGLISH.search(re.sub(r"^biograft mcp.*", "", text)):
                    yield f"{path.relative_to(HOME)}:{node.lineno}", text


def filled(template):
    """Put a character into each place, which no text has."""
    places = iter(PLACES)
    return re.sub(r"\{\}", lambda _: next(places), template)


def faults(text):
    """Return what is wrong with a translation: lost values, English words, nothing Chinese."""
    said = filled(text)
    shown = CATALOGUE.error(said)
    found = [place for place in PLACES if (place in said) != (place in shown)]
    found += ENGLISH.findall(LITERAL.sub(" ", shown))
    return found + ([] if CHINESE.search(shown) else ["English"])


MESSAGES = sorted({text: where for where, text in messages()}.items())


def test_messages_are_collected():
    assert len(MESSAGES) > 800
    assert "--json: is the same as --to jsonl; leave it out, or --to {}" in dict(MESSAGES)


def test_every_message_is_chinese():
    found = [(where, text, faults(text)) for text, where in MESSAGES if faults(text)]
    assert found == []


@pytest.mark.parametrize("section", ["usage", "errors", "output"])
def test_entries_keep_their_values(section):
    for english, chinese in TEXTS[section].items():
        n = english.count("{}")
        values = PLACES[:n]
        shown = chinese.format(*values, last=values[-1] if values else "")
        assert all(value in shown for value in values), english
        assert CHINESE.search(chinese) or not re.search(r"[a-z]{3,} [a-z]{2,}", chinese), chinese


LOSSES = [
    *map(str, Feature),
    *sorted({what for _, form in DOCUMENT_FORMATS.load_all() for what, _ in form.steps}),
    *re.findall(r'^        "(.+)": .*,$', inspect.getsource(fhir._left_out), re.M),
    f"findings whose concept has no id of {PLACES[0]}: its own id is given",
    findings._UNMAPPED,
]


@pytest.mark.parametrize("what", LOSSES)
def test_what_a_format_cannot_hold_is_chinese(what):
    assert len(LOSSES) > 30
    assert faults(what) == []


FIELDS = {"ge": 1, "le": 9, "max_length": 9, "min_length": 1, "expected": "'a' or 'b'"}


@pytest.mark.parametrize("kind", [*schemas._MESSAGES, *schemas._KINDS, "other"])
def test_what_is_wrong_with_a_request_is_chinese(kind):
    found = schemas.describe({"loc": ("body", "texts", 0), "type": kind, "ctx": FIELDS})
    assert faults(found) == []


def commands(command):
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from commands(inner)


def test_all_help_is_chinese():
    texts = {
        re.sub(r"\s+", " ", paragraph).strip()
        for command in commands(typer.main.get_command(app))
        for text in (command.help, *(getattr(each, "help", "") for each in command.params))
        for paragraph in re.split(r"\n\s*\n", text or "")
    }
    assert sorted(text for text in texts if text and CATALOGUE.help(text) == text) == []
