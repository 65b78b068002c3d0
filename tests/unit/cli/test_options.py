"""What options list with commas, and that no option is declared twice."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from biograft import cli
from biograft.cli.options import split_languages, split_list


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (None, ()),
        (" , ", ()),
        ("Disease", ("Disease",)),
        (" Disease,,Body part ,", ("Disease", "Body part")),
    ],
)
def test_a_list_with_commas(text, parts):
    assert split_list(text) == parts


def test_languages_become_codes():
    assert split_languages(" CHI, en-US ,") == ("zh", "en")
    assert split_languages("") == ()


def test_no_option_is_written_twice():
    """What two commands share with one meaning is an alias of ``options``."""
    told = []
    for path in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option":
                values = {k.arg: ast.unparse(k.value) for k in node.keywords}
                told.append((values.get("metavar"), values["help"]))
    assert len(told) > 40
    assert [each for each, n in Counter(told).items() if n > 1] == []
