"""Text preparation for NER: passages, words, windows, tag schemes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tiny_models import tiny_tokenizer
from tiny_tokenizers import unigram_tokenizer

from biograft.models.tasks import NerConfig, NerModel, TagSet, TextUnit, cut_windows
from biograft.text import split_tokens
from biograft.text.documents import Document, Mention, Passage


@pytest.fixture
def read(load):
    """Read a document: what each window holds, word by word, the windows, and what is lost."""

    def make(document, tokenizer=None, max_length=32, **config):
        encoder = load(max_length)
        encoder.tokenizer = tokenizer or encoder.tokenizer
        config = NerConfig(**{"overlap": 4, "types": "keep"} | config)
        model = NerModel.from_examples(encoder, config, [document])
        windows, lost = model.training_items([document])
        texts = []
        for window in windows:
            bounds = [*window.positions, len(window.tokens) - 1]  # the last one is [SEP]
            pieces = encoder.tokenizer.convert_ids_to_tokens(list(window.tokens))
            words = [pieces[first:end] for first, end in itertools.pairwise(bounds)]
            texts.append(["".join(word).replace("##", "") for word in words])
        return texts, windows, lost

    return make


TOKENIZER = tiny_tokenizer(["no heart-attack a fever. pain cancer"])


@pytest.mark.parametrize("read_as", ["passages", "documents"])
def test_words_are_those_of_a_file_of_tokens(read, read_as):
    """``heart-attack`` is one word there, though the tokenizer takes it apart."""
    lines = (Passage(0, 15, "tokens"), Passage(16, 23, "tokens"))
    document = Document("d", "no heart-attack\na fever", passages=lines)
    words = [["no", "heart-attack"], ["a", "fever"]]
    expected = words if read_as == "passages" else [words[0] + words[1]]
    assert read(document, TOKENIZER, read=read_as)[0] == expected
    plain = Document("d", "no heart-attack")
    assert read(plain, TOKENIZER, read=read_as)[0] == [["no", "heart", "-", "attack"]]


def test_units_of_text(read):
    text = "No fever. Heart pain.\nA cancer."
    document = Document("d", text, passages=(Passage(0, 21, "title"), Passage(22, 31, "abstract")))

    def parts(unit):
        return [" ".join(words) for words in read(document, TOKENIZER, read=unit)[0]]

    assert parts("passages") == ["no fever . heart pain .", "a cancer ."]
    assert parts("sentences") == ["no fever .", "heart pain .", "a cancer ."]
    assert parts("documents") == ["no fever . heart pain . a cancer ."]


def test_a_word_longer_than_a_sequence_is_cut(read):
    _, [window], _ = read(Document("d", "a" * 90), max_length=12)
    assert (window.n_words, len(window.tokens)) == (1, 12)


def test_spans_of_mentions_and_what_is_lost(read):
    mentions = (
        Mention(0, 11, "lung cancer", type="X"),
        Mention(5, 11, "cancer", type="X"),
        Mention(12, 13, "\u200b", type="Y"),
        Mention(18, 23, "fever", type="Y"),
    )
    document = Document("d", "lung cancer \u200b and fever", mentions)
    _, [window], lost = read(document)
    assert TagSet(("X", "Y"), "bio").decode(window.tags) == [(0, 2, "X"), (3, 4, "Y")]
    assert lost == {
        "mentions that share words with a longer one": 1,
        "mentions without any token": 1,
    }
    _, [window], _ = read(document, head="spans")
    assert sorted(window.spans) == [(0, 1, 0), (1, 1, 0), (3, 3, 1)]


@pytest.mark.parametrize("style", ["xlm-r", "deberta-v3"])
@pytest.mark.parametrize(
    ("text", "spans"),
    [("acute cough, diabetes.", [(1, 2), (3, 4)]), ("糖尿病患者咳嗽。", [(0, 3), (5, 7)])],
)
def test_right_tags_give_the_mentions_whatever_the_tokenizer(style, text, spans, read):
    tokenizer = unigram_tokenizer(style, ("▁cough", "糖尿病", "病患", "咳嗽。"))
    words = split_tokens(text)
    mentions = tuple(
        Mention(words[a][0], words[b - 1][1], text[words[a][0] : words[b - 1][1]], type="X")
        for a, b in spans
    )
    _, [window], lost = read(Document("d", text, mentions), tokenizer)
    assert window.n_words == len(words)
    assert [(a, b) for a, b, _ in TagSet(("X",), "bio").decode(window.tags)] == spans
    assert not lost


@pytest.mark.parametrize("head", ["softmax", "spans"])
def test_mentions_within_words_are_counted_each_for_one_reason(read, head):
    inside = (Mention(0, 4, "anti"), Mention(4, 9, "fever"), Mention(14, 19, "heart"))
    _, [window], lost = read(Document("d", "antifever and heart", inside), head=head)
    if head == "spans":
        assert sorted(window.spans) == [(0, 0, 0), (2, 2, 0)]
    else:
        assert TagSet(("",), "bio").decode(window.tags) == [(0, 1, ""), (2, 3, "")]
    assert dict(lost) == {"mentions whose bounds are not those of words": 2}


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
    return TextUnit(0, np.column_stack([ends - lengths, ends]), tuple(tokens))


def test_windows_of_a_long_text_overlap():
    windows = list(cut_windows(0, text([1] * 10), Framing(6), 2))
    assert [(w.first, w.n_words, w.own) for w in windows] == [(0, 6, (0, 5)), (4, 6, (5, 10))]


def test_of_two_windows_with_as_much_context_the_first_owns_a_word():
    """As a span is owned: a word and the span of that word had two owners."""
    windows = list(cut_windows(0, text([1] * 9), Framing(6), 3))
    assert [(w.first, w.n_words, w.own) for w in windows] == [(0, 6, (0, 5)), (3, 6, (5, 9))]


def test_windows_share_at_most_half_of_their_tokens():
    """The default overlap suits any length; ``max_length=128`` was refused for the default."""
    windows = [list(cut_windows(0, text([1] * 20), Framing(6), overlap)) for overlap in (3, 64)]
    assert windows[0] == windows[1]


@settings(deadline=None)
@given(st.data())
def test_every_word_is_owned_once_by_a_window_that_holds_it(data):
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
            position = window.positions[word - window.first]
            assert window.tokens[position] == whole.tokens[word][0]


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("types", [("",), ("X", "Y")])
def test_tags_decode_to_their_spans(scheme, types):
    tags = TagSet(types, scheme)
    spans = [(0, 1, types[0]), (1, 4, types[-1]), (5, 6, types[0])]
    numbers = tags.encode(7, spans)
    assert tags.decode(numbers) == spans
    assert numbers[4] == 0


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_allowed_transitions_are_those_of_some_spans(scheme):
    """All sequences of four tags: those allowed are those that encode what they decode to."""
    tags = TagSet(("X", "Y"), scheme)
    follows, begins, ends = tags.may_follow()
    for numbers in itertools.product(range(len(tags.tags)), repeat=4):
        allowed = begins[numbers[0]] and ends[numbers[-1]]
        allowed = allowed and all(follows[a, b] for a, b in itertools.pairwise(numbers))
        assert allowed == (tags.encode(4, tags.decode(numbers)) == list(numbers))
