"""Evaluation against the published code's results, and on the real benchmark files."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from biograft.evaluation import (
    EvaluationConfig,
    GoldConfig,
    Resolved,
    StoreIds,
    evaluate_linking,
    read_gold,
    resolve_gold,
    run_queries,
)
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Candidate

KS = tuple(range(1, 11))
FEW = EvaluationConfig(ks=KS, n_resamples=5)


class VectorRanker:
    """Ranks the rows of a dictionary by inner product, equal scores by the lower row."""

    def __init__(self, ids, names, queries, vectors):
        self.ids, self.names = ids, names
        self.scores = {text: vectors["names"] @ vectors["queries"][k] for k, text in queries}

    def rows(self, text, k):
        scores = self.scores[text]
        return np.lexsort([np.arange(len(scores)), -scores])[:k]

    def rank(self, queries, k):
        return [[self._part(part.lower(), k) for part in query.parts] for query in queries]

    def _part(self, text, k):
        scores = self.scores[text]
        return [
            Candidate(self.ids[row], "", self.names[row], float(scores[row]))
            for row in self.rows(text, k)
        ]


def split(cell):
    return frozenset(cell.split("|"))


def load(path):
    tensors = pytest.importorskip("safetensors.numpy").load_file(path)
    return {"names": tensors["dictionary_embeddings"], "queries": tensors["query_embeddings"]}


def unresolved(queries):
    """Queries as they are: gold ids and dictionary ids are already spelled alike."""
    kept = tuple(queries)
    return Resolved(kept, frozenset(), (False,) * len(kept))


@pytest.mark.parametrize(
    ("run", "config"),
    [
        ("default", GoldConfig()),
        ("fast_path", GoldConfig(split_composites=False)),
        ("filter_composite", GoldConfig(drop_composites=True)),
        ("filter_duplicate", GoldConfig(drop_duplicates=True)),
    ],
)
def test_the_lenient_rule_gives_the_published_results(shared_data, run, config):
    folder = shared_data("parity/sapbert/evaluation")
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    rows = expected["dictionary_rows_after_loading"]
    ranker = VectorRanker(
        [row["id"] for row in rows],
        [row["name"] for row in rows],
        list(enumerate(expected["query_texts"])),
        load(folder / "embeddings.safetensors"),
    )
    gold = read_gold(folder / "queries", "biosyn", config)
    result = run_queries(ranker, unresolved(gold.queries), split, "lenient", FEW)
    published = expected["runs"][run]
    assert result.n == published["queries"]
    assert [result[f"acc@{k}"] for k in KS] == pytest.approx(published["acc"], abs=1e-12)
    for index, (row, query) in enumerate(zip(result.rows, published["per_query"], strict=True)):
        assert row.query.mention.lower() == query["mention"]
        parts = [part.lower() for part in row.query.parts]
        assert parts == [part["text"] for part in query["parts"]]
        for text, part in zip(parts, query["parts"], strict=True):
            assert ranker.rows(text, 10).tolist() == part["top10_rows"]
        by_part = np.maximum.accumulate([part["right"] for part in query["parts"]], axis=1)
        assert result.judgements.right[index].tolist() == by_part.min(axis=0).tolist()


def test_ties_keep_the_stable_order(shared_data):
    from biograft.evaluation import LinkQuery

    folder = shared_data("parity/sapbert/evaluation")
    ties = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["ties"]
    names, queries_with_gold = ties["dictionary"], ties["queries"]
    ranker = VectorRanker(
        [row["id"] for row in names],
        [row["name"] for row in names],
        [(k, query["text"]) for k, query in enumerate(queries_with_gold)],
        load(folder / "ties.safetensors"),
    )
    for query, rows in zip(queries_with_gold, ties["stable_order_rows"], strict=True):
        assert ranker.rows(query["text"], 10).tolist() == rows
    queries = unresolved(LinkQuery(q["text"], frozenset({q["gold"]})) for q in queries_with_gold)
    result = run_queries(ranker, queries, split, "lenient", FEW)
    assert [result[f"acc@{k}"] for k in KS] == pytest.approx(ties["stable_acc"])
    # two queries have their gold tied with another concept at the top: half each
    strict = run_queries(ranker, queries, split, "strict", FEW)
    tied = {q["gold"] for q in queries_with_gold} & {"T1", "T2", "T4", "T6"}
    assert strict["acc@1"] == 1 - len(tied) / 2 / len(queries_with_gold)


@pytest.mark.parametrize(
    ("gold", "form", "config", "n"),
    [
        ("ncbi_disease/biosyn/concept_files.tar.gz::processed_train", "biosyn", {}, 5134),
        ("ncbi_disease/biosyn/concept_files.tar.gz::processed_dev", "biosyn", {}, 787),
        ("ncbi_disease/biosyn/concept_files.tar.gz::processed_test", "biosyn", {}, 960),
        ("bc5cdr/biosyn_disease/concept_files.tar.gz::processed_test", "biosyn", {}, 4287),
        ("bc5cdr/pubtator/CDR_TestSet.PubTator.txt.gz", "pubtator", {"keep_nil": True}, 9809),
        ("bc5cdr/pubtator/CDR_TestSet.PubTator.txt.gz", "pubtator", {"types": ("Disease",)}, 4363),
        ("askapatient/AskAPatient.fold-0.test.txt", "aap", {}, 867),
        ("askapatient/AskAPatient.fold-0.train.txt", "aap", {}, 15612),
        ("xl_bel/en_1k_test_query_with_context.txt", "xlbel", {}, 1000),
        ("xl_bel/zh_1k_test_query_with_context.txt", "xlbel", {}, 1000),
        ("../zh/term_normalisation/procedures_test.tsv", "procedures", {}, 2000),
    ],
)
def test_real_gold_is_read_whole(shared_data, gold, form, config, n):
    file, marked, folder = f"entity_linking/{gold}".partition("::")
    path = f"{shared_data(file)}{marked}{folder}"
    gold = read_gold(path, form, GoldConfig(**config))
    assert len(gold.queries) == n
    assert not gold.log.rejected.counts
    spans = [q for q in gold.queries if q.context and q.start is not None]
    assert all(q.context[q.start : q.end] for q in spans)
    if form == "xlbel":
        assert len(spans) == n


class ExactNames:
    """Finds names as they are, up to normalisation."""

    def __init__(self, base):
        self.base = base

    def rank(self, queries, k):
        return [
            [
                [Candidate(m.concept, m.concept_name, m.name, 1.0) for m in self.base.find(part)]
                for part in query.parts
            ]
            for query in queries
        ]


def store(folder, path, form, **options) -> KnowledgeBase:
    source = SourceConfig(path=path, format=form, **options)
    build_store(BuildConfig(sources=(source,)), folder)
    return KnowledgeBase.open(folder)


def test_exact_names_on_ncbi(shared_data, tmp_path):
    path = shared_data("entity_linking/ncbi_disease/biosyn/test_dictionary.txt.gz")
    base = store(tmp_path / "KB", path, "biosyn")
    archive = shared_data("entity_linking/ncbi_disease/biosyn/concept_files.tar.gz")
    gold = read_gold(f"{archive}::processed_test", "biosyn")
    config = EvaluationConfig(n_resamples=200)
    lenient = evaluate_linking(ExactNames(base), base, gold.queries, "lenient", config)
    strict = evaluate_linking(ExactNames(base), base, gold.queries, "strict", config)
    # nearly every test mention that is a name of the dictionary is a name of its gold concept
    by_hand = 0
    ids = StoreIds(base)
    for query in resolve_gold(gold.queries, ids).queries:
        firsts = [base.find(part)[:1] for part in query.parts]
        by_hand += all(gold and ids.own(gold[0].concept) & query.gold for gold in firsts)
    assert lenient["acc@1"] == pytest.approx(by_hand / 960)
    assert lenient["acc@1"] > 0.7
    assert strict["acc@1"] <= lenient["acc@1"] + 1e-9
    assert lenient.intervals["acc@1"].low < lenient["acc@1"] < lenient.intervals["acc@1"].high
    assert len(set(lenient.judgements.documents)) == 100


def test_all_gold_procedures_are_in_the_code_list(shared_data, tmp_path):
    path = shared_data("zh/term_normalisation/procedure_codes.tsv")
    base = store(tmp_path / "KB", path, "table", columns={"id": "#1", "name": "#2"}, language="zh")
    counts = Counter()
    for split_name in ("train", "dev", "test"):
        file = shared_data(f"zh/term_normalisation/procedures_{split_name}.tsv")
        resolved = resolve_gold(read_gold(file, "procedures").queries, StoreIds(base))
        counts[split_name] = len(resolved.unknown)
    assert counts == {"train": 0, "dev": 0, "test": 0}
