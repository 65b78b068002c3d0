"""Queries of a small store against the rules in plain loops."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from rapidfuzz.distance import JaroWinkler

from biograft.errors import ConfigError
from biograft.kb.names import normalise
from biograft.text.shards import AnnotatedDocument, LinkedSpan
from biograft_lab.probing.similarity import (
    SimilarityConfig,
    SimilarityQuery,
    SimilarityReport,
    build_queries,
    count_names,
    queries as queries_module,
    with_frequencies,
)
from biograft_lab.probing.similarity.queries import sample

CONFIG = SimilarityConfig(same_as=("same_as",), negatives=1)


def same_concepts(base):
    return {
        frozenset((r.head, r.tail))
        for c in base
        for r in base.relations(c.id)
        if r.relation == "same_as" and r.head != r.tail
    }


def pairs_by_rule(base, *, kind="all", across=False, languages=()):
    """Unordered pairs of keys, with the languages of the names left out."""
    rows = [
        (c.id, n.text, n.language)
        for c in base
        for n in c.names
        if not languages or n.language in languages
    ]
    result = set()
    for (a, text, tag), (b, other, other_tag) in combinations(rows, 2):
        joined = frozenset((a, b)) in same_concepts(base) and kind != "names"
        if not joined and not (a == b and kind != "relations"):
            continue
        if (tag == other_tag or across) and normalise(text) != normalise(other):
            result.add(frozenset((normalise(text), normalise(other))))
    return result


def key_pairs(queries):
    return {frozenset((normalise(q.query), normalise(q.positive))) for q in queries}


def allowed_by_rule(base, query, threshold=0.6):
    """Return the keys that may be negatives of the positive."""
    language = "en" if query.positive.isascii() else "zh"
    right = set(query.concepts)
    for pair in same_concepts(base):
        if pair & set(query.concepts):
            right |= pair
    right_keys = {normalise(n.text) for c in right for n in base[c].names}
    types = {t.code for t in base[query.concepts[1]].types}
    result = set()
    for concept in base:
        concept_types = {t.code for t in concept.types}
        if concept.id in right or not (concept_types & types or (not concept_types and not types)):
            continue
        for name in concept.names:
            key = normalise(name.text)
            is_similar = JaroWinkler.similarity(key, normalise(query.positive)) > threshold
            if name.language == language and key not in right_keys and is_similar:
                result.add(key)
    return result


@pytest.mark.parametrize("kind", ["all", "names", "relations"])
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("languages", [(), ("en",), ("zh", "en")])
def test_pairs_follow_the_rule(similar_store, kind, across, languages):
    config = replace(CONFIG, pairs=kind, across_languages=across, languages=languages)
    result = build_queries(similar_store, config)
    expected = pairs_by_rule(similar_store, kind=kind, across=across, languages=languages)
    assert result.n_pairs == result.n_sampled == len(expected) > 3
    assert len(result.queries) + result.n_left_out == 2 * len(expected)
    assert key_pairs(result.queries) <= expected
    ways = Counter((normalise(q.query), normalise(q.positive)) for q in result.queries)
    assert max(ways.values()) == 1
    both = [pair for pair in ways if pair[::-1] in ways]
    assert len(both) > 2  # each way round


def test_names_equal_after_normalising_are_no_pair(similar_store):
    result = build_queries(similar_store, CONFIG)
    assert not any("Acute-Fever" in (q.query, q.positive, *q.negatives) for q in result.queries)


@pytest.mark.parametrize("negatives", range(1, 13))
def test_hard_negatives_follow_the_rule(similar_store, negatives):
    """As many as there are: all of them; one more: the query is left out."""
    every = build_queries(similar_store, CONFIG).queries
    result = build_queries(similar_store, replace(CONFIG, negatives=negatives))
    queries_by_pair = {(q.query, q.positive): q for q in result.queries}
    for query in every:
        allowed = allowed_by_rule(similar_store, query)
        assert ((query.query, query.positive) in queries_by_pair) == (len(allowed) >= negatives)
        if (query.query, query.positive) in queries_by_pair:
            negatives_of = [
                normalise(t) for t in queries_by_pair[query.query, query.positive].negatives
            ]
            assert len(set(negatives_of)) == negatives
            assert set(negatives_of) <= allowed
            assert set(negatives_of) == allowed or len(allowed) > negatives


def test_every_hard_negative_may_be_sampled(similar_store):
    allowed, negatives_of = {}, {}
    for seed in range(40):
        for q in build_queries(similar_store, replace(CONFIG, seed=seed)).queries:
            allowed[q.query, q.positive] = allowed_by_rule(similar_store, q)
            negatives_of.setdefault((q.query, q.positive), set()).update(
                map(normalise, q.negatives)
            )
    result = [
        negatives_of[pair] == allowed[pair] for pair in negatives_of if len(allowed[pair]) < 8
    ]
    assert len(result) > 1
    assert all(result)


def test_the_bound_itself_is_not_above_it(similar_store):
    query = build_queries(similar_store, CONFIG).queries[0]
    scores = [
        JaroWinkler.similarity(normalise(t), normalise(query.positive))
        for t in allowed_by_rule(similar_store, query)
    ]
    bound = sorted(scores)[len(scores) // 2]
    n_above = sum(score > bound for score in scores)
    config = replace(CONFIG, jaro_winkler=bound, negatives=n_above)
    pair = (query.query, query.positive)
    assert pair in {(q.query, q.positive) for q in build_queries(similar_store, config).queries}
    more = build_queries(similar_store, replace(config, negatives=n_above + 1))
    assert pair not in {(q.query, q.positive) for q in more.queries}


def test_concepts_of_no_type_stand_beside_one_another(similar_store):
    queries = build_queries(similar_store, CONFIG).queries
    neighbours = {t for q in queries if q.concepts[1] == "N0" for t in q.negatives}
    assert neighbours <= {"feverish fit"}
    assert neighbours


def test_the_seed_decides_and_blocks_do_not(similar_store, monkeypatch):
    config = replace(CONFIG, negatives=3)
    result = build_queries(similar_store, config)
    assert build_queries(similar_store, config) == result
    monkeypatch.setattr(queries_module, "_MAX_PAIRS", 1)
    assert build_queries(similar_store, config) == result
    assert build_queries(similar_store, replace(config, seed=1)).queries != result.queries


def test_a_limit_samples_pairs_and_changes_no_query(similar_store):
    config = replace(CONFIG, negatives=2)
    every = build_queries(similar_store, config)
    limited = build_queries(similar_store, replace(config, limit=4))
    assert (limited.n_pairs, limited.n_sampled) == (every.n_pairs, 4)
    assert set(limited.queries) < set(every.queries)
    assert len(limited.queries) + limited.n_left_out == 8
    others = [build_queries(similar_store, replace(config, limit=4, seed=s)) for s in range(1, 6)]
    assert any(key_pairs(o.queries) != key_pairs(limited.queries) for o in others)
    assert build_queries(similar_store, replace(config, limit=1000)) == every


@pytest.mark.parametrize("seed", range(3))
def test_a_lower_limit_samples_a_subset(seed):
    small, large = (set(sample(1000, limit, seed).tolist()) for limit in (30, 200))
    assert len(small) == 30
    assert small < large


def test_d2_is_of_concepts_with_the_same_neighbours(similar_store):
    neighbours = {}
    for concept in similar_store:
        relations = [r for r in similar_store.relations(concept.id) if r.relation != "same_as"]
        ends = {r.tail if r.head == concept.id else r.head for r in relations}
        neighbours[concept.id] = ends - {concept.id}
    seen = set()
    for q in build_queries(similar_store, CONFIG).queries:
        a, b = (neighbours[c] for c in q.concepts)
        n_shared = len(a & b)
        assert q.same_neighbours == (n_shared >= 3 and n_shared / len(a | b) >= 0.75)
        seen.add((q.concepts[0] == q.concepts[1], q.same_neighbours))
    assert seen == set(permutations((True, False))) | {(True, True), (False, False)}


def test_d3_is_of_names_rare_in_text(similar_store, tmp_path):
    from biograft.artifacts import describe_files
    from biograft.linking.annotation.runner import write_frequencies
    from biograft.text.shards import SHARDS, shard_path, write_shard

    text = "acute fever, ACUTE-FEVER and acute fevers; acute febris"
    spans = [(0, 11), (13, 24), (29, 41)]
    document = AnnotatedDocument("a", text, tuple(LinkedSpan(s, e, "X", 1.0) for s, e in spans))
    write_shard(shard_path(tmp_path, 0), [document, replace(document, id="b", spans=())], {})
    write_frequencies(tmp_path, [shard_path(tmp_path, 0)])
    SHARDS.write(tmp_path, {"n_shards": 1, "n_documents": 2, "files": describe_files(tmp_path)})

    counts = count_names(tmp_path)
    assert counts == {"acute fever": 2, "acute fevers": 1}  # by name, whatever the concept
    queries = with_frequencies(build_queries(similar_store, CONFIG).queries, counts)
    by_names = {(q.query, q.positive): q.frequencies for q in queries}
    assert by_names["acute fever", "acute fevers"] == (2, 1)
    assert by_names["acute fevers", "acute fever"] == (1, 2)
    assert by_names["acute fever", "acute febris"] == (2, 0)
    for rare in (0, 1, 2):
        expected = [min(q.frequencies) <= rare for q in queries]
        assert SimilarityReport(queries, rare).subsets["D3"].tolist() == expected
    assert 0 < SimilarityReport(queries, 0).subsets["D3"].sum() < len(queries)


def test_metrics_are_means_with_intervals_and_paired_differences():
    queries = [
        SimilarityQuery(f"q{k}", f"p{k}", ("a", "b", "c"), (f"C{k // 2}", "X"), k % 4 == 0)
        for k in range(40)
    ]
    report = SimilarityReport(queries)
    better, worse = np.arange(40) % 4 < 2, np.arange(40) % 4 == 0
    results = report.metrics(better)
    assert report.chance == 0.25
    assert (results["D1"]["acc@1"], results["D1"]["n"]) == (50.0, 40)
    assert results["D2"] == {"acc@1": 100.0, "n": 10, "interval": [100.0, 100.0]}
    assert (results["D3"]["acc@1"], results["D3"]["n"], results["D3"]["interval"]) == (
        None,
        0,
        None,
    )
    assert "--corpus" in results["D3"]["why"]
    low, high = results["D1"]["interval"]
    assert 20 < low < 50 < high < 80
    # queries of a group are right or wrong together, so the interval is wider
    alone = [replace(q, concepts=(str(k), "X")) for k, q in enumerate(queries)]
    narrow = SimilarityReport(alone).metrics(better)["D1"]["interval"]
    assert high - low > 1.2 * (narrow[1] - narrow[0])
    result = report.compare(better, worse)
    assert result["D1"]["difference"] == 25.0
    assert result["D1"]["p"] < 0.01
    assert result["D2"]["difference"] == 0.0
    assert "D3" not in result


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"same_as": ("same",)}, "'same'; did you mean 'same_as'"),
        ({"pairs": "some"}, "pairs: expected one of all, names, relations"),
        ({"pairs": "relations", "same_as": ()}, "--same-as"),
        ({"languages": ("fr",)}, "no names in 'fr'"),
        ({"negatives": 0}, "negatives: expected"),
        ({"jaro_winkler": 1.1}, "jaro_winkler: expected"),
        ({"limit": -1}, "limit: expected"),
    ],
)
def test_invalid_options_are_refused(similar_store, values, message):
    with pytest.raises(ConfigError, match=message):
        build_queries(similar_store, replace(CONFIG, **values))
