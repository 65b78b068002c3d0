"""Blanks, tabs and line breaks inside a sentence change no status; the layout of notes does."""

from __future__ import annotations

import re

import pytest
from marked_sentences import marked_lines, parse

from biograft.clinical import assert_status

_BLANK = re.compile(r"(?<=\S) (?=\S)")


def statuses(text, *findings, language="en"):
    spans = [(text.index(each), text.index(each) + len(each)) for each in findings]
    return [each.status for each in assert_status(text, spans, language)]


def wraps(text, blank):
    """Return True if a line break in place of a blank can only wrap the sentence.

    After one word it ends a heading, *History*, *PE*.
    """
    before, after, is_word = text[blank - 1], text[blank + 1], " " not in text[:blank]
    if is_word or before in ".:;!?" or ":" in text:
        return False
    return text[0].isupper() and after.islower()


@pytest.mark.parametrize("name", ["en", "en-dev", "en-test", "zh", "zh-dev", "zh-test"])
def test_whitespace_inside_a_sentence_changes_no_status(name):
    """*No  fever* with two blanks, a tab or a line break was present."""
    for line in marked_lines(name):
        text, spans, _ = parse(line)
        if "\n" in text:
            continue
        expected = [each.status for each in assert_status(text, spans, name[:2])]
        for blank in (found.start() for found in _BLANK.finditer(text)):
            for space in ("  ", "\t", *(["\n"] if wraps(text, blank) else [])):
                more = len(space) - 1
                changed = text[:blank] + space + text[blank + 1 :]
                moved = [(s + more * (s > blank), e + more * (e > blank)) for s, e in spans]
                found = assert_status(changed, moved, name[:2])
                assert [each.status for each in found] == expected, changed
                for each in found:
                    for trigger in each.triggers:
                        assert trigger.text == changed[trigger.start : trigger.end]


@pytest.mark.parametrize(
    ("text", "finding", "status"),
    [
        ("No  fever.", "fever", "absent"),
        ("No\t\tfever; cough present.", "fever", "absent"),
        ("No\nfever.", "fever", "absent"),
        ("No \r\n fever.", "fever", "absent"),
        ("Denies   fever, chills", "chills", "absent"),
        ("There is no\u00a0 pneumothorax.", "pneumothorax", "absent"),
        ("no acute\ndistress.", "distress", "absent"),
        ("denies\nfever", "fever", "absent"),
        ("no fever\nor chills", "chills", "absent"),
    ],
)
def test_whitespace_in_place_of_a_blank(text, finding, status):
    assert statuses(text, finding) == [status]


@pytest.mark.parametrize(
    ("text", "finding", "status"),
    [
        ("否认  发热。", "发热", "absent"),
        ("患者否认\n发热、咳嗽。", "咳嗽", "absent"),
        ("无发热\n咳嗽3天", "咳嗽", "present"),
    ],
)
def test_whitespace_in_chinese_sentences(text, finding, status):
    assert statuses(text, finding, language="zh") == [status]


@pytest.mark.parametrize(
    ("text", "findings", "expected"),
    [
        ("no fever\ncough", ("fever", "cough"), ["absent", "present"]),
        (
            "No fever\nCough\nNausea.",
            ("fever", "Cough", "Nausea"),
            ["absent", "present", "present"],
        ),
        ("No fever\n\ncough.", ("fever", "cough"), ["absent", "present"]),
        ("No fever\n- cough", ("fever", "cough"), ["absent", "present"]),
        ("Fever: no  Cough: yes", ("Fever", "Cough"), ["absent", "present"]),
        ("Past Medical History\ngout", ("gout",), ["historical"]),
    ],
)
def test_layout_that_is_meant(text, findings, expected):
    assert statuses(text, *findings) == expected
