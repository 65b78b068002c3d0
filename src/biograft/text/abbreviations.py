"""Abbreviation definitions in text: *diabetes mellitus (DM)*, *DM (diabetes mellitus)*.

Schwartz and Hearst (A simple algorithm for identifying abbreviation definitions in biomedical text,
PSB 2003): the characters of a short form in brackets are matched from right to left against the
few words before it, and the first must begin a word. In Chinese text, which does not separate
words, the long form is the longest name at the end of the run of characters before the bracket,
or else what follows the last cue in it: 诊断为前列腺增生(BPH).

Where the mentions of a text are known, an apposition, *phlorizin (P)*, needs no common characters:
:func:`find_appositions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from biograft.kb.names import HAN, HAN_CHARACTER

_MIN_SHORT, _MAX_SHORT, _MAX_SHORT_WORDS = 2, 10, 2
_AROUND = " \t\n\r\f\v\u00a0\u3000\"'”’"
"""Blanks and quotes between a long form and the bracket."""
_MAX_BRACKET = 200
"""Maximum characters in a bracket that may be a definition."""

_BRACKET = re.compile(
    rf"[(（\[](\w{{1,7}}\([^()\s]{{1,3}}\)\w{{0,4}}|[^()（）\[\]]{{1,{_MAX_BRACKET}}})[)）\]]"
)
"""A bracket, and in it at most that of a short form: *(CrB(-))*."""
_OPENING, _CLOSING = tuple("(（["), tuple(")）],，;；:：")
_MAX_UNDEFINED = 5
"""Maximum characters of a short form that no bracket defines."""
_MAX_HAN_RUN = 40
"""Maximum characters of a Chinese long form."""
_NOT_SHORT_FORM = re.compile(r"(?:i\.?\s?e|e\.?\s?g|n\s?=.*|p\s?[<=].*)\.?", re.IGNORECASE)
"""Text in brackets that is no short form: *i.e.*, *n = 12*."""
_ORDINARY = re.compile(r"[a-z]{5,}|[a-z]+ [a-z]+")
"""Words in brackets, which are hardly ever a short form: *(range 3 to 5)*, *(that is)*."""
_END_OF_DEFINITION = re.compile(r"[;,，；]")
_LOCANTS = re.compile(
    r"(?:[^\w\s]|\d|(?<![a-z])(?:alpha|beta|gamma|delta|omega|[a-z])(?![a-z]))+-", re.I
)
"""The beginning of a chemical name before its first letters: *2,4-*, *alpha-1-*, *(-)-[125I]-*."""
_SMALL_WORDS = frozenset("a an and at by for from in of on or the to with".split())
_TO_LAST_END = re.compile(r".*(?:[。；！？\n()（）\[\]]|[.;!?](?=\s))", re.DOTALL)
"""All up to the last punctuation that ends a sentence; some of it needs whitespace after it."""
_HAN_RUN = re.compile(rf"[{HAN}A-Za-z0-9αβγδ\-]+$")
_CUE = re.compile(
    "|".join(
        """
        诊断为 确诊为 确诊 诊断 考虑为 考虑 怀疑为 怀疑 疑似 疑诊 提示为 提示 证实为 证实 表现为
        称为 简称 又称 亦称 也称 即为 属于 主要是 可能是 可能为 可能 患有 患者 罹患 病人 伴有 伴发
        合并有 合并 并发 既往有 既往 曾患 出现 发生 引起 导致 所致 造成 诱发 存在 具有 没有 包括
        例如 以及 或者 治疗 服用 给予 应用 使用 采用 予以 接受 行 检测 检查 测定 监测
        通过 根据 经 采取 属 一种 为 是 的 由 被 将 把 了
        """.split()
    )
)
"""Words of Chinese after which a name begins."""
_NOT_CUES = frozenset(
    "流行 并行 平行 运行 银行 爬行 因为 行为 神经 月经 肾经 经络 经期 痛经 绝经".split()
)
"""Words that have a cue in them."""
IsName = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """A short form and its long form, with their offsets in the text."""

    short: str
    """The short form."""
    long: str
    """The long form."""
    short_start: int
    """Character offset of the short form's first character."""
    short_end: int
    """Character offset behind its last character."""
    long_start: int
    """Character offset of the long form's first character."""
    long_end: int
    """Character offset behind its last character."""


def find_abbreviations(text: str, is_name: IsName | None = None) -> list[Abbreviation]:
    """Find the abbreviations that a text defines, in the order of their brackets.

    Args:
        text: A text.
        is_name: Says whether a text is a name; a Chinese long form begins at the longest one before
            the bracket.

    >>> [found.long for found in find_abbreviations("诊断为前列腺增生(BPH)")]
    ['前列腺增生']
    """
    if not has_bracket(text):
        return []
    candidates = (_in_bracket(text, match, is_name) for match in _BRACKET.finditer(text))
    return [abbreviation for abbreviation in candidates if abbreviation is not None]


def has_bracket(text: str) -> bool:
    """Return True if a text may define an abbreviation."""
    return any(bracket in text for bracket in _OPENING)


def find_appositions(text: str, spans: Iterable[tuple[int, int]]) -> list[Abbreviation]:
    """Find the spans in brackets right behind another span, whatever their characters.

    The bracket may go on after punctuation, *(P: 5 mg)*; the span that it begins with counts.

    Args:
        text: A text.
        spans: Start and end of its mentions.

    >>> [(a.short, a.long) for a in find_appositions("phlorizin (P: 5 mg)", [(0, 9), (11, 12)])]
    [('P', 'phlorizin')]
    """
    known = sorted(set(spans))
    start_of = {end: start for start, end in known}
    found = []
    for start, end in known:
        bracket = _skip_blanks_before(text, start) - 1
        behind = text[end : end + 1]
        if bracket < 0 or text[bracket] not in _OPENING or behind not in _CLOSING:
            continue
        stop = _skip_blanks_before(text, bracket)
        if stop in start_of:
            found.append(_abbreviation(text, (start, end), (start_of[stop], stop)))
    return found


def _skip_blanks_before(text: str, end: int) -> int:
    """Return where the white space before a position begins."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


def abbreviates(short: str, long: str) -> bool:
    """Whether one mention abbreviates another, judged by their characters.

    The long form must have at least two words and no words that are not needed; case is ignored.

    Args:
        short: The short mention.
        long: The long mention.

    >>> abbreviates("OAB", "overactive bladder"), abbreviates("OAB", "an overactive bladder")
    (True, False)
    """
    return (
        _MIN_SHORT <= len(short) <= _MAX_UNDEFINED
        and short.isalnum()
        and 2 <= len(long.split()) <= 2 * len(short)
        and _is_long_form(short, long)
        and _match_characters(short, long) == 0
    )


def _in_bracket(text: str, bracket: re.Match[str], is_name: IsName | None) -> Abbreviation | None:
    """Parse a bracket as a short form after its long form, else as a long form after its short."""
    inside = _first_part(bracket[1])
    start = bracket.start(1) + len(inside) - len(inside.lstrip())
    short = inside.strip()
    if _is_short_form(short):
        before = _sentence_start(text, bracket.start())
        long_start = _long_start(short, text, before, bracket.start(), is_name)
        if long_start is not None:
            return _abbreviation(text, (start, start + len(short)), (long_start, bracket.start()))
    end = bracket.start(1) + len(bracket[1].rstrip())
    long = text[start:end]
    if " " not in long or _follows_lower_case(text, bracket.start()):
        return None
    first, word = _last_word(text, bracket.start())
    # the whole bracket must be the long form, not only its end
    if (
        _is_short_form(word)
        and not word.islower()
        and _is_long_form(word, long)
        and _match_characters(word, long) == 0
    ):
        return _abbreviation(text, (first, first + len(word)), (start, end))
    return None


def _first_part(inside: str) -> str:
    """Return the text before the first comma: *(DM, n = 12)*."""
    mark = _END_OF_DEFINITION.search(inside)
    return inside[: mark.start()] if mark else inside


def _sentence_start(text: str, end: int) -> int:
    """Return the start of the sentence that precedes a bracket."""
    start = max(0, end - _MAX_BRACKET)
    sentence = _TO_LAST_END.match(text, start, end)
    return sentence.end() if sentence else start


def _follows_lower_case(text: str, end: int) -> bool:
    """Whether lower-case words precede a bracket: a fast check that excludes most of them."""
    tail = text[max(0, end - _MAX_SHORT - 4) : end]
    return tail.isascii() and tail == tail.lower() and len(tail.split()) > 1


def _last_word(text: str, end: int) -> tuple[int, str]:
    """Return the start and the text of the last word before a bracket in its sentence."""
    words = text[_sentence_start(text, end) : end].rsplit(None, 1)
    if not words:
        return end, ""
    return text.rindex(words[-1], 0, end), words[-1]


def _abbreviation(text: str, short: tuple[int, int], long: tuple[int, int]) -> Abbreviation:
    long_text = text[long[0] : long[1]].rstrip(_AROUND)
    end = long[0] + len(long_text)
    return Abbreviation(text[slice(*short)], long_text, *short, long[0], end)


def _is_short_form(text: str) -> bool:
    """Whether a text may be a short form."""
    return (
        _MIN_SHORT <= len(text) <= _MAX_SHORT
        and len(text.split()) <= _MAX_SHORT_WORDS
        and text[0].isalnum()
        and any(map(str.isalpha, text))
        and not _NOT_SHORT_FORM.fullmatch(text)
        and not _ORDINARY.fullmatch(text)
    )


def _long_start(short: str, text: str, before: int, end: int, is_name: IsName | None) -> int | None:
    """Return the start of the long form before a bracket."""
    stop = before + len(text[before:end].rstrip())
    if stop > before and HAN_CHARACTER.match(text[stop - 1]):
        return _chinese_start(short, text, before, stop, is_name)
    n_words = min(len(short) + 5, 2 * len(short))
    words = text[before:stop].rsplit(None, n_words)
    if not words:
        return None
    first = before + len(words[0]) if len(words) > n_words else before
    while text[first].isspace():
        first += 1
    at = _match_characters(short, text[first:stop])
    if at is None or not _is_long_form(short, text[first + at : stop]):
        return None
    start, longer = first + at, first + _initials_start(short, text[first:stop], at)
    if is_name is None or is_name(text[longer:stop]) or not is_name(text[start:stop]):
        start = longer
    word = start - len(text[before:start].rpartition(" ")[2])
    is_chemical = short != short.lower() and _LOCANTS.fullmatch(text, word, start)
    return word if is_chemical else start


def _initials_start(short: str, long: str, at: int) -> int:
    """Return where a long form begins that has a word for each capital, if that is further left.

    Matching letters alone takes *proton pump inhibitors (PPIs)* for *pump inhibitors*.
    """
    capitals = [char.lower() for char in short if char.isupper()]
    words = [(match.start(), match[0].lower()) for match in re.finditer(r"[^\W_]+", long)]
    while capitals and words:
        start, word = words.pop()
        if word.startswith(capitals[-1]):
            capitals.pop()
            if not capitals:
                return min(at, start)
        elif word not in _SMALL_WORDS:
            break
    return at


def _is_long_form(short: str, long: str) -> bool:
    """Whether a long form is longer than the short form and does not contain it as a word."""
    return len(long) > len(short) and short not in long.split()


def _chinese_start(
    short: str, text: str, before: int, stop: int, is_name: IsName | None
) -> int | None:
    """Return the start of the Chinese long form in the run of characters before the bracket."""
    run = _HAN_RUN.search(text, max(before, stop - _MAX_HAN_RUN), stop)
    if run is None or len(run[0]) < 2:
        return None
    if HAN_CHARACTER.search(short):
        at = _match_characters(short, run[0], anywhere=True)
        return run.start() + at if at is not None and len(run[0]) - at > len(short) else None
    if not short.isascii() or not any(map(str.isupper, short)):
        return None
    if is_name is not None:
        for start in range(run.start(), stop - 1):
            if is_name(text[start:stop]):
                return start
    return run.start() + _after_cues(run[0])


def _after_cues(run: str) -> int:
    """Return where the text after the last cue begins, which has two characters at least."""
    start = 0
    for cue in _CUE.finditer(run):
        begin, end = cue.span()
        around = (run[begin : end + 1], run[max(begin - 1, 0) : end])
        if len(run) - end >= 2 and _NOT_CUES.isdisjoint(around):
            start = end
    return start


def _match_characters(short: str, long: str, *, anywhere: bool = False) -> int | None:
    """Match the characters of a short form from right to left; return the position of the first.

    The first must begin a word, unless ``anywhere`` is set.
    """
    low, at = _lower(long), len(long)
    for position in range(len(short) - 1, -1, -1):
        if not short[position].isalnum():
            continue
        at = low.rfind(short[position].lower(), 0, at)
        while at >= 0 and position == 0 and not anywhere and not _begins_word(long, at):
            at = low.rfind(short[position].lower(), 0, at)
        if at < 0:
            return None
    return at


def _lower(text: str) -> str:
    """Lower the case without changing offsets."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(char.lower()[:1] for char in text)


def _begins_word(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum()


class LongForms(Mapping[str, str]):
    """The long forms of a document's abbreviations; the first of several definitions counts."""

    def __init__(self, definitions: Iterable[tuple[str, str]] = ()) -> None:
        self._long: dict[str, str] = {}
        for short, long in definitions:
            self._long.setdefault(short, long)

    @classmethod
    def of(cls, text: str, is_name: IsName | None = None) -> LongForms:
        """Collect the abbreviations that a text defines (``find_abbreviations``).

        Args:
            text: A text.
            is_name: As for :func:`find_abbreviations`.
        """
        return cls((found.short, found.long) for found in find_abbreviations(text, is_name))

    def __getitem__(self, short: str) -> str:
        return self._long[short]

    def __iter__(self) -> Iterator[str]:
        return iter(self._long)

    def __len__(self) -> int:
        return len(self._long)

    def expand(self, mention: str) -> str | None:
        """Return the long form of a mention, or None if it is no abbreviation of the document.

        Plurals (*DMs*) and mentions that end in an abbreviation (*sporadic BC*) are expanded;
        mentions that begin with one are not: the *APC gene* is a gene.

        >>> forms = LongForms.of("Breast cancer (BC) is common.")
        >>> forms.expand("BCs"), forms.expand("sporadic BC"), forms.expand("BC gene")
        ('Breast cancer', 'sporadic Breast cancer', None)
        """
        long = self._of(mention)
        if long is not None:
            return long
        before, space, last = mention.rpartition(" ")
        long = self._of(last) if space else None
        if long is None or long.lower() in before.lower():
            return None
        return f"{before} {long}"

    def _of(self, word: str) -> str | None:
        """Return the long form of a word, else that of its plural or singular."""
        other = word[:-1] if word.endswith("s") else f"{word}s"
        return self._long.get(word, self._long.get(other))
