"""What every stream promises: rows that are valid, the same again, resumable, shared by ranks.

A stream registered by anybody is checked by one entry in ``STREAMS_OF``.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from annotated_texts import TEXTS

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.training.batches import EpochOrder, OrderedBatches, Shard
from biograft.training.pretraining import (
    STREAMS,
    AnnotatedTextConfig,
    NameTemplates,
    SynonymPairs,
    TextSequences,
    open_packed,
)

EXAMPLE = Path(__file__).parents[4] / "examples" / "is_a.py"
N_CONCEPTS = 9


@pytest.fixture
def kb(tmp_path):
    """Concepts with three names each, in a chain of parents."""
    lines = ["id,name,synonyms,parents"]
    lines += [
        f"D{row},name {row},other {row}|third {row},{f'D{row - 1}' if row else ''}"
        for row in range(N_CONCEPTS)
    ]
    (tmp_path / "names.csv").write_text("\n".join(lines) + "\n")
    source = SourceConfig(path=tmp_path / "names.csv")
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    return KnowledgeBase.open(tmp_path / "kb")


def text_sequences(kb, folder, tokenizer):
    config = AnnotatedTextConfig(shards=folder, pack=False, max_length=64)
    stream = TextSequences(open_packed(config, tokenizer))

    def row(epoch, index):
        return stream.example(index, epoch).tokens.tolist()

    return len(stream.packed), row, lambda tokens: 2 < len(tokens) <= 64


def pairs(made, kb):
    def is_valid(pair):
        left, right, concept = pair
        return bool(left and right) and kb.id_at(concept) in kb

    return len(made), made.pair, is_valid


def templates(kb):
    made = NameTemplates(kb)
    return len(made), made.example, lambda each: bool(each.source and each.target)


STREAMS_OF = {
    "synonym_pairs": lambda kb, *_: pairs(SynonymPairs(kb), kb),
    "name_templates": lambda kb, *_: templates(kb),
    "annotated_text": text_sequences,
    "is_a": lambda kb, *_: pairs(STREAMS.load("is_a")().part(kb, STREAMS.load("is_a")()), kb),
}
"""How to open each stream: its size, a row of an epoch, and whether a row is valid."""


@pytest.fixture(params=[*STREAMS_OF])
def opened(request, kb, shards, tokenizer):
    """Open the stream, as often as it is called."""
    if request.param == "is_a":
        runpy.run_path(str(EXAMPLE), run_name="example")
    folder = shards([*TEXTS] * 3)
    yield lambda: STREAMS_OF[request.param](kb, folder, tokenizer)
    STREAMS.__dict__.pop("_entries", None)  # without the example


def test_every_built_in_stream_is_checked():
    assert {name for name in STREAMS if name != "is_a"} <= STREAMS_OF.keys()


def test_rows_are_valid_and_the_same_when_opened_again(opened):
    (n, row, is_valid), (_, again, _) = opened(), opened()
    assert n >= N_CONCEPTS - 1
    for epoch in (0, 1):
        rows = [row(epoch, index) for index in range(n)]
        assert all(map(is_valid, rows))
        backwards = [again(epoch, index) for index in reversed(range(n))]
        assert backwards[::-1] == rows  # independent of what was read before


def test_a_run_goes_on_at_any_position(opened):
    n, row, _ = opened()
    batches = OrderedBatches(EpochOrder(n, 2, 5), lambda e, rows: [row(e, i) for i in rows])
    for epoch in (0, 1):
        whole = list(batches.every(1, epoch, 0))
        assert list(batches.every(1, epoch, 2)) == whole[2:]
        assert list(batches.every(2, epoch, 1)) == whole[1::2]


def test_two_ranks_share_the_rows(opened):
    n, *_ = opened()
    for epoch in (0, 1):
        first, second = (
            np.concatenate([*EpochOrder(n, 2, 5, Shard(rank, 2)).batches(epoch, 0)]).tolist()
            for rank in range(2)
        )
        assert not {*first} & {*second}
        assert len(first) == len(second) == n // 2
        assert {*first, *second} <= {*range(n)}
