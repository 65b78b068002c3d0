"""Text cleaning before annotation: strip HTML, addresses and symbols; split long documents.

The steps, in this order, each counted by its name in a :class:`CleaningReport`:

=================  ========================================================================
``tags``           remove HTML tags and comments, and scripts and style sheets with their content
``entities``       replace HTML entities (``&lt;``) by their characters
``urls``           remove URLs
``emails``         remove e-mail addresses
``symbols``        remove characters other than letters, digits, punctuation, mathematical symbols
``whitespace``     collapse runs of whitespace
``empty``          drop documents without text
``short``          drop documents with fewer than ``min_length`` characters
``cut``            split documents with more than ``max_length`` characters at punctuation
=================  ========================================================================

The steps and the lengths 256 and 512 are those of SMedBERT's appendix; splitting at punctuation
into segments that are as full as possible is EMBERT's. Offsets refer to the cleaned text.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated

from biograft.config import AtLeast, Config, Option
from biograft.errors import ConfigError
from biograft.text.documents import Document

_BLOCKS = (
    "address article aside blockquote body br caption center dd div dl dt figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 head header hr html li main nav ol option p pre section select table "
    "tbody td textarea tfoot th thead title tr ul"
).split()
_INLINE = (
    "a abbr acronym audio b big button canvas cite code col colgroup del dfn em embed font i "
    "iframe img input ins kbd label link map mark meta nobr noscript object param q s samp small "
    "source span strike strong sub sup svg time tt u var video wbr"
).split()
_NOT_TEXT = re.compile(r"<!--.*?-->|<(script|style)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(
    rf"</?({'|'.join(_BLOCKS + _INLINE)})(?:\s[^<>]*|/)?>|<!doctype[^<>]*>", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_URL = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:https?|ftp)://|www\.(?=[A-Za-z0-9]))[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*"
    r"[A-Za-z0-9\-_~/#@$&*+=%]",
    re.IGNORECASE,
)
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"
)
_SYMBOLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2500-\u27bf\u2b00-\u2bff"
    "\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\ufff0-\uffff\U0001f000-\U0001faff"
    "\U000e0000-\U0010ffff]+"
)
_WHITESPACE = re.compile(
    r"[ \t\xa0\u2000-\u200a\u202f\u3000]{2,}|[\t\xa0\u2000-\u200a\u202f\u3000]"
)
_SENTENCE_END = re.compile(r"[。！？!?\n]+[”’」』）)\"']*|\.(?=\s)|…+")
_CLAUSE_END = re.compile(r"[，,；;、：:](?!\d)")
_SPACE = re.compile(r"\s")


@dataclass(frozen=True, kw_only=True)
class CleaningConfig(Config):
    """Characters to remove, and bounds of document length."""

    html: bool = True
    """Remove HTML tags and decode entities."""
    urls: bool = True
    """Remove web addresses."""
    emails: bool = True
    """Remove e-mail addresses."""
    symbols: bool = True
    """Remove characters other than letters, digits, punctuation and mathematical symbols."""
    min_length: Annotated[
        int,
        AtLeast(0),
        Option("Drop documents of fewer characters (256 in SMedBERT).", metavar="N"),
    ] = 0
    max_length: Annotated[
        int,
        AtLeast(0),
        Option("Split longer documents at punctuation (512 in SMedBERT); 0: never.", metavar="N"),
    ] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.max_length < self.min_length:
            raise ConfigError(
                f"max_length: expected at least min_length ({self.min_length}), found "
                f"{self.max_length}"
            )


@dataclass
class CleaningReport:
    """Counts of what cleaning changed, by step."""

    counts: Counter[str] = field(default_factory=Counter)


class Cleaner:
    """Cleans documents and counts the changes."""

    def __init__(self, config: CleaningConfig | None = None) -> None:
        self.config = config or CleaningConfig()
        self.report = CleaningReport()

    def clean(self, document: Document) -> Iterator[Document]:
        """Yield the cleaned document, its segments, or nothing.

        Mentions are dropped, since their offsets no longer hold. The id of a segment is that of the
        document and its index: ``PMID1#2``.
        """
        text = self.clean_text(document.text)
        counts = self.report.counts
        if not text:
            counts["empty"] += 1
        elif len(text) < self.config.min_length:
            counts["short"] += 1
        elif not self.config.max_length or len(text) <= self.config.max_length:
            same = text == document.text and not document.mentions
            yield document if same else replace(document, text=text, mentions=())
        else:
            counts["cut"] += 1
            for index, segment in enumerate(cut_at_punctuation(text, self.config.max_length), 1):
                name = f"{document.id}#{index}"
                yield replace(document, id=name, text=segment, mentions=())

    def clean_text(self, text: str) -> str:
        """Clean a text."""
        config, given = self.config, text
        is_plain = text.isascii() and text.isprintable()
        if config.html and "<" in text:
            text = self._replace("tags", _NOT_TEXT, " ", text)
            text = self._replace("tags", _TAG, _tag_replacement, text)
        if config.html and "&" in text:
            text = self._replace("entities", _ENTITY, lambda m: html.unescape(m[0]), text)
        if config.urls and ("://" in text or "ww." in text.lower()):
            text = self._replace("urls", _URL, " ", text)
        if config.emails and "@" in text:
            text = self._replace("emails", _EMAIL, " ", text)
        if text is not given:
            is_plain = text.isascii() and text.isprintable()
        if config.symbols and not is_plain:
            text = self._replace("symbols", _SYMBOLS, "", text)
            is_plain = text.isascii() and text.isprintable()
        if "  " in text or not is_plain:
            text = self._replace("whitespace", _WHITESPACE, " ", text)
        return text.strip()

    def _replace(
        self, step: str, what: re.Pattern[str], by: str | Callable[[re.Match[str]], str], text: str
    ) -> str:
        text, n = what.subn(by, text)
        if n:
            self.report.counts[step] += n
        return text


def _tag_replacement(tag: re.Match[str]) -> str:
    """Return a space for a block tag, nothing for an inline tag."""
    name = tag[1]
    return "" if name and name.lower() in _INLINE else " "


def cut_at_punctuation(text: str, max_length: int) -> list[str]:
    """Split a text into segments of at most ``max_length`` characters, as full as possible.

    A segment ends after the last sentence end in the second half of what fits; if there is none,
    after the last comma, else at the last whitespace, else at the limit.

    Args:
        text: A text.
        max_length: Largest number of characters of a segment.

    >>> cut_at_punctuation("咳嗽三天。发热，头痛。无皮疹", 8)
    ['咳嗽三天。', '发热，头痛。', '无皮疹']
    """
    segments = []
    start = 0
    while len(text) - start > max_length:
        end = _segment_end(text, start, start + max_length)
        segments.append(text[start:end].strip())
        start = end
    segments.append(text[start:].strip())
    return [segment for segment in segments if segment]


def _segment_end(text: str, start: int, limit: int) -> int:
    middle = start + (limit - start) // 2
    for pattern, floor in ((_SENTENCE_END, middle), (_CLAUSE_END, middle), (_SPACE, start)):
        last = 0
        for mark in pattern.finditer(text, floor, limit + 1):
            if mark.end() <= limit:
                last = mark.end()
        if last > start:
            return last
    return limit
