"""The similarity probe on the Chinese disease graph: aliases among hard negatives."""

import gzip
from collections import defaultdict

import pytest
from rapidfuzz.distance import JaroWinkler

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import normalise
from biograft.kb.sources import SourceConfig
from biograft_lab.probing.similarity import (
    SimilarityConfig,
    SimilarityReport,
    build_queries,
    collect_names,
    judge,
    lexical_similarity,
)

pytestmark = pytest.mark.slow
N_PAIRS = 150


def test_aliases_of_the_disease_graph(shared_data, tmp_path):
    """Built from the lines with types and aliases only, which is quicker."""
    graph = shared_data("zh/medical_kg/triples_derived.tsv.gz")
    aliases, types = set(), defaultdict(set)
    with (
        gzip.open(graph, "rt", encoding="utf-8") as file,
        (tmp_path / "t.tsv").open("w") as triples_file,
    ):
        for line in file:
            head, relation, tail, head_type, tail_type, *_ = line.rstrip("\n").split("\t")
            if relation == "alias":
                aliases |= {(head, tail), (tail, head)}
            if relation in ("relation", "alias", "has_complication"):
                triples_file.write(line)
                types[head].add(head_type)
                types[tail].add(tail_type)
    source = SourceConfig(path=tmp_path / "t.tsv", format="triples", language="zh")
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    config = SimilarityConfig(same_as=("alias",), limit=N_PAIRS)
    result = build_queries(KnowledgeBase.open(tmp_path / "kb"), config)
    assert result.n_pairs == 9086
    assert (result.n_sampled, len(result.queries) + result.n_left_out) == (N_PAIRS, 2 * N_PAIRS)
    assert result.n_left_out < N_PAIRS
    for query in result.queries:
        assert (query.query, query.positive) in aliases
        assert len(set(query.negatives)) == 19
        for name in query.negatives:
            assert (name, query.positive) not in aliases
            assert (name, query.query) not in aliases
            assert types[name] & types[query.positive]
            assert JaroWinkler.similarity(normalise(name), normalise(query.positive)) > 0.6
    hits = judge(lexical_similarity(collect_names(result.queries), None))
    results = SimilarityReport(result.queries).metrics(hits)
    assert 35 < results["D1"]["acc@1"] < 65  # far above the 5 of chance, far from right
