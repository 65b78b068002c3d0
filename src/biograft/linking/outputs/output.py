"""Outputs: writers of linked documents, and the one function that writes any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from biograft.artifacts import new_file
from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import LinkedDocument
from biograft.linking.config import OutputConfig
from biograft.linking.outputs.registry import OUTPUTS
from biograft.linking.outputs.report import ConceptIds, count_without_preferred

Documents: TypeAlias = Iterable[LinkedDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRun:
    """One use of an output: its settings, and counts of what it could not hold."""

    kb: KnowledgeBase
    ids: ConceptIds
    config: OutputConfig = field(default_factory=OutputConfig)
    losses: Counter[str] = field(default_factory=Counter)
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the documents are linked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """An output; text is made in chunks, other content is written to a file or folder."""

    chunks: Callable[[Documents, OutputRun], Iterator[str]] | None = None
    write: Callable[[Documents, OutputRun, Path, bool], None] | None = None
    """Writes to a path; the last argument allows overwriting."""
    needs: str = ""
    """Kind of path that ``write`` needs: a file, or a folder."""
    media_type: str = ""
    """Media type of an answer of the service; empty: the service does not offer it."""
    endings: tuple[str, ...] = ()
    """Endings of files that are written so where no format is named."""
    holds_text: bool = False
    """Whether it holds the whole text of the documents, beside that of the mentions."""


def storable(value: Any) -> Any:
    """Return a value that Arrow can hold: halves of surrogate pairs in a text become escapes."""
    return encoded(value).decode() if isinstance(value, str) else value


def encoded(text: str) -> bytes:
    """Encode as UTF-8; halves of surrogate pairs, which it cannot hold, become escapes."""
    return text.encode("utf-8", "backslashreplace")


def write_linked(
    documents: Iterable[LinkedDocument],
    path: str | Path,
    to: str,
    kb: KnowledgeBase,
    *,
    overwrite: bool = False,
    **settings: Any,
) -> Counter[str]:
    """Write linked documents to a file or folder; return the counts of what could not be held.

    ``to`` is the name of an output, such as ``csv`` or ``fhir``; ``settings`` are the fields of
    :class:`OutputConfig`. Documents are written one after the other; a failure leaves nothing.

    >>> write_linked(linker.pipe(texts), "findings.csv", "csv", linker.kb)  # doctest: +SKIP
    Counter()
    """
    output, run = OUTPUTS.load(to), new_run(kb, settings)
    documents = _counted(documents, run)
    if output.write is not None:
        output.write(documents, run, Path(path), overwrite)
    elif output.chunks is not None:
        with new_file(Path(path), overwrite=overwrite) as file:
            for chunk in output.chunks(documents, run):
                file.write(encoded(chunk))
    return run.losses


def link_chunks(
    documents: Iterable[LinkedDocument],
    to: str,
    kb: KnowledgeBase,
    losses: Counter[str] | None = None,
    **settings: Any,
) -> Iterator[str]:
    """Give an output as text, piece by piece; ``losses`` counts what could not be held.

    >>> "".join(link_chunks(linker.pipe(texts), "tsv", linker.kb))  # doctest: +SKIP
    """
    output: Output = OUTPUTS.load(to)
    run = new_run(kb, settings, losses)
    if output.chunks is None:
        raise ConfigError(f"{to}: is no text; name the {output.needs} to write (-o)")
    return output.chunks(_counted(documents, run), run)


def new_run(
    kb: KnowledgeBase, settings: dict[str, Any], losses: Counter[str] | None = None
) -> OutputRun:
    """Check the settings of an output, which are the fields of :class:`OutputConfig`."""
    config = from_mapping(OutputConfig, settings)
    return OutputRun(
        kb=kb,
        ids=ConceptIds(kb, config.prefer),
        config=config,
        losses=Counter() if losses is None else losses,
    )


def _counted(documents: Iterable[LinkedDocument], run: OutputRun) -> Iterable[LinkedDocument]:
    if not run.ids.prefer:
        return documents
    return count_without_preferred(documents, run.ids, run.losses)
