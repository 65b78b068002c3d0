"""Export a knowledge base: losslessly as JSON lines, or as a BioSyn dictionary or triples."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from biograft.artifacts import new_file
from biograft.errors import NotFoundError, OutputError, nearest
from biograft.kb.iris import Iris
from biograft.kb.records import IdKind
from biograft.kb.store import Concept, Definition, Identifier, KnowledgeBase, Name
from biograft.progress import Progress


def export_store(
    base: KnowledgeBase,
    target: Path | None,
    form: str,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    left_out: list[tuple[str, str]] | None = None,
) -> int:
    """Write a store to a file (gzipped for ``.gz``) or to stdout; return the line count.

    Args:
        base: The store.
        target: File to write; None: stdout.
        form: Name of a format (``EXPORTS``).
        overwrite: Replace an existing file.
        progress: Progress shown.
        left_out: Filled with the concepts that the format cannot hold, and why; without it, the
            first of them is an error.
    """
    if form not in EXPORTS:
        raise NotFoundError(f"no export format is called {form!r}; {nearest(form, EXPORTS)}")
    lines = EXPORTS[form](base, left_out)
    return write_lines(lines, target, form, overwrite=overwrite, progress=progress)


def write_lines(
    lines: Iterator[str],
    target: Path | None,
    what: str,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write lines to a file (gzipped for ``.gz``) or to stdout; return their number.

    Args:
        lines: The lines.
        target: File to write; None is stdout.
        what: What they are, for the progress.
        overwrite: Replace a file that exists.
        progress: Progress of writing.
    """
    progress = progress or Progress()
    progress.start(f"writing {what}")
    try:
        if target is None:
            return _write(lines, sys.stdout.buffer, progress)
        with new_file(target, overwrite=overwrite) as file:
            if target.name.endswith(".gz"):
                # no time and no name inside, so that equal stores give equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    return _write(lines, packed, progress)
            return _write(lines, file, progress)
    finally:
        progress.finish()


def _write(lines: Iterator[str], file: IO[bytes] | gzip.GzipFile, progress: Progress) -> int:
    n = 0
    for line in lines:
        file.write(line.encode() + b"\n")
        n += 1
        if n % 1000 == 0:
            progress.advance(1000)
    return n


_LeftOut = list[tuple[str, str]] | None


def _to_jsonl(base: KnowledgeBase, _left_out: _LeftOut) -> Iterator[str]:
    """Yield a concept a line with all its facts; it reads back as the same store."""
    known = Iris()
    for row in range(len(base)):
        concept = base.concept_at(row)
        value: dict[str, Any] = {"id": concept.id}
        if (iri := base.iri(concept.id)) != known.iri_of(concept.id):
            value["iri"] = iri
        value["names"] = [*map(_fields, concept.names)]
        value["definitions"] = [*map(_fields, concept.definitions)]
        value["types"] = [{"type": t.code, "label": t.label, "tree": t.tree} for t in concept.types]
        value["ids"] = [*map(_fields, concept.ids)]
        value["relations"] = [
            {"relation": relation, "tail": tail, "source": source}
            for relation, tail, source in base.outgoing(row)
        ]
        yield json.dumps({k: v for k, v in value.items() if v or k == "names"}, ensure_ascii=False)


def _fields(fact: Name | Definition | Identifier) -> dict[str, str]:
    return {name: getattr(fact, name) for name in fact.__slots__}


def _to_biosyn(base: KnowledgeBase, left_out: _LeftOut) -> Iterator[str]:
    """Yield ``id||name`` lines; several ids of a concept are joined as ``A|B``."""
    for row in range(len(base)):
        concept = base.concept_at(row)
        if "||" in (ids := "|".join(_own_ids(concept))):
            why = "holds '||', which ends the ids in a line of BioSyn; export as jsonl"
            if left_out is None:
                raise OutputError(f"id {concept.id!r}: {why}")
            left_out.append((f"id {concept.id!r}", why))
            continue
        for name in concept.names:
            yield f"{ids}||{' '.join(name.text.split())}"


def _own_ids(concept: Concept) -> list[str]:
    alternates = [i.id for i in concept.ids if i.kind == IdKind.ALTERNATE]
    joined = concept.id == "|".join(alternates)  # a dictionary of BioSyn was the source
    return alternates if joined else [concept.id, *alternates]


def _to_triples(base: KnowledgeBase, _left_out: _LeftOut) -> Iterator[str]:
    """Yield head id, relation and tail id, separated by tabs."""
    for row in range(len(base)):
        head = base.id_at(row)
        for relation, tail, _ in base.outgoing(row):
            yield f"{head}\t{relation}\t{tail}"


EXPORTS: dict[str, Callable[[KnowledgeBase, _LeftOut], Iterator[str]]] = {
    "jsonl": _to_jsonl,
    "biosyn": _to_biosyn,
    "triples": _to_triples,
}
