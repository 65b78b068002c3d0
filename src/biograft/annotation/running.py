"""Annotate a corpus from end to end: check, work, count, and say what was made.

The folder fills up shard by shard. ``annotation.json`` stands in it from the beginning and says
what the shards are made of; ``manifest.json`` appears at the end. Work that was interrupted goes
on where it was, but only with the same store, input and settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.annotation.config import AnnotationConfig
from biograft.annotation.engine_local import run_local
from biograft.annotation.frequencies import write_frequencies
from biograft.annotation.inputs import CHUNK_BYTES, TextFile, find_files, read_chunks
from biograft.annotation.report import AnnotationReport
from biograft.annotation.work import Job, n_cores
from biograft.corpus.shards import SHARDS, shard_path
from biograft.errors import ConfigError, OutputError
from biograft.kb import KnowledgeBase
from biograft.linking.provenance import store_fingerprint
from biograft.manifests import MANIFEST, Kind, file_sizes
from biograft.progress import Progress
from biograft.registry import Registry
from biograft.runs import hash_file, sole_writer

PLAN = Kind(
    format="biograft-annotation",
    version=1,
    called="annotation under way",
    remedy="remove the folder and run `biograft corpus annotate` again",
    file="annotation.json",
    keys=("made_of",),
)

Engine = Callable[[Job, Sequence[TextFile], int, int], Iterator[dict[str, Any]]]
"""Gives the reports of all shards in order: of a job, files, workers, and bytes of a chunk."""

ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "local": ("biograft.annotation.running:local", "all cores of this machine"),
        "ray": ("biograft.annotation.engine_ray:run_ray", "a Ray cluster, or one on this machine"),
    },
)


@dataclass(frozen=True, kw_only=True)
class Running:
    """How the work is done; it changes nothing in what comes out, but for ``chunk_bytes``."""

    engine: str = "local"
    workers: int = 0
    """Processes; 0: as many as there are cores."""
    resume: bool = False
    form: str = ""
    """Format of all files; empty: by their endings."""
    chunk_bytes: int = CHUNK_BYTES
    """How much text makes a shard."""

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ConfigError(f"workers: expected 0 or more, found {self.workers}")
        if self.chunk_bytes < 1:
            raise ConfigError(f"chunk_bytes: expected 1 or more, found {self.chunk_bytes}")


def local(
    job: Job, files: Sequence[TextFile], workers: int, chunk_bytes: int
) -> Iterator[dict[str, Any]]:
    """Run on this machine."""
    return run_local(job, read_chunks(files, chunk_bytes), workers)


def annotate_corpus(
    kb: str | Path,
    texts: Sequence[str | Path],
    out: str | Path,
    config: AnnotationConfig | None = None,
    running: Running | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Annotate files with the concepts of a store into a folder of shards; give its manifest."""
    config, running = config or AnnotationConfig(), running or Running()
    progress, out = progress or Progress(enabled=False), Path(out)
    engine = ENGINES.load(running.engine)
    base = KnowledgeBase.open(kb)
    files = find_files(texts, running.form)
    job = Job(Path(kb).absolute(), out.absolute(), config)
    made_of = _made_of(base, job, files, running)
    with sole_writer(out):
        _begin(out, made_of, resume=running.resume)
        work = engine(job, files, running.workers or n_cores(), running.chunk_bytes)
        return _annotate(work, out, made_of, progress)


def _annotate(
    work: Iterator[dict[str, Any]], out: Path, made_of: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    """Have the shards made, count, and write the manifest."""
    started = time.perf_counter()
    report, n_shards = AnnotationReport(), 0
    progress.start("annotate")
    for said in work:
        report.add(said)
        n_shards += 1
        progress.advance(said["counts"].get("documents", 0))
    progress.start("count")
    paths = [shard_path(out, number) for number in range(n_shards)]
    concepts = write_frequencies(out, paths)
    progress.finish()
    sizes = {name: size for name, size in file_sizes(out).items() if name.endswith(".parquet")}
    content = {
        "made_of": made_of,
        "n_shards": n_shards,
        "n_documents": report.counts["documents"],
        "n_spans": report.counts["spans"],
        "n_concepts": len(concepts),
        "report": report.to_json(),
        "seconds": round(time.perf_counter() - started, 3),
        "files": sizes,
    }
    return SHARDS.write(out, content, overwrite=True)


def _made_of(
    base: KnowledgeBase, job: Job, files: Iterable[TextFile], running: Running
) -> dict[str, Any]:
    """Say what decides about every byte of the shards."""
    index = job.config.index
    return {
        "store": store_fingerprint(base),
        "index": hash_file(index / MANIFEST) if index and (index / MANIFEST).exists() else None,
        "settings": job.config.to_json(),
        "chunk_bytes": running.chunk_bytes,
        "inputs": [
            {"file": file.path.name, "bytes": file.path.stat().st_size, "format": file.form}
            for file in files
        ],
    }


def _begin(out: Path, made_of: dict[str, Any], *, resume: bool) -> None:
    """Make the folder, or see that the one that is there was begun for the same."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        PLAN.write(out, {"made_of": made_of})
        return
    if not resume:
        raise OutputError(
            f"{out}: exists already; go on with it (--resume), remove it or choose another place"
        )
    before = PLAN.read(out)["made_of"]
    for key, value in made_of.items():
        if before.get(key) != value:
            raise ConfigError(
                f"{out}: was begun with another {key} ({before.get(key)!r}, now {value!r}); use "
                "the same, or another folder"
            )
