import numpy as np
from hypothesis import given, strategies as st

from biograft.nn import pad, token_batches

lengths = st.lists(st.integers(0, 60), max_size=200)


@given(lengths, st.integers(1, 500))
def test_every_text_is_in_one_batch_that_has_room_for_it(lengths, n_tokens):
    counts = np.array(lengths, dtype=np.int64)
    batches = list(token_batches(counts, n_tokens))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert (
            len(batch) == 1
            or len(batch) * counts[batch].max() <= n_tokens
            or (counts[batch].max() == 0)
        )
    firsts = [counts[batch].max() for batch in batches]
    assert firsts == sorted(firsts, reverse=True)


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=8))
def test_padding_stands_on_the_right_and_is_masked(token_ids):
    batch = pad(token_ids, padding=7)
    width = max(map(len, token_ids))
    for row, ids in enumerate(token_ids):
        n_fillers = width - len(ids)
        assert batch["input_ids"][row].tolist() == ids + [7] * n_fillers
        assert batch["attention_mask"][row].tolist() == [1] * len(ids) + [0] * n_fillers
