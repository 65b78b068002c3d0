"""Phrases: their notation, and the trie against a plain search."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from biograft.clinical import PhraseTrie
from biograft.clinical.phrases import PhraseTokens, compile_words, expand


@dataclass(frozen=True)
class Named:
    """A rule without a condition."""

    name: str
    condition: str = ""

    def holds(self, low, start, end):
        return True


def test_groups_lists_and_optional_parts():
    assert expand("(a|b) c", {}) == ["a c", "b c"]
    assert expand("a (b)? c", {}) == ["a b c", "a c"]
    assert expand("{kin} has", {"kin": ("mother", "father")}) == ["mother has", "father has"]
    assert expand("(-)", {}) == ["(-)"]
    assert expand("(?)", {}) == ["(?)"]


@pytest.mark.parametrize("phrase", ["", " ", "{a", "a}"])
def test_what_is_no_phrase(phrase):
    with pytest.raises(ValueError, match="not a phrase"):
        expand(phrase, {})


def test_an_unknown_list():
    with pytest.raises(ValueError, match=r"unknown list \{kim\}; known: kin"):
        expand("{kim} has", {"kin": ("mother",)})


def longest(text, phrases, first, *, characters):
    """The plain way: try all phrases at a token."""
    tokens = PhraseTokens(text, [(0, len(text))], PhraseTrie(characters=characters))
    found = []
    for phrase in phrases:
        words = PhraseTokens(phrase, [(0, len(phrase))], PhraseTrie(characters=characters)).texts[
            :-1
        ]
        if tokens.texts[first : first + len(words)] == words:
            found.append((first + len(words) - 1, phrase))
    return max(found, default=None)


@pytest.mark.parametrize("characters", [False, True])
def test_the_trie_finds_what_a_plain_search_finds(characters):
    rng = random.Random(0)
    words = ["no", "not", "a", "b", "of", ":", "("] if not characters else list("无未见有、")
    joint = "" if characters else " "
    phrases = {joint.join(rng.choices(words, k=rng.randint(1, 4))) for _ in range(40)}
    trie = PhraseTrie(characters=characters)
    for phrase in phrases:
        trie.add(phrase, Named(phrase))
    for _ in range(200):
        text = joint.join(rng.choices(words, k=12))
        tokens = PhraseTokens(text, [(0, len(text))], trie)
        for first in range(len(tokens.spans)):
            got = trie.match(text, tokens, first, len(text))
            expected = longest(text, phrases, first, characters=characters)
            assert (got and (got[0], got[1].name)) == expected


def match(trie, text, limit=None):
    tokens = PhraseTokens(text, [(0, len(text))], trie)
    found = trie.match(text, tokens, 0, len(text) if limit is None else limit)
    return None if found is None else text[: tokens.spans[found[0]][1]]


def test_fillers_hyphens_numbers_and_years():
    trie = PhraseTrie(characters=False, fillers=["clearly", "been"])
    for phrase in ("not seen", "not been reported", "in ####", "# weeks ago", "gram negative"):
        trie.add(phrase, Named(phrase))
    assert match(trie, "not clearly seen") == "not clearly seen"
    assert match(trie, "not been clearly seen") == "not been clearly seen"
    assert match(trie, "not been reported") == "not been reported"
    assert match(trie, "not quite seen") is None
    assert match(trie, "in 2015") == "in 2015"
    assert match(trie, "in 5") is None
    assert match(trie, "2.5 weeks ago") == "2.5 weeks ago"
    assert match(trie, "gram-negative") == "gram-negative"
    assert match(trie, "not\nseen") == "not\nseen"
    assert match(trie, "not\n\nseen") is None


def test_no_phrase_reaches_beyond_the_limit():
    trie = PhraseTrie(characters=False)
    trie.add("no", Named("no"))
    trie.add("no code", Named("no code"))
    assert match(trie, "no code") == "no code"
    assert match(trie, "no code", limit=3) == "no"


def test_words_as_one_expression():
    assert compile_words(["no", "not", "of"]) == "(?:no(?:t)?|of)"
    assert compile_words([]) == "(?!)"
