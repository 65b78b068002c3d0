"""IRIs and ids: a concept that a source names by an IRI gets a CURIE, ``prefix:local``.

What is known of a namespace comes first from ``vocabularies.toml`` and the rule of the OBO
Foundry, then from the prefixes that files declare, then from a frozen copy of the Bioregistry
(``prefixes.tsv``, written by ``tools/prefixes.py``). The longest namespace counts. An IRI under
no namespace with a prefix, or under one whose prefix is of another, is the id itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from biograft.kb.vocabularies import (
    OBO,
    VOCABULARIES,
    canonical_id,
    vocabulary_name,
    vocabulary_of,
)

SCHEMES = ("http://", "https://")
_SCHEME = re.compile(r"https?://(?:www\.)?")
_LAST_PART = re.compile(r"[/#]([A-Za-z][\w.-]*?)_([A-Z]*\d[\w.-]*)$")
_HEAD = re.compile(r".*[/#_=:?](?=.)")
"""All of an IRI up to its last delimiter: concepts of one namespace share few."""
_END = re.compile(r"[/#_=:?]")
_OBO_HOSTS = ("purl.obolibrary.org/obo/", "purl.org/obo/")
"""The OBO namespace without its scheme, and its earlier spelling."""
_FOUNDRY = re.compile(r"(?:purl\.obolibrary\.org|purl\.org)/obo/([A-Za-z][\w.-]*)_")
_RESOLVER = re.compile(r"(?:identifiers\.org|n2t\.net|bioregistry\.io|bio2rdf\.org)/([\w.-]+)[/:]")
_GENERATED = re.compile(r"(?:ns|p|n|j\.)\d+|default")
"""Prefixes that a program made up."""
_SHOWN = 5


def short_id(iri: str) -> str:
    """Shorten an IRI as the OBO standard does; other text is returned unchanged.

    Args:
        iri: IRI of a class, concept or property, or any other text.

    >>> short_id("http://purl.obolibrary.org/obo/DOID_0001816")
    'DOID:0001816'
    >>> short_id("http://purl.obolibrary.org/obo/uberon/core#part_of")
    'part_of'
    >>> short_id("http://purl.obolibrary.org/obo/GO#_x1")
    'GO:x1'
    >>> short_id("http://www.orpha.net/ORDO/Orphanet_558")
    'Orphanet:558'
    >>> short_id("http://identifiers.org/hgnc/1101")
    'http://identifiers.org/hgnc/1101'
    """
    if not iri.startswith(SCHEMES):
        return iri
    if iri.startswith(OBO) and "#" in iri:
        ontology, _, fragment = iri[len(OBO) :].partition("#")
        if fragment.startswith("_") and len(fragment) > 1:
            return f"{ontology}:{fragment[1:]}"
        return fragment or iri
    match = _LAST_PART.search(iri)
    return f"{match[1]}:{match[2]}" if match else iri


class _Registry(NamedTuple):
    """Prefixes and namespaces of the Bioregistry; namespaces without their scheme."""

    prefixes: dict[str, str]
    """Namespace -> prefix."""
    namespaces: dict[str, str]
    """Prefix in lower case -> its first namespace, with its scheme; empty: none."""


def _key(namespace: str) -> str:
    return _SCHEME.sub("", namespace, count=1)


@lru_cache(1)
def _registry() -> _Registry:
    found = _Registry({}, {})
    for line in Path(__file__).with_name("prefixes.tsv").read_text("utf-8").splitlines()[1:]:
        prefix, *spaces = line.split("\t")
        found.namespaces[prefix.lower()] = spaces[0] if spaces else ""
        for space in spaces:
            found.prefixes.setdefault(_key(space), prefix)
    return found


_KNOWN = {_key(each.namespace): name for name, each in VOCABULARIES.items() if each.namespace}
"""Namespace without its scheme -> vocabulary."""


class Iris:
    """The ids of IRIs in one build or one knowledge base; no two IRIs share one.

    A prefix belongs to the first namespace that uses it; those of known vocabularies belong to
    their namespaces from the start.

    Args:
        prefixes: Prefixes that ids have, and their namespaces.
        former: Prefixes that earlier versions gave to ids, and what these begin with now.

    >>> iris = Iris({"lab": "http://a.org/lab#"})
    >>> [iris.id_of(f"http://{i}") for i in ("a.org/lab#C_0001", "b.com/codes#C_0001")]
    ['lab:C_0001', 'http://b.com/codes#C_0001']
    >>> iris.id_of("http://www.ebi.ac.uk/efo/EFO_0000400"), iris.iri_of("EFO:0000400")
    ('EFO:0000400', 'http://www.ebi.ac.uk/efo/EFO_0000400')
    """

    def __init__(
        self, prefixes: Mapping[str, str] | None = None, former: Mapping[str, str] | None = None
    ) -> None:
        self.prefixes: dict[str, str] = {}
        """Prefix of ids -> its namespace, of the ids that were made."""
        self.former = dict(former or {})
        """Prefix that earlier versions gave to ids -> what these ids begin with now."""
        self._declared: dict[str, str] = {}
        """Namespace without its scheme -> prefix."""
        self._namespaces: dict[str, str] = {}
        """Prefix -> namespace, as the first file declares it."""
        self._owners: dict[str, str] = dict.fromkeys(VOCABULARIES, "")
        """Vocabulary -> the namespace that owns its prefix; empty: those that are known."""
        self._heads: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        """Head of IRIs that are ids themselves -> the prefix that they would have had."""
        for prefix, namespace in (prefixes or {}).items():
            self.declare(prefix, namespace)
            self._use(prefix, namespace)

    def declare(self, prefix: str, namespace: str) -> None:
        """Note a prefix that a file declares.

        Args:
            prefix: The prefix; one that a program made up does not count.
            namespace: What IRIs with this prefix begin with.
        """
        if prefix and namespace.startswith(SCHEMES) and not _GENERATED.fullmatch(prefix):
            self._declared.setdefault(_key(namespace), prefix)
            self._namespaces.setdefault(prefix, namespace)

    def id_of(self, iri: str) -> str:
        """Return the id of a concept.

        Args:
            iri: IRI of the concept; any other text is returned unchanged.
        """
        if not iri.startswith(SCHEMES):
            return iri
        is_obo = iri.startswith(OBO) or _key(iri).startswith(_OBO_HOSTS)
        if is_obo and (short := short_id(iri)) is not iri:
            return self._obo(iri, short)
        match = _HEAD.match(iri)
        if match is None:
            return iri
        head = match[0]
        if (known := self._heads.get(head)) is None:
            known = self._heads[head] = self._resolve(head)
        return known + iri[len(head) :]

    def _obo(self, iri: str, short: str) -> str:
        prefix, colon, local = short.partition(":")
        if not colon:  # a fragment of an OBO ontology
            return short if self._owners.setdefault(f"#{short}", iri) == iri else iri
        if prefix in self.prefixes or self._use(prefix, f"{OBO}{prefix}_"):
            return short
        self._taken[iri[: -len(local)]] = prefix
        return iri

    def _use(self, prefix: str, namespace: str) -> bool:
        """Take a prefix for a namespace; return False if it is of another."""
        key = _key(namespace)
        owner = "" if _known_prefix(key) == prefix else key
        if self._owners.setdefault(vocabulary_name(prefix), owner) != owner:
            return False
        self.prefixes.setdefault(prefix, namespace)
        return True

    def _resolve(self, head: str) -> str:
        """Return what ids begin with in place of this head of their IRIs."""
        found = head
        start = _SCHEME.match(head)
        for match in reversed([*_END.finditer(head, start.end() if start else 0)]):
            namespace, rest = head[: match.end()], head[match.end() :]
            if "/" in rest or "#" in rest:
                break
            key = _key(namespace)
            prefix = self._declared.get(key, "") if key not in _KNOWN else ""
            prefix = prefix or _known_prefix(key)
            if not prefix:
                continue
            if not self._use(prefix, namespace):
                self._taken[head] = prefix
            elif rest.upper() == f"{prefix.upper()}:":  # identifiers.org/hgnc/HGNC:1101
                found = rest
            else:
                found = canonical_id(f"{prefix}:{rest}")
            break
        short = short_id(f"{head}0")
        former, colon, local = short.partition(":")
        if head.endswith("_") and colon and short != f"{head}0":
            self.former.setdefault(former, f"{found}0".removesuffix(local))
        return found

    def iri_of(self, identifier: str) -> str:
        """Return the IRI of an id; empty if its prefix has no namespace.

        Args:
            identifier: A CURIE, a bare id of a known vocabulary, or an IRI.
        """
        if identifier.startswith(SCHEMES):
            return identifier
        prefix, colon, local = identifier.partition(":")
        if not colon:
            prefix, local = vocabulary_of(identifier), identifier
        namespace = self.namespace_of(prefix)
        return f"{namespace}{local}" if namespace else ""

    def namespace_of(self, prefix: str) -> str:
        """Return the namespace of a prefix; empty if none is known.

        Args:
            prefix: Prefix of ids.
        """
        if own := self.prefixes.get(prefix) or self._namespaces.get(prefix):
            return own
        known = VOCABULARIES.get(vocabulary_name(prefix))
        if known is not None and known.namespace:
            return known.namespace
        return _registry().namespaces.get(prefix.lower(), "")

    def warnings(self, ids: Iterable[str]) -> list[str]:
        """Return a line for each namespace whose IRIs are ids themselves, a few of many.

        Args:
            ids: The ids of concepts that are IRIs.
        """
        heads: dict[str, str] = {}
        for iri in ids:
            match = _HEAD.match(iri)
            heads.setdefault(match[0] if match else iri, iri)
        lines = []
        for head, iri in list(heads.items())[:_SHOWN]:
            prefix = self._taken.get(head)
            if prefix is None:
                why = "no prefix is declared for them (--prefixes NAME=IRI declares one)"
            else:
                why = f"the prefix {prefix} is of {self.namespace_of(prefix)}"
            lines.append(f"the concepts under {iri} keep their IRIs as ids: {why}")
        if len(heads) > _SHOWN:
            more = len(heads) - _SHOWN
            lines.append(f"the concepts of {more:,} more namespaces keep their IRIs as ids")
        return lines


@lru_cache(1 << 12)
def _known_prefix(key: str) -> str:
    """Return the prefix of a namespace, given without its scheme, that is known to all."""
    if key in _KNOWN:
        return _KNOWN[key]
    if match := _FOUNDRY.fullmatch(key):
        return match[1]
    prefix = _registry().prefixes.get(key, "")
    if not prefix and (match := _RESOLVER.fullmatch(key)):
        name = match[1]
        is_known = vocabulary_name(name) in VOCABULARIES or name.lower() in _registry().namespaces
        prefix = name if is_known else ""
    name = vocabulary_name(prefix)
    return name if name in VOCABULARIES else prefix
