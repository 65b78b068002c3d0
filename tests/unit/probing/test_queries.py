"""Queries of a store: against plain loops over its triples, and as lines of a file."""

from collections import Counter, defaultdict

import pytest

from biograft.errors import ConfigError, FormatError, OutputError
from biograft.probing import ClozeQuery, QueryConfig, build_queries, read_queries, write_queries


def plainly(base, language, words):
    """All queries of a store, by going through its triples one by one."""
    own = {}
    for concept in base:
        names = [name.text for name in concept.names if name.language == language]
        if names:
            own[concept.id] = names[0].lower().replace(" (symptom)", "")
    merged = defaultdict(set)
    for row in range(len(base)):
        head = base.id_at(row)
        for relation, tail, _ in base.outgoing(row):
            if head in own and tail in own:
                merged[f"{own[head]} {words[relation]} [MASK]", relation].add(tail)
                merged[f"[MASK] {words[relation]} {own[tail]}", relation].add(head)
    return {key: tuple(sorted(answers)) for key, answers in merged.items()}


WORDS = {"treats": "treats", "is-a": "is a", "same_as": "is same as"}


def as_table(queries):
    return {(query.prompt, query.relation): query.answers for query in queries}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_queries_are_those_of_plain_loops(base, language):
    made = build_queries(base, QueryConfig(languages=(language,)))
    expected = plainly(base, language, WORDS)
    assert as_table(made.queries) == expected
    assert made.n_different == len(made.queries) == len(expected)
    assert made.n_triples == 10
    assert made.n_nameless == {"en": 2, "zh": 6}[language]


def test_equal_queries_are_one_with_several_right_concepts(base):
    table = as_table(build_queries(base, QueryConfig()).queries)
    assert table["aspirin treats [MASK]", "treats"] == ("D1", "D2", "D5", "D7")
    assert table["[MASK] treats fever", "treats"] == ("D3", "D4")
    assert table["aspirin is same as [MASK]", "same_as"] == ("D4",)


def test_a_name_in_the_first_language_that_has_one(base):
    table = as_table(build_queries(base, QueryConfig(languages=("en", "zh"))).queries)
    assert ("布洛芬 treats [MASK]", "treats") in table
    table = as_table(build_queries(base, QueryConfig(languages=("zh", "en"))).queries)
    assert table["阿司匹林 treats [MASK]", "treats"] == ("D1", "D2", "D7")
    assert table["aspirin treats [MASK]", "treats"] == ("D1", "D5")
    assert build_queries(base, QueryConfig(languages=("de",))).queries == ()


def test_one_end_only_and_some_relations_only(base):
    config = QueryConfig(masked="head", relations=("is-a", "same_as"))
    made = build_queries(base, config, {"is-a": "is a kind of"})
    assert as_table(made.queries) == {
        ("[MASK] is a kind of pain", "is-a"): ("D2",),
        ("[MASK] is a kind of headache", "is-a"): ("D7",),
        ("[MASK] is same as aspirin", "same_as"): ("D3",),
    }
    assert made.n_triples == 3
    with pytest.raises(ConfigError, match=r"none is called 'treat'; did you mean 'treats'"):
        build_queries(base, QueryConfig(relations=("treat",)))


def test_a_seed_decides_what_is_drawn(base):
    everything = set(build_queries(base, QueryConfig(per_relation=0)).queries)
    draws = []
    for seed in range(20):
        made = build_queries(base, QueryConfig(per_relation=2, seed=seed))
        again = build_queries(base, QueryConfig(per_relation=2, seed=seed))
        assert made == again
        assert set(made.queries) <= everything
        assert Counter(q.relation for q in made.queries) == {"treats": 2, "is-a": 2, "same_as": 2}
        assert made.n_different == len(everything)
        alone = build_queries(base, QueryConfig(per_relation=2, seed=seed, relations=("treats",)))
        assert alone.queries == tuple(q for q in made.queries if q.relation == "treats")
        draws.append(made.queries)
    assert len(set(draws)) > 5
    assert {query for draw in draws for query in draw} == everything
    limited = build_queries(base, QueryConfig(limit=4)).queries
    assert len(limited) == 4
    assert set(limited) <= everything


def test_queries_survive_a_file(base, tmp_path):
    queries = build_queries(base, QueryConfig(languages=("zh", "en"))).queries
    write_queries(tmp_path / "q.tsv", queries)
    assert read_queries(tmp_path / "q.tsv", base) == queries
    line = (tmp_path / "q.tsv").read_text("utf-8").splitlines()[0]
    assert line.count("\t") == 2
    with pytest.raises(OutputError, match="exists already"):
        write_queries(tmp_path / "q.tsv", queries)
    with pytest.raises(OutputError, match=r"cannot hold 'D1\|D2'"):
        write_queries(tmp_path / "r.tsv", [ClozeQuery("[MASK] a", "r", ("D1|D2",))])
    assert not (tmp_path / "r.tsv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a [MASK]\tr\tD1\nb [MASK]\tr\n", r"q\.tsv:2: expected a prompt with one \[MASK\]"),
        ("a\tr\tD1\n", r"q\.tsv:1: expected a prompt with one"),
        ("[MASK] a [MASK]\tr\tD1\n", "expected a prompt with one"),
        ("a [MASK]\tr\tD1|D9\n", r"q\.tsv:1: no concept of .* has the id 'D9'"),
        ("\n", "holds no queries"),
    ],
)
def test_lines_that_are_no_queries(base, write, text, message):
    with pytest.raises(FormatError, match=message):
        read_queries(write("q.tsv", text), base)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"languages": ()}, "languages: expected at least one"),
        ({"masked": "tails"}, "masked: expected one of both, head, tail"),
        ({"per_relation": -1}, "per_relation: expected 0 or more"),
        ({"limit": -1}, "limit: expected 0 or more"),
        ({"seed": -1}, "seed: expected 0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        QueryConfig(**values)
