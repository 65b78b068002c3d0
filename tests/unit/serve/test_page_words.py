"""The words of the pages: the same in both languages, with all that the code can send."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import biograft
from biograft.clinical import AXES, MORE_FLAGS, STATUSES
from biograft.kb.records import NameKind
from biograft.mapping import RELATIONS, terms
from biograft.mapping.review_records import ACTIONS, OPEN, PROPOSED, STATUS_OF, UNDECIDED
from biograft.mapping.term_parts import _lists

HOME = Path(biograft.__file__).parent
PAGE = HOME / "serve" / "page"
FILES = {"WORDS": "words.js", "REVIEW_WORDS": "review_words.js", "RISKS": "review_words.js"}
CHINESE = re.compile("[\u4e00-\u9fff]")
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|[\w$]+|\s+|.', re.S)
OPEN_MARKS, END_MARKS = ("{", "[", "("), ("}", "]", ")")
NO_WORDS = re.compile(
    r"SSSOM|OMOP|FHIR|ConceptMap|JSON|lines|CSV|TSV|Usagi|source_to_concept_map|note_nlp|–"
)
"""Names of formats, the same in any language."""


def read_object(tokens):
    """Yield the path of each entry of an object, and its words."""
    while (token := tokens.pop(0)) != "}":
        if token == ",":
            continue
        key = token.strip('"')
        assert tokens.pop(0) == ":"
        if tokens[0] == "{":
            tokens.pop(0)
            yield from (((key, *path), said) for path, said in read_object(tokens))
            continue
        depth, said = 0, []
        while depth or tokens[0] not in (",", "}"):
            token = tokens.pop(0)
            depth += (token in OPEN_MARKS) - (token in END_MARKS)
            if token[0] in '"`':
                said.append(re.sub(r"\$\{[^}]*\}", " ", token[1:-1]))
        yield (key,), said


@cache
def words(name):
    """Return the words of a table by language and path."""
    source = (PAGE / FILES[name]).read_text("utf-8")
    found = re.search(rf"^const {name} = (\{{.*?^\}});", source, re.M | re.S)
    tokens = [t for t in TOKEN.findall(found[1]) if t.strip() and t[:2] not in ("/*", "//")]
    both = {}
    for (language, *path), said in read_object(tokens[1:]):
        both.setdefault(language, {})[tuple(path)] = said
    return both["en"], both["zh"]


@pytest.mark.parametrize("name", FILES)
def test_words_are_in_both_languages(name):
    english, chinese = words(name)
    only = set(english.keys() ^ chinese.keys())
    assert {path[0] for path in only} <= {"typeNames", "sections"}  # English shows the codes
    same = [path for path in english if chinese.get(path) == english[path]]
    assert [p for p in same if NO_WORDS.sub("", "".join(english[p])).strip()] == []
    for path, said in chinese.items():
        text = "".join(said)
        assert CHINESE.search(text) or path in same or not re.search("[A-Za-z]", text), path
    assert not any(CHINESE.search("".join(said)) for said in english.values())


def keys(name, *path):
    entries = (each for each in words(name)[1] if each[: len(path)] == path)
    return {each[len(path)] for each in entries if len(each) > len(path)}


SECTIONS = {
    each["name"]
    for language in ("en", "zh")
    for each in tomllib.loads((HOME / f"clinical/rules/{language}.toml").read_text())["section"]
}
TYPES = {
    found
    for file in (HOME / "starter").rglob("*.jsonl")
    for found in re.findall(r'^\{"id": "[^"]+", "type": "(\w+)"', file.read_text("utf-8"), re.M)
}
FLAGS = {
    *(terms.EXACT, terms.AMBIGUOUS, terms.PARTIAL, terms.SHORT, terms.TRANSLATED, terms.WORDING),
    *(terms.NIL, terms.REJECTED, terms.CONTEXT, *terms.FLAGS, "mapped", "none"),
}
VALUES = {
    "status": {*STATUSES, *MORE_FLAGS},
    "axis": set(AXES),
    "typeNames": TYPES,
    "sections": SECTIONS,
    "flags": FLAGS,
    "kinds": set(map(str, NameKind)),
    "relations": set(RELATIONS),
    "statuses": {OPEN, PROPOSED, *UNDECIDED, *STATUS_OF.values()},
    "actions": {*ACTIONS, "comment", "undo", "add"},
    "reasons": set(_lists().no_diagnosis.values()) | {"no entry"},
}


@pytest.mark.parametrize("name", VALUES)
def test_what_the_service_sends_has_words(name):
    assert VALUES[name] - keys("WORDS", name) - keys("REVIEW_WORDS", name) == set()


def test_each_value_of_an_axis_has_words():
    values = {value for axis in AXES.values() for value in axis.values() if value}
    assert values - keys("WORDS", "status") - keys("WORDS", "value") == set()


def test_words_that_pages_use_are_there_and_none_is_written_in_a_page():
    known = {"WORDS": keys("WORDS"), "REVIEW_WORDS": keys("WORDS") | keys("REVIEW_WORDS")}
    for page in PAGE.glob("*.html"):
        own = known["REVIEW_WORDS" if page.name == "review.html" else "WORDS"]
        source = page.read_text("utf-8")
        scripts = re.findall(r'src="page/(\w+\.js)"', source)
        code = "".join((PAGE / s).read_text("utf-8") for s in scripts if not s.endswith("words.js"))
        used = re.findall(r'data-say="(\w+)"', source)
        used += re.findall(r"\bwords\.(\w+)", code)
        assert set(used) - own - {"trim", "indexOf"} == set(), page.name  # methods of a text
        shown = re.sub(r"<title>.*?</title>|<kbd>.*?</kbd>|<[^>]*>|中文|biograft", "", source)
        assert not re.search("[A-Za-z]", shown), shown
        assert re.findall(r'\b(?:aria-label|title|placeholder)="', source) == []


def test_scripts_say_nothing_but_words():
    """A text of two English words in a script would be shown as it is."""
    for path in PAGE.glob("*.js"):
        if path.name.endswith("words.js"):
            continue
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text("utf-8"), flags=re.S)
        texts = re.findall(r'"([^"\n]*)"', code)
        said = [each for each in texts if re.search(r"[A-Za-z]{2,} [a-z]{2,}", each)]
        selectors = ("use strict", "chip present")
        assert [e for e in said if e not in selectors and not re.search(r"[\[#.,]", e)] == []
