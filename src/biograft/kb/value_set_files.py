"""Value sets of a user, as files and expressions: read, made, written as FHIR, compared.

A value set is a ValueSet of FHIR in JSON, which any terminology server takes and a person can
review, or an expression (:mod:`biograft.kb.expressions`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from biograft.arrays import Flags
from biograft.artifacts import new_file
from biograft.errors import ConfigError, FormatError, InputError
from biograft.kb.changes import Change
from biograft.kb.code_systems import CodeSystems, Entries
from biograft.kb.expressions import Expression, Node
from biograft.kb.fhir import Resource, TerminologyError
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.hierarchy import Rows
from biograft.kb.records import IS_A
from biograft.kb.sources.files import read_head, read_text
from biograft.kb.sources.json_files import decode_json, peek_object
from biograft.kb.store import KnowledgeBase
from biograft.kb.value_sets import CONSTRAINT, ValueSetReader, expansion_codes
from biograft.kb.verify.judge import Verifier
from biograft.kb.verify.pairs import PairFinder, SourceText
from biograft.kb.vocabularies import canonical_id

_SHOWN = 3
_FILE_NAME = re.compile(r"[^\s^<>]+\.(json|csv|tsv|txt|xlsx)")
"""Pattern of a file name; no expression looks like one."""


@dataclass(frozen=True)
class ValueSetMembers:
    """The concepts of a knowledge base that are in a value set.

    >>> read_value_set(kb, "<< D003920").ids[:2]  # doctest: +SKIP
    ['D003920', 'D003922']
    """

    kb: KnowledgeBase
    """The knowledge base."""
    name: str
    """The file or the expression."""
    flags: Flags
    """Whether each concept is a member."""
    unknown: tuple[str, ...] = ()
    """Ids and code systems that it lists and the knowledge base does not have."""
    resource: Resource | None = None
    """The FHIR ``ValueSet`` that was read; None for an expression."""

    def __len__(self) -> int:
        return int(self.flags.sum())

    @cached_property
    def rows(self) -> Rows:
        """The rows of the members, in the order of the knowledge base."""
        return np.flatnonzero(self.flags)

    @property
    def ids(self) -> list[str]:
        """The ids of the members."""
        return self.kb.ids_at(self.rows)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Go through the rows and ids of the members."""
        return zip(self.rows.tolist(), self.ids, strict=True)

    @property
    def note(self) -> str:
        """The ids and code systems that it lists and are not there, in a sentence, or nothing."""
        some = "; ".join(str(self.kb.replacement(each) or each) for each in self.unknown[:_SHOWN])
        n = len(self.unknown)
        what = f"{n:,} ids or code systems of {self.name}"
        return f"{what} are not in {self.kb.folder}: {some}" if n else ""


def read_value_set(kb: KnowledgeBase, value_set: str | Path) -> ValueSetMembers:
    """Return the members of a value set.

    Args:
        kb: The knowledge base.
        value_set: File of a FHIR ValueSet, of a concept set of OHDSI's ATLAS, or with ids; else an
            expression.

    Raises:
        ConfigError: The expression is wrong, or no concept is in the value set.
        InputError: The file cannot be read.

    >>> len(read_value_set(kb, "<< D003920 MINUS D003920"))  # doctest: +SKIP
    12
    """
    text = str(value_set)
    content = read_content(kb, Path(value_set)) if is_file(value_set) else text
    if isinstance(content, str):
        try:
            flags = Expression(content).select(kb, members_of=lambda other: _flags_of(kb, other))
        except ConfigError as error:
            raise (error if content == text else ConfigError(f"{text}: {error}")) from error
        members = ValueSetMembers(kb, text, flags)
    else:
        members = _of_resource(kb, content, Path(value_set))
    if not members:
        reason = members.note or "look at its ids and their hierarchy"
        raise ConfigError(f"{text}: no concept of {kb.folder} is in this value set; {reason}")
    return members


def is_file(value_set: str | Path) -> bool:
    """Return whether a value set is a file; what is called like one must exist.

    Args:
        value_set: A file or an expression.
    """
    try:
        exists = Path(value_set).is_file()
    except (OSError, ValueError):  # too long a name, or characters that none has
        exists = False
    if not exists and _FILE_NAME.fullmatch(str(value_set)):
        raise InputError("does not exist", path=value_set, remedy="check the path")
    return exists


def read_content(kb: KnowledgeBase, path: Path) -> Resource | str:
    """Return the content of the file of a value set: a ValueSet of FHIR, else an expression.

    Args:
        kb: The knowledge base.
        path: A ValueSet of FHIR, a concept set of OHDSI's ATLAS, or any file with ids.

    Raises:
        InputError: It is none of them.
    """
    content = {}
    if read_head(path).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        try:
            content = decode_json(read_text(path))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"is no JSON ({error})", path=path) from error
    kind = content.get("resourceType")
    if kind == "ValueSet":
        return dict(content)
    if kind is not None:
        raise FormatError("expected a ValueSet of FHIR", path=path, text=str(kind))
    if not content.keys() & {"expression", "items"}:
        return " OR ".join(listed_ids(kb, [str(path)]))
    wanted: dict[bool, list[str]] = {False: [], True: []}
    try:
        for item in content.get("expression", content)["items"]:
            walk = "<< " if item.get("includeDescendants") else ""
            concept = f"{walk}OMOP:{item['concept']['CONCEPT_ID']}"
            wanted[bool(item.get("isExcluded"))].append(concept)
            if item.get("includeMapped"):
                raise FormatError(f"{concept}: includeMapped is not supported", path=path)
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError("is no concept set of ATLAS", path=path) from error
    return " MINUS ".join(f"({' OR '.join(ids)})" for ids in wanted.values() if ids)


def _flags_of(kb: KnowledgeBase, target: str) -> Flags:
    """Mark the members of another value set: a file, or the URL of an implicit one."""
    if is_file(target):
        return read_value_set(kb, target).flags
    codes = CodeSystems(kb)
    return codes.mark(ValueSetReader(kb, codes).of_url(target).entries(codes))


def _of_resource(kb: KnowledgeBase, resource: Resource, path: Path) -> ValueSetMembers:
    codes = CodeSystems(kb)
    entries, unknown = _evaluated(kb, codes, resource, path)
    listed = tuple(dict.fromkeys(unknown))
    return ValueSetMembers(kb, str(path), codes.mark(entries), listed, resource)


def _evaluated(
    kb: KnowledgeBase, codes: CodeSystems, resource: Resource, path: Path
) -> tuple[Entries, list[str]]:
    """Return the codes of a resource, and those that it lists and there are not."""
    others = []
    if '"valueSet"' in json.dumps(resource.get("compose")):
        others = [
            content
            for file in sorted(path.parent.glob("*.json"))
            if b'"ValueSet"' in read_head(file)
            and (content := peek_object(read_text(file))).get("resourceType") == "ValueSet"
        ]
    try:
        read = ValueSetReader(kb, codes, others, lenient=True).of_resource(resource)
        return read.entries(codes), read.unknown
    except TerminologyError as error:
        raise ConfigError(f"{path}: {error}") from error


# ---- making and writing


def listed_ids(kb: KnowledgeBase, given: Sequence[str]) -> list[str]:
    """Return the expressions of ids, those that stand in files among them, with their labels.

    Args:
        kb: The knowledge base.
        given: Ids, and files of any kind that `biograft verify` reads.

    Raises:
        InputError: A file has no id.
    """
    finder, ids = PairFinder(Verifier(kb).holds, id_of=kb.iris.id_of), []
    for each in given:
        if not is_file(each):
            ids.append(f'"{each}"')
            continue
        found = [
            f'"{kb.iris.id_of(pair.id)}" |{pair.label.replace("|", " ") if pair.exact else ""}|'
            for form in ("", "table")  # such as one id a line
            for pair in finder.find(SourceText.open(Path(each), form))
        ]
        if not found:
            remedy = f"see `biograft verify {each} --kb {kb.folder}`"
            raise InputError("has no id of the knowledge base", path=each, remedy=remedy)
        ids += found
    return list(dict.fromkeys(ids))


def make_value_set(
    kb: KnowledgeBase,
    expression: str,
    *,
    expand: bool = False,
    **about: str,
) -> Resource:
    """Return the members of an expression as a ValueSet of FHIR.

    Codes, what is below or above them, and what such sets have in common or not, become filters
    that any terminology server knows; other expressions are kept as they are, as the filter
    ``constraint`` that FHIR has for SNOMED CT.

    Args:
        kb: The knowledge base.
        expression: The expression.
        expand: Add the members, with what knowledge base they are from.
        about: Elements of the resource, such as name, title and version.
    """
    members, codes = read_value_set(kb, expression), CodeSystems(kb)
    resource: Resource = {
        "resourceType": "ValueSet",
        **{key: value for key, value in about.items() if value},
        "status": "active",
    }
    composer = _Composer(kb, codes, members)
    resource |= composer.compose(Expression(expression).tree)
    entries, _ = _evaluated(kb, codes, resource, Path("-"))
    if not np.array_equal(codes.mark(entries), members.flags):
        # such as members of several vocabularies, below a concept of one
        resource["compose"] = composer.constraint(expression)
        entries, _ = _evaluated(kb, codes, resource, Path("-"))
    if expand:
        resource["expansion"] = _expansion(kb, codes, entries)
    return resource


@dataclass
class _Composer:
    """Writes expressions as the ``compose`` of a value set."""

    kb: KnowledgeBase
    codes: CodeSystems
    members: ValueSetMembers
    contained: list[Resource] = field(default_factory=list)

    def compose(self, tree: Node) -> Resource:
        """Return ``compose`` for an expression, and the value sets that it contains."""
        minus = tree.kind == "MINUS"
        included = self._parts(tree.parts[0] if minus else tree)
        excluded = [self._parts(each) for each in tree.parts[1:]] if minus else []
        if included is None or None in excluded:
            return {"compose": self.constraint(self.members.name)}
        made: Resource = {"include": _merged(included)}
        if excluded:
            made["exclude"] = _merged([part for each in excluded for part in each or ()])
        return {**({"contained": self.contained} if self.contained else {}), "compose": made}

    def constraint(self, expression: str) -> Resource:
        """Return ``compose`` with the expression as it is, for each system of the members."""
        if "^" in expression:
            problem = "FHIR has no words for this use of ^; join it by AND, OR or MINUS only"
            raise ConfigError(f"{expression}: {problem}")
        found = {"property": CONSTRAINT, "op": "=", "value": expression}
        systems = self.codes.systems_of(self.members.rows)
        return {"include": [{"system": each.url, "filter": [found]} for each in systems]}

    def _parts(self, node: Node) -> list[Resource] | None:
        """Return the sets of which an expression is the union; None if FHIR has no words for it."""
        if node.kind == "OR":
            listed = [self._parts(each) for each in node.parts]
            return None if None in listed else [part for each in listed for part in each or ()]
        if node.kind == "*":
            systems = self.codes.systems_of(np.arange(len(self.kb)))
            return [{"system": each.url} for each in systems]
        if node.kind == "^":
            return [{"valueSet": [self._contained(node.text)]}]
        if node.kind == "concept":
            system, code, shown = self._code(node)
            return [{"system": system, "concept": [{"code": code, "display": shown}]}]
        if node.kind == "AND":
            return self._both([self._parts(each) for each in node.parts])
        named = node.text in self.kb.relation_names and node.kind == ":"
        if named and node.parts[1].kind == "concept":
            system, code, _ = self._code(node.parts[1])
            name = "parent" if node.text == IS_A else node.text
            related = {"property": name, "op": "=", "value": code}
            everything = node.parts[0].kind == "*"
            own = [{"system": system, "filter": [related]}]
            return own if everything else self._both([self._parts(node.parts[0]), own])
        if node.kind in _FILTERS and node.parts[0].kind == "concept":
            system, code, _ = self._code(node.parts[0])
            name, operator = _FILTERS[node.kind]
            found = {"property": name, "op": operator, "value": code}
            return [{"system": system, "filter": [found]}]
        return None

    def _contained(self, target: str) -> str:
        """Return the URL of another value set; one of a file becomes a part of this one."""
        if not is_file(target):
            return target
        identifier = f"set{len(self.contained) + 1}"
        content = read_content(self.kb, Path(target))
        resource = make_value_set(self.kb, content) if isinstance(content, str) else content
        self.contained.append({**resource, "id": identifier})
        return f"#{identifier}"

    @staticmethod
    def _both(parts: list[list[Resource] | None]) -> list[Resource] | None:
        """Return the set of what meets all filters and is in all value sets."""
        single = [each[0] for each in parts if each is not None and len(each) == 1]
        systems = {each["system"] for each in single if "system" in each}
        if len(single) < len(parts) or len(systems) > 1 or any("concept" in s for s in single):
            return None
        lists = {
            key: [one for each in single for one in each.get(key, ())]
            for key in ("filter", "valueSet")
        }
        own = {"system": next(iter(systems))} if systems else {}
        return [{**own, **{key: listed for key, listed in lists.items() if listed}}]

    def _code(self, node: Node) -> tuple[str, str, str]:
        """Return the system, the code and the name of a concept, by the id that is given."""
        row, wanted = self.kb.row(node.text), canonical_id(node.text)
        entries = self.codes.entries_at(row)
        fitting = (e for e in entries if canonical_id(self.codes.identifier(e)) == wanted)
        entry = next((e for e in fitting if self.codes.system(e) is not None), row)
        system = self.codes.known_system(entry)
        return system.url, self.codes.code(entry), self.kb.name_at(row)


_FILTERS = {
    "<<": ("concept", "is-a"),
    "<": ("concept", "descendent-of"),
    "<!": ("concept", "child-of"),
    ">>": ("concept", "generalizes"),
    ">!": ("child", "="),
}
"""Property and operator of the filters of FHIR that are walks from a concept."""


def _merged(parts: list[Resource]) -> list[Resource]:
    """Put the codes of one system together."""
    merged: list[Resource] = []
    listed: dict[str, Resource] = {}
    for part in parts:
        if "concept" in part and part["system"] in listed:
            listed[part["system"]]["concept"] += part["concept"]
            continue
        merged.append(part)
        if "concept" in part:
            listed[part["system"]] = part
    return merged


def _expansion(kb: KnowledgeBase, codes: CodeSystems, entries: Entries) -> Resource:
    """Return the codes with their names, and what knowledge base they are from."""
    versions = [
        note.partition(": ")[2]
        for source in kb.manifest.get("sources", ())
        for note in source.get("notes", ())
        if note.startswith("data version: ")
    ]
    stamp = {
        "knowledge-base": kb.folder.name,
        "knowledge-base-made-at": str(kb.manifest.get("made_at", "")),
        "knowledge-base-fingerprint": store_fingerprint(kb),
        "data-version": ", ".join(dict.fromkeys(versions)),
    }
    contains = [
        {
            "system": codes.known_system(entry).url,
            "code": codes.code(entry),
            "display": kb.name_at(codes.row(entry)),
        }
        for entry in entries.tolist()
    ]
    return {
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "total": len(contains),
        "parameter": [{"name": n, "valueString": value} for n, value in stamp.items() if value],
        "contains": contains,
    }


VALUE_SET_CHANGES = {
    "added": "new members",
    "removed": "concepts that are members no longer",
    "retired": "members that are gone",
    "merged": "members merged into another concept",
    "replaced": "members replaced by another concept",
    "renamed": "members with another preferred name",
}
"""The kinds of changes of a value set, and what they are."""


def stored_members(members: ValueSetMembers) -> list[tuple[str, str]]:
    """Return the ids and names of the members that the file of a value set lists as its expansion.

    Args:
        members: The value set, as it is now.

    Raises:
        ConfigError: It has none.
    """
    expansion = (members.resource or {}).get("expansion")
    if not isinstance(expansion, dict):
        raise ConfigError(
            f"{members.name}: lists no members of an earlier release (`create --expand`); give the "
            "earlier knowledge base or another value set"
        )
    codes, listed = CodeSystems(members.kb), []
    for part in expansion_codes(expansion):
        system = codes.find(str(part["system"]))
        for each in part["concept"]:
            code = str(each["code"])
            identifier = code if system is None else system.identifier(code)
            listed.append((identifier, str(each.get("display") or "")))
    return listed


def diff_value_sets(old: Iterable[tuple[str, str]], new: ValueSetMembers) -> list[Change]:
    """Compare the members of a value set with those of a later one, or in a later release.

    Args:
        old: Ids and names of the earlier members.
        new: The later members.
    """
    kb = new.kb
    before = {canonical_id(identifier): (identifier, name) for identifier, name in old}
    after = {canonical_id(identifier) for _, identifier in new}
    changes = []
    for row, identifier in new:
        known = before.get(canonical_id(identifier))
        name = kb.name_at(row)
        if known is None:
            changes.append(Change("added", identifier, name))
        elif known[1] not in ("", name):
            changes.append(Change("renamed", identifier, name, (known[1],), (name,)))
    for key, (identifier, name) in before.items():
        if key not in after:
            now, retired = kb.find_row(identifier), kb.replacement(identifier)
            if now is not None:
                own = kb.id_at(now)
                merged = canonical_id(own) != key
                changes.append(
                    Change("merged", identifier, name, new=(own,), evidence="alternate")
                    if merged
                    else Change("removed", identifier, name)
                )
            elif retired is not None and retired.replaced_by:
                by = retired.replaced_by
                changes.append(Change("replaced", identifier, name, new=by, evidence="replaced"))
            else:
                considered = retired.consider if retired else ()
                changes.append(Change("retired", identifier, name, new=considered))
    return changes


def write_value_set(resource: Mapping[str, Any], path: Path, *, overwrite: bool = False) -> None:
    """Write a ValueSet of FHIR.

    Args:
        resource: The resource.
        path: The file.
        overwrite: Replace an existing file.
    """
    with new_file(path, overwrite=overwrite) as file:
        file.write(json.dumps(resource, ensure_ascii=False, indent=2).encode() + b"\n")
