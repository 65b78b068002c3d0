"""Examples to learn from: what is left out and why, what is read and what is to be written."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from generative_store import Query, query_in, store_in
from hypothesis import given, strategies as st

from biograft.errors import ConfigError
from biograft.linking import (
    Context,
    GenerativeConfig,
    NamesConfig,
    select_names,
)
from biograft.linking.generative import make_input
from biograft.linking.queries import overlapping
from biograft.text import clean_name
from biograft.training.linkers import collect_mentions
from biograft.training.linkers.generative import (
    ExamplesWithNames,
    TargetChooser,
    TrigramSimilarity,
)
from biograft.training.objectives import NameExample


@pytest.fixture
def gather(named):
    def of(queries, config=GenerativeConfig()):  # noqa: B008 - frozen
        selected = select_names(named, config.names)
        return collect_mentions(named, TargetChooser(selected, config.target, 0), queries, config)

    return of


def test_a_mention_in_its_text_and_the_name_to_write(gather):
    data = gather([query_in("Then a Heart Atack &amp; fever.", "Heart Atack", "D4")])
    assert data.examples == (
        NameExample("then a START heart atack END & fever.", "heart atack is", "heart attack"),
    )
    assert data.example(7, 0) is data.examples[0]
    assert data.counts.used == len(data) == 1


def test_what_is_left_out_is_counted(gather):
    queries = [
        query_in("type 2 diabetes", "type 2 diabetes", "D1"),
        Query(
            ("breast", "ovarian cancer"),
            frozenset({"D2", "D3"}),
            (frozenset({"D2"}), frozenset({"D3"})),
        ),
        Query(("nothing",)),
        Query(("something",), frozenset({"D999"})),
        Query(("cold",), frozenset({"D6", "D7"})),  # either is right
    ]
    data = gather(queries)
    assert [example.target for example in data.examples] == ["type 2 diabetes", "cold"]
    counts = data.counts
    assert (counts.given, counts.composite, counts.nil, counts.unknown) == (5, 1, 1, 1)
    assert (counts.overlapping, counts.used) == (0, 2)


def test_concepts_none_of_whose_names_may_be_generated_teach_nothing(gather):
    config = GenerativeConfig(names=NamesConfig(languages=("zh",)))
    data = gather([Query(("MI",), frozenset({"D4"})), Query(("met",), frozenset({"D5"}))], config)
    assert [example.target for example in data.examples] == ["二甲双胍"]
    assert data.counts.unknown == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=8))
def test_overlaps_are_those_of_all_pairs(spans):
    queries = [Query(("x",), document="1", start=a, end=a + n) for a, n in spans]
    pairs = [
        any(
            one.start < other.end and other.start < one.end for other in queries if other is not one
        )
        for one in queries
    ]
    assert overlapping(queries) == pairs


def test_overlapping_mentions_may_be_left_out(gather):
    text = "breast and ovarian cancer, cold"
    queries = [
        query_in(text, "breast and ovarian cancer", "D2"),
        query_in(text, "ovarian cancer", "D3"),
        query_in(text, "cold", "D6"),
        Query(("cold",), frozenset({"D6"}), document=text),
    ]
    assert overlapping(queries) == [True, True, False, False]
    assert gather(queries).counts.used == 4
    data = gather(queries, GenerativeConfig(drop_overlapping=True))
    assert (data.counts.overlapping, data.counts.used) == (2, 2)


def test_abbreviations_are_expanded_as_in_linking(gather):
    text = "After a heart attack (HA) she had another HA."
    first = query_in(text, "HA", "D4")
    (example,) = gather([first]).examples
    assert example.prompt == "heart attack is"
    assert example.source == "after a heart attack ( START heart attack END ) she had another ha."


def test_a_position_without_its_text_is_ignored(gather):
    query = Query(("cold",), frozenset({"D6"}), document="7", start=43, end=47)
    (example,) = gather([query]).examples
    assert example.source == "START cold END"


def test_none_is_left(gather):
    assert len(gather([Query(("x",), frozenset({"D999"}))])) == 0
    assert len(gather([])) == 0


def test_the_provenance_depends_on_what_is_learnt(gather):
    one = gather([query_in("a cold", "cold", "D6")]).provenance()
    assert one == gather([query_in("a cold", "cold", "D6")]).provenance()
    assert one != gather([query_in("one cold", "cold", "D6")]).provenance()


CONFIG = GenerativeConfig()


def test_the_question_keeps_the_words_nearest_the_mention():
    text = "one two three cold four five six"
    span = Context(text, 14, 18)
    assert make_input("cold", span, CONFIG).source == "one two three START cold END four five six"
    near = replace(CONFIG, context_words=2)
    assert make_input("cold", span, near).source == "three START cold END four"
    assert make_input("cold", span, replace(CONFIG, context_words=0)).source == "START cold END"


def test_a_mention_without_a_position_has_no_context():
    assert make_input("Cold", Context("some text", 0, 0), CONFIG) == ("START cold END", "cold is")
    assert make_input("Cold", Context(), CONFIG) == ("START cold END", "cold is")


def test_case_and_prompt_are_chosen():
    config = GenerativeConfig(prompt="none", names=NamesConfig(lower=False))
    assert make_input("Cold", Context("A Cold", 2, 6), config) == ("A START Cold END", "")


def test_the_left_context_is_a_prompt_beside_the_text_without_marks():
    left = GenerativeConfig(prompt="left", context_words=4)
    span = Context("one two three Cold four five", 14, 18)
    assert make_input("cold", span, left) == ("two three cold four five", "two three")
    assert make_input("cold", Context(), left) == ("cold", "")


def test_a_mention_that_is_the_word_is_or_holds_it():
    text = "what is is"
    assert make_input("is", Context(text, 8, 10), CONFIG) == ("what is START is END", "is is")


def test_a_position_outside_the_text_is_refused():
    with pytest.raises(ConfigError, match="expected a mention within the 4 characters"):
        make_input("x", Context("text", 2, 9), CONFIG)


NAMES = {
    "A": [
        "Renal Failure",
        "kidney failure",
        "failing kidneys",
        "renal insufficiency, acute",
        "insufficiency of the kidney",
        "ARF",
    ],
    "B": ["Hepatic Failure", "liver failure", "failure of liver function", "liver-failure"],
    "C": ["aa", "bb", "ab"],
}
MENTIONS = [
    "kidney insufficiency",
    "acute renal failing",
    "Kidney-Failure",
    "liver",
    "arf",
    "failure",
]


@pytest.fixture(scope="module")
def organs(tmp_path_factory):
    rows = [{"id": i, "names": names} for i, names in NAMES.items()]
    return store_in(tmp_path_factory.mktemp("organs"), rows)


@pytest.fixture(scope="module")
def choose(organs):
    def by(rule, mentions, concepts, seed=0, **names):
        selected = select_names(organs, NamesConfig(**names))
        chooser = TargetChooser(selected, rule, seed)
        rows = [chooser.names_of([organs.row(i) for i in own]) for own in concepts]
        return [organs.name(row).text for row in chooser.choose(mentions, rows)]

    return by


@pytest.mark.parametrize("gold", [("A",), ("B",), ("A", "B")])
def test_the_most_similar_name_is_that_of_scikit_learns_vectoriser(organs, choose, gold):
    """Guards: trigrams went across words, so that the target was another than with scispaCy's."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    every = [name for names in NAMES.values() for name in names]
    own = [name for i in gold for name in NAMES[i]]
    vectoriser = text.TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
    vectoriser.fit(dict.fromkeys(map(clean_name, every)))
    vectors = vectoriser.transform(map(clean_name, every))
    similarity = TrigramSimilarity(list(dict.fromkeys(map(clean_name, every))))
    for mention, chosen in zip(MENTIONS, choose("similar", MENTIONS, [gold] * 6), strict=True):
        cosines = (vectors @ vectoriser.transform([clean_name(mention)]).T).toarray()[:, 0]
        assert [similarity(mention, name) for name in every] == pytest.approx(cosines, abs=1e-12)
        scores = dict(zip(every, cosines, strict=True))
        best = max(scores[name] for name in own)
        assert scores[chosen] == pytest.approx(best, abs=1e-5)
        equal = [name for name in own if math.isclose(scores[name], best, abs_tol=1e-9)]
        assert chosen == min(equal, key=len) or len(equal) == 1


def test_of_names_with_the_same_words_the_one_in_the_order_of_the_mention_is_taken(tmp_path):
    """Guards: *infection urinary tract*, the first in the store, was learned for its inversion."""
    names = ["infection urinary tract", "tract infection urinary", "urinary tract infection"]
    kb = store_in(tmp_path, [{"id": "A", "names": names}])
    chooser = TargetChooser(select_names(kb, NamesConfig()), "similar", 0)
    for mention in (*names, "Urinary Tract Infections"):
        (row,) = chooser.choose([mention], [chooser.names_of([0])])
        assert kb.name(row).text == mention.lower().removesuffix("s")


def test_of_equally_similar_names_the_shortest_then_the_first_is_taken(choose):
    # nothing of the mention is in any name
    assert choose("similar", ["qqq"], [("B",)]) == ["liver failure"]
    assert choose("similar", ["qqq"], [("C",)]) == ["aa"]


def test_the_shortest_name_whatever_the_mention(choose):
    assert choose("shortest", ["kidney insufficiency", "x"], [("A",), ("B",)]) == [
        "ARF",
        "liver failure",
    ]
    assert choose("shortest", ["x"], [("C",)]) == ["aa"]


def test_a_name_at_random_for_each_mention_the_same_for_the_same_seed(choose):
    many = ["x"] * 300
    sampled = choose("random", many, [("A",)] * 300, seed=4)
    assert sampled == choose("random", many, [("A",)] * 300, seed=4)
    assert sampled != choose("random", many, [("A",)] * 300, seed=5)
    counts = Counter(sampled)
    assert set(counts) == set(NAMES["A"])
    assert min(counts.values()) > 25


def test_only_names_that_may_be_generated_are_learnt(choose):
    chosen = choose("similar", MENTIONS, [("A",)] * 6, per_concept="shortest")
    assert chosen == ["ARF"] * 6


def test_names_of_concepts(organs):
    selected = select_names(organs, NamesConfig())
    chooser = TargetChooser(selected, "shortest", 0)
    concepts = organs.table("names").column("concept").to_numpy()
    for own in ([0], [1], [2], [0, 2], [], [99]):
        assert chooser.names_of(own).tolist() == np.flatnonzero(np.isin(concepts, own)).tolist()


def test_mentions_that_stand_alone_are_counted(gather):
    elsewhere = Query(("cold",), frozenset({"D6"}), context="nothing of it")
    alone = Query(("cold",), frozenset({"D6"}))
    data = gather([elsewhere, alone, query_in("a cold", "cold", "D6")])
    assert [example.source for example in data.examples] == [
        "START cold END",
        "START cold END",
        "a START cold END",
    ]
    assert (data.counts.used, data.counts.without_text) == (3, 2)


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.9])
def test_names_are_a_fraction_of_each_epoch_and_none_is_repeated_before_all_are_seen(named, ratio):
    config = GenerativeConfig(names_ratio=ratio, names=NamesConfig(languages=("en",)))
    selected = select_names(named, config.names)
    chooser = TargetChooser(selected, config.target, 0)
    queries = [query_in("A cold today.", "cold", "D6")] * 10
    mentions = collect_mentions(named, chooser, queries, config)
    data = ExamplesWithNames(mentions, named, selected, config)
    assert len(data) - 10 == data.n_names == round(10 * ratio / (1 - ratio))
    epochs = [[data.example(epoch, index) for index in range(len(data))] for epoch in range(9)]
    assert all(tuple(examples[:10]) == mentions.examples for examples in epochs)
    targets = [each.target for examples in epochs for each in examples[10:]]
    # a name of two concepts is learnt for each
    every = Counter(
        text
        for _, text in {
            (int(c), selected.texts[n])
            for c, n in zip(selected.concepts, selected.numbers, strict=True)
            if n >= 0
        }
    )
    n = sum(every.values())
    for start in range(0, len(targets) - n + 1, n):
        assert Counter(targets[start : start + n]) == every
    again = ExamplesWithNames(mentions, named, selected, config)
    backwards = [
        again.example(e, i) for e in reversed(range(9)) for i in reversed(range(len(data)))
    ]
    assert backwards[::-1] == [example for examples in epochs for example in examples]
    other = replace(config, training=replace(config.training, seed=1))
    assert ExamplesWithNames(mentions, named, selected, other).example(0, 10) != epochs[0][10]
