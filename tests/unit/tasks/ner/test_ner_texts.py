"""Documents as texts of words: passages, tokens of files, words of the tokenizer."""

from __future__ import annotations

from collections import Counter

from biograft.documents import Document, Mention, Passage
from biograft.tasks.ner.texts import find_spans, read_texts
from biograft.tasks.tokens import TaskTokenizer


def words(text, document):
    return [document.text[start:end] for start, end in text.words.tolist()]


def test_words_are_those_of_a_file_of_tokens(load):
    """``heart-attack`` is one word there, though the tokenizer takes it apart."""
    whole = Document("d", "no heart-attack", passages=(Passage(0, 15, "tokens"),))
    [text] = read_texts([whole], TaskTokenizer(load()), "passages")
    assert words(text, whole) == ["no", "heart-attack"]
    assert len(text.tokens[1]) == 3


def test_words_are_those_of_the_tokenizer_else(load):
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
