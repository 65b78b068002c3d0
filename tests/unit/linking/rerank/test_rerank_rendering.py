from __future__ import annotations

import random
from dataclasses import replace

import pytest

from biograft.errors import ConfigError, NotFoundError
from biograft.linking.queries import Context
from biograft.linking.rerank.model import CandidateTexts, mark_mention

TEXT = "A common cold was seen in the patient."


@pytest.mark.parametrize(
    ("text", "mention", "n", "shown"),
    [
        (TEXT, "cold", 100, "A common  { cold }  was seen in the patient."),
        (TEXT, "cold", 8, "common  { cold }  was"),
        (TEXT, "cold", 0, "{ cold }"),
        (TEXT, "A", 9, "{ A }  common"),
        (TEXT, "patient.", 7, "in the  { patient. }"),
        (TEXT, "patient.", 6, "the  { patient. }"),
        (TEXT, TEXT, 5, f"{{ {TEXT} }}"),
        ("🤧 cold 🥶", "cold", 2, "🤧  { cold }  🥶"),
        ("患者感冒三天了", "感冒", 2, "患者 { 感冒 } 三天"),
        ("他患感冒三天了", "感冒", 1, "患 { 感冒 } 三"),
        ("end of a cold", "cold", 4, "a  { cold }"),
    ],
)
def test_a_mention_is_marked_and_no_word_is_cut(text, mention, n, shown):
    start = text.index(mention)
    context = Context(text, start, start + len(mention))
    assert mark_mention(mention, context, n) == shown


def test_another_form_stands_behind_the_mention():
    assert mark_mention("common  Cold", Context("a CC.", 2, 4), 9) == "a  { CC ( common  Cold ) } ."
    assert mark_mention("COLD", Context("a cold", 2, 6), 9) == "a  { cold }"


@pytest.mark.parametrize("context", [Context(), Context(TEXT, 0, 0), Context("a  b", 1, 3)])
def test_without_a_known_place_the_form_stands_alone(context):
    assert mark_mention("cold", context, 50) == "{ cold }"


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (5, 2), (0, 40), (99, 100)])
def test_a_place_outside_the_text_is_refused(start, end):
    with pytest.raises(ConfigError, match="expected a mention within the 38 characters of its"):
        mark_mention("cold", Context(TEXT, start, end), 9)


def test_what_is_shown_is_a_piece_of_the_text_around_the_mention_whatever_the_window():
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choices("ab  \n🤧感e\u0301", k=rng.randrange(1, 40)))
        start = rng.randrange(len(text))
        end = rng.randrange(start + 1, len(text) + 1)
        n = rng.randrange(12)
        shown = mark_mention(text[start:end], Context(text, start, end), n)
        if not text[start:end].strip():
            continue
        left, right = shown.split(f"{{ {text[start:end]} }}")
        assert text[:start].rstrip().endswith(left.strip())
        assert text[end:].lstrip().startswith(right.strip())
        assert max(len(left), len(right)) <= n + 1


def test_a_candidate_is_told_by_name_found_name_synonyms_type_and_definition(bench):
    config = bench.config(n_synonyms=1, definition_characters=21)
    describe = CandidateTexts(bench.kb, config).describe
    assert describe("ILL", "coryza") == (
        "Cold ; coryza ; common cold ; disease ; An illness with cough"
    )
    assert describe("ILL", "cold") == "Cold ; common cold ; disease ; An illness with cough"


def test_what_a_concept_lacks_is_left_out(bench):
    assert CandidateTexts(bench.kb, bench.config()).describe("HEAT", "Heat") == "Heat"
    lean = replace(bench.config(), n_synonyms=0, definition_characters=0)
    assert CandidateTexts(bench.kb, lean).describe("ILL", "Cold") == "Cold ; disease"


def test_a_concept_that_the_store_does_not_have_is_named(bench):
    with pytest.raises(NotFoundError, match="no concept has the id 'X'"):
        CandidateTexts(bench.kb, bench.config()).describe("X", "x")
