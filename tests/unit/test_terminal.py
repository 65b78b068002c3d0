"""Lines for a terminal: columns under one another, and nothing that acts on it."""

from __future__ import annotations

import json
import re
import sys

import pytest
from hypothesis import given, strategies as st

from biograft.errors import visible
from biograft.progress import visible_output, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [("flu", 3), ("流感", 4), ("e\u0301", 1), ("😀", 2), ("Ｔ", 2), ("", 0), ("a\u200db", 2)],
)
def test_width(text, columns):
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("流感 e\u0301 👨\u200d👩", "流感 e\u0301 👨\u200d👩"),
        ("a\tb\nc\rd", "a b c d"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202egnp.exe\u2066", "a\\u202egnp.exe\\u2066"),
        ("\ud83d\u2028", "\\ud83d\\u2028"),
    ],
)
def test_what_acts_on_a_terminal_is_visible(text, shown):
    assert visible(text) == shown


@given(st.text(st.characters(categories=("Cc", "Cf", "Cs", "Lo", "Ll", "Zs"))))
def test_visible_text_is_one_line_that_can_be_encoded(text):
    shown = visible(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    assert visible(shown) == shown


def test_output_shows_what_acts_on_a_terminal_and_json_stays_json(capsys):
    """Guards: reasons, notes and paths printed escape sequences that a file had brought."""
    text = "".join(map(chr, range(0x3000))) + "\ud800\U0001f468"
    with visible_output():
        sys.stdout.write(text)
        sys.stderr.write(json.dumps(text, ensure_ascii=False))
    out, err = capsys.readouterr()
    kept = "".join(char for char in text if char in "\t\n\r" or visible(char) == char)
    assert re.sub(r"\\u[0-9a-f]{4}", "", out) == kept
    assert json.loads(err) == text
    assert not any(char in err for char in "\x1b\x7f\x9b\u202e\u2028\ud800")
    sys.stdout.write("\x1b")
    assert capsys.readouterr().out == "\x1b"
