"""Assertion status on sentences of many styles: half to develop the rules, half held out."""

from __future__ import annotations

from collections import Counter

import pytest
from marked_sentences import marked_lines, parse

from biograft.clinical import RuleAssertions
from biograft.metrics import Counts


def negation(name: str) -> Counts:
    """Compare the negation of all mentions of a file with the marks."""
    model = RuleAssertions(name[:2])
    counts: Counter[tuple[bool, bool]] = Counter()
    for line in marked_lines(name):
        text, spans, flags = parse(line)
        for expected, found in zip(flags, model.assert_status(text, spans), strict=True):
            counts["negated" in expected, found.negated] += 1
    return Counts(counts[True, True], counts[False, True], counts[True, False])


@pytest.mark.parametrize(
    ("name", "n", "f1"),
    [("en-dev", 400, 0.975), ("en-test", 150, 0.96), ("zh-dev", 90, 0.98), ("zh-test", 100, 0.97)],
)
def test_negation_on_sentences(name, n, f1):
    counts = negation(name)
    assert counts.right + counts.missed >= n
    assert counts.f1 >= f1


def test_a_finding_that_is_there_ends_a_negated_list():
    model = RuleAssertions("en")

    def negated(text: str, *words: str) -> list[bool]:
        spans = [(text.index(word), text.index(word) + len(word)) for word in words]
        return [each.negated for each in model.assert_status(text, spans)]

    assert negated("No fever, mild cough", "fever", "cough") == [True, False]
    assert negated("No fever, cough, or chills", "fever", "cough", "chills") == [True] * 3
    assert negated("No fever, mild cough, or chills", "fever", "cough", "chills") == [True] * 3
    assert negated("No mass seen, cyst on the left", "mass", "cyst") == [True, False]
    assert negated("Two had rash, and fever was not seen", "rash", "fever") == [False, True]


def test_conditional_is_weaker_than_absent_and_stronger_than_historical():
    model = RuleAssertions("en")
    texts = (
        "pain on exertion",
        "no pain on exertion",
        "possible pain on exertion",
        "history of pain on exertion",
    )
    found = [
        model.assert_status(text, [(text.index("pain"), text.index("pain") + 4)])[0]
        for text in texts
    ]
    assert [each.status for each in found] == ["conditional", "absent", "possible", "conditional"]
    assert [each.conditional for each in found] == [True, False, True, True]


def test_reactions_among_the_allergies_are_conditional():
    text = "ALLERGIES:\n1. Penicillin (hives, swelling)\n2. Latex - rash\n\nHPI: cough"
    words = ("Penicillin", "hives", "swelling", "Latex", "rash", "cough")
    spans = [(text.index(word), text.index(word) + len(word)) for word in words]
    found = RuleAssertions("en").assert_status(text, spans)
    assert [each.conditional for each in found] == [False, True, True, False, True, False]


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("PMH:", "past medical history"),
        ("## Past Medical Hx\n", "past medical history"),
        ("**Family Hx**:", "family history"),
        ("== Family History ==\n", "family history"),
        ("3. PAST MEDICAL HISTORY:", "past medical history"),
        ("[Family History]\n", "family history"),
        ("III. Plan:", "plan"),
        ("A/P\n", "assessment and plan"),
        ("【家族史】", "family history"),
        ("（三）既往史：", "past medical history"),
        ("一、主诉：", "chief complaint"),
        ("出院带药：", "medications"),
        ("诊断：", "diagnosis"),
        ("辅助检查：", "laboratory and imaging"),
        ("Weather report:", ""),
    ],
)
def test_headings_of_many_spellings_have_one_name(heading, section):
    (found,) = RuleAssertions().assert_status(
        f"{heading} gout", [(len(heading) + 1, len(heading) + 5)]
    )
    assert found.section == section
