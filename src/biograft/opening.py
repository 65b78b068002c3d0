"""Shortcuts to begin with: link a text, or open what was built or trained."""

from __future__ import annotations

import functools
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Unpack
from zlib import crc32

from biograft.artifacts import MANIFEST, peek
from biograft.compute import cache_folder
from biograft.errors import ConfigError, InputError, StoreError
from biograft.kb import KnowledgeBase, build_starter
from biograft.kb.sources.format import STARTER, built_in_folder
from biograft.kb.tables import STORE
from biograft.linking import LinkedDocument, Linker
from biograft.linking.config import LinkerSettings
from biograft.linking.index import INDEX
from biograft.linking.rankers import MODELS


def link(
    text: str,
    kb: Linker | KnowledgeBase | str | Path | None = None,
    **settings: Unpack[LinkerSettings],
) -> LinkedDocument:
    """Find the concepts in a text, with what the text says of each.

    Args:
        text: The text.
        kb: Knowledge base, its folder, or a linker; default: the built-in starter (896 concepts,
            English and Chinese), which is built once into the user's folder for caches.
        settings: Options of ``Linker.open``.

    >>> [(each.text, each.concept, each.status) for each in link("No fever, known AF.").mentions]
    [('fever', 'D005334', 'absent'), ('AF', 'D001281', 'present')]
    """
    if kb is None and not settings:
        return _starter_linker()(text)
    if isinstance(kb, Linker):
        return (kb.with_settings(**settings) if settings else kb)(text)
    return Linker.open(kb or open_starter(), **settings)(text)


@functools.cache
def _starter_linker() -> Linker:
    return Linker.open(open_starter())


def open_starter() -> KnowledgeBase:
    """Open the built-in knowledge base; it is built once into the user's folder for caches."""
    files = sorted(built_in_folder(STARTER).rglob("*.jsonl"))
    version = crc32(b"".join(file.read_bytes() for file in files))
    folder = (cache_folder() or Path(tempfile.mkdtemp())) / f"starter-{version:x}"
    with suppress(StoreError):
        return KnowledgeBase.open(folder)
    build_starter(folder, overwrite=True)
    return KnowledgeBase.open(folder)


def load(
    folder: str | Path,
    kb: KnowledgeBase | str | Path | None = None,
    **settings: Unpack[LinkerSettings],
) -> Any:
    """Open what biograft wrote to a folder: a knowledge base, an index, a run or a model.

    Args:
        folder: The folder.
        kb: Knowledge base of an index, or of a trained linker that has none of its own.
        settings: Options of ``Linker.open``, for an index or a trained linker.

    Returns:
        A ``KnowledgeBase``; a ``Linker`` for an index or a trained linker; the model of a task; or
        a ``TextEncoder``.

    >>> load("kb")
    KnowledgeBase('kb', n_concepts=896, n_names=7367)
    """
    folder = Path(folder)
    formats = {peek(place / MANIFEST).get("format") for place in (folder, folder / "model")}
    if STORE.format in formats:
        return KnowledgeBase.open(folder)
    if INDEX.format in formats:
        if kb is None:
            raise ConfigError(f"{folder}: an index needs its knowledge base; give one (kb)")
        return Linker.open(kb, folder, **settings)
    if formats & set(MODELS):
        return Linker.from_pretrained(folder, kb, **settings)
    from biograft.models import TextEncoder
    from biograft.models.tasks.folder import TASK_MODEL, open_task

    if TASK_MODEL.format in formats:
        return open_task(folder)
    for place in (folder, folder / "encoder"):
        if (place / "config.json").is_file():
            return TextEncoder.from_pretrained(place)
    raise InputError(
        "holds no knowledge base, index, trained linker, task model or encoder",
        path=folder,
        remedy="check the path",
    )
