"""Numbers of thousands of digits in files and options: Python refuses to read them as integers."""

from __future__ import annotations

import re

import pytest

from biograft.config import load_toml, set_value
from biograft.errors import BiograftError, ConfigError
from biograft.kb.names import whole_number
from biograft.kb.sources import ReadLog
from biograft.text import read_documents

DIGITS = "9" * 5000
FILES = {
    "pubtator": "1|t|flu\n1|a|\n1\t0\t3\tflu\tDisease\tD1\n",
    "bioc-xml": "<collection><document><id>1</id><passage><offset>0</offset><text>flu</text>"
    '<annotation id="0"><location offset="0" length="3"/><text>flu</text></annotation></passage>'
    "</document></collection>",
    "cmedqaner": '{"text_id": "1", "text": "flu", '
    '"mention_data": [{"mention": "flu", "offset": "0"}]}\n',
}


def read(path, form, content):
    """Return the mentions of a file, or the message of the error."""
    path.write_text(content)
    try:
        documents = list(read_documents(path, form, ReadLog(path)))
    except BiograftError as error:
        return [], str(error)
    return [mention for document in documents for mention in document.mentions], ""


@pytest.mark.parametrize("form", FILES)
def test_no_number_of_a_corpus_file_is_too_long(tmp_path, form):
    content = FILES[form]
    (mention,), message = read(tmp_path / "a", form, content)
    assert (mention.text, message) == ("flu", "")
    for match in re.finditer(r"\b\d+\b", content):
        changed = content[: match.start()] + DIGITS + content[match.end() :]
        mentions, message = read(tmp_path / "a", form, changed)
        assert {(m.start, m.text) for m in mentions} <= {(0, "flu")}
        assert "\n" not in message
        assert len(message) < 1000


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 15, 10**15 - 1),
        ("9" * 16, None),
        (DIGITS, None),
        ("", None),
        ("-1", None),
        ("1.0", None),
        ("²", None),
        ("١", None),
    ],
)
def test_whole_numbers(text, number):
    assert whole_number(text) == number


def test_a_setting_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"--set a\.b=999"):
        set_value({}, f"a.b={DIGITS}")
    with pytest.raises(ConfigError, match=r"--set a\.b="):
        set_value({}, "a.b=" + "[" * 5000)


def test_a_recipe_is_refused_in_one_line(tmp_path):
    path = tmp_path / "recipe.toml"
    for value in (DIGITS, "[" * 5000):
        path.write_text(f"a = {value}\n")
        with pytest.raises(ConfigError, match="not valid TOML") as raised:
            load_toml(path)
        assert len(str(raised.value)) < 500
