"""Unfinished outputs: what is written stays beside the output, so that a killed run goes on.

The folder holds the output as far as it is written, and its plan: what it is made of, and up to
which document. A run that goes on reads those documents again, compares their hash, and passes them
without mentions through the output, which so counts and numbers them as before; nothing of it is
written. What an output must know of mentions that are written is in its ``state``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

from biograft.artifacts import UNFINISHED, ArtifactKind, unfinished_folder
from biograft.errors import ConfigError, InputError, OutputError
from biograft.linking.batches import BATCH, make_batches
from biograft.linking.candidates import LinkedDocument
from biograft.linking.plans import read_plan
from biograft.text.documents import Document

PLAN = ArtifactKind(
    format="biograft-unfinished-output",
    version=1,
    called="unfinished output",
    remedy="begin again (--overwrite)",
    file="plan.json",
    keys=("made_of", "begun", "n_written", "digest", "losses", "state"),
)
SECONDS = 2.0
"""Time between two notes of how far an output is written."""
Link = Callable[[Iterable[Document]], Iterable[LinkedDocument]]


class UnfinishedOutput:
    """An output that is being written, by this run and by those before it.

    Args:
        out: Where it will be.
        folder: Where it is.
        made_of: What it is made of; None: it cannot be continued.
    """

    def __init__(self, out: Path, folder: Path, made_of: dict[str, Any] | None) -> None:
        self.out, self.folder, self.made_of = out, folder, made_of
        self.path = folder / UNFINISHED
        self.begun = datetime.now(UTC).isoformat()
        self.n_written, self.digest = 0, ""
        self.losses: Counter[str] = Counter()
        self.state: dict[str, Any] = {}
        """Facts of the documents written so far. ``replayed``: those that come are;
        ``held``: some that came are not; ``bytes``: the size of the file."""
        self.file: IO[bytes] | None = None

    def link(self, documents: Iterable[Document], link: Link) -> Iterator[LinkedDocument]:
        """Link the documents that are not written yet; give the others without mentions first.

        Linking goes on with a whole batch: scores may depend on what is in one.

        Args:
            documents: All documents.
            link: Links some, a batch of the usual size at a time.
        """
        digest, losses, n = hashlib.sha256(), Counter(self.losses), 0
        n_written, noted = self.n_written, time.monotonic()

        def in_order() -> Iterator[LinkedDocument]:
            batches, n_read = make_batches(documents, BATCH), 0
            for batch in batches:
                n_read += len(batch)
                if n_read > n_written:
                    yield from link(chain(batch, chain.from_iterable(batches)))
                else:
                    yield from (LinkedDocument(document, ()) for document in batch)

        for n, linked in enumerate(in_order(), 1):
            is_written = self.state["replayed"] = n <= n_written
            yield LinkedDocument(linked.document, ()) if is_written else linked
            digest.update(_identity(linked.document))
            if n == n_written:
                self._check(digest.hexdigest())
                self.losses.clear()
                self.losses.update(losses)
            if is_written or not self.made_of or self.state.get("held"):
                continue
            if time.monotonic() - noted >= SECONDS:
                self.n_written, self.digest = n, digest.hexdigest()
                self._note()
                noted = time.monotonic()
        if n < n_written:
            self._check("")
        self.state["replayed"] = False

    def _check(self, digest: str) -> None:
        if digest != self.digest:
            raise ConfigError(
                f"{self.out}: the inputs have changed since it was begun; restore them, or "
                f"{PLAN.remedy}"
            )

    def _note(self) -> None:
        """Note how far the output is written, once that is on disk."""
        if self.file is not None:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.state["bytes"] = self.file.tell()
        PLAN.write(self.folder, {key: getattr(self, key) for key in PLAN.keys}, overwrite=True)

    @contextlib.contextmanager
    def open(self, path: Path) -> Iterator[IO[bytes]]:
        """Open a file for writing on where the earlier run had noted; what is behind goes.

        Args:
            path: The file, in the folder.
        """
        with path.open("a+b") as self.file:
            self.file.truncate(self.state.get("bytes", 0))
            self.file.seek(0, os.SEEK_END)
            yield self.file
        self.file = None


def _identity(document: Document) -> bytes:
    return f"{replace(document, text='')!r}{document.text}".encode("utf-8", "surrogatepass")


@contextlib.contextmanager
def unfinished_output(
    out: Path, made_of: dict[str, Any] | None, *, resume: bool = False, overwrite: bool = False
) -> Iterator[UnfinishedOutput]:
    """Begin an output, or go on with that of a run that was killed.

    Args:
        out: File or folder to write.
        made_of: What determines it (:func:`~biograft.linking.plans.made_of`); None: nothing is
            kept, since the inputs cannot be read again.
        resume: Go on with what is there, if anything is.
        overwrite: Replace an output that exists; without ``resume``, what is there is removed.

    Raises:
        OutputError: if there is an unfinished output, and neither is asked for.
        ConfigError: if it was made of something else, or nothing can be kept.
    """
    if resume and made_of is None:
        raise ConfigError(
            "--resume: not with standard input, a text on the command line, or the output of "
            "another package that does not allow it"
        )
    with unfinished_folder(out, overwrite=overwrite) as folder:
        work = UnfinishedOutput(out, folder, made_of)
        if PLAN.is_at(folder) and (resume or not overwrite):
            if not resume:
                n = PLAN.read(folder)["n_written"]
                raise OutputError(
                    f"{out}: {n:,} documents of a run that was stopped are in {folder}; continue "
                    "it (--resume), or begin again (--overwrite)"
                )
            vars(work).update(read_plan(PLAN, folder, out, made_of or {}))
            work.losses = Counter(work.losses)
            work.state["replayed"] = True
        else:
            shutil.rmtree(folder)  # begun before, and perhaps not by us
            folder.mkdir(mode=0o700)
        try:
            yield work
        except BaseException as error:
            if isinstance(error, InputError) or not work.n_written:  # an input must be fixed
                shutil.rmtree(folder)
            raise
