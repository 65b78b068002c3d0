"""ICD readers: the tabular list of ICD-10-CM (XML), ClaML (ICD-10, ICD-10-GM, OPS), and ICD-11.

A concept has the id ``ICD10CM:S82.101A``. The bare code, with and without its dot, is an
alternate id, since the published lists of codes have no dots. Codes that a file does not spell out
are made as its rules say: the seventh characters of ICD-10-CM, the modifiers of ClaML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from biograft.errors import FormatError
from biograft.kb.names import language_code, language_of_script
from biograft.kb.records import IS_A, Facts, IdKind, IdRecord, NameKind, Record
from biograft.kb.sources.format import Format, Item, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import header_of, named_rows
from biograft.kb.sources.xml_records import read_xml_records, root_name

_TABULAR, _CLAML = "ICD10CM.tabular", "ClaML"
_RANGE = re.compile(r"\s*\(([A-Z]\w*(?:-[A-Z]\w*)?)\)$")
_LENGTH, _PLACEHOLDER = 6, "X"
"""Characters before the seventh, and what fills up a shorter code."""
_NOT_APPLIED = re.compile(r"7th characters? (.+?) do not apply to codes .*?6th character (.+)")
"""The note that excludes seventh characters after some sixth ones."""
_RESIDUAL = re.compile(r"other\b|unspecified\b", re.IGNORECASE)


def _text(element: Element | None) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())


@dataclass(frozen=True, slots=True)
class _Code:
    """A code with its names and its place, before it becomes records."""

    code: str
    name: str
    parents: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    definition: str = ""
    chapter: tuple[str, str] = ("", "")
    """Code and name of its chapter, which is its type."""
    narrower: bool = False
    """Whether the other names are narrower than the code, as those of a residual code are."""

    def records(
        self, prefix: str, language: str, line: int, *, is_new: bool = True
    ) -> Iterator[Record]:
        """Yield the records of the code.

        Args:
            prefix: The vocabulary, such as ``ICD10CM``.
            language: Language of the names.
            line: Line of the file.
            is_new: Whether the code was not defined before; one that was keeps its first name.
        """
        facts = Facts(f"{prefix}:{self.code}", line, language)
        yield facts.exists()
        yield from facts.names([self.name], is_new=is_new)
        for other in self.others:
            yield facts.name(other, NameKind.NARROW if self.narrower else NameKind.SYNONYM)
        yield from map(facts.id, dict.fromkeys((self.code, self.code.replace(".", ""))))
        if self.definition:
            yield facts.definition(self.definition)
        if self.chapter[0]:
            yield facts.type(*self.chapter)
        for parent in self.parents:
            yield facts.relation(IS_A, f"{prefix}:{parent}")


def read_tabular(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield chapters, sections and codes, and each code with a seventh character.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    language = config.language or "en"
    log.note("not read: notes on what is included, excluded, coded first or also")
    for record in read_xml_records(config.path, (_TABULAR,), ("chapter",)):
        name, (code, label) = record.element.findtext("name", ""), _ranged(record.element)
        top = code or f"chapter {name}"
        chapter = (top, label)
        codes = [_Code(top, label, chapter=chapter)]
        if code:  # the published list of codes has the number of a chapter
            yield IdRecord(f"ICD10CM:{top}", name, IdKind.ALTERNATE, record.line)
        for section in record.element.iterfind("section"):
            block, title = section.get("id", ""), _ranged(section)[1]
            if "-" in block and block != top:
                codes.append(_Code(block, title, (top,), chapter=chapter))
            parent = block if "-" in block else top  # a section of one category is the category
            for diagnosis in section.iterfind("diag"):
                codes.extend(_diagnoses(diagnosis, parent, chapter, {}))
        for each in codes:
            log.read(fraction=record.fraction)
            if each.code and each.name:
                is_new = log.define(each.code, record.line)
                yield from each.records("ICD10CM", language, record.line, is_new=is_new)
            else:
                log.reject("no code or no name", record.line, f"{each.code} {each.name}")


def _ranged(element: Element) -> tuple[str, str]:
    """Return the range of codes at the end of a title, and the title without it."""
    title = _text(element.find("desc"))
    match = _RANGE.search(title)
    return (match[1], title[: match.start()]) if match else ("", title)


def _diagnoses(
    diagnosis: Element,
    parent: str,
    chapter: tuple[str, str],
    sevenths: dict[str, str],
    excluded: tuple[str, str] = ("", ""),
) -> Iterator[_Code]:
    """Yield a code, those below it, and those with its seventh characters."""
    code, name = _text(diagnosis.find("name")), _text(diagnosis.find("desc"))
    terms = tuple(_text(note) for note in diagnosis.iterfind("inclusionTerm/note"))
    residual = bool(_RESIDUAL.match(name) or name.endswith("unspecified"))
    yield _Code(code, name, (parent,), terms, chapter=chapter, narrower=residual)
    defined = diagnosis.findall("sevenChrDef/extension")
    if defined:
        sevenths = {each.get("char", ""): _text(each) for each in defined}
        excluded = ("", "")
    for note in (*diagnosis.iterfind("sevenChrNote/note"), *diagnosis.iterfind("notes/note")):
        if match := _NOT_APPLIED.search(_text(note)):
            letters, sixths = (re.findall(r"\b[0-9A-Z]\b", part) for part in match.groups())
            excluded = ("".join(letters), "".join(sixths))
    below = diagnosis.findall("diag")
    for each in below:
        yield from _diagnoses(each, code, chapter, sevenths, excluded)
    if not below:
        plain = code.replace(".", "").ljust(_LENGTH, _PLACEHOLDER)
        for character, meaning in sevenths.items():
            if character in excluded[0] and plain[-1] in excluded[1]:
                continue
            longer = f"{plain[:3]}.{plain[3:]}{character}"
            yield _Code(longer, f"{name}, {meaning}", (code,), chapter=chapter)


TABULAR = Format(
    lambda probe: root_name(probe.text) == _TABULAR, read_tabular, languages_inside=False
)


@dataclass(frozen=True, slots=True)
class _Class:
    """A class or a modifier class of ClaML."""

    code: _Code
    line: int
    language: str
    modifiers: tuple[tuple[str, frozenset[str]], ...]
    """The modifiers of its codes, each with the classes that apply; none: all apply."""


def read_claml(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield every class, and every code that a class makes with its modifiers.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    default = config.language or "en"
    prefix, classes, modifiers = "", dict[str, _Class](), dict[str, dict[str, str]]()
    tags = ("Title", "Class", "ModifierClass")
    for record in read_xml_records(config.path, (_CLAML,), tags):
        element = record.element
        if element.tag == "Title":
            prefix = re.sub(r"[^A-Za-z0-9]", "", element.get("name", "")).upper()
            version = filter(None, (element.get("version"), element.get("date")))
            log.note(f"data version: {' '.join(version)}")
            continue
        log.read(fraction=record.fraction)
        found = _class_of(element, record.line, default)
        code = found.code.code
        if not code or not found.code.name:
            log.reject("class without a code or a name", record.line, code)
        elif element.tag == "Class":
            if code in classes:
                log.doubt("id defined twice", record.line, code)
            classes.setdefault(code, found)
        else:
            modifiers.setdefault(element.get("modifier", ""), {})[code] = found.code.name
    if not classes:
        raise FormatError("holds no Class", path=config.path, remedy="check that it is complete")
    for each in classes.values():
        whole = replace(each.code, chapter=_chapter_of(each.code, classes))
        codes, made = [whole], [whole]
        for modifier, valid in each.modifiers:
            longer = [
                _Code(new, f"{one.name}: {meaning}", (one.code,), chapter=whole.chapter)
                for one in made
                for suffix, meaning in modifiers.get(modifier, {}).items()
                if (new := f"{one.code}{suffix}") not in classes and (not valid or suffix in valid)
            ]
            codes += longer
            made = longer or made
        for one in codes:
            yield from one.records(prefix or "ICD10", each.language, each.line)


def _class_of(element: Element, line: int, language: str) -> _Class:
    """Read a class: its rubrics, its parents and its modifiers."""
    texts: dict[str, list[str]] = {}
    for rubric in element.iterfind("Rubric"):
        for label in rubric.iterfind("Label"):
            tag = label.get("{http://www.w3.org/XML/1998/namespace}lang")
            language = language_code(tag or language)
            for reference in label.iter("Reference"):  # codes in brackets are no part of a name
                reference.text = ""
            text = re.sub(r"\s*\(\s*\)", "", _text(label))
            if text:
                texts.setdefault(rubric.get("kind", ""), []).append(text)
    name, *others = [*texts.get("preferred", ()), *texts.get("preferredLong", ())] or [""]
    code = _Code(
        element.get("code", ""),
        name,
        tuple(each.get("code", "") for each in element.iterfind("SuperClass")),
        (*others, *texts.get("inclusion", ())),
        next(iter(texts.get("definition", ())), ""),
    )
    modifiers = tuple(
        (
            each.get("code", ""),
            frozenset(one.get("code", "") for one in each.iterfind("ValidModifierClass")),
        )
        for each in element.iterfind("ModifiedBy")
    )
    return _Class(code, line, language, modifiers)


def _chapter_of(code: _Code, classes: dict[str, _Class]) -> tuple[str, str]:
    """Climb to the class without a parent; a circle ends where it began."""
    seen = {code.code}
    while code.parents and code.parents[0] in classes and code.parents[0] not in seen:
        code = classes[code.parents[0]].code
        seen.add(code.code)
    return code.code, code.name


CLAML = Format(lambda probe: root_name(probe.text) == _CLAML, read_claml)


_LINEARISATION = ("Foundation URI", "Code", "BlockId", "Title", "ClassKind", "DepthInKind")
_DASHES = re.compile(r"(?:-(?:\s+|$))*")


def read_linearisation(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield every row; its dashes say how deep it lies below the rows before it.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    above: list[str] = []
    chapter = ("", "")
    remedy = "expected a simple tabulation of ICD-11"
    for line, row in named_rows(config, log, _LINEARISATION, remedy):
        dashes = _DASHES.match(row.get("Title", ""))
        title = row.get("Title", "")[dashes.end() if dashes else 0 :].strip()
        code = row.get("Code") or row.get("BlockId") or row.get("ChapterNo", "")
        if not code or not title:
            log.reject("no code or no title", line, "\t".join(row.values()))
            continue
        depth = dashes[0].count("-") if dashes else 0
        if row.get("ClassKind") == "chapter":
            above, chapter = [], (code, title)
        del above[depth:]
        language = config.language or language_of_script(title)
        each = _Code(code, title, tuple(above[-1:]), chapter=chapter)
        is_new = log.define(code, line)
        yield from each.records("ICD11", language, line, is_new=is_new)
        if uri := row.get("Foundation URI"):
            yield IdRecord(f"ICD11:{code}", uri, IdKind.XREF, line)
        above += [above[-1] if above else code] * (depth - len(above)) + [code]


LINEARISATION = Format(
    lambda probe: header_of(probe).issuperset(_LINEARISATION),
    read_linearisation,
    languages_inside=False,
)
