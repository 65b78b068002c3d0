"""Assertion status: marked sentences, notes, sections, evidence, languages."""

from __future__ import annotations

import pickle

import pytest
from marked_sentences import marked_lines, parse

from biograft.clinical import (
    FLAGS,
    STATUSES,
    Assertion,
    RuleAssertions,
    assert_documents,
    assert_status,
)
from biograft.errors import ConfigError
from biograft.text.documents import Document, Mention


def flags_of(text, spans, language="en"):
    return [set(each.flags) for each in assert_status(text, spans, language)]


@pytest.mark.parametrize("line", marked_lines("en"))
def test_english_sentences(line):
    text, spans, expected = parse(line)
    assert flags_of(text, spans) == expected


@pytest.mark.parametrize("line", marked_lines("zh"))
def test_chinese_sentences(line):
    text, spans, expected = parse(line)
    assert flags_of(text, spans, "zh") == expected


@pytest.mark.parametrize("line", marked_lines("en"))
def test_upper_case_makes_no_difference(line):
    text, spans, expected = parse(line)
    if "\n" not in text and "e/o" not in text:
        assert flags_of(text.upper(), spans) == expected


@pytest.mark.parametrize("line", [line for line in marked_lines("en") if line.count("[") > 1])
def test_a_mention_alone_has_the_status_it_has_beside_others(line):
    """The other spans of a list need not be given."""
    text, spans, expected = parse(line)
    for span, flags in zip(spans, expected, strict=True):
        assert flags_of(text, [span]) == [flags]


def test_sentences_one_after_the_other_do_not_mix():
    lines = [line for line in marked_lines("en") if "\\n" not in line and line[-1] == "."]
    parsed = [parse(line) for line in lines]
    text, spans, expected = "", [], []
    for sentence, inside, flags in parsed:
        if ":" in sentence or "PMH" in sentence:
            continue  # a heading goes on
        spans += [(len(text) + start, len(text) + end) for start, end in inside]
        expected += flags
        text += sentence + " "
    assert len(spans) > 150
    assert flags_of(text, spans) == expected


def test_the_result_has_the_order_of_the_spans():
    text = "No fever. Cough. Possible flu."
    spans = [(26, 29), (3, 8), (10, 15), (3, 8)]
    assert [each.status for each in assert_status(text, spans)] == [
        "possible",
        "absent",
        "present",
        "absent",
    ]


def test_the_evidence_is_the_trigger_with_its_offsets():
    text = "There is no evidence of acute pneumonia."
    (found,) = assert_status(text, [(30, 39)])
    (trigger,) = found.triggers
    assert text[trigger.start : trigger.end] == trigger.text == "no evidence of"
    assert (trigger.flag, trigger.rule) == ("negated", "no")


def test_status_is_one_word_of_the_list():
    text = "No family history of glaucoma. No history of gout."
    found = assert_status(text, [(21, 29), (45, 49)])
    assert [each.status for each in found] == ["family", "absent"]
    assert [each.flags for each in found] == [("negated", "family"), ("negated", "historical")]
    assert {each.status for each in found} <= set(STATUSES)


NOTE = """\
HISTORY OF PRESENT ILLNESS: 3 days of cough.

PAST MEDICAL HISTORY:
1. Gout
2. No asthma
FAMILY HISTORY:
Mother: diabetes
ROS: no rash
DISCHARGE INSTRUCTIONS:
Come back with fever.
You were treated for possible sepsis.
"""


def test_sections_set_defaults_that_triggers_beat():
    words = ("cough", "Gout", "asthma", "diabetes", "rash", "fever", "sepsis")
    spans = [(NOTE.index(word), NOTE.index(word) + len(word)) for word in words]
    found = dict(zip(words, assert_status(NOTE, spans), strict=True))
    assert found["cough"].section == "history of present illness"
    assert found["cough"].flags == ()
    assert found["Gout"].flags == ("historical",)
    assert found["Gout"].triggers == ()
    assert found["asthma"].flags == ("negated", "historical")
    assert found["diabetes"].flags == ("family",)
    assert found["rash"].flags == ("negated",)
    assert found["rash"].section == "review of systems"
    assert found["fever"].flags == ("hypothetical",)
    assert "hypothetical" not in found["sepsis"].flags


def test_a_blank_line_ends_a_section_with_a_default():
    text = "PMH: gout\n\nHe has a cough."
    assert flags_of(text, [(5, 9), (20, 25)]) == [{"historical"}, set()]


def test_a_wrapped_line_goes_on_and_a_short_one_does_not():
    wrapped = (
        "He denied chest pain, shortness of breath, diaphoresis, nausea,\nvomiting and syncope."
    )
    assert flags_of(wrapped, [(wrapped.index("syncope"), wrapped.index("syncope") + 7)]) == [
        {"negated"}
    ]
    assert flags_of("no fever\ncough", [(3, 8), (9, 14)]) == [{"negated"}, set()]


def test_the_language_is_that_of_the_script_around():
    text = "无发热。No cough. 患者头痛。"
    spans = [(1, 3), (7, 12), (16, 18)]
    assert [set(each.flags) for each in assert_status(text, spans, None)] == [
        {"negated"},
        {"negated"},
        set(),
    ]


def test_documents_in_a_stream():
    english = Document("1", "No flu.", (Mention(3, 6, "flu"),))
    chinese = Document("2", "无发热", (Mention(1, 3, "发热"),), language="zh")
    found = [(document.id, said) for document, said in assert_documents([english, chinese])]
    assert [(i, [each.negated for each in said]) for i, said in found] == [
        ("1", [True]),
        ("2", [True]),
    ]


def test_characters_that_grow_in_lower_case_keep_offsets():
    text = "İİİİ no fever"
    (found,) = assert_status(text, [(8, 13)])
    assert found.negated
    assert text[found.triggers[0].start : found.triggers[0].end] == "no"


@pytest.mark.parametrize("text", ["", " ", "\n\n", ".", "(((", "))) no", "no", "无", "::\n-", "?"])
@pytest.mark.parametrize("language", ["en", "zh", None])
def test_odd_texts(text, language):
    spans = [(0, len(text)), (len(text), len(text))]
    assert len(assert_status(text, spans, language)) == 2
    assert assert_status(text, [], language) == []


def test_spans_outside_the_text_are_refused():
    with pytest.raises(ConfigError, match=r"spans: \(2, 9\) is not within the text of 5"):
        assert_status("fever", [(2, 9)])


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match="expected one of en, zh, or None, found 'de'"):
        assert_status("Fieber", [(0, 6)], "de")


def test_a_mention_that_contains_trigger_words_is_not_its_own_evidence():
    text = "Absence seizures and risk of falls."
    assert flags_of(text, [(0, 16), (21, 34)]) == [set(), set()]


def test_an_assertion_is_a_plain_value():
    (found,) = assert_status("Possible flu", [(9, 12)])
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - for worker processes
    assert found.to_json()["status"] == "possible"
    assert found.to_json()["triggers"][0]["text"] == "Possible"
    assert Assertion().to_json()["negated"] is False
    assert tuple(Assertion._fields[: len(FLAGS)]) == FLAGS


def test_rules_of_a_file_replace_the_shipped_ones(rule_file):
    path = rule_file(
        'language = "en"\n[[rule]]\nname = "nope"\nkind = "trigger"\nflags = ["negated"]\n'
        'phrases = ["nope to"]\n'
    )
    assert [a.negated for a in assert_status("nope to flu", [(8, 11)], rules=path)] == [True]
    assert [a.negated for a in assert_status("no flu", [(3, 6)], rules=path)] == [False]
    with pytest.raises(ConfigError, match="has rules of language 'en', expected 'zh'"):
        RuleAssertions("zh", path)


@pytest.mark.parametrize("half", ["en-dev", "en-test", "zh-dev", "zh-test"])
def test_negation_in_the_notes(half):
    from biograft.evaluation import evaluate_assertions, read_assertions

    result = evaluate_assertions(read_assertions(f"notes-{half}"))
    assert result.flags["negated"].f1 > 0.96
    assert result.accuracy > 0.94
