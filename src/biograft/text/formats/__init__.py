"""Document formats (BioC, brat, PubTator, CoNLL, ...): one file each, one reader and writer.

>>> from biograft.text.formats import read_documents, write_documents
>>> losses = write_documents(read_documents("corpus.xml"), "corpus.jsonl")  # doctest: +SKIP
"""

from biograft.text.formats.format import (
    DOCUMENT_FORMATS as DOCUMENT_FORMATS,
    Conversion as Conversion,
    DocumentFormat as DocumentFormat,
    Feature as Feature,
    FormatAdapter as FormatAdapter,
    convert as convert,
    read_documents as read_documents,
    sniff as sniff,
    write_documents as write_documents,
)
