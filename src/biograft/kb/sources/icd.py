"""ICD readers: the tabular list of ICD-10-CM (XML), ClaML (ICD-10, ICD-10-GM, OPS), and ICD-11.

A concept has the id ``ICD10CM:S82.101A``. The bare code, with and without its dot, is an
alternate id, since the published lists of codes have no dots. Codes that a file does not spell out
are made as its rules say: the seventh characters of ICD-10-CM, the modifiers of ClaML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from biograft.errors import FormatError
from biograft.kb.names import language_code, language_of_script
from biograft.kb.records import (
    IS_A,
    ConceptRecord,
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    Record,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
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
    parent: str = ""
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
        concept = f"{prefix}:{self.code}"
        yield ConceptRecord(concept, line)
        kind = NameKind.PREFERRED if is_new else NameKind.SYNONYM
        yield NameRecord(concept, self.name, language, kind, line=line)
        kind = NameKind.NARROW if self.narrower else NameKind.SYNONYM
        for other in self.others:
            yield NameRecord(concept, other, language, kind, line=line)
        for alternate in dict.fromkeys((self.code, self.code.replace(".", ""))):
            yield IdRecord(concept, alternate, IdKind.ALTERNATE, line)
        if self.definition:
            yield DefinitionRecord(concept, self.definition, language, line=line)
        if self.chapter[0]:
            yield TypeRecord(concept, *self.chapter, line=line)
        if self.parent:
            yield RelationRecord(concept, IS_A, f"{prefix}:{self.parent}", line=line)


def recognise_tabular(probe: Probe) -> bool:
    """The root element is that of the tabular list."""
    return root_name(probe.text) == _TABULAR


def read_tabular(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield chapters, sections and codes, and each code with a seventh character.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    log.opened(config.path)
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
                codes.append(_Code(block, title, top, chapter=chapter))
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
    yield _Code(code, name, parent, terms, chapter=chapter, narrower=residual)
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
            yield _Code(longer, f"{name}, {meaning}", code, chapter=chapter)


TABULAR = Format(recognise_tabular, read_tabular, languages_inside=False)


@dataclass(slots=True)
class _Class:
    """A class or a modifier class of ClaML."""

    code: str
    kind: str
    line: int
    name: str = ""
    others: tuple[str, ...] = ()
    definition: str = ""
    language: str = ""
    parents: tuple[str, ...] = ()
    modifiers: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """The modifiers of its codes, each with the classes that apply; none: all apply."""


def recognise_claml(probe: Probe) -> bool:
    """The root element is ClaML."""
    return root_name(probe.text) == _CLAML


def read_claml(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield every class, and every code that a class makes with its modifiers.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    log.opened(config.path)
    default = config.language or "en"
    prefix, classes, modifiers = "", dict[str, _Class](), dict[str, dict[str, _Class]]()
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
        if not found.code or not found.name:
            log.reject("class without a code or a name", record.line, found.code)
        elif element.tag == "Class":
            if found.code in classes:
                log.doubt("id defined twice", record.line, found.code)
            classes.setdefault(found.code, found)
        else:
            modifiers.setdefault(element.get("modifier", ""), {})[found.code] = found
    if not classes:
        raise FormatError("holds no Class", path=config.path, remedy="check that it is complete")
    prefix = prefix or "ICD10"
    for each in classes.values():
        top = _chapter_of(each, classes)
        chapter = (top.code, top.name)
        language = each.language
        whole = _Code(
            each.code,
            each.name,
            next(iter(each.parents), ""),
            each.others,
            each.definition,
            chapter=chapter,
        )
        yield from whole.records(prefix, language, each.line)
        for parent in each.parents[1:]:
            yield RelationRecord(
                f"{prefix}:{each.code}", IS_A, f"{prefix}:{parent}", line=each.line
            )
        made = [(each.code, each.name)]
        for modifier, valid in each.modifiers:
            longer = []
            for code, name in made:
                for suffix, meaning in modifiers.get(modifier, {}).items():
                    new = f"{code}{suffix}"
                    if (valid and suffix not in valid) or new in classes:
                        continue
                    longer.append((new, f"{name}: {meaning.name}"))
                    yield from _Code(*longer[-1], code, chapter=chapter).records(
                        prefix, language, each.line
                    )
            made = longer or made


def _class_of(element: Element, line: int, default: str) -> _Class:
    """Read a class: its rubrics, its parents and its modifiers."""
    found = _Class(element.get("code", ""), element.get("kind", ""), line, language=default)
    texts: dict[str, list[str]] = {}
    for rubric in element.iterfind("Rubric"):
        for label in rubric.iterfind("Label"):
            found.language = language_code(
                label.get("{http://www.w3.org/XML/1998/namespace}lang") or found.language
            )
            for reference in label.iter("Reference"):  # codes in brackets are no part of a name
                reference.text = ""
            text = re.sub(r"\s*\(\s*\)", "", _text(label))
            if text:
                texts.setdefault(rubric.get("kind", ""), []).append(text)
    names = [*texts.get("preferred", ()), *texts.get("preferredLong", ())]
    found.name = next(iter(names), "")
    found.others = tuple(names[1:] + texts.get("inclusion", []))
    found.definition = next(iter(texts.get("definition", ())), "")
    found.parents = tuple(each.get("code", "") for each in element.iterfind("SuperClass"))
    for each in element.iterfind("ModifiedBy"):
        valid = frozenset(one.get("code", "") for one in each.iterfind("ValidModifierClass"))
        found.modifiers.append((each.get("code", ""), valid))
    return found


def _chapter_of(each: _Class, classes: dict[str, _Class]) -> _Class:
    """Climb to the class without a parent; a circle ends where it began."""
    seen = {each.code}
    while each.parents and each.parents[0] in classes and each.parents[0] not in seen:
        each = classes[each.parents[0]]
        seen.add(each.code)
    return each


CLAML = Format(recognise_claml, read_claml)


_LINEARISATION = ("Foundation URI", "Code", "BlockId", "Title", "ClassKind", "DepthInKind")
_DASHES = re.compile(r"(?:-(?:\s+|$))*")


def recognise_linearisation(probe: Probe) -> bool:
    """A header with the columns of a simple tabulation of ICD-11."""
    return header_of(probe).issuperset(_LINEARISATION)


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
        each = _Code(code, title, above[-1] if above else "", chapter=chapter)
        is_new = log.define(code, line)
        yield from each.records("ICD11", language, line, is_new=is_new)
        if uri := row.get("Foundation URI"):
            yield IdRecord(f"ICD11:{code}", uri, IdKind.XREF, line)
        above += [above[-1] if above else code] * (depth - len(above)) + [code]


LINEARISATION = Format(recognise_linearisation, read_linearisation, languages_inside=False)
