"""Formats of annotated documents, each in a file of its own, all behind one reader and writer.

>>> from biograft.corpus.formats import read_documents, write_documents
>>> losses = write_documents(read_documents("corpus.xml"), "corpus.jsonl")  # doctest: +SKIP
"""

from biograft.corpus.formats.converting import Conversion, convert
from biograft.corpus.formats.features import DocumentFormat, Feature
from biograft.corpus.formats.fitting import Fitter
from biograft.corpus.formats.registry import (
    DOCUMENT_FORMATS,
    read_documents,
    sniff,
    write_documents,
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
