"""Finding names by plain loops over tokens, to compare the names index with."""

from __future__ import annotations

from biograft.corpus.name_rules import (
    _SEARCHED,
    NamesIndexConfig,
    _judge_name,
    _needs_case,
    with_case,
)
from biograft.corpus.tokens import (
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

Token = tuple[str, int, int]


def naive_tokens(text: str) -> list[Token]:
    """The folded letters of each token, and its offsets in the text."""
    chars: list[tuple[str, int, int]] = []
    base = SPACE
    for position, char in enumerate(text.replace(NAME_SEPARATOR, " ")):
        for folded in _fold(char):
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


def written(name: str) -> tuple[str, str]:
    return with_case(name), with_case(name) + "s"


def naive_matches(
    names: list[str], text: str, config: NamesIndexConfig
) -> list[tuple[int, int, tuple[int, ...]]]:
    """All matches: by start, the longer first, of one span an exact one before that of a plural."""
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, name in enumerate(names):
        key = tuple(letters for letters, _, _ in naive_tokens(name))
        if key and _judge_name(name, config) == _SEARCHED:
            rows_of.setdefault(key, []).append(row)
    tokens = naive_tokens(text)
    found = []
    for i in range(len(tokens)):
        for j in range(i, len(tokens)):
            letters = [token[0] for token in tokens[i : j + 1]]
            start, end = tokens[i][1], tokens[j][2]
            for is_stem, last in enumerate((letters[-1], stem(letters[-1]))):
                rows = [
                    row
                    for row in rows_of.get((*letters[:-1], last), ())
                    if not _needs_case(names[row], config)
                    or with_case(text[start:end]) in written(names[row])
                ]
                if rows:
                    found.append((start, -end, is_stem, rows[0], tuple(rows)))
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
