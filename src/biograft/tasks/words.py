"""The tokens of each word of a text, also where an encoder's tokens reach over several words.

Tokenizers that know no words but what blanks part (SentencePiece, byte-level BPE) have tokens for
several Chinese characters, or for a row of signs. Words that such a token covers are tokenised one
by one, so that each can be told from its neighbours; all others stay as the encoder reads them.
"""

from __future__ import annotations

import numpy as np

from biograft.corpus.alignment import NONE, align_spans
from biograft.tasks.tokens import Ints, TaskTokenizer, TextTokens


def tokens_of_words(
    text: str, words: Ints, tokens: TextTokens, tokenizer: TaskTokenizer
) -> list[list[int]]:
    """Give the tokens of each word, none where it has none; words (words, 2) are in order."""
    touched = align_spans(words, tokens.offsets)  # first and last word of each token
    alone = np.zeros(len(words), bool)
    for first, last in touched[touched[:, 0] < touched[:, 1]].tolist():
        alone[first : last + 1] = True
    found: list[list[int]] = [[] for _ in words]
    for number, token in zip(touched[:, 0].tolist(), tokens.ids, strict=True):
        if number != NONE and not alone[number]:
            found[number].append(token)
    for number in np.flatnonzero(alone).tolist():
        start, end = words[number].tolist()
        found[number] = tokenizer.read_piece(text[start:end])
    return found
