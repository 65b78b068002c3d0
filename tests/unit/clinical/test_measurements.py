"""Measurements and doses beside mentions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from biograft.clinical import find_measurements

CASES = [
    ("[BP] 140/90 mmHg", ["140/90 mmHg"]),
    ("[hemoglobin] 8.2 g/dL (was 10.1 g/dL), [fever] 39 C", ["8.2 g/dL", "10.1 g/dL"], ["39 C"]),
    ("[metformin] 1 g twice daily and [aspirin] 81 mg QD", ["1 g twice daily"], ["81 mg QD"]),
    ("[albuterol] 2 puffs q4h prn", ["2 puffs q4h prn"]),
    ("500 mg of [paracetamol] orally", ["500 mg"]),
    ("a 3 cm [mass], [nodule] measuring 4 x 5 mm", ["3 cm"], ["4 x 5 mm"]),
    ("[cough], 5 mg [prednisone]", [], ["5 mg"]),
    ("[WBC] 12.3, [HR] 88, [SpO2] 94% on RA", ["12.3"], ["88"], ["94%"]),
    ("[WBC] 12.3 x 10^9/L", ["12.3 x 10^9/L"]),
    ("[血压]140/90mmHg，[体温]38.5℃", ["140/90mmHg"], ["38.5℃"]),
    ("[二甲双胍]0.5g 每日两次，[阿司匹林]100mg qd", ["0.5g 每日两次"], ["100mg qd"]),
    ("右肺[结节]，大小约5mm×6mm", ["5mm×6mm"]),
    ("[发热]，最高39℃", ["39℃"]),
    # durations, dates, years, list numbers, values of something else
    ("[chest pain] 2 days", []),
    ("[MI] 2015", []),
    ("[seen] 12/03/2026", []),
    ("[Gout]\n2. [Asthma]", [], []),
    ("[cough] 3 episodes", []),
    ("体重60kg，[高血压]", []),
    ("[type 2] diabetes", []),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_values_belong_to_their_mentions(case):
    source, *expected = case
    text, done, spans = "", 0, []
    for match in re.finditer(r"\[([^\]]+)\]", source):
        text += source[done : match.start()]
        done = match.end()
        spans.append((len(text), len(text) + len(match[1])))
        text += match[1]
    text += source[done:]
    found = find_measurements(text, spans)
    assert [[each.text for each in of] for of in found] == expected
    assert all(text[each.start : each.end] == each.text for of in found for each in of)


def test_the_same_span_twice_and_no_span():
    assert find_measurements("INR 2.5", []) == []
    first, second = find_measurements("INR 2.5", [(0, 3), (0, 3)])
    assert first == second
    assert first[0].text == "2.5"


@given(st.text(alphabet="ab1290 .,/%mgx()-天\n", max_size=40), st.data())
def test_values_are_within_the_text_outside_of_mentions_and_given_once(text, data):
    bounds = st.integers(0, len(text))
    pairs = data.draw(st.lists(st.tuples(bounds, bounds), max_size=3))
    spans = list({(min(pair), max(pair)) for pair in pairs})
    found = [each for of in find_measurements(text, spans) for each in of]
    assert len(set(found)) == len(found)
    for each in found:
        assert text[each.start : each.end] == each.text
        assert all(each.end <= start or end <= each.start for start, end in spans if start < end)
