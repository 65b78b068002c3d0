"""Clinical lexicon: what a note means by *HTN*, *febrile* or *rib fx*, and what is no finding.

The files of ``lexicon/`` list short forms and words with the wording that they stand for, which is
looked up in the user's store, and the contexts in which a name is no finding: *flu vaccine*,
*stroke unit*, *Dr. Graves*. A short form with several meanings has the one that the document names
elsewhere, else that of its line, its section or the kind of its document. The files describe
themselves.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from biograft.clinical.events import read_layout
from biograft.clinical.phrases import TriggerSpelling, compile_words, expand
from biograft.clinical.rules import AssertionRules
from biograft.kb import KnowledgeBase
from biograft.kb.names import HAN, HAN_CHARACTER
from biograft.linking.batches import BATCH
from biograft.linking.normalisation import HALF_WIDTH, chinese
from biograft.text.documents import Mention
from biograft.text.spelling import may_be_misspelt
from biograft.text.tokens import simplify

AS_LISTED, BY_PLACE, BY_DEFAULT, AS_WORD = 1.0, 0.95, 0.8, 0.9
"""Factors of the score: a meaning that is certain, chosen by place, the usual one; a word."""
ANYWHERE = frozenset({"*"})
"""Place of the usual meaning of a short form."""
MAX_LENGTH = 4
"""Maximum characters of a name in capitals that may be a short form of something else."""
_CACHE_SIZE = 1 << 14
_REACH = 48
"""Characters beside a mention that are looked at."""
_TITLE = 240
"""Characters at the beginning of a text that say which kind of document it is."""
_LATIN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z](?:[A-Za-z0-9/]*[A-Za-z0-9])?(?![A-Za-z0-9])")
_CAPITALS = re.compile(r"[A-Z](?<![A-Za-z0-9\-].)[A-Za-z0-9/]*[A-Z0-9]s?(?![A-Za-z0-9\-])")
_TYPE = re.compile(r"(?:[1-9一二三四ⅠⅡⅢ]|I{1,3})\s*型\s*$")
"""Type number before a short form in Chinese: 2型DM."""
_WORD_PARTS, _HAN_PARTS = re.compile(r"[A-Za-z]+[ -]"), re.compile(rf"[{HAN}]")
_LINE_HEAD = re.compile(r"(?:^|\n|[.;。；]\s)[\s\-*•#>]*(?:\d+[.)]\s*)?$")
_COLON = re.compile(r"[ \t]*(?::|-[ \t])")
_GENE = re.compile(
    r"\b([A-Z][A-Z0-9]*\d)[ -](?:genes?|loc(?:us|i)|mutations?|alleles?|proteins?|transcripts?"
    r"|mRNA|cDNA|promoter|exons?)\b"
)
"""A symbol with a number that is that of a gene: *the WT1 gene*."""
_CLAUSE_END = re.compile(r"[ \t]*(?:$|[^\w\s/\-]|[\n\d])")
_SHOUTED_BEFORE, _SHOUTED_AFTER = re.compile(r"\b[A-Z]{2,}\s+$"), re.compile(r"\s+[A-Z]{2,}\b")
_SENTENCE_END = re.compile(r"[。；;]|(?<=[a-z])\.\s+(?=[A-Z]|$)")
_WORDS_AFTER = re.compile(r"(?: of(?: the)?)?(?P<words>(?: [A-Za-z]+){1,3})")
_LONG_WORD = re.compile(r"[a-z]{5,}")
_UNSLASHED = re.compile(r"[^/]+")
_BETWEEN = r"[ \t\-–'\"]*"
"""Characters that may stand between a mention and the words of its context."""
_WORDS = re.compile(r"[A-Za-z0-9]+|\S")
_BEHIND = re.compile(rf"{_BETWEEN}({_WORDS.pattern}|)")
_BEGINNING = re.compile(r"[A-Za-z0-9]++(?![#~])|[^A-Za-z0-9#~ \-–'\"]")
_NUMBER = r"\d+(?:[.,]\d+)*"
_CAPITALISED = r"[A-Z][a-z]*\.?"


class Meaning(NamedTuple):
    """A meaning of a short form or word: its wordings, and the places that it has it in."""

    wordings: tuple[str, ...]
    places: frozenset[str] = frozenset()


Meanings = tuple[Meaning, ...]


class Word(NamedTuple):
    """A word that stands for a finding."""

    meaning: Meaning
    absent: bool
    """The word says that the finding is absent: *afebrile*."""
    predicate: bool
    """It counts only where no noun follows but that of a person: *diabetic*, no *diabetic diet*."""


class NoFinding:
    """A context in which a name is no finding; all conditions that it states must hold.

    Args:
        entry: A table of the file.
        lists: Lists of words for the phrases.
    """

    def __init__(self, entry: Mapping[str, Any], lists: Mapping[str, Sequence[str]]) -> None:
        wordings = {
            key: [wording for phrase in entry.get(key, ()) for wording in expand(phrase, lists)]
            for key in ("names", "before", "after", "line", "unless")
        }
        self.reason: str = entry["reason"]
        self.names = frozenset(wordings["names"])
        """The mentions that it is a context of; none: of any."""
        self.where: str = entry.get("where", "")
        """``heading``: only in headings; empty: anywhere."""
        self._wordings = wordings
        self.begins = _beginnings(wordings["after"]) if wordings["after"] else None
        """First words of the text behind the mention; None: any."""

    @cached_property
    def _patterns(self) -> list[re.Pattern[str] | None]:
        """Text before the mention, before it in its sentence, and behind it."""
        before, line, after, unless = (
            _compile(self._wordings[key]) for key in ("before", "line", "after", "unless")
        )
        denied = rf"(?![^\n.,;，。；]{{0,24}}?{unless})" if unless else ""
        behind = f"{after}{denied}"
        options = (before and rf"{before}{_BETWEEN}$", line, behind and f"{_BETWEEN}{behind}")
        return [re.compile(option) if option else None for option in options]

    def holds(self, text: str, start: int, end: int) -> bool:
        """Whether a mention that the context concerns stands in it.

        Args:
            text: A text, in half-width and simplified characters.
            start: Start of the mention.
            end: Its end.
        """
        if self.where == "heading" and not _is_heading(text, start, end):
            return False
        before, within, behind = self._patterns
        if behind is not None and not behind.match(text, end):
            return False
        if before is None and within is None:
            return True
        line = text[max(0, start - 4 * _REACH) : start].rpartition("\n")[2]
        if within is not None and not within.search(_SENTENCE_END.split(line)[-1]):
            return False
        return before is None or before.search(line[-_REACH:]) is not None


def _is_heading(text: str, start: int, end: int) -> bool:
    """Whether a span heads a line or sentence, with a colon behind it, or is a line in capitals."""
    if not _LINE_HEAD.search(text, max(0, start - _REACH), start):
        return False
    is_line = text[start:end].isupper() and text.startswith("\n", end)
    return is_line or _COLON.match(text, end) is not None


def _beginnings(wordings: Iterable[str]) -> frozenset[str] | None:
    """Return the words or marks that wordings begin with; None if one may begin with others."""
    found = [_BEGINNING.match(wording) for wording in wordings]
    return frozenset([each[0].lower() for each in found if each]) if all(found) else None


def _compile(wordings: Iterable[str]) -> str:
    """Write the expression of some wordings; those with a capital count only as written."""
    options = [
        (rf"(?:{_fill(own)})" if cased else rf"(?i:{_fill(own)})")
        for cased in (False, True)
        if (own := [each for each in wordings if (each != each.lower()) is cased])
    ]
    return f"(?:{'|'.join(options)})" if options else ""


def _fill(wordings: Iterable[str]) -> str:
    """Write an expression with boundaries of words, numbers for ``#`` and names for ``~``."""
    latin = "[A-Za-z0-9]"
    by_edges: dict[tuple[bool, bool], list[str]] = {}
    for each in wordings:
        edges = each[0].isascii() and each[0].isalnum(), each[-1].isascii() and each[-1].isalnum()
        by_edges.setdefault(edges, []).append(each)
    return "|".join(
        (f"(?<!{latin})" if begins else "")
        + f"(?:{compile_words(own)})".replace(r"\#", _NUMBER).replace(r"\~", _CAPITALISED)
        + (f"(?!{latin})" if ends else "")
        for (begins, ends), own in by_edges.items()
    )


class ClinicalLexicon:
    """Content of the files of ``lexicon/``."""

    def __init__(self) -> None:
        content = {name: _read(name) for name in ("contexts", "en", "zh")}
        contexts = content.pop("contexts")
        self._no_finding = [NoFinding(each, contexts["lists"]) for each in contexts["no_finding"]]
        self.contexts_of = lru_cache(_CACHE_SIZE)(self._contexts_of)
        """The contexts in which a mention is no finding."""
        self.kinds = {
            kind: [wording for each in phrases for wording in expand(each, {})]
            for kind, phrases in contexts["documents"].items()
        }
        """Words of the kinds of documents."""
        self._beginnings = {kind: _beginnings(words) for kind, words in self.kinds.items()}
        self._kind = cache(lambda kind: re.compile(_compile(self.kinds[kind])))
        self.short_forms = {
            language: {short: _meanings(value) for short, value in tables["short_forms"].items()}
            for language, tables in content.items()
        }
        self.ordinary = frozenset(content["en"]["ordinary"])
        """Short forms that are ordinary words, too."""
        self.words: dict[str, dict[str, Word]] = {
            language: {
                wording.lower(): Word(_meanings(value)[0], kind == "absent", kind == "predicates")
                for kind in ("words", "predicates", "absent")
                for phrase, value in tables.get(kind, {}).items()
                for wording in expand(phrase, tables.get("lists", {}))
            }
            for language, tables in content.items()
        }
        """Words by language, in lower case."""
        self.word_patterns = {
            "en": re.compile(rf"(?<![\w\-])(?:{compile_words(self.words['en'])})(?![\w\-])"),
            "zh": re.compile(_fill(self.words["zh"])),
        }
        self.spelling = TriggerSpelling(Counter(_LONG_WORD.findall(" ".join(self.words["en"]))))
        """Corrects the words of English."""
        followers = [w for each in content["en"]["after_predicate"] for w in expand(each, {})]
        self.after_predicate = re.compile(rf"\s*{_compile(followers)}|{_CLAUSE_END.pattern}")

    def _contexts_of(self, mention: str) -> list[NoFinding]:
        """Return the contexts that concern a mention by its text alone."""
        low, written = mention.lower(), {name: test(mention) for name, test in _WHERE.items()}
        return [
            each
            for each in self._no_finding
            if (not each.names or low in each.names) and written.get(each.where, True)
        ]

    def kinds_in(self, text: str, start: int, end: int) -> frozenset[str]:
        """Return the kinds of documents that a part of a text has words of.

        Args:
            text: A text.
            start: Start of the part.
            end: Its end.
        """
        words = set(_WORDS.findall(text[start:end].lower()))
        kinds = (
            k for k, first in self._beginnings.items() if not (first and first.isdisjoint(words))
        )
        return frozenset(kind for kind in kinds if self._kind(kind).search(text, start, end))

    def meanings(self, short: str, *, in_chinese: bool) -> Meanings:
        """Return the meanings of a short form.

        Args:
            short: The short form.
            in_chinese: It stands in Chinese text: its Chinese meanings, if there are any.
        """
        found = self.short_forms["zh"].get(short, ()) if in_chinese else ()
        return found or self.short_forms["en"].get(short, ())


def _read(name: str) -> dict[str, Any]:
    path = files("biograft.linking") / "lexicon" / f"{name}.toml"
    return tomllib.loads(path.read_text("utf-8"))


def _forms(text: str, start: int, end: int, wording: str) -> Iterator[tuple[int, int, str]]:
    """Yield the spans that a word may be read in, and their names: *rib fx*, *fx of the rib*."""
    if "_" not in wording:
        yield start, end, wording
        return
    parts = _HAN_PARTS if HAN_CHARACTER.search(wording) else _WORD_PARTS
    starts: list[int] = []
    for part in reversed(list(parts.finditer(text, max(0, start - _REACH), start))):
        if part.end() != (starts[-1] if starts else start):
            break
        starts.append(part.start())
    for begin in reversed(starts):
        yield begin, end, wording.replace("_", text[begin:start].strip(" -"))
    if after := _WORDS_AFTER.match(text, end):
        words = after["words"]
        for part in reversed(list(re.finditer(r"\w\b", words))):
            last = after.start("words") + part.end()
            yield start, last, wording.replace("_", words[: part.end()].strip())


def _is_shouted(text: str, start: int, end: int) -> bool:
    """Whether a short form stands among words in capitals: *ALL OF WHICH*."""
    before, after = text[max(0, start - _REACH) : start], text[end : end + _REACH]
    return bool(_SHOUTED_BEFORE.search(before) or _SHOUTED_AFTER.match(after))


def _meanings(value: str | list[str]) -> Meanings:
    meanings = []
    for each in [value] if isinstance(value, str) else value:
        wordings, _, places = each.partition("@")
        meanings.append(Meaning(_split(wordings, "|"), frozenset(_split(places, ","))))
    return tuple(meanings)


def _split(text: str, mark: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(mark) if part.strip())


@cache
def clinical_lexicon() -> ClinicalLexicon:
    """Load the lexicon, once."""
    return ClinicalLexicon()


def is_listed_word(text: str) -> bool:
    """Whether the lexicon lists a text as a wording of a finding: *pink eye*.

    Args:
        text: A term.
    """
    return any(text.lower() in words for words in clinical_lexicon().words.values())


def is_short(text: str) -> bool:
    """Whether a text in capitals may be a short form: *RA*, *CD4*, *DMs*; not *Hip*."""
    if text.islower():
        return False  # most names
    plain = text[:-1] if is_plural(text) else text
    n_letters = sum(map(str.isalnum, plain))
    return plain.isascii() and plain.isupper() and 2 <= n_letters <= MAX_LENGTH and " " not in plain


def is_plural(text: str) -> bool:
    """Whether a text is the plural of capitals: *MIs*."""
    return text.endswith("s") and len(text) > 2 and text[:-1].isupper() and text.isascii()


_WHERE: dict[str, Callable[[str], bool]] = {
    "capitals": is_short,
    "all capitals": str.isupper,
    "capitalised": lambda text: text.isalpha() and text.istitle(),
    "small letters": str.islower,
}
"""Condition that a context sets to the mention."""


class NoteContext:
    """A note as the lexicon reads it: its sections, and the kind of document that it is.

    Args:
        text: The text of a note.
    """

    def __init__(self, text: str) -> None:
        self._lexicon = clinical_lexicon()
        self.is_chinese = HAN_CHARACTER.search(text) is not None
        rules = AssertionRules.shipped("zh" if self.is_chinese else "en")
        self._layout = read_layout(simplify(text.translate(HALF_WIDTH)), rules)
        self.folded, self.text = self._layout.folded, self._layout.text
        """The text in half-width, simplified characters, with single blanks."""

    @cached_property
    def _title(self) -> frozenset[str]:
        return self._lexicon.kinds_in(self.text, 0, _TITLE)

    def places(self, start: int, end: int) -> Iterator[frozenset[str]]:
        """Yield what says where a span stands: its line, its section, the document, anywhere.

        Args:
            start: Start of the span.
            end: Its end.
        """
        start, end = self.folded.fold(start), self.folded.fold(end)
        before = self.text[max(0, start - 2 * _REACH) : start].rpartition("\n")[2]
        after = self.text[end : end + _REACH].partition("\n")[0]
        yield self._lexicon.kinds_in(self.text, start - len(before), end + len(after))
        yield frozenset(filter(None, (self._section(start),)))
        yield self._title
        yield ANYWHERE

    def section_at(self, offset: int) -> str:
        """Return the name of the section that a place of the note is in; empty: none is named.

        Args:
            offset: Offset in the text as it was given.
        """
        return self._section(self.folded.fold(offset))

    def _section(self, start: int) -> str:
        sections = self._layout.sections
        row = bisect_right(sections, start, key=lambda each: each.start) - 1
        return sections[row].name if row >= 0 else ""

    def no_finding(self, mention: Mention) -> str | None:
        """Return why a mention is no finding; None if it may be one."""
        start, end = self.folded.fold(mention.start), self.folded.fold(mention.end)
        behind = _BEHIND.match(self.text, end)
        word = behind[1].lower() if behind else ""
        for context in self._lexicon.contexts_of(self.text[start:end]):
            may_hold = context.begins is None or word in context.begins
            if may_hold and context.holds(self.text, start, end):
                return context.reason
        if self.text[start:end] in self._genes:
            return "a gene"
        headings = self._layout.headings
        row = bisect_right(headings, start, key=lambda span: span[0]) - 1
        return "a heading" if row >= 0 and end <= headings[row][1] else None

    @cached_property
    def _genes(self) -> set[str]:
        return set(_GENE.findall(self.text))


class KnownForm(NamedTuple):
    """A short form or word in a text, and the wording to look up for it."""

    start: int
    end: int
    short: str
    long: str
    factor: float = AS_LISTED
    """Factor of the score."""
    is_word: bool = False
    absent: bool = False
    """The word says that the finding is absent."""


class StoreLexicon:
    """The lexicon with the concepts of a store that its wordings mean."""

    def __init__(self, kb: KnowledgeBase, *, misspelt: bool = True) -> None:
        """Prepare the search.

        Args:
            kb: The store.
            misspelt: Find words also with a letter too many, missing, wrong or exchanged.
        """
        self._lexicon, self._misspelt = clinical_lexicon(), misspelt
        self._rows = lru_cache(_CACHE_SIZE)(lambda text: frozenset(kb.rows_by_name(text)))
        self.read = lru_cache(2 * BATCH)(NoteContext)
        """Read a note."""

    def places(self, text: str, start: int, end: int) -> Iterator[frozenset[str]]:
        """Yield what :meth:`NoteContext.places` does; the note is read when the first is asked for.

        Args:
            text: The note.
            start: Start of a span.
            end: Its end.
        """
        yield from self.read(text).places(start, end)

    def find(self, text: str, mentions: Collection[str]) -> Iterator[KnownForm]:
        """Find the short forms and words in a text that have a meaning in the store.

        Args:
            text: A text.
            mentions: Texts of its mentions, which decide between several meanings.
        """
        note = self.read(text)
        for begin, end in self._capitals(note):
            short = self._listed(note.text[begin:end], in_chinese=note.is_chinese)
            is_word = short in self._lexicon.ordinary and _is_shouted(note.text, begin, end)
            if short is None or is_word:
                continue
            first, last = note.folded.unfold(begin, end)
            meanings = self._lexicon.meanings(short, in_chinese=note.is_chinese)
            long, factor = self._long(short, meanings, mentions, note.places(first, last))
            if note.is_chinese and (kind := _TYPE.search(note.text, max(0, begin - 6), begin)):
                typed = self.expand(note.text[kind.start() : end])
                if typed and self._rows(typed):
                    (first, _), long = note.folded.unfold(kind.start(), end), typed
            if long:
                yield KnownForm(first, last, text[first:last], long, factor)
        for language in ("en", "zh") if note.is_chinese else ("en",):
            yield from self._words(text, note, language)

    def _capitals(self, note: NoteContext) -> Iterator[tuple[int, int]]:
        """Yield the spans of words in capitals; *DVT/PE* are two, unless it is listed."""
        for match in _CAPITALS.finditer(note.text):
            if "/" in match[0] and not self._listed(match[0], in_chinese=note.is_chinese):
                for part in _UNSLASHED.finditer(note.text, *match.span()):
                    yield part.span()
            else:
                yield match.span()

    def _words(self, text: str, note: NoteContext, language: str) -> Iterator[KnownForm]:
        """Find the words of a language."""
        low, words = note.text.lower(), self._lexicon.words[language]
        if len(low) != len(note.text):
            return
        for start, end, written, factor in self._occurrences(note.text, low, language):
            word = words[written]
            if word.predicate and not self._lexicon.after_predicate.match(low, end):
                continue
            forms = (
                form
                for wording in word.meaning.wordings
                for form in _forms(note.text, start, end, wording)
                if self._rows(form[2])
            )
            if (form := next(forms, None)) is None:
                continue
            begin, stop, long = form
            if not self._rows(f"{note.text[begin:start]}{written}{note.text[end:stop]}"):
                first, last = note.folded.unfold(begin, stop)
                yield KnownForm(first, last, text[first:last], long, factor, True, word.absent)

    def _occurrences(
        self, text: str, low: str, language: str
    ) -> Iterator[tuple[int, int, str, float]]:
        """Yield the spans of words, also misspelt English ones, the words, and their factors."""
        found = [
            (match.start(), match.end(), match[0], AS_WORD)
            for match in self._lexicon.word_patterns[language].finditer(low)
        ]
        yield from found
        if self._misspelt and language == "en":
            taken = {at for start, end, _, _ in found for at in range(start, end)}
            yield from (each for each in self._misspelt_words(text, low) if each[0] not in taken)

    def _misspelt_words(self, text: str, low: str) -> Iterator[tuple[int, int, str, float]]:
        """Yield the misspelt English words; a word of the store or of ordinary text is none."""
        pattern, spelling = self._lexicon.word_patterns["en"], self._lexicon.spelling
        for token in _LONG_WORD.finditer(low):
            right, (start, end) = spelling[token[0]], token.span()
            if right == token[0] or self._rows(token[0]):
                continue
            if not may_be_misspelt(text[start:end], text, start, end):
                continue
            first = low.rfind(" ", 0, max(0, start - _REACH)) + 1
            last = low.find(" ", end + _REACH)
            spelt = f"{low[first:start]}{right}{low[end : len(low) if last < 0 else last]}"
            since, until = start - first, start - first + len(right)
            for match in pattern.finditer(spelt):
                if match.start() < until and since < match.end():
                    shift = first + end - start - len(right)
                    factor = AS_WORD * (1 - 1 / len(right))
                    yield first + match.start(), match.end() + shift, match[0], factor

    def expand(
        self,
        mention: str,
        mentions: Collection[str] = (),
        places: Iterable[frozenset[str]] = (ANYWHERE,),
    ) -> str | None:
        """Return the long form of a given mention, or None; 2型DM becomes 2型糖尿病.

        Args:
            mention: The mention.
            mentions: Texts of the other mentions, which decide between several meanings.
            places: What says where it stands, see :meth:`NoteContext.places`.

        >>> StoreLexicon(kb).expand("HTN")  # doctest: +SKIP
        'hypertension'
        """
        plain = chinese(simplify(mention)).strip()
        in_chinese = HAN_CHARACTER.search(plain) is not None
        for match in _LATIN.finditer(plain):
            if match[0] != plain and not in_chinese:
                return None
            short = self._listed(match[0], in_chinese=in_chinese)
            if short is None:
                continue
            before, after = plain[: match.start()], plain[match.end() :]
            meanings = self._lexicon.meanings(short, in_chinese=in_chinese)
            if before or after:
                names = (f"{before}{w}{after}" for each in meanings for w in each.wordings)
                if name := next((name for name in names if self._rows(name)), None):
                    return name
            if long := self._long(short, meanings, mentions, places)[0]:
                return f"{before}{long}{after}"
        return None

    def agrees(
        self,
        short: str,
        concept_row: int,
        places: Iterable[frozenset[str]] = (ANYWHERE,),
        *,
        in_chinese: bool = False,
    ) -> bool:
        """Return whether a short form means a concept, by the list and by where it stands.

        Args:
            short: The short form.
            concept_row: Row of the concept.
            places: What says where it stands, see :meth:`NoteContext.places`.
            in_chinese: It stands in Chinese text.
        """
        for chinese_meanings in {in_chinese, False}:
            listed = self._listed(short, in_chinese=chinese_meanings) or ""
            meanings = self._lexicon.meanings(listed, in_chinese=chinese_meanings)
            meaning, _ = self._choose(meanings, frozenset(), places)
            if meaning is not None and concept_row in self._concepts(meaning):
                return True
        return False

    def agree(self, first: str, second: str) -> bool:
        """Return whether two names share a concept.

        Args:
            first: A name.
            second: Another one.
        """
        return bool(self._rows(first) & self._rows(second))

    def _listed(self, short: str, *, in_chinese: bool) -> str | None:
        """Return a short form as listed: in capitals, without a plural *s*."""
        forms = (short.upper(), short.removesuffix("s").upper())
        return next((f for f in forms if self._lexicon.meanings(f, in_chinese=in_chinese)), None)

    def _long(
        self,
        short: str,
        meanings: Meanings,
        mentions: Collection[str],
        places: Iterable[frozenset[str]],
    ) -> tuple[str | None, float]:
        """Return the wording to look up, if not the short form itself, and its factor."""
        named = frozenset[int]()
        if len(meanings) > 1:
            named = named.union(*map(self._rows, set(mentions) - {short, f"{short}s"}))
        meaning, factor = self._choose(meanings, named, places)
        if meaning is None or self._rows(short) & self._concepts(meaning):
            return None, factor
        return next((w for w in meaning.wordings if self._rows(w)), None), factor

    def _choose(
        self, meanings: Meanings, named: frozenset[int], places: Iterable[frozenset[str]]
    ) -> tuple[Meaning | None, float]:
        """Choose the meaning that fits: the only one, that of a named concept, that of a place."""
        if len(meanings) == 1 and not meanings[0].places:
            return meanings[0], AS_LISTED
        fit = [each for each in meanings if self._concepts(each) & named]
        if len(fit) == 1:
            return fit[0], AS_LISTED
        for place in places if not fit else ():
            fit = [each for each in meanings if each.places & place]
            if len(fit) == 1:
                return fit[0], BY_DEFAULT if place is ANYWHERE else BY_PLACE
        return None, AS_LISTED

    def _concepts(self, meaning: Meaning) -> frozenset[int]:
        return frozenset[int]().union(*map(self._rows, meaning.wordings))
