"""Names without signs, mentions between their marks with the words nearest to them."""

from __future__ import annotations

import itertools

import pytest

from biograft.corpus.mention_text import clean_name, clean_text, mark_mention, prompt_of, share_room
from biograft.errors import ConfigError


@pytest.mark.parametrize("sign", list(",.;{}[]()+-_*/?!\\`\"'=%><"))
def test_every_sign_of_a_name_becomes_a_blank(sign):
    assert clean_name(f" {sign}A{sign}{sign} B{sign}") == "a b"
    assert clean_name(f"a{sign}b") == "a b"


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("Type-2  Diabetes\t(mellitus)", "type 2 diabetes mellitus"),
        ("α-Synuclein: 40 µg & more", "α synuclein: 40 µg & more"),
        ("2型糖尿病", "2型糖尿病"),
        ("+/-", "+/-"),
        (" (+)  (-) ", "(+) (-)"),
        ("  ", ""),
    ],
)
def test_a_name_is_never_emptied(name, cleaned):
    assert clean_name(name) == cleaned


def test_the_case_may_stay():
    assert clean_name("IL-2 Receptor", lower=False) == "IL 2 Receptor"
    assert clean_text("A &lt;B", lower=False) == "A <B"
    assert mark_mention("In", "IL-2", "Mice", lower=False) == "In START IL-2 END Mice"


def test_text_is_unescaped_squeezed_and_lowered():
    assert clean_text(" P&lt;0.05 &amp;\n more\u00a0X ") == "p<0.05 & more x"
    assert prompt_of("heart attack") == "heart attack is"


def test_words_of_the_text_are_no_marks():
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
def test_the_words_nearest_the_mention_stay(budget):
    for n_left, n_right in itertools.product(range(7), repeat=2):
        left, right = ([f"{side}{k}" for k in range(n)] for side, n in
                       (("l", n_left), ("r", n_right)))  # fmt: skip
        marked = mark_mention(" ".join(left), "a b", " ".join(right), words=budget)
        assert marked == reference(left, ["a", "b"], right, budget)
        kept = len(marked.split()) - 4
        assert kept == min(budget, n_left + n_right) == sum(share_room(n_left, n_right, budget))


def test_usual_context_is_384_words():
    marked = mark_mention("w " * 500, "m", "v " * 500).split()
    assert (marked.count("w"), marked.count("v")) == (192, 192)


def test_a_negative_budget_is_refused():
    with pytest.raises(ConfigError, match="words: expected a number of at least 0, found -1"):
        mark_mention("", "m", "", words=-1)
