import numpy as np
from hypothesis import given, strategies as st

from biograft.models import token_batches

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
