"""The outputs by name, and by the ending of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biograft.registry import Registry

OUTPUTS: Registry[Any] = Registry(
    "output",
    {
        "table": ("lines:TABLE", "aligned columns for the terminal"),
        "csv": ("findings:CSV", "one row a finding, for spreadsheets and databases"),
        "tsv": ("findings:TSV", "the same with tabs"),
        "jsonl": ("lines:JSONL", "JSON lines: one document a line, with candidates"),
        "parquet": ("findings:PARQUET", "one row a finding, with lists and types"),
        "html": ("page:OUTPUT", "a page that shows the text with its findings; works offline"),
        "fhir": ("fhir:OUTPUT", "FHIR R4: one Bundle a document, one a line"),
        "omop": ("omop:OUTPUT", "rows of note_nlp of the OMOP CDM 5.4, as CSV"),
        "pubtator": ("annotations:PUBTATOR", "PubTator"),
        "bioc": ("annotations:BIOC", "BioC JSON"),
        "brat": ("annotations:BRAT", "brat: a folder of .txt and .ann files"),
    },
    group="biograft.outputs",
    home="biograft.linking.outputs",
)


def output_of_ending(path: str | Path) -> str:
    """Return the name of the output that files with an ending have; empty for other endings.

    Args:
        path: File to write.

    >>> output_of_ending("findings.csv"), output_of_ending("findings.txt")
    ('csv', '')
    """
    name = Path(path).name.lower()
    return next((key for key, each in OUTPUTS.load_all() if name.endswith(each.endings)), "")
