"""How often each concept was found in a corpus: the Q(e) of SMedBERT's sampling, and a check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.annotation.config import AnnotationConfig
from biograft.annotation.engines import run_local
from biograft.annotation.work import (
    CHUNK_BYTES,
    AnnotationReport,
    Job,
    TextFile,
    find_files,
    n_cores,
    read_chunks,
)
from biograft.artifacts import MANIFEST, Kind, file_sizes, hash_file, new_file, sole_writer
from biograft.corpus.shards import SHARDS, shard_path
from biograft.errors import ConfigError, OutputError
from biograft.kb import KnowledgeBase
from biograft.linking.provenance import store_fingerprint
from biograft.progress import Progress
from biograft.registry import Registry

FREQUENCIES = "frequencies.parquet"


def count_concepts(shards: Iterable[Path]) -> pa.Table:
    """Count the spans of each concept: columns ``concept`` and ``count``, the most first."""
    total = pa.table({"concept": pa.array([], pa.string()), "count": pa.array([], pa.int64())})
    for path in shards:
        with pq.ParquetFile(path) as file:
            column = file.read(columns=["mentions.list.element.concept"])["mentions"]
        spans = pc.struct_field(column.combine_chunks().flatten(), "concept")
        counted = pc.value_counts(spans)
        part = pa.table({"concept": counted.field(0), "count": counted.field(1)})
        both = pa.concat_tables([total, part])
        total = both.group_by("concept").aggregate([("count", "sum")])
        total = total.rename_columns(["concept", "count"])
    return total.sort_by([("count", "descending"), ("concept", "ascending")])


def write_frequencies(folder: Path, shards: Iterable[Path]) -> pa.Table:
    """Count and write the frequencies beside the shards."""
    table = count_concepts(shards)
    with new_file(folder / FREQUENCIES, overwrite=True) as file:
        pq.write_table(table, file, compression="zstd")
    return table


def read_frequencies(folder: str | Path) -> dict[str, int]:
    """Read how often each concept was found."""
    path = Path(folder) / FREQUENCIES
    try:
        table = pq.read_table(path)
        return dict(zip(table["concept"].to_pylist(), table["count"].to_pylist(), strict=True))
    except (OSError, pa.ArrowException, KeyError) as error:
        raise SHARDS.damaged(path, error) from error


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
        "local": ("biograft.annotation.runner:local", "all cores of this machine"),
        "ray": ("biograft.annotation.engines:run_ray", "a Ray cluster, or one on this machine"),
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
