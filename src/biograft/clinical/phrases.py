"""Phrases of rules: their notation, and a trie that finds thousands of them in a text.

A phrase is written in lower case. ``(a|b)`` stands for one of several wordings, ``{name}`` for one
of a named list, a ``?`` after either makes it optional, ``#`` is a number and ``####`` a year:

>>> expand("no (new|old)? {thing}", {"thing": ("mass", "cyst")})
['no new mass', 'no new cyst', 'no old mass', 'no old cyst', 'no mass', 'no cyst']
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

Node: TypeAlias = dict[str, Any]


class PhraseRule(Protocol):
    """Meaning of a phrase, and where it counts."""

    @property
    def condition(self) -> str:
        """Name of the condition, empty if there is none."""

    def holds(self, low: str, start: int, end: int) -> bool:
        """Whether the phrase counts between two offsets.

        Args:
            low: A text in lower case.
            start: Start of the phrase.
            end: End of the phrase.
        """


R = TypeVar("R", bound=PhraseRule)

_ITEM = re.compile(
    r"\(([^()]*\|[^()]*|[^()?]+(?=\)\?))\)(\?)?|\{(\w+)\}(\?)?"
    r"|([^{}]+?(?=\([^()]*\||\([^()?]+\)\?|\{|$))"
)
_WORDS = re.compile(
    r"[^ ](?:(?<=[^\W\d])\w*+(?:(?!['’]\w)|(?:['’]\w+)+)"
    r"|(?<=\d)(?:\d*(?:[.,]\d+)*(?!\w)|\w*(?:['’]\w+)*)|(?<=[^\w\s])|(?<=\n))"
)
"""Words, numbers, marks and line breaks; the search skips to the set that it begins with."""
_CHARACTERS = re.compile(r"\d+(?:\.\d+)?|\S|\n")
_PLACEHOLDERS = re.compile(r"####|#")
_AT_PLACEHOLDERS = re.compile(r"(####|#)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_MAX_FILLERS = 3
_MIN_LETTERS = 5
"""Letters of a word of phrases that may be misspelt."""
_MAX_CORRECTIONS = 1 << 17
MAX_CHARACTERS, MAX_WORDINGS = 200, 100_000
"""Most characters of a wording, and most wordings of a phrase."""
_PLACES = frozenset({"#", "####"})
_RULES = ""
"""Key of a node whose phrase is complete."""


def expand(phrase: str, lists: Mapping[str, Sequence[str]]) -> list[str]:
    """Return all wordings of a phrase.

    Args:
        phrase: A phrase in the notation above; what is none raises a ``ValueError``.
        lists: Words of each list.
    """
    parts: list[Sequence[str]] = []
    position = 0
    for item in _ITEM.finditer(phrase):
        if item.start() != position:
            break
        position = item.end()
        parts.append(_options(item, lists))
    if position != len(phrase) or not phrase.strip():
        raise ValueError(f"not a phrase: {phrase!r}")
    if math.prod(map(len, parts)) > MAX_WORDINGS:
        raise ValueError(f"a phrase of more than {MAX_WORDINGS:,} wordings: {phrase!r}")
    wordings = [" ".join("".join(words).split()) for words in product(*parts)]
    if any(len(wording) > MAX_CHARACTERS for wording in wordings):
        raise ValueError(f"a wording of more than {MAX_CHARACTERS} characters: {phrase!r}")
    return wordings


def _options(item: re.Match[str], lists: Mapping[str, Sequence[str]]) -> Sequence[str]:
    group, optional, name, optional_list, plain = item.groups()
    if plain is not None:
        return (plain,)
    if name is not None:
        if name not in lists:
            raise ValueError(f"unknown list {{{name}}}; known: {', '.join(sorted(lists))}")
        options = list(lists[name])
    else:
        options = group.split("|")
    return [*options, ""] if optional or optional_list else options


class TriggerSpelling(dict[str, str]):
    """Tokens of texts, and the words of phrases that they are, but for a letter; else themselves.

    An ordinary word is never a misspelt one. Of several words, the one with the same first letter
    counts, then the one that most phrases have.

    Args:
        uses: Number of phrases of each word.
    """

    def __init__(self, uses: Mapping[str, int]) -> None:
        super().__init__()
        self._uses = uses

    def __missing__(self, token: str) -> str:
        if len(token) > self._longest:
            return token
        if len(self) > _MAX_CORRECTIONS:
            self.clear()
        self[token] = found = self._correct(token)
        return found

    def _correct(self, token: str) -> str:
        if len(token) < _MIN_LETTERS - 1 or not token.isalpha() or token in self._uses:
            return token
        from biograft.text.spelling.corrections import english_words

        if token in english_words() or token.removesuffix("s") in english_words():
            return token
        near = {word for part in _deletions(token) for word in self._near.get(part, ())}
        near = {word for word in near if _differ_by_one(word, token)}
        rank = {word: (word[0] == token[0], self._uses[word], word) for word in near}
        return max(near, key=rank.__getitem__, default=token)

    @cached_property
    def _longest(self) -> int:
        """Letters of a token that may be a word of a phrase."""
        return max(map(len, self._uses), default=0) + 1

    @cached_property
    def _near(self) -> dict[str, list[str]]:
        """Words of phrases by what is left of them without one letter."""
        near: dict[str, list[str]] = {}
        for word in self._uses:
            if len(word) >= _MIN_LETTERS and word.isalpha():
                for part in _deletions(word):
                    near.setdefault(part, []).append(word)
        return near


class PhraseTokens:
    """Words, numbers and punctuation of some stretches of a text in lower case, with offsets.

    Args:
        low: A text in lower case.
        stretches: Spans that are tokenised, in text order.
        trie: The phrases that are looked for, whose words may be misspelt.
    """

    __slots__ = ("spans", "texts")

    def __init__(
        self, low: str, stretches: Iterable[tuple[int, int]], trie: PhraseTrie[Any]
    ) -> None:
        find = (_CHARACTERS if trie.characters else _WORDS).finditer
        self.spans = [found.span() for begin, end in stretches for found in find(low, begin, end)]
        self.texts = [low[start:end] for start, end in self.spans]
        if not trie.characters:
            self.texts = list(map(trie.corrected.__getitem__, self.texts))
        self.texts.append("")  # what follows the last


class PhraseTrie(Generic[R]):
    """Finds the longest phrase that begins at a token.

    Tokens are words, numbers and punctuation.

    Args:
        characters: Tokens are single characters instead.
        fillers: Words of which up to three may stand between those of a phrase; hyphens always may.
    """

    def __init__(self, *, characters: bool, fillers: Collection[str] = ()) -> None:
        self.root: Node = {}
        self.characters = characters
        self._tokens: dict[str, list[str]] = {}
        self._uses: Counter[str] = Counter()
        self.corrected = TriggerSpelling(self._uses)
        self._fillers = frozenset(fillers) | ({"-"} if not characters else set())
        self._is_copy = False

    def copy(self) -> PhraseTrie[R]:
        """Return a copy, whose new phrases replace those of this trie; they share what is equal."""
        made: PhraseTrie[R] = PhraseTrie(characters=self.characters, fillers=self._fillers)
        made.root, made._is_copy = {**self.root}, True
        made._uses.update(self._uses)
        return made

    def add(self, phrase: str, rule: R | None) -> list[R | None]:
        """Add a phrase, and return all rules that it has now; None says to pass it over.

        Args:
            phrase: A wording.
            rule: Its rule; None passes the phrase over.
        """
        node = self.root
        for word in phrase.split(" "):
            for token in self._tokens.get(word) or self._split(word):
                if self._is_copy:
                    node[token] = {**node.get(token, {})}
                node = node.setdefault(token, {})
                self._uses[token] += 1
        if self._is_copy:
            node[_RULES] = []
        rules: list[R | None] = node.setdefault(_RULES, [])
        rules.append(rule)
        return rules

    def _split(self, word: str) -> list[str]:
        """Split a word of phrases into tokens, and keep them: phrases share most words."""
        pattern = _CHARACTERS if self.characters else _WORDS
        tokens: list[str] = []
        for part in _AT_PLACEHOLDERS.split(word):
            tokens += [part] if _PLACEHOLDERS.fullmatch(part) else pattern.findall(part)
        self._tokens[word] = tokens
        return tokens

    def starts(self) -> dict[str, tuple[frozenset[str], R | None]]:
        """Return the tokens whose rule, if any, is known unless one of some tokens follows.

        Left out are tokens with a condition, and those that a number may follow.
        """
        known = {}
        for token, node in self.root.items():
            rules: list[R | None] = node.get(_RULES, [])
            if not node.keys() & _PLACES and all(r is None or not r.condition for r in rules):
                following = frozenset(node).union(self._fillers, "\n") - {_RULES}
                known[token] = following, rules[0] if rules else None
        return known

    def match(
        self, low: str, tokens: PhraseTokens, first: int, limit: int
    ) -> tuple[int, R | None] | None:
        """Return the last token and the rule of the longest phrase up to offset ``limit``.

        Args:
            low: A text in lower case.
            tokens: Its tokens.
            first: Index of the first token of the phrase.
            limit: Offset that the phrase must not cross.
        """
        return self.match_within(low, tokens, first, limit, limit)[0]

    def match_within(
        self, low: str, tokens: PhraseTokens, first: int, limit: int, wide: int
    ) -> tuple[tuple[int, R | None] | None, tuple[int, R | None] | None]:
        """Return the longest phrase up to ``limit``, and the longest up to ``wide``.

        Args:
            low: A text in lower case.
            tokens: Its tokens.
            first: Index of the first token of the phrase.
            limit: Offset that the first phrase must not cross.
            wide: Offset that the second one must not cross, not before ``limit``.
        """
        texts, spans, fillers = tokens.texts, tokens.spans, self._fillers
        inner: tuple[int, R | None] | None = None
        outer: tuple[int, R | None] | None = None
        branches = [(self.root, first, 0)]  # a filler may also be a word of a phrase
        while branches:
            node, position, skipped = branches.pop()
            while position < len(spans) and (end := spans[position][1]) <= wide:
                token = texts[position]
                child = _child(node, token)
                may_skip = token in fillers and skipped < _MAX_FILLERS and position > first
                if child is not None:
                    if may_skip:
                        branches.append((node, position + 1, skipped + 1))
                    node = child
                    found = _complete(node, low, spans[first][0], tokens, position)
                    if found is not None and (outer is None or position > outer[0]):
                        outer = found
                    if (
                        found is not None
                        and end <= limit
                        and (inner is None or position > inner[0])
                    ):
                        inner = found
                elif may_skip:
                    skipped += 1
                elif token != "\n" or position == first or not texts[position + 1].isalnum():
                    break
                position += 1
        return inner, outer


def _deletions(word: str) -> set[str]:
    return {word, *(word[:k] + word[k + 1 :] for k in range(len(word)))}


def _differ_by_one(first: str, second: str) -> bool:
    """Whether one letter is left out, added, changed or exchanged with the next."""
    if len(first) > len(second):
        first, second = second, first
    if len(first) < len(second):
        return first in _deletions(second)
    at = [k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    if len(at) == 2 and at[0] + 1 == at[1]:
        return first[at[0]] == second[at[1]] and first[at[1]] == second[at[0]]
    return len(at) == 1


def _complete(
    node: Node, low: str, start: int, tokens: PhraseTokens, position: int
) -> tuple[int, Any] | None:
    """Return the rule of a complete phrase, if its condition holds."""
    for rule in node.get(_RULES, ()):
        if rule is None or rule.holds(low, start, tokens.spans[position][1]):
            return position, rule
    return None


def _child(node: Node, token: str) -> Node | None:
    """Return the node that a token leads to, by itself or as a number."""
    child: Node | None = node.get(token)
    if child is None and token[0].isdigit():
        child = (node.get("####") if _YEAR.fullmatch(token) else None) or node.get("#")
    return child


def compile_words(words: Iterable[str]) -> str:
    """Write the regular expression of some words as a trie of their characters.

    >>> compile_words(["no", "not"])
    'no(?:t)?'
    """
    root: Node = {}
    for word in words:
        node = root
        for char in word:
            node = node.setdefault(char, {})
        node[_RULES] = True
    return _write(root) or "(?!)"


def _write(node: Node) -> str:
    branches = [re.escape(char) + _write(node[char]) for char in sorted(node) if char != _RULES]
    if _RULES in node:
        return f"(?:{'|'.join(branches)})?" if branches else ""
    return f"(?:{'|'.join(branches)})" if len(branches) > 1 else "".join(branches)
