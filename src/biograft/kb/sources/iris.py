"""Short ids of IRIs, as the OBO standard forms them, and the namespace that owns each prefix."""

from __future__ import annotations

import re

from biograft.kb.vocabularies import OBO, OBO_PREFIXES, vocabulary_name

_LAST_PART = re.compile(r"[/#]([A-Za-z][\w.-]*?)_([A-Z]*\d[\w.-]*)$")
_SCHEMES = ("http://", "https://")
_SCHEME = re.compile(r"https?://(?:www\.)?")
_OBO_HOSTS = ("purl.obolibrary.org/obo/", "purl.org/obo/")
"""The OBO namespace without its scheme, and its earlier spelling."""
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
    if not iri.startswith(_SCHEMES):
        return iri
    if iri.startswith(OBO) and "#" in iri:
        ontology, _, fragment = iri[len(OBO) :].partition("#")
        if fragment.startswith("_") and len(fragment) > 1:
            return f"{ontology}:{fragment[1:]}"
        return fragment or iri
    match = _LAST_PART.search(iri)
    return f"{match[1]}:{match[2]}" if match else iri


class ConceptIris:
    """Short ids of the concepts of one build, of which no two IRIs share one.

    A prefix belongs to the first namespace that uses it; the prefixes of the OBO Foundry belong to
    its namespace from the start. Under any other namespace the IRI itself is the id.

    >>> iris = ConceptIris()
    >>> [iris.id_of(i) for i in ("http://a.org/lab/C_0001", "http://b.com/codes#C_0001")]
    ['C:0001', 'http://b.com/codes#C_0001']
    """

    def __init__(self) -> None:
        self._owners = {vocabulary_name(prefix): (_OBO_HOSTS[0], "") for prefix in OBO_PREFIXES}
        """Vocabulary -> its namespace, and the IRI that claimed it."""
        self._names: dict[str, str] = {}
        self._kept_whole: dict[tuple[str, str], str] = {}
        """First IRI of each vocabulary and namespace that is not its owner."""

    def id_of(self, iri: str) -> str:
        """Return the id of a concept.

        Args:
            iri: IRI of the concept; any other text is returned unchanged.
        """
        short = short_id(iri)
        if short is iri:
            return iri
        prefix, colon, local = short.partition(":")
        if colon:
            if (name := self._names.get(prefix)) is None:
                name = self._names[prefix] = vocabulary_name(prefix)
            namespace = _SCHEME.sub("", iri[: -len(local)], count=1)
            if namespace.startswith(_OBO_HOSTS):
                namespace = _OBO_HOSTS[0]
        else:  # a fragment of an OBO ontology
            name, namespace = f"#{short}", iri
        owner, _ = self._owners.setdefault(name, (namespace, iri))
        if owner == namespace:
            return short
        self._kept_whole.setdefault((name, namespace), iri)
        return iri

    def warnings(self) -> list[str]:
        """Return a line for each namespace that uses the prefix of another, a few of many."""
        lines = []
        for (name, _), iri in list(self._kept_whole.items())[:_SHOWN]:
            owner, first = self._owners[name]
            lines.append(
                f"the concepts under {iri} keep their IRIs as ids: the short id {short_id(iri)} "
                f"is of {first or f'http://{owner}'}"
            )
        if len(self._kept_whole) > _SHOWN:
            more = len(self._kept_whole) - _SHOWN
            lines.append(f"the concepts of {more:,} more namespaces keep their IRIs as ids")
        return lines
