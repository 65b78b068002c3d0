"""Batches of a linker's input, checked, and linked in other processes where that is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from biograft.compute import Finished, Opener, Workers, n_cores, run_in_order
from biograft.errors import BiograftError, ConfigError, shorten
from biograft.linking.candidates import LinkedDocument
from biograft.text.documents import Document

J = TypeVar("J")
R = TypeVar("R")
BATCH = 32
"""Documents whose mentions are searched together."""


def check_mentions(texts: Sequence[str]) -> list[str]:
    """Return mentions as a list; refuse a single string, and rows that are no text."""
    if isinstance(texts, str):
        raise ConfigError(
            f"mentions: expected a list of texts, found the text {shorten(texts)!r}; put it in a "
            "list"
        )
    mentions = list(texts)
    for row, text in enumerate(mentions):
        if not isinstance(text, str):
            raise ConfigError(f"mentions: row {row}: expected a text, found {text!r}")
    return mentions


def make_batches(
    documents: Iterable[Document | str], size: int, max_characters: int = 1 << 20
) -> Iterator[list[Document]]:
    """Collect documents into batches.

    Args:
        documents: texts or documents.
        size: documents of a full batch.
        max_characters: characters of text after which a batch is full, too.

    Yields:
        batches of documents.

    Raises:
        ConfigError: if there is a single document, or something else.
    """
    if isinstance(documents, str | Document):
        raise ConfigError("documents: expected several, found one; call linker(text)")
    batch: list[Document] = []
    n_characters = 0
    for row, document in enumerate(documents):
        if not isinstance(document, str | Document):
            raise ConfigError(
                f"documents: row {row}: expected a text or Document, found {document!r}"
            )
        batch.append(document if isinstance(document, Document) else Document("", document))
        n_characters += len(batch[-1].text)
        if len(batch) >= size or n_characters >= max_characters:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


class _Job(NamedTuple):
    first_row: int
    documents: list[Document]


class _Failed(NamedTuple):
    message: str


@dataclass(frozen=True, slots=True)
class _Reopened:
    """Opens the linker of a worker, which uses its part of the cores."""

    reopen: Callable[[], Any]
    n_threads: int

    def open(self) -> Any:
        """Open it; compiled code that is not loaded yet reads the environment."""
        for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, str(self.n_threads))
        linker = self.reopen()
        if numba := sys.modules.get("numba"):
            numba.set_num_threads(min(self.n_threads, numba.get_num_threads()))
        return linker


ENGINES = {
    "local": "all cores of this machine",
    "ray": "a Ray cluster, or one on this machine",
}
"""Engines that run several processes, each with its description."""


def run_jobs(
    work: Callable[[Any, J], R],
    jobs: Iterable[J | Finished[R]],
    opener: Opener,
    workers: Workers,
    engine: str,
    purpose: str,
) -> Iterator[R]:
    """Do ``work(opened, job)`` for all jobs by an engine; results keep their order.

    Args:
        work: Called with what a worker has opened, and a job.
        jobs: The jobs; of those that are finished the result is yielded.
        opener: Opens what a worker needs.
        workers: Number of processes, or of actors.
        engine: Name of the engine (`ENGINES`).
        purpose: What Ray is needed for, in the message if it is missing.

    Returns:
        The results.
    """
    if engine == "local":
        return run_in_order(work, jobs, opener, workers)
    from biograft.linking.cluster import run_on_ray

    return run_on_ray(work, jobs, opener, workers.n, purpose)


def link_in_processes(
    reopen: Callable[[], Any] | None,
    batches: Iterable[list[Document]],
    n_process: int,
    engine: str = "local",
) -> Iterator[LinkedDocument]:
    """Link batches in processes that each open the linker again; results keep their order.

    The processes are spawned, since a fork of one that runs threads may hang. The files of an
    index are mapped into memory, which all processes of a machine share.

    Args:
        reopen: Opens the linker in a process; None (a linker that was not opened from files) is
            refused.
        batches: Documents, a batch at a time.
        n_process: Number of processes.
        engine: ``local``, or ``ray`` for actors of Ray.
    """
    if reopen is None:
        raise ConfigError(
            "n_process: other processes must be able to open the linker again; make it by "
            "Linker.open, or leave n_process out"
        )
    workers = Workers(
        n=n_process,
        place="n_process",
        remedy="use fewer processes; a script links below `if __name__ == '__main__':`",
        fork=False,
    )
    opener = _Reopened(reopen, max(1, n_cores() // n_process) if engine == "local" else 1)
    purpose = f"linking with --engine {engine}"
    for linked in run_jobs(_link_batch, _jobs(batches), opener, workers, engine, purpose):
        if isinstance(linked, _Failed):
            raise BiograftError(linked.message)
        yield from linked


def _jobs(batches: Iterable[list[Document]]) -> Iterator[_Job]:
    row = 0
    for batch in batches:
        yield _Job(row, batch)
        row += len(batch)


def _link_batch(linker: Any, job: _Job) -> list[LinkedDocument] | _Failed:
    """Link a batch; an error comes back as one line, since not every exception can be sent."""
    try:
        return list(linker.pipe(job.documents, batch_size=len(job.documents)))
    except BiograftError as error:
        return _Failed(str(error))
    except Exception as error:
        rows = f"{job.first_row} to {job.first_row + len(job.documents) - 1}"
        return _Failed(
            f"documents: rows {rows}: a worker failed ({type(error).__name__}: "
            f"{shorten(str(error))}); link them in this process to see where (n_process=1)"
        )
