"""The formats of documents by name, and reading and writing through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from biograft.corpus.formats.features import DocumentFormat
from biograft.corpus.formats.fitting import Fitter
from biograft.documents import Document
from biograft.errors import ConfigError, InputError
from biograft.registry import Registry
from biograft.sources.files import exists
from biograft.sources.log import ReadLog
from biograft.sources.sniffing import find_format, look_into

DOCUMENT_FORMATS: Registry[DocumentFormat] = Registry(
    "document format",
    {
        # tried in this order when a file is to be recognised, the most particular first
        "bioc-xml": ("biograft.corpus.formats.bioc_xml:FORMAT", "BioC XML collections"),
        "ddi": (
            "biograft.corpus.formats.ddi_xml:FORMAT",
            "DDI 2013: XML, a folder, a zip of such, or one file",
        ),
        "brat": ("biograft.corpus.formats.brat:FORMAT", "brat: a folder of .txt and .ann files"),
        "pubtator": (
            "biograft.corpus.formats.pubtator:FORMAT",
            "PubTator: ID|t|title, ID|a|abstract, mentions",
        ),
        "cmdd": (
            "biograft.corpus.formats.cmdd:FORMAT",
            "CMDD: Chinese dialogues with symptoms (read only)",
        ),
        "cmedqaner": (
            "biograft.corpus.formats.chineseblue:CMEDQANER",
            "cMedQANER: JSON lines, mention_data",
        ),
        "cehrner": (
            "biograft.corpus.formats.chineseblue:CEHRNER",
            "cEHRNER: the same with labels for types",
        ),
        "bioc-json": ("biograft.corpus.formats.bioc_json:FORMAT", "BioC JSON collections"),
        "cmeee": (
            "biograft.corpus.formats.cmeee:FORMAT",
            "CMeEE: a JSON list of texts with entities",
        ),
        "jsonl": (
            "biograft.corpus.formats.jsonl:FORMAT",
            "biograft's own JSON lines; holds everything",
        ),
        "char-tags": (
            "biograft.corpus.formats.char_tags:FORMAT",
            "a character and its tag (B_type) a line",
        ),
        "conll": (
            "biograft.corpus.formats.conll:FORMAT",
            "CoNLL: a token and its tag a line; written as IOB2",
        ),
        "conll-iob1": ("biograft.corpus.formats.conll:IOB1", "the same, written as IOB1"),
        "conll-iobes": ("biograft.corpus.formats.conll:IOBES", "the same, written as IOBES"),
    },
)


def sniff(path: Path) -> str:
    """Name the format of a file or folder by its content."""
    problem = "no reader of documents knows this content"
    return find_format(look_into(path), DOCUMENT_FORMATS, problem)


def read_documents(
    path: str | Path, form: str = "", log: ReadLog | None = None
) -> Iterator[Document]:
    """Read the documents of a file or folder, of a named format or of what is recognised.

    What is wrong in the file is counted in the log, with its place, and the rest is read.
    """
    path = Path(path)
    if not exists(path):
        raise InputError("does not exist", path=path, remedy="check the path")
    reader = DOCUMENT_FORMATS.load(form or sniff(path))
    return reader.read(path, log or ReadLog(path))


def write_documents(
    documents: Iterable[Document], path: str | Path, form: str = "jsonl", *, overwrite: bool = False
) -> Counter[str]:
    """Write documents whole or not at all; give what the format could not hold, by kind."""
    fitter = Fitter(DOCUMENT_FORMATS.load(form))
    write_fitted(map(fitter.fit, documents), Path(path), form, overwrite=overwrite)
    return fitter.losses


def write_fitted(
    documents: Iterable[Document], path: Path, form: str, *, overwrite: bool = False
) -> None:
    """Write documents that a :class:`Fitter` of the format gave."""
    write = DOCUMENT_FORMATS.load(form).write
    if write is None:
        writable = [n for n in DOCUMENT_FORMATS if DOCUMENT_FORMATS.load(n).write is not None]
        raise ConfigError(f"{form} is only read, never written; choose of {', '.join(writable)}")
    write(documents, path, overwrite)
