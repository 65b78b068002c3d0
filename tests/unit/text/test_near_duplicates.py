"""Near-duplicates against plain sets of n-grams."""

from __future__ import annotations

from hypothesis import given, strategies as st

from biograft.text import NearDuplicateConfig, NearDuplicates
from biograft.text.near_duplicates import normalise_characters

TEXTS = st.text("ab糖尿C。 ", max_size=14)


def plain(text, references, n, ratio):
    """Whether a text is a near-duplicate, by sets of strings."""
    grams = {text[k : k + n] for k in range(len(text) - n + 1)}
    for other in references:
        if other and other == text:
            return True
        theirs = {other[k : k + n] for k in range(len(other) - n + 1)}
        shorter = min(len(grams), len(theirs))
        if shorter and len(grams & theirs) / shorter >= ratio:
            return True
    return False


@given(TEXTS, st.lists(TEXTS, max_size=4), st.integers(1, 4), st.sampled_from([0.3, 0.6, 1.0]))
def test_matches_equal_plain_sets(text, references, n, ratio):
    found = NearDuplicates(references, NearDuplicateConfig(n=n, min_overlap=ratio))
    wanted = plain(normalise_characters(text), map(normalise_characters, references), n, ratio)
    assert found.matches(text) == wanted


def test_a_question_within_a_page_is_found():
    page = "概述。" * 30 + "妊娠期糖尿病应该如何治疗比较好" + "预后良好。" * 30
    assert NearDuplicates(["妊娠期糖尿病应该如何治疗比较好？"]).matches(page)
    assert not NearDuplicates(["妊娠期糖尿病的饮食应该注意什么"]).matches(page)
