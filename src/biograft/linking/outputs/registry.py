"""The outputs by name, and the one function that writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import LinkedDocument
from biograft.linking.config import OutputConfig
from biograft.linking.outputs.output import Output, OutputRun, encoded
from biograft.linking.outputs.report import ConceptIds, count_without_preferred
from biograft.registry import Registry

OUTPUTS: Registry[Output] = Registry(
    "output",
    {
        "table": ("lines:TABLE", "aligned columns for the terminal"),
        "csv": ("delimited:CSV", "one row a finding, for spreadsheets and databases"),
        "tsv": ("delimited:TSV", "the same with tabs"),
        "jsonl": ("lines:JSONL", "JSON lines: one document a line, with candidates"),
        "parquet": ("parquet:OUTPUT", "one row a finding, with lists and types"),
        "html": ("page:OUTPUT", "a page that shows the text with its findings; works offline"),
        "fhir": ("fhir:OUTPUT", "FHIR R4: one Bundle a document, one a line"),
        "omop": ("omop:OUTPUT", "rows of note_nlp of the OMOP CDM 5.4, as CSV"),
        "pubtator": ("annotations:PUBTATOR", "PubTator"),
        "bioc": ("annotations:BIOC", "BioC JSON"),
        "brat": ("annotations:BRAT", "brat: a folder of .txt and .ann files"),
    },
    home="biograft.linking.outputs",
)


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
    output, run = OUTPUTS.load(to), new_run(kb, settings, losses)
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
