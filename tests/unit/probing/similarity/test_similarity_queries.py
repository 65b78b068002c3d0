"""Queries of a small store against the rules said in plain loops."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from rapidfuzz.distance import JaroWinkler

from biograft.corpus.shards import AnnotatedDocument, LinkedSpan
from biograft.errors import ConfigError
from biograft.probing.similarity import (
    SimilarityConfig,
    SimilarityQuery,
    SimilarityReport,
    build_queries,
    count_names,
    queries as lookalikes_module,
    with_frequencies,
)
from biograft.probing.similarity.queries import draw
from biograft.text import normalise

CONFIG = SimilarityConfig(same_as=("same_as",), negatives=1)


def same_concepts(base):
    return {frozenset((r.head, r.tail)) for c in base for r in base.relations(c.id)
            if r.relation == "same_as" and r.head != r.tail}  # fmt: skip


def pairs_by_rule(base, *, kind="all", across=False, languages=()):
    """Unordered pairs of keys, with the languages of the names left out."""
    rows = [(c.id, n.text, n.language) for c in base for n in c.names
            if not languages or n.language in languages]  # fmt: skip
    found = set()
    for (a, text, tag), (b, other, other_tag) in combinations(rows, 2):
        joined = frozenset((a, b)) in same_concepts(base) and kind != "names"
        if not joined and not (a == b and kind != "relations"):
            continue
        if (tag == other_tag or across) and normalise(text) != normalise(other):
            found.add(frozenset((normalise(text), normalise(other))))
    return found


def asked_pairs(queries):
    return {frozenset((normalise(q.query), normalise(q.positive))) for q in queries}


def allowed_by_rule(base, query, threshold=0.6):
    """Keys that may stand beside the positive."""
    language = "en" if query.positive.isascii() else "zh"
    right = set(query.concepts)
    for pair in same_concepts(base):
        if pair & set(query.concepts):
            right |= pair
    taken = {normalise(n.text) for c in right for n in base[c].names}
    types = {t.code for t in base[query.concepts[1]].types}
    found = set()
    for concept in base:
        own = {t.code for t in concept.types}
        if concept.id in right or not (own & types or (not own and not types)):
            continue
        for name in concept.names:
            key = normalise(name.text)
            alike = JaroWinkler.similarity(key, normalise(query.positive)) > threshold
            if name.language == language and key not in taken and alike:
                found.add(key)
    return found


@pytest.mark.parametrize("kind", ["all", "names", "relations"])
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("languages", [(), ("en",), ("zh", "en")])
def test_pairs_are_those_of_the_rule(alike_store, kind, across, languages):
    config = replace(CONFIG, pairs=kind, across_languages=across, languages=languages)
    made = build_queries(alike_store, config)
    expected = pairs_by_rule(alike_store, kind=kind, across=across, languages=languages)
    assert made.n_pairs == made.n_drawn == len(expected) > 3
    assert len(made.queries) + made.n_left_out == 2 * len(expected)
    assert asked_pairs(made.queries) <= expected
    ways = Counter((normalise(q.query), normalise(q.positive)) for q in made.queries)
    assert max(ways.values()) == 1
    both = [pair for pair in ways if pair[::-1] in ways]
    assert len(both) > 2  # each way round


def test_names_equal_after_normalising_are_no_pair(alike_store):
    made = build_queries(alike_store, CONFIG)
    assert not any("Acute-Fever" in (q.query, q.positive, *q.negatives) for q in made.queries)


@pytest.mark.parametrize("negatives", range(1, 13))
def test_look_alikes_are_those_of_the_rule(alike_store, negatives):
    """As many as there are: all of them; one more: the query is left out."""
    every = build_queries(alike_store, CONFIG).queries
    made = build_queries(alike_store, replace(CONFIG, negatives=negatives))
    kept = {(q.query, q.positive): q for q in made.queries}
    for query in every:
        allowed = allowed_by_rule(alike_store, query)
        assert ((query.query, query.positive) in kept) == (len(allowed) >= negatives)
        if (query.query, query.positive) in kept:
            drawn = [normalise(t) for t in kept[query.query, query.positive].negatives]
            assert len(set(drawn)) == negatives
            assert set(drawn) <= allowed
            assert set(drawn) == allowed or len(allowed) > negatives


def test_every_look_alike_may_be_drawn(alike_store):
    allowed, drawn = {}, {}
    for seed in range(40):
        for q in build_queries(alike_store, replace(CONFIG, seed=seed)).queries:
            allowed[q.query, q.positive] = allowed_by_rule(alike_store, q)
            drawn.setdefault((q.query, q.positive), set()).update(map(normalise, q.negatives))
    found = [drawn[pair] == allowed[pair] for pair in drawn if len(allowed[pair]) < 8]
    assert len(found) > 1
    assert all(found)


def test_the_bound_itself_is_not_above_it(alike_store):
    query = build_queries(alike_store, CONFIG).queries[0]
    scores = [
        JaroWinkler.similarity(normalise(t), normalise(query.positive))
        for t in allowed_by_rule(alike_store, query)
    ]
    bound = sorted(scores)[len(scores) // 2]
    n_above = sum(score > bound for score in scores)
    config = replace(CONFIG, jaro_winkler=bound, negatives=n_above)
    pair = (query.query, query.positive)
    assert pair in {(q.query, q.positive) for q in build_queries(alike_store, config).queries}
    more = build_queries(alike_store, replace(config, negatives=n_above + 1))
    assert pair not in {(q.query, q.positive) for q in more.queries}


def test_concepts_of_no_type_stand_beside_one_another(alike_store):
    queries = build_queries(alike_store, CONFIG).queries
    beside = {t for q in queries if q.concepts[1] == "N0" for t in q.negatives}
    assert beside <= {"feverish fit"}
    assert beside


def test_the_seed_decides_and_blocks_do_not(alike_store, monkeypatch):
    config = replace(CONFIG, negatives=3)
    made = build_queries(alike_store, config)
    assert build_queries(alike_store, config) == made
    monkeypatch.setattr(lookalikes_module, "_CELLS", 1)
    assert build_queries(alike_store, config) == made
    assert build_queries(alike_store, replace(config, seed=1)).queries != made.queries


def test_a_limit_draws_pairs_and_changes_no_query(alike_store):
    config = replace(CONFIG, negatives=2)
    every = build_queries(alike_store, config)
    limited = build_queries(alike_store, replace(config, limit=4))
    assert (limited.n_pairs, limited.n_drawn) == (every.n_pairs, 4)
    assert set(limited.queries) < set(every.queries)
    assert len(limited.queries) + limited.n_left_out == 8
    others = [build_queries(alike_store, replace(config, limit=4, seed=s)) for s in range(1, 6)]
    assert any(asked_pairs(o.queries) != asked_pairs(limited.queries) for o in others)
    assert build_queries(alike_store, replace(config, limit=1000)) == every


@pytest.mark.parametrize("seed", range(3))
def test_a_lower_limit_draws_a_part(seed):
    small, large = (set(draw(1000, limit, seed).tolist()) for limit in (30, 200))
    assert len(small) == 30
    assert small < large


def test_d2_is_of_concepts_with_the_same_neighbours(alike_store):
    beside = {}
    for concept in alike_store:
        found = {r.tail if r.head == concept.id else r.head
                 for r in alike_store.relations(concept.id) if r.relation != "same_as"}  # fmt: skip
        beside[concept.id] = found - {concept.id}
    seen = set()
    for q in build_queries(alike_store, CONFIG).queries:
        a, b = (beside[c] for c in q.concepts)
        share = len(a & b)
        assert q.same_neighbours == (share >= 3 and share / len(a | b) >= 0.75)
        seen.add((q.concepts[0] == q.concepts[1], q.same_neighbours))
    assert seen == set(permutations((True, False))) | {(True, True), (False, False)}


def test_d3_is_of_names_rare_in_text(alike_store, tmp_path):
    from biograft.annotation.runner import write_frequencies
    from biograft.artifacts import file_sizes
    from biograft.corpus.shards import SHARDS, shard_path, write_shard

    text = "acute fever, ACUTE-FEVER and acute fevers; acute febris"
    spans = [(0, 11), (13, 24), (29, 41)]
    document = AnnotatedDocument("a", text, tuple(LinkedSpan(s, e, "X", 1.0) for s, e in spans))
    write_shard(shard_path(tmp_path, 0), [document, replace(document, id="b", spans=())], {})
    write_frequencies(tmp_path, [shard_path(tmp_path, 0)])
    SHARDS.write(tmp_path, {"n_shards": 1, "n_documents": 2, "files": file_sizes(tmp_path)})

    counts = count_names(tmp_path)
    assert counts == {"acute fever": 2, "acute fevers": 1}  # by name, whatever the concept
    queries = with_frequencies(build_queries(alike_store, CONFIG).queries, counts)
    by_names = {(q.query, q.positive): q.frequencies for q in queries}
    assert by_names["acute fever", "acute fevers"] == (2, 1)
    assert by_names["acute fevers", "acute fever"] == (1, 2)
    assert by_names["acute fever", "acute febris"] == (2, 0)
    for rare in (0, 1, 2):
        expected = [min(q.frequencies) <= rare for q in queries]
        assert SimilarityReport(queries, rare).parts["D3"].tolist() == expected
    assert 0 < SimilarityReport(queries, 0).parts["D3"].sum() < len(queries)


def test_figures_are_means_with_intervals_and_paired_differences():
    queries = [
        SimilarityQuery(f"q{k}", f"p{k}", ("a", "b", "c"), (f"C{k // 2}", "X"), k % 4 == 0)
        for k in range(40)
    ]
    report = SimilarityReport(queries)
    better, worse = np.arange(40) % 4 < 2, np.arange(40) % 4 == 0
    told = report.figures(better)
    assert report.chance == 0.25
    assert (told["D1"]["acc@1"], told["D1"]["n"]) == (50.0, 40)
    assert told["D2"] == {"acc@1": 100.0, "n": 10, "interval": [100.0, 100.0]}
    assert (told["D3"]["acc@1"], told["D3"]["n"], told["D3"]["interval"]) == (None, 0, None)
    assert "--corpus" in told["D3"]["why"]
    low, high = told["D1"]["interval"]
    assert 20 < low < 50 < high < 80
    # both queries of a group are right or both wrong: twice as wide as if they were alone
    alone = [replace(q, concepts=(str(k), "X")) for k, q in enumerate(queries)]
    narrow = SimilarityReport(alone).figures(better)["D1"]["interval"]
    assert high - low > 1.2 * (narrow[1] - narrow[0])
    found = report.compare(better, worse)
    assert found["D1"]["difference"] == 25.0
    assert found["D1"]["p"] < 0.01
    assert found["D2"]["difference"] == 0.0
    assert "D3" not in found


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"same_as": ("same",)}, "'same'; did you mean 'same_as'"),
        ({"pairs": "some"}, "pairs: expected one of all, names, relations"),
        ({"pairs": "relations", "same_as": ()}, "--same-as"),
        ({"languages": ("fr",)}, "no names in 'fr'"),
        ({"negatives": 0}, "negatives: expected at least 1"),
        ({"jaro_winkler": 1.0}, "jaro_winkler: expected 0 or more and less than 1"),
        ({"limit": -1}, "limit: expected 0 or more"),
    ],
)
def test_what_is_no_choice_is_refused(alike_store, values, said):
    with pytest.raises(ConfigError, match=said):
        build_queries(alike_store, replace(CONFIG, **values))
