"""The search by numpy alone, against the compiled loops: equal names and equal scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from biograft.linking.lexical.ngrams import (
    Weights,
    build_vocabulary,
    encode_texts,
    join_texts,
    weigh,
)
from biograft.linking.lexical.search import score_texts, search_texts

WORDS = "heart attack kidney renal failure of the 糖尿病 diabetes mellitus type 2 x xx".split()
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=40)


def build(texts):
    joined = join_texts(texts)
    vocabulary, n_grams, total = build_vocabulary(joined)
    return vocabulary, weigh(*encode_texts(joined, vocabulary, total), n_grams)


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, queries=TEXTS, k=st.integers(1, 50))
def test_names_and_scores_are_those_of_the_compiled_loops(texts, queries, k):
    vocabulary, weights = build([*dict.fromkeys(texts), "heart attack"])
    arguments = join_texts(queries), vocabulary, weights, 4.2
    plain, compiled = (
        search(*arguments, k) for search in (search_texts.uncompiled, search_texts.dispatcher)
    )
    assert plain[0].tolist() == compiled[0].tolist()
    assert plain[1].tobytes() == compiled[1].tobytes()
    if len(queries):
        assert (
            score_texts.uncompiled(*arguments, plain[0]).tobytes()
            == score_texts.dispatcher(*arguments, plain[0]).tobytes()
        )


@pytest.mark.parametrize("many", [False, True])
def test_many_texts_of_lists_and_of_the_table(many):
    rng = np.random.default_rng(1)
    texts = sorted({" ".join(rng.choice(WORDS, 4)) + f" {n % 700}" for n in range(3000)})
    vocabulary, weights = build(texts)
    arguments = join_texts(texts[:: 200 if many else 900]), vocabulary, weights, 8.0
    for k in (1, 64):
        plain = search_texts.uncompiled(*arguments, k)
        compiled = search_texts.dispatcher(*arguments, k)
        assert plain[0].tolist() == compiled[0].tolist()
        assert plain[1].tobytes() == compiled[1].tobytes()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("gram_ends", 1 << 40, "gram_ends"),
        ("grams", 1 << 30, "grams"),
        ("inverse_norm", np.nan, "inverse_norm"),
    ],
)
def test_damage_is_refused_by_both(name, value, message):
    vocabulary, weights = build(["heart attack", "renal failure", "diabetes"])
    changed = getattr(weights, name).copy()
    changed[1:-1] = value
    damaged: Weights = weights._replace(**{name: changed})
    for search in (search_texts.uncompiled, search_texts.dispatcher):
        with pytest.raises(ValueError, match=message):
            search(join_texts(["heart attack of renal failure"]), vocabulary, damaged, 2.0, 3)
