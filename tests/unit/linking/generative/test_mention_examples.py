"""Examples to learn from: what is left out and why, what is read and what is to be written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from generative_store import Query, ask_in

from biograft.errors import ConfigError
from biograft.linking.generative import (
    GenerativeConfig,
    NamesConfig,
    collect_mentions,
    select_names,
)
from biograft.linking.generative.examples import TargetChooser, overlapping
from biograft.linking.generative.ranker import ask
from biograft.linking.queries import Context
from biograft.objectives.name_examples import NameExample


@pytest.fixture
def gather(named):
    def of(queries, config=GenerativeConfig()):  # noqa: B008 - frozen
        selected = select_names(named, config.names)
        return collect_mentions(
            named, TargetChooser(named, selected, config.target, 0), queries, config
        )

    return of


def test_a_mention_in_its_text_and_the_name_to_write(gather):
    data = gather([ask_in("Then a Heart Atack &amp; fever.", "Heart Atack", "D4")])
    assert data.examples == (
        NameExample("then a START heart atack END & fever.", "heart atack is", "heart attack"),
    )
    assert data.example(7, 0) is data.examples[0]
    assert data.counts.learnt == len(data) == 1


def test_what_is_left_out_is_counted(gather):
    queries = [
        ask_in("type 2 diabetes", "type 2 diabetes", "D1"),
        Query(("breast", "ovarian cancer"), frozenset({"D2", "D3"}),
              (frozenset({"D2"}), frozenset({"D3"}))),
        Query(("nothing",)),
        Query(("something",), frozenset({"D999"})),
        Query(("cold",), frozenset({"D6", "D7"})),  # either is right
    ]  # fmt: skip
    data = gather(queries)
    assert [example.target for example in data.examples] == ["type 2 diabetes", "cold"]
    counts = data.counts
    assert (counts.given, counts.composite, counts.nil, counts.unknown) == (5, 1, 1, 1)
    assert (counts.overlapping, counts.learnt) == (0, 2)


def test_concepts_none_of_whose_names_may_be_generated_teach_nothing(gather):
    config = GenerativeConfig(names=NamesConfig(languages=("zh",)))
    data = gather([Query(("MI",), frozenset({"D4"})), Query(("met",), frozenset({"D5"}))], config)
    assert [example.target for example in data.examples] == ["二甲双胍"]
    assert data.counts.unknown == 1


def test_overlapping_mentions_may_be_left_out(gather):
    text = "breast and ovarian cancer, cold"
    queries = [
        ask_in(text, "breast and ovarian cancer", "D2"),
        ask_in(text, "ovarian cancer", "D3"),
        ask_in(text, "cold", "D6"),
        Query(("cold",), frozenset({"D6"}), document=text),
    ]
    assert overlapping(queries) == [True, True, False, False]
    assert gather(queries).counts.learnt == 4
    data = gather(queries, GenerativeConfig(drop_overlapping=True))
    assert (data.counts.overlapping, data.counts.learnt) == (2, 2)


def test_letters_stand_for_their_long_form_as_in_linking(gather):
    text = "After a heart attack (HA) she had another HA."
    first = ask_in(text, "HA", "D4")
    (example,) = gather([first]).examples
    assert example.prompt == "heart attack is"
    assert example.source == "after a heart attack ( START heart attack END ) she had another ha."


def test_a_place_without_its_text_says_nothing(gather):
    query = Query(("cold",), frozenset({"D6"}), document="7", start=43, end=47)
    (example,) = gather([query]).examples
    assert example.source == "START cold END"


def test_none_is_left(gather):
    assert len(gather([Query(("x",), frozenset({"D999"}))])) == 0
    assert len(gather([])) == 0


def test_the_provenance_depends_on_what_is_learnt(gather):
    one = gather([ask_in("a cold", "cold", "D6")]).provenance()
    assert one == gather([ask_in("a cold", "cold", "D6")]).provenance()
    assert one != gather([ask_in("one cold", "cold", "D6")]).provenance()


CONFIG = GenerativeConfig()


def test_the_question_keeps_the_words_nearest_the_mention():
    text = "one two three cold four five six"
    place = Context(text, 14, 18)
    assert ask("cold", place, CONFIG).source == "one two three START cold END four five six"
    near = replace(CONFIG, context_words=2)
    assert ask("cold", place, near).source == "three START cold END four"
    assert ask("cold", place, replace(CONFIG, context_words=0)).source == "START cold END"


def test_a_mention_without_a_known_place_stands_alone():
    assert ask("Cold", Context("some text", 0, 0), CONFIG) == ("START cold END", "cold is")
    assert ask("Cold", Context(), CONFIG) == ("START cold END", "cold is")


def test_case_and_prompt_are_chosen():
    config = GenerativeConfig(prompt=False, names=NamesConfig(lower=False))
    assert ask("Cold", Context("A Cold", 2, 6), config) == ("A START Cold END", "")


def test_a_mention_that_is_the_word_is_or_holds_it():
    text = "what is is"
    assert ask("is", Context(text, 8, 10), CONFIG) == ("what is START is END", "is is")


def test_a_place_outside_the_text_is_refused():
    with pytest.raises(ConfigError, match="expected a mention within the 4 characters"):
        ask("x", Context("text", 2, 9), CONFIG)
