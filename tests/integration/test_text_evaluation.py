"""From end to end on real articles: finding diseases and linking them."""

from __future__ import annotations

from biograft.evaluation import evaluate_text, read_gold_texts
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker


def test_diseases_of_some_articles_are_found_and_linked(shared_data, tmp_path):
    path = shared_data("entity_linking/medic/medic_06Jul2012.txt.gz")
    build_store(BuildConfig(sources=(SourceConfig(path=path, format="medic"),)), tmp_path / "KB")
    gold = shared_data("entity_linking/bc5cdr/pubtator/CDR_TestSet.PubTator.txt.gz")
    texts = read_gold_texts(gold, "pubtator", types=("Disease",), limit=20)
    result = evaluate_text(Linker.open(KnowledgeBase.open(tmp_path / "KB")), texts.documents)
    assert (result.n_documents, result.n_mentions) == (20, 165)
    spans, mentions, documents = (result[level] for level in ("spans", "mentions", "documents"))
    # F1 60, 46 and 63 when this was written: two names that recur are those of two concepts each
    assert 0.5 < spans.counts.f1 < 0.95
    assert 0.35 < mentions.counts.f1 <= spans.counts.f1
    assert 0.5 < documents.counts.f1 < 0.95
    for score in (spans, mentions, documents):
        for name, within in score.intervals.items():
            assert 0 <= within.low <= getattr(score.counts, name) <= within.high <= 1
    assert mentions.counts.right + mentions.counts.missed == result.n_mentions - result.n_nil
