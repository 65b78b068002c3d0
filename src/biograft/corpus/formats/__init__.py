"""Formats of annotated documents, each in a file of its own, all behind one reader and writer.

>>> from biograft.corpus.formats import read_documents, write_documents
>>> losses = write_documents(read_documents("corpus.xml"), "corpus.jsonl")  # doctest: +SKIP
"""

from biograft.corpus.formats.format import (
    DocumentFormat as DocumentFormat,
    Feature as Feature,
    Fitter as Fitter,
)
from biograft.corpus.formats.registry import (
    DOCUMENT_FORMATS as DOCUMENT_FORMATS,
    Conversion as Conversion,
    convert as convert,
    read_documents as read_documents,
    sniff as sniff,
    write_documents as write_documents,
)

__all__ = [
    "DOCUMENT_FORMATS",
    "Conversion",
    "DocumentFormat",
    "Feature",
    "Fitter",
    "convert",
    "read_documents",
    "sniff",
    "write_documents",
]
