"""The flat trie against plain nested dictionaries and lists of sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from biograft.errors import StoreError
from biograft.text.trie import FlatTrie

END = 2
SEQUENCES = st.lists(st.lists(st.integers(3, 12), max_size=6), max_size=25)


def build(sequences: list[list[int]]) -> tuple[FlatTrie, np.ndarray]:
    tokens = [token for sequence in sequences for token in [*sequence, END]]
    ends = np.cumsum([len(sequence) + 1 for sequence in sequences])
    return FlatTrie.build(np.array(tokens, np.int64), ends.astype(np.int64))


def spelled(trie: FlatTrie) -> dict[int, list[int]]:
    """Walk the whole trie: what each of its sequences is."""
    found, open_ = {}, [(trie.root, [])]
    while open_:
        node, so_far = open_.pop()
        number = int(trie.sequence_of(np.array([node]))[0])
        if number >= 0:
            found[number] = so_far
        first, last = (int(side[0]) for side in trie.children(np.array([node])))
        open_ += [(child, [*so_far, int(trie.tokens[child])]) for child in range(first, last)]
    return found


@given(SEQUENCES)
@settings(max_examples=200, deadline=None)
def test_it_holds_exactly_the_sequences_given(sequences):
    trie, numbers = build(sequences)
    found = spelled(trie)
    assert len(numbers) == len(sequences)
    assert [found[number] for number in numbers.tolist()] == [[*s, END] for s in sequences]
    assert trie.n_sequences == len(found) == len({tuple(s) for s in sequences})
    assert trie.n_nodes == 1 + len(
        {(*s, END)[: k + 1] for s in map(tuple, sequences) for k in range(len(s) + 1)}
    )


@given(SEQUENCES, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_a_subset_is_the_trie_of_the_chosen_sequences(sequences, random):
    trie, _ = build(sequences)
    keep = np.array([random.random() < 0.4 for _ in range(trie.n_sequences)], bool)
    part, numbers = trie.subset(keep)
    whole = spelled(trie)
    assert numbers.tolist() == np.flatnonzero(keep).tolist()
    assert spelled(part) == {k: whole[number] for k, number in enumerate(numbers.tolist())}
    again, _ = build([whole[number][:-1] for number in numbers.tolist()])
    assert part.n_nodes == again.n_nodes
    assert part.tokens.tolist() == again.tokens.tolist()


@given(SEQUENCES)
@settings(max_examples=50, deadline=None)
def test_children_stand_in_order_and_are_found(sequences):
    trie, _ = build(sequences)
    for node in range(trie.n_nodes):
        first, last = (int(side[0]) for side in trie.children(np.array([node])))
        own = trie.tokens[first:last].tolist()
        assert own == sorted(set(own))
        assert [trie.child(node, token) for token in own] == list(range(first, last))
        assert trie.child(node, 99) == -1


def test_sequences_that_begin_others_end_within_them():
    trie, numbers = FlatTrie.build(np.array([5, 6, 5, 5, 6, 7]), np.array([2, 3, 6]))
    assert spelled(trie) == {0: [5], 1: [5, 6], 2: [5, 6, 7]}
    assert numbers.tolist() == [1, 0, 2]


@pytest.mark.parametrize("name", FlatTrie.FILES)
def test_damage_is_reported(tmp_path, name):
    trie, _ = build([[5, 6], [7]])
    trie.save(tmp_path)
    (tmp_path / name).write_bytes(b"\x93NUMPY")
    with pytest.raises(StoreError, match="damaged trie"):
        FlatTrie.open(tmp_path)
    np.save(tmp_path / name, np.arange(100))
    with pytest.raises(StoreError, match="damaged trie"):
        FlatTrie.open(tmp_path)


def change(name, index, value):
    """Set one number of an array that is there."""

    def damage(folder):
        array = np.load(folder / name).astype(np.int64)
        array[index] = value
        np.save(folder / name, array)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        *(change("children.npy", index, 99) for index in (0, 2, -1)),
        *(change("children.npy", index, -1) for index in (0, 2, -1)),
        change("children.npy", 1, 1),  # a node that follows itself: no name would ever end
        *(change("ends.npy", index, value) for index in (0, 1) for value in (-1, 99)),
        change("ends.npy", 1, 0),
        *(change("tokens.npy", index, -1) for index in (0, 2)),
        lambda folder: np.save(folder / "tokens.npy", np.zeros(0, np.int64)),
        lambda folder: np.save(folder / "children.npy", np.zeros(0, np.int64)),
        *(
            lambda folder, name=name, kind=kind: np.save(
                folder / name, np.load(folder / name).astype(kind)
            )
            for name in FlatTrie.FILES
            for kind in (np.float64, np.int8, ">i8")
        ),
    ],
)
def test_what_is_no_tree_is_refused(tmp_path, damage):
    """Guards: only the last numbers were looked at, and others led out of the tree."""
    trie, _ = build([[5, 6], [7]])
    trie.save(tmp_path)
    FlatTrie.open(tmp_path)
    damage(tmp_path)
    with pytest.raises(StoreError, match="damaged trie"):
        FlatTrie.open(tmp_path)
