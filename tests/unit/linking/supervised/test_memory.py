"""What is counted of training mentions: by text, by concept, with a fold left out."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.linking.supervised.features import ALL, MentionMemory, assign_folds

N = 4
added = st.lists(
    st.tuples(
        st.sampled_from(["a", "A", "b ", "c  d", "C d"]),
        st.sets(st.integers(0, N - 1)),
        st.integers(0, 2),
    )
)


def key(text):
    return " ".join(text.split()).casefold()


@given(added, st.sampled_from([ALL, 0, 1, 2]), st.sampled_from(["a", "B", "c d", "never"]))
def test_counts_are_those_of_a_plain_loop(entries, left_out, asked):
    memory = MentionMemory(N)
    linked, seen, often = Counter(), 0, [0] * N
    for text, concepts, fold in entries:
        memory.add(text, concepts, fold)
        if fold == left_out:
            continue
        for concept in concepts:
            often[concept] += 1
        if key(text) == key(asked):
            seen += 1
            linked.update(concepts)
    assert memory.linked(asked, left_out) == (dict(linked), seen)
    assert memory.frequency(left_out).tolist() == often
    for concept in range(N):
        folds = {f for text, rows, f in entries if key(text) == key(asked) and concept in rows}
        assert memory.folds_of(asked, concept) == folds


def test_json_gives_back_everything_but_the_folds(ward):
    memory = MentionMemory(len(ward.kb))
    memory.add("Ms", [1, 2], 0)
    memory.add("ms", [1], 1)
    memory.add("nothing fits", [], 1)
    read = MentionMemory.from_json(json.loads(json.dumps(memory.to_json(ward.kb))), ward.kb)
    for text in ("MS", "nothing fits", "never"):
        assert read.linked(text) == memory.linked(text)
    assert read.frequency().tolist() == memory.frequency().tolist()
    assert read.to_json(ward.kb) == memory.to_json(ward.kb)


def test_a_store_that_lost_a_concept_forgets_it_alone(ward, store_of):
    memory = MentionMemory(len(ward.kb))
    memory.add("ms", [ward.kb.row("SCLEROSIS")])
    memory.add("ms", [ward.kb.row("STENOSIS")])
    less = store_of([{"id": "STENOSIS", "name": "mitral stenosis"}], "less")
    read = MentionMemory.from_json(memory.to_json(ward.kb), less)
    assert read.linked("ms") == ({0: 1}, 2)
    assert read.frequency().tolist() == [1]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_folds_are_even_and_the_same_for_the_same_seed(n):
    documents = [f"d{k}" for k in range(20)]
    folds = assign_folds([*documents, *documents], n, seed=1)
    assert folds == assign_folds(reversed(documents), n, seed=1)
    assert folds != assign_folds(documents, n, seed=2)
    sizes = np.bincount(list(folds.values()), minlength=n)
    assert sizes.max() - sizes.min() <= 1
