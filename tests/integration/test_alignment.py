"""Synonym pairs of a real vocabulary: counted against plain Python, and taken up anywhere."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.training.batches import EpochOrder, OrderedBatches
from biograft.training.pretraining import SynonymPairs, SynonymPairsConfig

MEDIC = "entity_linking/medic/medic_06Jul2012.txt.gz"


def test_pairs_of_medic(shared_data, tmp_path):
    config = BuildConfig(sources=(SourceConfig(path=shared_data(MEDIC), format="medic"),))
    build_store(config, tmp_path / "kb")
    kb = KnowledgeBase.open(tmp_path / "kb")
    names = {
        row: {name.text.lower() for name in kb.concept_at(row).names} for row in range(len(kb))
    }
    possible = {row: len(texts) * (len(texts) - 1) // 2 for row, texts in names.items()}

    pairs = SynonymPairs(kb)
    counts = pairs.counts
    assert counts.n_names == sum(map(len, names.values()))
    assert counts.n_pairs == sum(min(n, 50) for n in possible.values())
    assert counts.n_capped == sum(n > 50 for n in possible.values())
    assert counts.n_singletons == sum(len(texts) == 1 for texts in names.values())
    found = [(pairs.text(left), pairs.text(right)) for left, right in pairs.rows.tolist()]
    per_concept = Counter(pairs.labels.tolist())
    for label, (left, right) in zip(pairs.labels.tolist(), found, strict=True):
        assert left != right
        assert {left, right} <= names[label]
        assert per_concept[label] == min(possible[label], 50)
    whole = SynonymPairs(kb, SynonymPairsConfig(max_pairs=0))
    assert len(whole) == sum(possible.values())
    heart = kb.row("D009203")
    got = {
        frozenset(whole.text(row) for row in rows)
        for rows in whole.rows[whole.labels == heart].tolist()
    }
    assert got == {frozenset(pair) for pair in combinations(sorted(names[heart]), 2)}

    source = OrderedBatches(EpochOrder(len(pairs), 256, 1), pairs.batch)
    last = list(source.batches(3, len(source) - 2))
    again = list(OrderedBatches(EpochOrder(len(pairs), 256, 1), pairs.batch).batches(3))[-2:]
    assert [batch.left for batch in last] == [batch.left for batch in again]
    assert sum(map(len, source.batches(3))) == len(pairs)
