"""Resources that are served beside the store: FHIR packages, single resources, mapping sets.

Packages are read as a stream; nothing is unpacked to disk.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from biograft.errors import FormatError
from biograft.kb.fhir import Resource, TerminologyError, text_in
from biograft.kb.sources.fhir import is_fhir, read_resources
from biograft.mapping import MappingSet
from biograft.serve.fhir.translation import TranslationMap, read_map

MAX_SERVED = 2_000_000
"""Concepts of the code systems that are served beside the store."""


@dataclass
class FhirContent:
    """The resources of some files, by kind."""

    resources: dict[str, list[Resource]] = field(default_factory=dict)
    """Resources by type, those with codes before those without."""
    maps: list[TranslationMap] = field(default_factory=list)
    sets: list[tuple[str, MappingSet]] = field(default_factory=list)
    """Mapping sets with the names of their files."""

    def of(self, kind: str) -> list[Resource]:
        """Return the resources of a type.

        Args:
            kind: CodeSystem, ValueSet or ConceptMap.
        """
        return self.resources.get(kind, [])


def read_content(paths: Iterable[str | Path]) -> FhirContent:
    """Read FHIR packages (``.tgz``), resources in JSON, folders of these, and mapping sets.

    Args:
        paths: The files.

    Raises:
        FormatError: A file is damaged; the message names it, and the resource.
    """
    content, ids = FhirContent(), Counter[str]()
    for path in map(Path, paths):
        if not is_fhir(path):
            content.sets.append((path.name.partition(".")[0], MappingSet.read(path)))
            continue
        for name, resource in read_resources(path):
            kind = str(resource["resourceType"])
            try:
                if not text_in(resource, "url", kind):
                    raise TerminologyError("required", "it has no url")
                whole = _with_id(resource, ids)
                if kind == "ConceptMap":
                    content.maps.append(read_map(whole))
            except TerminologyError as error:
                raise FormatError(f"{name}: {error}", path=path) from error
            content.resources.setdefault(kind, []).append(whole)
    return content


def _with_id(resource: Resource, ids: Counter[str]) -> Resource:
    """Give a resource an id that no other one of its type has."""
    stated = str(resource.get("id") or str(resource["url"]).rstrip("/").rpartition("/")[2])
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", stated).strip("-")[:56] or "resource"
    ids[f"{resource['resourceType']}/{plain}"] += 1
    n = ids[f"{resource['resourceType']}/{plain}"]
    return {**resource, "id": plain if n == 1 else f"{plain}-{n}"}


def codes_first(resources: Iterable[Resource]) -> Iterator[Resource]:
    """Yield code systems without the empty ones of which another resource has the codes.

    Args:
        resources: CodeSystems.
    """
    listed = list(resources)
    full = {
        (each.get("url"), each.get("version"))
        for each in listed
        if each.get("content") not in ("not-present", "example", "supplement")
    }
    for each in listed:
        is_empty = each.get("content") in ("not-present", "example")
        if not (is_empty and (each.get("url"), each.get("version")) in full):
            yield each
