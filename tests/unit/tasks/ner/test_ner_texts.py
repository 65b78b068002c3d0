"""Documents as texts of words: passages, tokens of files, words cut by our own rule."""

from __future__ import annotations

from collections import Counter

import pytest
from tiny_tokenizers import unigram_tokenizer

from biograft.documents import Document, Mention, Passage
from biograft.tasks.ner_text import TagSet, find_spans, read_texts
from biograft.tasks.tokens import TaskTokenizer


def words(text, document):
    return [document.text[start:end] for start, end in text.words.tolist()]


def test_words_are_those_of_a_file_of_tokens(load):
    """``heart-attack`` is one word there, though the tokenizer takes it apart."""
    whole = Document("d", "no heart-attack", passages=(Passage(0, 15, "tokens"),))
    [text] = read_texts([whole], TaskTokenizer(load()), "passages")
    assert words(text, whole) == ["no", "heart-attack"]
    assert len(text.tokens[1]) == 3


def test_words_are_cut_by_our_own_rule_else(load):
    whole = Document("d", "no heart-attack")
    [text] = read_texts([whole], TaskTokenizer(load()), "passages")
    assert words(text, whole) == ["no", "heart", "-", "attack"]


def test_what_is_read_by_itself(load):
    text = "No fever. Heart pain.\nA cancer."
    document = Document("d", text, passages=(Passage(0, 21, "title"), Passage(22, 31, "abstract")))
    tokenizer = TaskTokenizer(load())

    def parts(read):
        return [" ".join(words(one, document)) for one in read_texts([document], tokenizer, read)]

    assert parts("passages") == ["No fever . Heart pain .", "A cancer ."]
    assert parts("sentences") == ["No fever .", "Heart pain .", "A cancer ."]
    assert parts("documents") == ["No fever . Heart pain . A cancer ."]


def test_sentences_of_tokens_stay_parted_in_a_document(load):
    text = "no heart-attack\na fever"
    lines = (Passage(0, 15, "tokens"), Passage(16, 23, "tokens"))
    document = Document("d", text, passages=lines)
    [whole] = read_texts([document], TaskTokenizer(load()), "documents")
    assert words(whole, document) == ["no", "heart-attack", "a", "fever"]


def test_a_word_longer_than_a_sequence_is_cut(load):
    [text] = read_texts([Document("d", "a" * 90)], TaskTokenizer(load(max_length=12)), "passages")
    assert [len(piece) for piece in text.tokens] == [10]


def test_spans_of_mentions_and_what_is_lost(load):
    document = Document("d", "lung cancer and fever \u200b")
    [text] = read_texts([document], TaskTokenizer(load()), "passages")
    mentions = [
        Mention(0, 11, "lung cancer", type="X"),
        Mention(5, 11, "cancer", type="X"),
        Mention(16, 21, "fever", type="Y"),
        Mention(22, 23, "\u200b", type="Y"),
    ]
    lost = Counter()
    assert find_spans(text, mentions, nested=False, lost=lost) == [(0, 2, "X"), (3, 4, "Y")]
    assert lost == {
        "mentions that share words with a longer one": 1,
        "mentions without any token": 1,
    }
    nested = find_spans(text, mentions, nested=True, lost=Counter())
    assert nested == [(0, 2, "X"), (1, 2, "X"), (3, 4, "Y")]


@pytest.mark.parametrize("style", ["xlm-r", "deberta-v3"])
@pytest.mark.parametrize(
    ("text", "bounds"),
    [("acute cough, diabetes.", [(6, 11), (13, 21)]), ("糖尿病患者咳嗽。", [(0, 3), (5, 7)])],
)
def test_right_tags_give_the_mentions_whatever_the_tokenizer(style, text, bounds, load):
    encoder = load()
    encoder.tokenizer = unigram_tokenizer(style, ("▁cough", "糖尿病", "病患", "咳嗽。"))
    mentions = [Mention(start, end, text[start:end]) for start, end in bounds]
    [read] = read_texts([Document("d", text)], TaskTokenizer(encoder), "documents")
    lost = Counter()
    spans = find_spans(read, mentions, nested=False, lost=lost)
    tags = TagSet(("",), "bio")
    found = tags.decode(tags.encode(len(read.words), spans))
    assert [(read.words[a, 0], read.words[b - 1, 1]) for a, b, _ in found] == bounds
    assert not lost


def test_mentions_within_words_are_counted_each_for_one_reason(load):
    document = Document("d", "antifever and heart")
    [text] = read_texts([document], TaskTokenizer(load()), "passages")
    inside = [Mention(0, 4, "anti"), Mention(4, 9, "fever"), Mention(14, 19, "heart")]
    for nested in (False, True):
        lost = Counter()
        assert find_spans(text, inside, nested=nested, lost=lost) == [(0, 1, ""), (2, 3, "")]
        assert dict(lost) == {"mentions whose bounds are not those of words": 2}
    lost = Counter()
    find_spans(text, [*inside, Mention(0, 13, "antifever and")], nested=False, lost=lost)
    assert dict(lost) == {"mentions whose bounds are not those of words": 2}
