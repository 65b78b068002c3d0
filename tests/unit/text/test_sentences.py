import time

import pytest
from hypothesis import given, strategies as st

from biograft.text import split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["Many drugs (e.g. aspirin, cf. Fig. 2) help.", "Others do not."],
        ["Doses of 3.5 mg vs. 0.2 mg were given.", "P = .05 was found."],
        ["E. coli and S. aureus grew.", "None survived."],
        ["As J. B. Smith and A. Miller said, it is rare.", "Dr. Who agreed."],
        ["They had hepatitis C.", "We treated it with vitamin C.", "It helped."],
        ["Smith et al. reported this.", "So did Jones et al.", "We did not."],
        ["1. Introduction is here.", "2. Methods follow."],
        ['He said "stop."', "(She left.)", "Why?", "Because!"],
        ["The U.S. Army came to the U.K.", "It was 5 p.m. on Monday."],
        ["患者发热3.5天。", "无皮疹！", "怎么办？", "“头痛。”", "请问……", "谢谢"],
        ["First line", "second line"],
    ],
)
def test_sentences(sentences):
    chinese = any(char >= "\u3400" for char in "".join(sentences))
    text = ("" if chinese else "\n" if sentences[0] == "First line" else " ").join(sentences)
    assert [text[start:end] for start, end in split_sentences(text)] == sentences


@given(st.text(alphabet="aB. !?。！\n3”)e.g", max_size=60))
def test_sentences_are_disjoint_and_cover_all_but_whitespace(text):
    spans = split_sentences(text)
    rest, before = [], 0
    for start, end in spans:
        assert before <= start < end
        assert text[start:end].strip() == text[start:end]
        rest.append(text[before:start])
        before = end
    assert "".join([*rest, text[before:]]).strip() == ""


def test_long_text_without_an_end_is_fast():
    started = time.process_time()
    for text in ("a" * 500_000, "a. " * 200_000, "3." * 300_000, "A." * 200_000):
        split_sentences(text)
    assert time.process_time() - started < 20
