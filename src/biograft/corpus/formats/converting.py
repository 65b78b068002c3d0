"""From one format of documents to another, saying exactly what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.corpus.formats.fitting import Fitter
from biograft.corpus.formats.registry import DOCUMENT_FORMATS, read_documents, sniff, write_fitted
from biograft.documents import Document
from biograft.errors import FormatError, InputError, OutputError
from biograft.sources.log import ReadLog


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
