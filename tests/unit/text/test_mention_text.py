"""Names without punctuation, and mentions between marks with their nearest context words."""

from __future__ import annotations

import itertools

import pytest

from biograft.errors import ConfigError
from biograft.text import clean_name, clean_text, mark_mention, split_context


@pytest.mark.parametrize("mark", list(",.;{}[]()+-_*/?!\\`\"'=%><"))
def test_punctuation_of_a_name_becomes_spaces(mark):
    assert clean_name(f" {mark}A{mark}{mark} B{mark}") == "a b"
    assert clean_name(f"a{mark}b") == "a b"


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("Type-2  Diabetes\t(mellitus)", "type 2 diabetes mellitus"),
        ("α-Synuclein: 40 µg & more", "α synuclein: 40 µg & more"),
        ("+/-", "+/-"),
        (" (+)  (-) ", "(+) (-)"),
    ],
)
def test_a_name_is_never_emptied(name, cleaned):
    assert clean_name(name) == cleaned


def test_the_case_can_be_kept():
    assert clean_name("IL-2 Receptor", lower=False) == "IL 2 Receptor"
    assert clean_text("A &lt;B", lower=False) == "A <B"
    assert mark_mention("In", "IL-2", "Mice", lower=False) == "In START IL-2 END Mice"


def test_words_of_the_text_are_not_taken_for_marks():
    marked = mark_mention("THE END OF START", "END", "START it", lower=False)
    assert marked == "THE end OF start START end END start it"


def reference(left, mention, right, budget):
    """Keep what the published rule keeps, in its own words."""
    if len(left) + len(right) > budget:
        if len(left) <= budget // 2:
            right = right[: budget - len(left)]
        elif len(right) <= budget // 2:
            left = left[len(left) - (budget - len(right)) :]
        else:
            left, right = left[len(left) - (budget - budget // 2) :], right[: budget // 2]
    return " ".join([*left, "START", *mention, "END", *right])


@pytest.mark.parametrize("budget", [0, 1, 4, 5])
def test_the_nearest_words_are_kept(budget):
    for n_left, n_right in itertools.product(range(7), repeat=2):
        left, right = (
            [f"{side}{k}" for k in range(n)] for side, n in (("l", n_left), ("r", n_right))
        )
        marked = mark_mention(" ".join(left), "a b", " ".join(right), words=budget)
        assert marked == reference(left, ["a", "b"], right, budget)
        n_words = len(marked.split()) - 4
        assert (
            n_words == min(budget, n_left + n_right) == sum(split_context(n_left, n_right, budget))
        )


def test_a_negative_budget_is_refused():
    with pytest.raises(ConfigError, match="words: expected a number of at least 0, found -1"):
        mark_mention("", "m", "", words=-1)
