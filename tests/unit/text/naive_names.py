"""Finding names by plain loops over tokens, to compare the names index with."""

from __future__ import annotations

import re

from biograft.text import NamesIndexConfig, word_form
from biograft.text.name_rules import (
    _SEARCHED,
    FUNCTION_WORDS,
    _judge_name,
    _needs_case,
    with_case,
)
from biograft.text.tokens import (
    GREEK,
    INVISIBLE,
    MARK,
    NAME_SEPARATOR,
    QUOTE,
    SINGLE,
    SPACE,
    WORD,
    _fold,
    _kind,
)
from biograft.text.vocabulary import ROMAN_NUMBERS

Token = tuple[str, int, int]


def naive_tokens(text: str) -> list[Token]:
    """The folded letters of each token, and its offsets in the text."""
    chars: list[tuple[str, int, int]] = []
    base = SPACE
    text = text.replace(NAME_SEPARATOR, " ")
    for position, char in enumerate(text):
        alone = not re.search(
            "[\u0370-\u03ff]",
            text[max(position - 1, 0) : position] + text[position + 1 : position + 2],
        )
        is_unit = char in "μΜ" and re.match("[A-Za-z]", text[position + 1 : position + 2])
        if "\u0370" <= char < "\u0400" and char.lower() in GREEK and alone and not is_unit:
            parts = f" {GREEK[char.lower()]} "
        else:
            parts = _fold(char)
        for folded in parts:
            kind = _kind(folded)
            if kind == INVISIBLE:
                continue
            if kind == MARK:  # belongs to what is before it, and is a word of its own elsewhere
                kind = MARK if base == SINGLE else WORD
            else:
                base = kind
            chars.append((folded, kind, position))
    tokens: list[Token] = []
    is_open = False
    for k, (char, kind, position) in enumerate(chars):
        around = [other[1] for other in chars[max(k - 1, 0) : k + 2]]
        if kind == QUOTE and around == [WORD, QUOTE, WORD]:
            continue
        if kind == MARK or (kind == WORD and is_open):
            letters, first, _ = tokens[-1]
            tokens[-1] = (letters + char, first, position + 1)
        elif kind in (WORD, SINGLE):
            tokens.append((char, position, position + 1))
        is_open = kind == WORD
    return tokens


def stem(letters: str) -> str:
    """A word without its plural *s*; empty if it is no plural."""
    before = letters[-2:-1]
    is_plural = len(letters) > 2 and letters[-1] == "s" and before != "s"
    return letters[:-1] if is_plural and before.isascii() and before.isalnum() else ""


KINDS = "type grade stage class phase factor group".split()
HAN = dict(zip("一二三四五六七八九十", [*"123456789", "10"], strict=True))


def forms(letters: list[str]) -> list[str]:
    """The normal form of each token; the kinds that are numbered are looked at as written."""
    result = []
    for n, word in enumerate(letters):
        before, after = letters[n - 1] if n else "", letters[n + 1] if n + 1 < len(letters) else ""
        is_kind = before in [*KINDS, *(f"{kind}s" for kind in KINDS if kind != "class"), "classes"]
        if word in ("i", "v", "x") and (is_kind or after in [*"型期级度"]):
            result.append(ROMAN_NUMBERS[word])
        elif word in HAN and after in [*"型期级度"] and before not in HAN:
            result.append(HAN[word])
        else:
            result.append(word_form(word) if word.isalnum() else word)
    return result


def written(name: str) -> tuple[str, str]:
    return with_case(name), with_case(name) + "s"


def own_letters(text: str) -> list[str]:
    return [letters for letters, _, _ in naive_tokens(text)]


def naive_matches(
    names: list[str], text: str, config: NamesIndexConfig
) -> list[tuple[int, int, tuple[int, ...]]]:
    """All matches: by start, the longer first, of one span an exact one before that of a plural."""
    rows_of: dict[tuple[str, ...], list[int]] = {}
    letters_of = [[letters for letters, _, _ in naive_tokens(name)] for name in names]
    for row, name in enumerate(names):
        if letters_of[row] and _judge_name(name, config) == _SEARCHED:
            rows_of.setdefault(tuple(forms(letters_of[row])), []).append(row)
    tokens = naive_tokens(text)
    every = forms([token[0] for token in tokens])
    found = []
    for i in range(len(tokens)):
        for j in range(i, len(tokens)):
            letters = [token[0] for token in tokens[i : j + 1]]
            start, end = tokens[i][1], tokens[j][2]
            if text[start:end].lower() in FUNCTION_WORDS:
                continue
            stemmed = word_form(stem(letters[-1]))
            for is_stem, last in enumerate(dict.fromkeys([every[j], stemmed])):
                rows = [
                    row
                    for row in rows_of.get((*every[i:j], last), ())
                    if not _needs_case(names[row], config)
                    or with_case(text[start:end]) in written(names[row])
                ]
                exact = [row for row in rows if letters_of[row] == own_letters(text[start:end])]
                if rows:
                    found.append((start, -end, is_stem, rows[0], tuple(exact or rows)))
    return [(start, -end, rows) for start, end, _, _, rows in sorted(found)]


def naive_find(
    names: list[str], text: str, config: NamesIndexConfig
) -> list[tuple[int, int, tuple[int, ...]]]:
    """Of overlapping matches the leftmost, then the longest."""
    chosen, last_end = [], 0
    for match in naive_matches(names, text, config):
        if match[0] >= last_end:
            chosen.append(match)
            last_end = match[1]
    return chosen
