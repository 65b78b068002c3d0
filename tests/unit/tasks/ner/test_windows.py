"""Windows: every word is owned once, by the window in which it has most context."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from biograft.errors import ConfigError
from biograft.tasks.ner_text import ReadText, cut_windows, owner_of


class Framing:
    """What windows ask of a tokenizer."""

    n_before = 1

    def __init__(self, room):
        self.room = room

    def frame(self, ids):
        return [-1, *ids, -2]


def text(lengths):
    ends = np.cumsum(lengths)
    tokens = [tuple(range(e - n, e)) for e, n in zip(ends.tolist(), lengths, strict=True)]
    return ReadText(0, np.column_stack([ends - lengths, ends]), tuple(tokens))


def test_a_short_text_is_one_window():
    [window] = cut_windows(3, text([1, 2, 1]), Framing(4), 2)
    assert window.tokens == (-1, 0, 1, 2, 3, -2)
    assert window.places == (1, 2, 4)
    assert (window.text, window.first, window.own) == (3, 0, (0, 3))


def test_a_long_text_overlaps_and_is_parted_in_the_middle():
    windows = list(cut_windows(0, text([1] * 10), Framing(6), 2))
    assert [(w.first, w.n_words, w.own) for w in windows] == [(0, 6, (0, 5)), (4, 6, (5, 10))]


def test_a_text_without_words_has_no_window():
    nothing = ReadText(0, np.zeros((0, 2), np.int64), ())
    assert list(cut_windows(0, nothing, Framing(6), 2)) == []


def test_an_overlap_of_more_than_half_is_refused():
    with pytest.raises(ConfigError, match="at most half of the 6 tokens read at once, found 4"):
        list(cut_windows(0, text([1]), Framing(6), 4))


@settings(deadline=None)
@given(st.data())
def test_every_word_is_owned_once_where_it_has_most_context(data):
    room = data.draw(st.integers(2, 12))
    lengths = data.draw(st.lists(st.integers(1, room), min_size=1, max_size=40))
    overlap = data.draw(st.integers(0, room // 2))
    whole = text(lengths)
    windows = list(cut_windows(0, whole, Framing(room), overlap))
    assert [word for w in windows for word in range(*w.own)] == list(range(len(lengths)))
    for window in windows:
        assert len(window.tokens) <= room + 2
        assert window.first <= window.own[0] <= window.own[1] <= window.first + window.n_words
        for word in range(*window.own):
            place = window.places[word - window.first]
            assert window.tokens[place] == whole.tokens[word][0]
    for word in range(len(lengths)):
        around = [w for w in windows if w.first <= word < w.first + w.n_words]
        if len(around) == 2:
            owner = next(w for w in around if w.own[0] <= word < w.own[1])
            contexts = {id(w): _context(w, word, whole, windows) for w in around}
            assert contexts[id(owner)] == max(contexts.values())


@settings(deadline=None)
@given(st.data())
def test_a_span_is_owned_where_the_lesser_of_its_two_contexts_is_greatest(data):
    room = data.draw(st.integers(2, 12))
    lengths = data.draw(st.lists(st.integers(1, room), min_size=1, max_size=30))
    windows = list(
        cut_windows(0, text(lengths), Framing(room), data.draw(st.integers(0, room // 2)))
    )
    first = data.draw(st.integers(0, len(lengths) - 1))
    last = data.draw(st.integers(first, min(first + 4, len(lengths) - 1)))
    contexts = [
        min(sum(lengths[w.first : first]), sum(lengths[last + 1 : w.first + w.n_words]))
        if w.first <= first and last < w.first + w.n_words
        else -1
        for w in windows
    ]
    owner = owner_of(windows, first, last)
    assert owner == (contexts.index(max(contexts)) if max(contexts) >= 0 else -1)
    if first == last:
        assert owner >= 0


def _context(window, word, whole, windows):
    """Count the tokens on the side where the window was cut."""
    if window is not windows[0] and any(w is window for w in windows[1:]):
        before = sum(len(whole.tokens[k]) for k in range(window.first, word))
    else:
        before = 10**9
    last = window.first + window.n_words
    after = (
        10**9
        if last == len(whole.tokens)
        else sum(len(whole.tokens[k]) for k in range(word + 1, last))
    )
    return min(before, after)
