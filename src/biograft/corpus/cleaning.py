"""Clean running text before it is annotated: what is no language goes, long documents are cut.

The steps, in this order, each counted by its name in a :class:`CleaningReport`:

=================  ========================================================================
``tags``           HTML tags and comments; scripts and style sheets with what they hold
``entities``       HTML entities (``&lt;``) become the characters they stand for
``urls``           addresses of pages
``emails``         addresses of people
``signs``          characters that are no letter, digit, punctuation or sign of a formula
``blanks``         runs of blanks become one
``empty``          documents in which nothing is left are dropped
``short``          so are those with fewer than ``min_length`` characters
``cut``            those with more than ``max_length`` are cut at punctuation
=================  ========================================================================

The steps and the numbers 256 and 512 are those of SMedBERT's appendix; cutting at punctuation and
filling each segment up is EMBERT's. Offsets count in the cleaned text.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from biograft.documents import Document
from biograft.errors import ConfigError

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
_HIDDEN = re.compile(r"<!--.*?-->|<(script|style)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
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
_SIGNS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2500-\u27bf\u2b00-\u2bff"
    "\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\ufff0-\uffff\U0001f000-\U0001faff"
    "\U000e0000-\U0010ffff]+"
)
_BLANKS = re.compile(r"[ \t\xa0\u2000-\u200a\u202f\u3000]{2,}|[\t\xa0\u2000-\u200a\u202f\u3000]")
_STRONG = re.compile(r"[。！？!?\n]+[”’」』）)\"']*|\.(?=\s)|…+")
_WEAK = re.compile(r"[，,；;、：:](?!\d)")
_GAP = re.compile(r"\s")


@dataclass(frozen=True, kw_only=True)
class CleaningConfig:
    """What is taken out, and how long a document may be."""

    html: bool = True
    urls: bool = True
    emails: bool = True
    signs: bool = True
    min_length: int = 0
    """Documents with fewer characters are dropped; 256 in SMedBERT."""
    max_length: int = 0
    """Longer documents are cut into segments of so many characters at most; 512 in SMedBERT;
    0: none is cut."""

    def __post_init__(self) -> None:
        for name in ("min_length", "max_length"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: expected 0 or more, found {getattr(self, name)}")
        if 0 < self.max_length < self.min_length:
            raise ConfigError(
                f"max_length: expected at least min_length ({self.min_length}), found "
                f"{self.max_length}"
            )


@dataclass
class CleaningReport:
    """What cleaning did: how often each step found something, by its name."""

    counts: Counter[str] = field(default_factory=Counter)


class Cleaner:
    """Cleans one document after the other, and counts."""

    def __init__(self, config: CleaningConfig | None = None) -> None:
        self.config = config or CleaningConfig()
        self.report = CleaningReport()

    def clean(self, document: Document) -> Iterator[Document]:
        """Give what is left of a document: nothing, itself, or its segments.

        Mentions that it brings are left behind, since their offsets no longer hold. A segment is
        called after its document and its place in it: ``PMID1#2``.
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
            for number, segment in enumerate(cut_at_punctuation(text, self.config.max_length), 1):
                name = f"{document.id}#{number}"
                yield replace(document, id=name, text=segment, mentions=())

    def clean_text(self, text: str) -> str:
        """Take out of a text what is no language."""
        config = self.config
        if config.html and "<" in text:
            text = self._replace("tags", _HIDDEN, " ", text)
            text = self._replace("tags", _TAG, _gap_of_tag, text)
        if config.html and "&" in text:
            text = self._replace("entities", _ENTITY, lambda m: html.unescape(m[0]), text)
        if config.urls and ("://" in text or "ww." in text.lower()):
            text = self._replace("urls", _URL, " ", text)
        if config.emails and "@" in text:
            text = self._replace("emails", _EMAIL, " ", text)
        if config.signs and not (text.isascii() and text.isprintable()):
            text = self._replace("signs", _SIGNS, "", text)
        if "  " in text or not (text.isascii() and text.isprintable()):
            text = self._replace("blanks", _BLANKS, " ", text)
        return text.strip()

    def _replace(
        self, step: str, what: re.Pattern[str], by: str | Callable[[re.Match[str]], str], text: str
    ) -> str:
        text, n = what.subn(by, text)
        if n:
            self.report.counts[step] += n
        return text


def _gap_of_tag(tag: re.Match[str]) -> str:
    """Leave a blank for a tag that parts what stands before and behind it."""
    name = tag[1]
    return "" if name and name.lower() in _INLINE else " "


def cut_at_punctuation(text: str, longest: int) -> list[str]:
    """Cut a text into segments of so many characters at most, each as full as it can be.

    A cut comes behind the last end of a sentence in the second half of what fits; if there is
    none, behind the last comma, else at the last blank, else where it must be.

    >>> cut_at_punctuation("咳嗽三天。发热，头痛。无皮疹", 8)
    ['咳嗽三天。', '发热，头痛。', '无皮疹']
    """
    segments = []
    start = 0
    while len(text) - start > longest:
        end = _cut_before(text, start, start + longest)
        segments.append(text[start:end].strip())
        start = end
    segments.append(text[start:].strip())
    return [segment for segment in segments if segment]


def _cut_before(text: str, start: int, limit: int) -> int:
    middle = start + (limit - start) // 2
    for pattern, floor in ((_STRONG, middle), (_WEAK, middle), (_GAP, start)):
        last = 0
        for mark in pattern.finditer(text, floor, limit + 1):
            if mark.end() <= limit:
                last = mark.end()
        if last > start:
            return last
    return limit
