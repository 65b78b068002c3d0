"""Run corpus annotation over files with an engine; concept frequencies (Q(e) of SMedBERT)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.artifacts import (
    MANIFEST,
    ArtifactKind,
    describe_files,
    hash_file,
    new_file,
    sole_writer,
)
from biograft.compute import n_cores
from biograft.errors import ConfigError, OutputError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.annotation.config import AnnotationConfig
from biograft.linking.annotation.engines import run_local
from biograft.linking.annotation.work import (
    CHUNK_BYTES,
    AnnotationReport,
    Job,
    TextFile,
    find_files,
    read_chunks,
)
from biograft.progress import Progress
from biograft.registry import Registry
from biograft.text.input_config import InputConfig
from biograft.text.inputs import Inputs
from biograft.text.shards import SHARDS, shard_path

FREQUENCIES = "frequencies.parquet"


def count_concepts(shards: Iterable[Path]) -> pa.Table:
    """Count the spans of each concept: columns ``concept`` and ``count``, most frequent first."""
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
    """Count concepts and write the frequencies to the folder of the shards."""
    table = count_concepts(shards)
    with new_file(folder / FREQUENCIES, overwrite=True) as file:
        pq.write_table(table, file, compression="zstd")
    return table


def read_frequencies(folder: str | Path) -> dict[str, int]:
    """Read the number of spans of each concept."""
    path = Path(folder) / FREQUENCIES
    try:
        table = pq.read_table(path)
        return dict(zip(table["concept"].to_pylist(), table["count"].to_pylist(), strict=True))
    except (OSError, pa.ArrowException, KeyError) as error:
        raise SHARDS.damaged(path, error) from error


PLAN = ArtifactKind(
    format="biograft-annotation",
    version=1,
    called="annotation in progress",
    remedy="remove the folder and run `biograft corpus annotate` again",
    file="annotation.json",
    keys=("made_of",),
)

Engine = Callable[[Job, Sequence[TextFile], int, int], Iterator[dict[str, Any]]]
"""Yields the reports of all shards in order; takes a job, files, workers and bytes per chunk."""

ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "local": ("biograft.linking.annotation.runner:local", "all cores of this machine"),
        "ray": (
            "biograft.linking.annotation.engines:run_ray",
            "a Ray cluster, or one on this machine",
        ),
    },
)


@dataclass(frozen=True, kw_only=True)
class ExecutionConfig:
    """Execution of an annotation; only ``chunk_bytes`` affects the result."""

    engine: str = "local"
    workers: int = 0
    """Number of processes; 0: one per core."""
    resume: bool = False
    reading: InputConfig = field(default_factory=lambda: InputConfig(lines=True))
    """Options for reading files; a line of plain text is a document."""
    chunk_bytes: int = CHUNK_BYTES
    """Size of the text of a shard."""

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ConfigError(f"workers: expected 0 or more, found {self.workers}")
        if self.chunk_bytes < 1:
            raise ConfigError(f"chunk_bytes: expected 1 or more, found {self.chunk_bytes}")


def local(
    job: Job, files: Sequence[TextFile], workers: int, chunk_bytes: int
) -> Iterator[dict[str, Any]]:
    """Engine ``local``: annotate on this machine."""
    return run_local(job, read_chunks(files, chunk_bytes), workers)


def annotate(
    kb: str | Path,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    config: AnnotationConfig | None = None,
    execution: ExecutionConfig | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Annotate text files with the concepts of a store into a folder of shards.

    >>> annotate("KB", "abstracts.txt.gz", "CORPUS")["mentions"]  # doctest: +SKIP
    48210

    Args:
        kb: A store, as ``build_store`` writes it.
        texts: A file, or several, of plain text or of any document format.
        out: The folder that the shards are written to.
        config: Matching and linking; the defaults link the mentions of names found in the text.
        execution: Engine, number of processes, and whether an earlier run is resumed.
        progress: A progress bar; none is shown by default.

    Returns:
        The manifest of the corpus: its counts and what it was made of.
    """
    config, execution = config or AnnotationConfig(), execution or ExecutionConfig()
    progress, out = progress or Progress(enabled=False), Path(out)
    engine = ENGINES.load(execution.engine)
    base = KnowledgeBase.open(kb)
    inputs = Inputs([texts] if isinstance(texts, str | Path) else texts, execution.reading)
    files = find_files(inputs)
    if execution.engine != "local" and any(file.input.is_local for file in files):
        raise ConfigError(
            f"--engine {execution.engine}: standard input and zip archives can only be read by "
            "the local engine; save or unpack them first"
        )
    job = Job(Path(kb).absolute(), out.absolute(), config)
    made_of = _fingerprint_inputs(base, job, files, execution)
    with sole_writer(out):
        _open_output(out, made_of, resume=execution.resume)
        work = engine(job, files, execution.workers or n_cores(), execution.chunk_bytes)
        notes = {"skipped": list(map(str, inputs.skipped)), "notes": inputs.notes}
        return _annotate(work, out, {"made_of": made_of, **notes}, progress)


def _annotate(
    work: Iterator[dict[str, Any]], out: Path, origin: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    """Run the engine, count concepts, and write the manifest."""
    started = time.perf_counter()
    report, n_shards = AnnotationReport(), 0
    progress.start("annotate")
    for shard_report in work:
        report.add(shard_report)
        n_shards += 1
        progress.advance(shard_report["counts"].get("documents", 0))
    progress.start("count")
    paths = [shard_path(out, number) for number in range(n_shards)]
    concepts = write_frequencies(out, paths)
    progress.finish()
    files = {name: each for name, each in describe_files(out).items() if name.endswith(".parquet")}
    content = {
        **origin,
        "n_shards": n_shards,
        "n_documents": report.counts["documents"],
        "n_spans": report.counts["spans"],
        "n_concepts": len(concepts),
        "report": report.to_json(),
        "seconds": round(time.perf_counter() - started, 3),
        "files": files,
    }
    return SHARDS.write(out, content, overwrite=True)


def _fingerprint_inputs(
    base: KnowledgeBase, job: Job, files: Iterable[TextFile], execution: ExecutionConfig
) -> dict[str, Any]:
    """Return everything that determines the bytes of the shards."""
    index = job.config.index
    return {
        "store": store_fingerprint(base),
        "index": hash_file(index / MANIFEST) if index and (index / MANIFEST).exists() else None,
        "settings": job.config.to_json(),
        "chunk_bytes": execution.chunk_bytes,
        "reading": asdict(execution.reading),
        "inputs": [
            {"file": file.path.name, "bytes": file.n_bytes, "format": file.form} for file in files
        ],
    }


def _open_output(out: Path, made_of: dict[str, Any], *, resume: bool) -> None:
    """Create the folder, or check that an existing one was begun with the same inputs."""
    if PLAN.is_free(out):
        PLAN.write(out, {"made_of": made_of})
        return
    if not resume:
        raise OutputError(
            f"{out}: exists already; continue it (--resume), remove it or choose another path"
        )
    before = PLAN.read(out)["made_of"]
    for key, value in made_of.items():
        if before.get(key) != value:
            raise ConfigError(
                f"{out}: was begun with another {key} ({before.get(key)!r}, now {value!r}); use "
                "the same, or another folder"
            )
