"""Registry of document formats; read, write and convert annotated documents."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError, FormatError, InputError, OutputError
from biograft.kb.sources.files import exists
from biograft.kb.sources.format import find_format, look_into
from biograft.kb.sources.log import ReadLog
from biograft.registry import Registry
from biograft.text.documents import Document
from biograft.text.formats.format import DocumentFormat, FormatAdapter

LAYOUTS_FILE = Path(__file__).with_name("layouts.toml")
"""Declares layouts of JSON; the file says what its keys mean."""
_LAYOUTS = tomllib.loads(LAYOUTS_FILE.read_text("utf-8"))

DOCUMENT_FORMATS: Registry[DocumentFormat] = Registry(
    "document format",
    {
        # tried in this order when a file is recognised, the most specific first
        "bioc-xml": ("bioc:BIOC_XML", "BioC XML collections"),
        "ddi": ("ddi:FORMAT", "DDI 2013: XML, a folder, a zip of such, or one file"),
        "brat": ("brat:FORMAT", "brat: a folder of .txt and .ann files"),
        "pubtator": ("pubtator:FORMAT", "PubTator: ID|t|title, ID|a|abstract, mentions"),
        "cmdd": ("cmdd:FORMAT", "CMDD: Chinese dialogues with symptoms (read only)"),
        "cmedqaner": ("layouts:LAYOUTS.cmedqaner", _LAYOUTS["cmedqaner"]["about"]),
        "cehrner": ("layouts:LAYOUTS.cehrner", _LAYOUTS["cehrner"]["about"]),
        "bioc-json": ("bioc:BIOC_JSON", "BioC JSON collections"),
        "cmeee": ("layouts:LAYOUTS.cmeee", _LAYOUTS["cmeee"]["about"]),
        "jsonl": ("jsonl:FORMAT", "biograft's own JSON lines; holds everything"),
        "char-tags": ("conll:CHARACTERS", "a character and its tag (B_type) a line"),
        "conll": ("conll:FORMAT", "CoNLL: a token and its tag a line; written as IOB2"),
        "conll-iob1": ("conll:IOB1", "the same, written as IOB1"),
        "conll-iobes": ("conll:IOBES", "the same, written as IOBES"),
    },
    group="biograft.document_formats",
    home="biograft.text.formats",
    layouts="layouts:read_layout",
)


def sniff(path: Path) -> str:
    """Name the format of a file or folder by its content."""
    problem = "no reader of documents knows this content"
    return find_format(look_into(path), DOCUMENT_FORMATS, problem)


def read_documents(
    path: str | Path, form: str = "", log: ReadLog | None = None
) -> Iterator[Document]:
    """Read the documents of a file or folder; the format is recognised unless it is named.

    Errors in the file are counted in the log with their lines, and the rest is read.
    """
    path = Path(path)
    if not exists(path):
        raise InputError("does not exist", path=path, remedy="check the path")
    reader = DOCUMENT_FORMATS.load(form or sniff(path))
    return reader.read(path, log or ReadLog(path))


def write_documents(
    documents: Iterable[Document], path: str | Path, form: str = "jsonl", *, overwrite: bool = False
) -> Counter[str]:
    """Write documents, all or none; return the counts of what the format could not hold."""
    adapter = FormatAdapter(DOCUMENT_FORMATS.load(form))
    write_adapted(map(adapter.adapt, documents), Path(path), form, overwrite=overwrite)
    return adapter.losses


def write_adapted(
    documents: Iterable[Document], path: Path, form: str, *, overwrite: bool = False
) -> None:
    """Write documents that a :class:`FormatAdapter` has adapted to the format."""
    write = DOCUMENT_FORMATS.load(form).write
    if write is None:
        writable = [name for name, other in DOCUMENT_FORMATS.load_all() if other.write is not None]
        raise ConfigError(f"{form} can only be read; choose one of {', '.join(writable)}")
    write(documents, path, overwrite)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The report of a conversion: what was read, rejected and lost."""

    source: str
    target: str
    counts: Counter[str]
    """Documents, mentions and relations that were read."""
    losses: Counter[str]
    log: ReadLog

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
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
    """Convert documents from one format to another.

    With ``strict``, an error is raised and nothing is written if anything is rejected or lost.
    """
    if not path.exists():
        raise InputError("does not exist", path=path, remedy="check the path")
    form = form or sniff(path)
    log = ReadLog(path)
    conversion = Conversion(form, to, Counter(), Counter(), log)
    adapter = FormatAdapter(DOCUMENT_FORMATS.load(to))
    read = read_documents(path, form, log)
    adapted = _adapt_all(read, adapter, conversion, _refuse(path, strict=strict))
    write_adapted(adapted, target, to, overwrite=overwrite)
    return conversion


def _adapt_all(
    documents: Iterator[Document],
    adapter: FormatAdapter,
    conversion: Conversion,
    check: Callable[[Conversion], None],
) -> Iterator[Document]:
    """Adapt and count the documents; the check runs before the output is in place."""
    for document in documents:
        conversion.counts["documents"] += 1
        conversion.counts["mentions"] += len(document.mentions)
        conversion.counts["relations"] += len(document.relations)
        yield adapter.adapt(document)
    conversion.losses.update(adapter.losses)
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
                f"{path}: {conversion.target} cannot hold everything{_reasons(lost)}; "
                "nothing was written (--strict)"
            )

    return check


def _reasons(counts: Counter[str]) -> str:
    return f" ({', '.join(f'{n:,} {kind}' for kind, n in counts.most_common())})" if counts else ""
