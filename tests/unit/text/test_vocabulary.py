"""Numbers of parts of texts, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from biograft.text import VocabularyBuilder


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.lists(st.text("ab\x00é𝄞糖", max_size=4), max_size=12), max_size=4))
def test_parts_that_are_equal_have_one_number(batches):
    """Numbers rise in the order of first occurrence, and are kept from one call to the next."""
    builder, known = VocabularyBuilder(), {}
    for parts in batches:
        text = "".join(parts)
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        starts = ends - np.array([len(part) for part in parts], np.int64)
        numbers = builder.add_parts(codes, starts, ends).tolist()
        assert numbers == [known.setdefault(part, len(known)) for part in parts]
        assert builder.n_words == len(known)
