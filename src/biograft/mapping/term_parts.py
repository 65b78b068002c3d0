"""Parts of a local term: what is looked up, what stands beside it, and what tells terms apart.

A local term is rarely a name alone: *J45.909 asthma*, *kidney stone 5 mm, left*, *DM2 + HTN*, *see
note*. :func:`read_term` takes codes, values, sides, stages and remarks away, splits what is listed,
and knows terms that hold no diagnosis. :func:`is_plain` says whether what a name leaves of a term
would change its concept. :func:`difference` finds the words by which a name means another concept
than the term that it resembles: *acute* and *chronic*, *with* and *without*, two sites or numbers.
The lists are in ``term_parts.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from biograft.clinical.measurements import find_values
from biograft.clinical.phrases import expand
from biograft.kb.names import HAN, HAN_CHARACTER, normalise
from biograft.linking.normalisation import HALF_WIDTH, chinese
from biograft.text.tokens import simplify
from biograft.text.vocabulary import ROMAN_NUMBERS, word_form

_LETTER = r"[A-TV-Z]"
_SYSTEM = (
    r"(?:ICD(?:-?(?:9|10|11|O))?(?:-?(?:CM|PCS|GM|AM))?|SCT|SCTID|SNOMED(?:[ -]?CT)?|OMIM|MIM|MESH"
    r"|CUI|UMLS|READ|LOINC|CPT|CODE)"
)
_CODE = re.compile(
    rf"\b{_SYSTEM}(?![^\W\d_])[\s:#=-]*(?:[A-Z]{{0,2}}\d[\d.]*[A-Z]?\b)?"
    rf"|\b{_LETTER}\d[0-9AB]\.[0-9A-Z]{{1,4}}\b[†*+!]?"
    rf"|^\s*(?![CLST]\d\d?\b|B(?:6|12)\b){_LETTER}\d\d(?=\s*[-–:|]|\s+[^\W\d])"
    rf"|(?<=[(\[]){_LETTER}\d\d(?=[)\]])"
    r"|^\s*\d{3}\.\d{1,2}\b(?=\s*[-–:|]?\s*[^\W\d])|\b\d{6,18}\b|\b\d\d\.\d{2,4}(?:[.x]\d+)?\b(?=[+)）]|$)",
    re.IGNORECASE,
)
_SIDE = re.compile(
    rf"[(\[（【]\s*(?:[LR]|left|right|bilateral|both|[左右双两]侧?)\s*[)\]）】]"
    r"|\b(?:left|right|lt|rt|bilateral|both)\b\.?(?:[- ]sided?)?(?!\s*-?(?:sided )?(?:heart"
    r"|ventric|atri|bundle|main|coronary|circumflex|anterior|upper|lower|axis|aort))"
    rf"|[左右双两]侧|(?<![{HAN}]再)[左右](?:[上中下]叶?(?=肺))?"
    r"(?=[肺肾眼耳乳膝髋肩肘腕踝足手腿臂股胫腓肱桡尺锁跟卵附输腹甲腮颈腋髂腘睾]"
    r"|输尿|输卵|上肢|下肢|肋)|双(?=[眼耳肾肺膝髋手足乳踝腕肘肩]|下肢|上肢|输尿管|输卵管)",
    re.IGNORECASE,
)
_STAGE = re.compile(
    r"\b(?:stage|stg|grade|gr\.?|class|level|nyha|ccs|asa|figo|killip|child[- ]pugh|gold|tnm"
    r"|gleason|dukes|[bt]i-?rads)"
    r"(?:\s+(?:class|stage|grade|score))?\s*[:=]?\s*(?:\d(?:\s?[+/-]\s?\d)*[a-d]?|[IVX]{1,4}[a-d]?|[A-D])\b"
    r"|\b[cp]?T[0-4x][a-d]?N[0-3x][a-c]?M[01x]\b|\bG\d+P\d+\b"
    rf"|(?:[IVX]{{1,4}}|[Ⅰ-Ⅻ]|[一二三四五六七八九\d]{{1,2}})(?:[-~—－][IVX\d]+)?[A-Da-d]?\s*[期级类](?![{HAN}]*[炎病])|[BT]I-?RADS",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\b(?:19|20)\d\d(?:[-/.]\d{1,2}(?:[-/.]\d{1,2})?)?\b|\b\d{1,2}/\d{1,2}/(?:\d\d){1,2}\b"
    r"|\b(?:x|for|since|over|last|past)?\s*\d+(?:\s?[-–+]\s?\d+)?\s*(?:/7\s*)?"
    r"(?:days?|d|wks?|weeks?|months?|mths?|yrs?|years?|y/?o|hours?|hrs?|min|mins|minutes?)\b\.?(?:\s*(?:old|ago|history|hx))?"
    r"|\d+(?:\.\d+)?\+?\d*(?:天|日|周|月|年|岁|小时|分钟|次)余?",
    re.IGNORECASE,
)
_VALUE = re.compile(rf"[\d一二三四五六七八九十:#]|\b{_SYSTEM}\b", re.IGNORECASE)
"""Without any of these there is neither code nor value."""
_BRACKET = re.compile(r"[(\[（【]([^()\[\]（）【】]*)[)\]）】]")
_TYPE = re.compile(
    r"\s*(?:type\s*)?(?:\d{1,2}|[IVX]{1,4}|[Ⅰ-Ⅻ]|[一二三四])\s*型?\s*", re.IGNORECASE
)
_CERTAIN = re.compile(
    r"\s*(?:##|\||[;；\n＋])\s*|\s+\+\s*(?=\S)|(?<=[^\W\d_])\+\s*(?=[^\W\d_])"
    rf"|(?<=[{HAN})）\]])\s*\+\s*(?=[^\W_(（])|(?<=[{HAN}])\s+(?=[{HAN}]{{2}})"
)
"""Marks between the items of a list."""
_LIKELY = re.compile(
    r"\s*[,，、。]\s*|(?<=\w\w)\s?/\s?(?=\w\w)"
    r"|\s+(?:and|with|w/|&|plus|as well as|along with|complicated by)\s+"
    rf"|(?<=[{HAN}])(?:伴有|合并|并发|以及|[伴及和与并])(?=[{HAN}\w])",
    re.IGNORECASE,
)
"""Marks and words that may stand between items, or within a name."""
_NUMERAL = re.compile(r"(?<![a-z\d.])(?:\d+|[ivx]{1,4})(?![a-z\d.])")
_SIGN = re.compile(r"([+＋])[\s)）]*$|[\s(（][-－−][\s)）]*$")
_SINGLE = re.compile(
    r"(?<![\w'])(?:[b-h]|(?<=hepatitis )a|(?<=influenza )a)(?![\w'])|[甲乙丙丁戊](?=型|肝)"
)
_WITHOUT = re.compile(
    r"\b(?:no|non|not|without|never|w/o)\b|\bnon(?!aka|ne|e\b|o)(?=[a-z])|非|无|未|不(?![全稳明育孕典])"
)
_SHORT_WITHOUT = re.compile(r"\bw/o\b", re.IGNORECASE)
_NOTHING_ELSE = re.compile(
    r"\b(?:without|w/o|no)(?: mention of)?(?: \w+)?"
    r" (?:complications?|behaviou?ral disturbance|exacerbation)"
    r"|\bnot (?:otherwise|elsewhere) (?:specified|classified)"
)
_ABSENT = re.compile(r"[\s,]+(?:without|with no)\s+[\w\s/,-]+$|[,，]?(?:不伴有?|无|未见).+$")
"""Excluded conditions of a diagnosis: *inguinal hernia without obstruction*."""
_DENIED = re.compile(
    rf"\b(?:without|w/o|with no)\s+(\w+(?:[ -]\w+)?)|(?:不伴有?|无|未见)([{HAN}]{{2,4}})"
)
"""The first words of what a text says is absent."""
_REPEATED = re.compile(r"(\w)\1{2,}|\W+|\d+")
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*|/")


class TermParts(NamedTuple):
    """A term as it is looked up."""

    forms: tuple[str, ...]
    """The texts to look up: one, or several where the term lists several concepts."""
    no_diagnosis: str = ""
    """Why the term holds no diagnosis; empty if it may hold one."""

    @property
    def whole(self) -> str:
        """The term as one text to look up."""
        return " + ".join(self.forms)


class _Lists:
    """Content of ``term_parts.toml``."""

    def __init__(self) -> None:
        path = files("biograft.mapping") / "term_parts.toml"
        self._read: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        self.no_diagnosis: dict[str, str] = {
            normalise(wording): reason
            for reason, phrases in self._read["no_diagnosis"].items()
            for phrase in phrases
            for wording in expand(phrase, {})
        }
        plain, measured = self._read["plain"], self._read["measured"]
        han = sorted(plain.pop("han").split(), key=len, reverse=True)
        self.plain = frozenset(word for words in plain.values() for word in words.split())
        self.plain_han = re.compile("|".join(han))
        words = "|".join(re.escape(w).replace(r"\-", "[- ]") for w in measured["words"].split())
        of_han = "|".join(measured["han"].split())
        self.measured = re.compile(
            rf"(?:\b(?:{words})|{of_han})\s*(?:of|is|at)?\s*[:=]?\s*(?=[<>≤≥~]?\s*\0)",
            re.IGNORECASE,
        )
        opposites = self._read["opposites"]
        self.opposites = {
            word: group
            for language in ("en", "zh")
            for group in opposites[language]
            for word in group.split("/")
        }
        opposed = sorted(filter(HAN_CHARACTER.search, self.opposites), key=len, reverse=True)
        self.opposites_han = re.compile(
            f"(?<![不非亚])(?:{'|'.join(opposed)})|亚急性|不完全性|非典型|非过敏性"
        )
        self.prefixes = {
            prefix: group for group in opposites["prefixes"].split() for prefix in group.split("/")
        }
        self.prefixed = re.compile(f"({'|'.join(self.prefixes)})-?([a-z-]{{3,}})")
        sites = self._read["sites"]
        self.sites = re.compile(
            r"\b(?:" + "|".join(f"({group})" for group in sites["en"]) + r")[a-z]*"
        )
        self.sites_han = re.compile("|".join(f"({group})" for group in sites["zh"]))
        self.site_names = {
            pattern: ["", *(re.split(r"[|(]", group)[0] for group in sites[language])]
            for pattern, language in ((self.sites, "en"), (self.sites_han, "zh"))
        }
        heads = "|".join(sites["procedures"].split())
        self.procedure = re.compile(
            rf"\b(?:{heads}|\w+(?:ectomy|plasty|oscopy|ostomy|otomy|graphy))s?\b"
        )


@cache
def _lists() -> _Lists:
    return _Lists()


def read_term(text: str, is_name: Callable[[str], bool], *, every_mark: bool = False) -> TermParts:
    """Return what is looked up for a term.

    A term that is a name stays whole. Else codes, values and dates go; then sides, stages and
    remarks in brackets, if a name is left, or nothing else is.

    Args:
        text: The term.
        is_name: Whether a text is a name of the knowledge base.
        every_mark: Split at commas and words such as *with*, too, where the parts are no names.

    >>> read_term("J45.909 asthma + kidney stone 5 mm", lambda text: False).forms
    ('asthma', 'kidney stone')
    """
    if is_name(text):
        return TermParts((text,))
    if reason := no_diagnosis(text):
        return TermParts((text,), reason)
    plain = text.translate(HALF_WIDTH) if HAN_CHARACTER.search(text) else text
    plain = _SHORT_WITHOUT.sub("without", plain)
    items = [item for item in _CERTAIN.split(_without_values(plain)) if item.strip(" .,-+()（）")]
    forms = [form for item in items for form in _forms(item, is_name, every_mark)]
    return TermParts(tuple(dict.fromkeys(forms)) or (text,))


def _without_values(text: str) -> str:
    """Take codes, values with a unit, what they belong to, and dates away."""
    if _VALUE.search(text) is None:
        return text
    text = _CODE.sub(" ", text)
    for start, end in reversed(find_values(text)):
        text = f"{text[:start]}\0{text[end:]}"
    text = _DATE.sub("\0", text)
    return _lists().measured.sub(" ", text).replace("\0", " ")


def _forms(text: str, is_name: Callable[[str], bool], every_mark: bool) -> Iterator[str]:
    """Yield what is looked up for an item of a list: its parts, if all are names."""
    found = core(text, is_name)
    if not is_name(found):
        items = [core(item, is_name) for item in _LIKELY.split(found)]
        items = [item for item in items if not is_plain(item)]
        if len(items) > 1 and all(each and (every_mark or is_name(each)) for each in items):
            yield from items
            return
    yield found


def core(text: str, is_name: Callable[[str], bool]) -> str:
    """Return a term without what stands beside the name: brackets, sides, stages, remarks.

    Args:
        text: The term.
        is_name: Whether a text is a name of the knowledge base.
    """
    whole = current = _tidy(text)
    reductions = (_without_brackets, _without_sides, _without_stages, _without_plain)
    for reduce in (*reductions, _without_absent):
        if is_name(current):
            return current
        reduced = reduce(current)
        shorter = _tidy(reduced) if reduced != current else ""
        if shorter and shorter != current:
            current = shorter
            if reduce is _without_sides:
                whole = current
    return current if is_name(current) else whole


def _without_brackets(text: str) -> str:
    """Take remarks in brackets away; a type, *diabetes (type 2)*, belongs to the name."""
    for bracket in reversed(list(_BRACKET.finditer(text))):
        before, after, inner = text[: bracket.start()], text[bracket.end() :], bracket[1]
        if _TYPE.fullmatch(inner) and not inner.strip().isdigit():
            is_han = HAN_CHARACTER.search(before) is not None
            text = f"{inner}{before}{after}" if is_han else f"{before} {inner}{after}"
        else:
            text = f"{before} {after}" if (before + after).strip() else inner
    return text


def _without_sides(text: str) -> str:
    return _SIDE.sub(" ", text)


def _without_stages(text: str) -> str:
    return _STAGE.sub(" ", text)


def _without_plain(text: str) -> str:
    """Take words at both ends away that leave the concept as it is."""
    lists = _lists()
    words = list(_WORD.finditer(text))
    while words and words[-1][0].lower() in lists.plain:
        words.pop()
    first = next((n for n, word in enumerate(words) if word[0].lower() not in lists.plain), None)
    if first is None:
        return ""
    text = text[words[first].start() : words[-1].end()]
    while HAN_CHARACTER.search(text):
        found = [
            m for m in lists.plain_han.finditer(text) if m.start() == 0 or m.end() == len(text)
        ]
        if not found or len(found[0][0]) == len(text):
            break
        text = (text[: found[0].start()] + text[found[0].end() :]).strip(" ,，、。?？")
    return text


def _without_absent(text: str) -> str:
    return _ABSENT.sub("", text)


def _tidy(text: str) -> str:
    text = re.sub(r"[(\[（【][\s+\-.,]*[)\]）】]", " ", text)
    return " ".join(text.split()).strip(" -–—:;,.，。；：、/|?？=*\"'").lstrip("+ ")


def no_diagnosis(text: str) -> str:
    """Return why a term holds no diagnosis; empty if it may hold one.

    >>> no_diagnosis("See note."), no_diagnosis("asthma")
    ('administrative', '')
    """
    key = normalise(text)
    if _REPEATED.fullmatch(key.replace(" ", "")):
        return "no entry"
    return _lists().no_diagnosis.get(simplify(key), "")


def is_plain(text: str) -> bool:
    """Return True if a text beside a name does not change its concept.

    Args:
        text: What is left of a term.

    >>> is_plain("severe, left (ICD-10 J45)"), is_plain("in pregnancy")
    (True, False)
    """
    if not text or text.isspace():
        return True
    text = _STAGE.sub(" ", _SIDE.sub(" ", _without_values(text)))
    text = _lists().plain_han.sub(" ", text)
    words = (word.lower() for word in _WORD.findall(text))
    return all(word in _lists().plain or word == "/" or word.isdigit() for word in words)


def is_list(gaps: Iterable[str]) -> bool:
    """Return True if the texts between names say that each of them is meant.

    Args:
        gaps: The texts between them.
    """
    marked = [f"xx{gap}xx" if gap.isascii() else f"肝{gap}肝" for gap in gaps]
    return all(_CERTAIN.search(gap) or _LIKELY.search(gap) for gap in marked)


def difference(term: str, name: str, names: Iterable[str] = ()) -> str:
    """Return the words by which a concept is another one than a term means; empty without any.

    Args:
        term: The term, as it is looked up.
        name: The name that resembles it.
        names: All names of the concept: what one of them has in common with the term is right,
            unless the term is the name with one word in place of another.

    >>> difference("acute hepatitis B", "Hepatitis B, Chronic")
    'acute / chronic'
    """
    if term.lower() == name.lower():
        return ""
    own, found = features(term), features(name)
    if own == found:
        return ""
    if own - found:
        is_han = HAN_CHARACTER.search(term) is not None
        same = (each for each in names if (HAN_CHARACTER.search(each) is not None) == is_han)
        known, differing = found.union(*map(features, same)), own - found
        words, others = ({*map(word_form, _WORD.findall(each.lower()))} for each in (term, name))
        is_swapped = not is_han and len(words - others) == len(others - words) == 1
        differing -= known - {each for each in own if is_swapped and _of(found - own, each[0])}
        for kind, value in sorted(differing):
            instead = [each for each in known - own if each[0] == kind]
            if instead or kind in (_NOT, _HEAD):
                return f"{value} / {min(instead)[1] if instead else '-'}"
    extra = [each for each in found - own if each[0] in (_NOT, _NUMBER)]
    extra = [(kind, value) for kind, value in extra if kind == _NOT or not _of(own, kind)]
    return f"- / {min(extra)[1]}" if extra else ""


def denial(term: str, names: Iterable[str]) -> str:
    """Return what a term says is absent and a name of a concept has; empty without any.

    Args:
        term: The term, as it is written.
        names: All names of the concept.

    >>> denial("dysplasia without hormone deficiency", ["Dysplasia with Hormone Deficiency"])
    'without hormone deficiency / hormone deficiency'
    """
    absent = _denied(term)
    if not absent:
        return ""
    texts = [name.lower() for name in names]
    absent -= {words for text in texts for words in _denied(text)}
    had = sorted(words for words in absent if any(words in text for text in texts))
    return f"without {had[0]} / {had[0]}" if had else ""


def _denied(text: str) -> set[str]:
    return {each[1] or each[2] for each in _DENIED.finditer(text.lower())}


def sides(text: str) -> str:
    """Return the sides that a term names, which are left out of what is looked up.

    Args:
        text: The term.
    """
    return " ".join(re.findall(r"\b(?:left|right)\b|[左右]", text.lower()))


_NOT, _HEAD, _SITE, _NUMBER, _LETTERED = "not", "procedure", "site", "number", "letter"


def _of(found: Iterable[tuple[str, str]], kind: str) -> bool:
    return any(each[0] == kind for each in found)


@lru_cache(1 << 16)
def _features_of_word(word: str) -> tuple[tuple[str, str], ...]:
    """Return what a word, or a part of one with hyphens, excludes."""
    lists, words = _lists(), {word_form(part) for part in {word, *word.split("-")}}
    found = [(lists.opposites[each], each) for each in words if each in lists.opposites]
    prefixed = filter(None, map(lists.prefixed.fullmatch, words))
    return (*found, *((f"{lists.prefixes[m[1]]} {m[2]}", m[0]) for m in prefixed))


@lru_cache(1 << 17)
def features(text: str) -> frozenset[tuple[str, str]]:
    """Return what tells a name from similar ones: kind and value of each.

    Args:
        text: A term or a name.
    """
    lists = _lists()
    low = text.lower() if text.isascii() else chinese(simplify(text)).lower()
    is_han = not low.isascii() and HAN_CHARACTER.search(low) is not None
    found = {each for word in _WORD.findall(low) for each in _features_of_word(word)}
    if is_han:
        found |= {(lists.opposites[m[0]], m[0]) for m in lists.opposites_han.finditer(low)}
    if sign := _SIGN.search(low):
        found.add((lists.opposites["positive"], "positive" if sign[1] else "negative"))
    if _WITHOUT.search(_NOTHING_ELSE.sub("", low)):
        found.add((_NOT, "not"))
    sites = lists.sites_han if is_han else lists.sites
    n_sites = Counter[str]()
    for site in sites.finditer(low):
        name = lists.site_names[sites][site.lastindex or 0]
        n_sites[name] += 1
        found.add((_SITE, f"{name} {n_sites[name]}".removesuffix(" 1")))
    found |= {(_NUMBER, ROMAN_NUMBERS.get(each, each)) for each in _NUMERAL.findall(low)}
    found |= {(_LETTERED, each) for each in _SINGLE.findall(low)}
    heads = list(lists.procedure.finditer(low))
    if heads and (heads[-1].end() == len(low)):
        found.add((_HEAD, heads[-1][0]))
    elif heads:
        found |= {(_HEAD, m[0]) for m in heads}
    return frozenset(found)
