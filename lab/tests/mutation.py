"""Mutation of bytes: valid input, several times damaged.

One engine for the test of all readers and for ``biograft_lab.scripts.fuzz_readers``: the same
seed gives the same bytes on every machine.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Sequence
from random import Random

TOKENS: tuple[bytes, ...] = tuple(
    text.encode("utf-8", "surrogatepass")
    for text in (
        *"\t\n|,;:\"'{}[]<>()#&=@%\\/*- \r\x00\x0b\x0c\x1b\x7f\x85\u2028\u202e\ufeff\u3000é中😀",
        *("||", "\r\n", "\n\n", "::", "..", "../", "##", "\\u0000", "\\ud800", "\\n", '\\"'),
        *("null", "true", "false", "0", "-1", "1e999", "NaN", "Infinity", "9" * 25, "9" * 5000),
        *(
            "٣",
            "²",
            "Ⅷ",
            "1_0",
            "0x1",
            "+1",
            "1.5",
            "[]",
            "{}",
            '""',
            "{{",
            "]]>",
            "<!--",
            "<![CDATA[",
        ),
        *(
            "&#0;",
            "&amp;",
            "&#xd800;",
            "&x;",
            '<!DOCTYPE a [<!ENTITY x "y">]>',
            "<a>",
            "</a>",
            "<a/>",
        ),
        *("id", "name", "text", "type", "en", "zh", "_:b", "is_a: ", "xmlns", "!!python/object:a"),
        *("\ud800", "\U000e0001", "a\u0301", "ſ", "ß", "İ", "ﬁ"),
        *(
            "&a [*a]",
            "*a",
            "<<: ",
            "---\n",
            "%YAML",
            "charset=utf-7",
            "charset=hex",
            "=cmd|' /C'!A0",
        ),
    )
)
"""What stands in files of many formats, or often breaks readers of them."""
_NUMBER = re.compile(rb"-?\d+")
_STRING = re.compile(rb'"[^"\n]{0,80}"')
_MAX_BYTES = 1 << 16
_LONG = 3000


class Mutator:
    """Makes inputs of a reader from valid ones."""

    def __init__(self, corpus: Sequence[bytes], rng: Random) -> None:
        self.corpus, self.rng = corpus, rng

    def sample(self) -> bytes:
        """Return a new input: mostly a mutated one of the corpus, sometimes packed or arbitrary."""
        kind = self.rng.random()
        if kind < 0.02:
            return self.rng.randbytes(self.rng.randrange(200))
        if kind < 0.05:
            return b"".join(self.rng.choices(TOKENS, k=self.rng.randrange(1, 40)))[:_MAX_BYTES]
        data = self.mutate(self.rng.choice(self.corpus))
        if kind < 0.08:
            packed = gzip.compress(data, mtime=0)
            return packed if kind < 0.065 else self.mutate(packed)
        return data

    def mutate(self, data: bytes) -> bytes:
        """Damage an input once or several times."""
        for _ in range(min(int(self.rng.expovariate(0.5)) + 1, 12)):
            data = self.rng.choice(_STEPS)(data, self)
        return data[:_MAX_BYTES]

    def span(self, data: bytes, longest: int = 30) -> tuple[int, int]:
        """Return a random part of the data: start and end."""
        start = self.rng.randrange(len(data) + 1)
        return start, min(len(data), start + self.rng.randrange(longest + 1))


def _cut(data: bytes, m: Mutator) -> bytes:
    start, end = m.span(data)
    return data[:start] + data[end:]


def _truncate(data: bytes, m: Mutator) -> bytes:
    return data[: m.rng.randrange(len(data) + 1)]


def _flip(data: bytes, m: Mutator) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    changed[m.rng.randrange(len(data))] ^= 1 << m.rng.randrange(8)
    return bytes(changed)


def _replace_byte(data: bytes, m: Mutator) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    changed[m.rng.randrange(len(data))] = m.rng.randrange(256)
    return bytes(changed)


def _insert_token(data: bytes, m: Mutator) -> bytes:
    start, _ = m.span(data)
    return data[:start] + m.rng.choice(TOKENS) + data[start:]


def _overwrite(data: bytes, m: Mutator) -> bytes:
    start, end = m.span(data)
    return data[:start] + m.rng.choice(TOKENS) + data[end:]


def _copy(data: bytes, m: Mutator) -> bytes:
    start, end = m.span(data, 60)
    to, _ = m.span(data)
    return data[:to] + data[start:end] + data[to:]


def _lines(change: Callable[[list[bytes], Random], None]) -> Callable[[bytes, Mutator], bytes]:
    def step(data: bytes, m: Mutator) -> bytes:
        lines = data.splitlines(keepends=True) or [b""]
        change(lines, m.rng)
        return b"".join(lines)

    return step


def _repeat_line(lines: list[bytes], rng: Random) -> None:
    row = rng.randrange(len(lines))
    lines[row:row] = [lines[row]] * rng.randrange(1, 4)


def _drop_line(lines: list[bytes], rng: Random) -> None:
    del lines[rng.randrange(len(lines))]


def _swap_lines(lines: list[bytes], rng: Random) -> None:
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _splice(data: bytes, m: Mutator) -> bytes:
    other = m.rng.choice(m.corpus)
    return data[: m.rng.randrange(len(data) + 1)] + other[m.rng.randrange(len(other) + 1) :]


def _found(pattern: re.Pattern[bytes]) -> Callable[[bytes, Mutator], bytes]:
    """Return a step that replaces what matches a pattern by a token."""

    def step(data: bytes, m: Mutator) -> bytes:
        matches = list(pattern.finditer(data))
        if not matches:
            return _insert_token(data, m)
        match = m.rng.choice(matches)
        return data[: match.start()] + m.rng.choice(TOKENS) + data[match.end() :]

    return step


def _repeat_much(data: bytes, m: Mutator) -> bytes:
    """Repeat some bytes very often: deep nesting, long fields and numbers."""
    start, end = m.span(data, 6)
    part = data[start:end] or m.rng.choice(TOKENS)[:6]
    n = m.rng.choice((8, 80, _LONG // max(len(part), 1)))
    return data[:start] + part * n + data[end:]


_STEPS: tuple[Callable[[bytes, Mutator], bytes], ...] = (
    *(_cut, _truncate, _flip, _replace_byte, _insert_token, _insert_token, _overwrite, _copy),
    *(_lines(_repeat_line), _lines(_drop_line), _lines(_swap_lines), _splice),
    *(_found(_NUMBER), _found(_STRING), _repeat_much),
)
