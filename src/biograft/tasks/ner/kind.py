"""Entity recognition as a kind of task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from biograft.corpus.formats import read_documents
from biograft.documents import Document
from biograft.errors import ConfigError, InputError
from biograft.sources.log import ReadLog
from biograft.tasks.config import DataConfig
from biograft.tasks.kinds import TaskExamples, TaskKind
from biograft.tasks.ner.config import NerConfig
from biograft.tasks.ner.model import NerModel


def read(paths: Sequence[str], part: str, data: DataConfig) -> TaskExamples:
    """Read documents of any format."""
    if data.has_parts or data.dev_list or data.grouped:
        raise ConfigError(
            "data: has_parts, dev_list and grouped mean nothing to documents; leave them out"
        )
    documents: list[Document] = []
    rejected: Counter[str] = Counter()
    for path in paths:
        log = ReadLog(Path(path))
        found = list(read_documents(path, data.format, log))
        if not any(document.mentions for document in found):
            raise InputError(
                f"holds no mention in {len(found):,} documents",
                path=path,
                remedy="check the format",
            )
        documents += found
        rejected += log.rejected.counts
    return TaskExamples(documents, rejected)


KIND = TaskKind(config=NerConfig, read=read, start=NerModel.start, build=NerModel)
