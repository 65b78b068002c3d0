"""The formats of documents by name, and reading and writing through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.corpus.formats.format import DocumentFormat, Fitter
from biograft.documents import Document
from biograft.errors import ConfigError, FormatError, InputError, OutputError
from biograft.registry import Registry
from biograft.sources.files import exists
from biograft.sources.format import find_format, look_into
from biograft.sources.log import ReadLog

DOCUMENT_FORMATS: Registry[DocumentFormat] = Registry(
    "document format",
    {
        # tried in this order when a file is to be recognised, the most particular first
        "bioc-xml": ("biograft.corpus.formats.bioc:BIOC_XML", "BioC XML collections"),
        "ddi": (
            "biograft.corpus.formats.ddi:FORMAT",
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
        "bioc-json": ("biograft.corpus.formats.bioc:BIOC_JSON", "BioC JSON collections"),
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


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion read, wrote, rejected and lost."""

    source: str
    target: str
    counts: Counter[str]
    """Documents, mentions and relations that were read."""
    losses: Counter[str]
    log: ReadLog

    def to_json(self) -> dict[str, Any]:
        """Give the report as JSON has it."""
        return {
            "from": self.source,
            "to": self.target,
            "read": dict(self.counts),
            "filtered": dict(self.log.filtered),
            "rejected": self.log.rejected.to_json(),
            "doubtful": self.log.doubtful.to_json(),
            "lost": dict(self.losses.most_common()),
        }


def convert(
    path: Path,
    target: Path,
    to: str,
    form: str = "",
    *,
    overwrite: bool = False,
    strict: bool = False,
) -> Conversion:
    """Read documents of one format and write them in another.

    ``strict`` refuses, and writes nothing, when anything is rejected or would be lost.
    """
    if not path.exists():
        raise InputError("does not exist", path=path, remedy="check the path")
    form = form or sniff(path)
    log = ReadLog(path)
    conversion = Conversion(form, to, Counter(), Counter(), log)
    fitter = Fitter(DOCUMENT_FORMATS.load(to))
    read = read_documents(path, form, log)
    fitted = _fitted(read, fitter, conversion, _refuse(path, strict=strict))
    write_fitted(fitted, target, to, overwrite=overwrite)
    return conversion


def _fitted(
    documents: Iterator[Document],
    fitter: Fitter,
    conversion: Conversion,
    check: Callable[[Conversion], None],
) -> Iterator[Document]:
    """Fit and count the documents; the check comes while nothing is in place yet."""
    for document in documents:
        conversion.counts["documents"] += 1
        conversion.counts["mentions"] += len(document.mentions)
        conversion.counts["relations"] += len(document.relations)
        yield fitter.fit(document)
    conversion.losses.update(fitter.losses)
    check(conversion)


def _refuse(path: Path, *, strict: bool) -> Callable[[Conversion], None]:
    def check(conversion: Conversion) -> None:
        if not conversion.counts["documents"]:
            raise FormatError(
                f"holds no document of format {conversion.source} that can be read"
                + _reasons(conversion.log.rejected.counts),
                path=path,
                remedy="name the right format",
            )
        if not strict:
            return
        if rejected := conversion.log.rejected.counts:
            raise OutputError(
                f"{path}: records were rejected{_reasons(rejected)}; nothing was written (--strict)"
            )
        if lost := conversion.losses + conversion.log.filtered:
            raise OutputError(
                f"{path}: {conversion.target} cannot hold all of it{_reasons(lost)}; "
                "nothing was written (--strict)"
            )

    return check


def _reasons(counts: Counter[str]) -> str:
    return f" ({', '.join(f'{n:,} {what}' for what, n in counts.most_common())})" if counts else ""
