"""Corpus annotation: chunks of text files to shards, and concept frequencies (Q(e) of SMedBERT)."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biograft.artifacts import (
    ANNOTATION,
    ArtifactKind,
    describe_files,
    new_file,
    sole_writer,
)
from biograft.compute import Finished, Workers, n_cores
from biograft.config import AtLeast, Choice, Config
from biograft.errors import OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.annotation.chunks import (
    CHUNK_BYTES,
    AnnotationReport,
    Chunk,
    find_files,
    read_chunks,
    read_records,
)
from biograft.linking.annotation.config import AnnotationConfig
from biograft.linking.annotation.pipeline import Annotator, with_given
from biograft.linking.batches import ENGINES, make_batches, run_jobs
from biograft.linking.plans import made_of, read_plan
from biograft.progress import Progress
from biograft.text.cleaning import Cleaner
from biograft.text.input_config import InputConfig
from biograft.text.inputs import Inputs
from biograft.text.shards import (
    SHARDS,
    AnnotatedDocument,
    read_report,
    shard_path,
    write_shard,
)

FREQUENCIES = "frequencies.parquet"
_DOCUMENTS, _CHARACTERS = 512, 1 << 18
"""Maximum documents and characters of a batch."""


def write_frequencies(folder: Path, shards: Iterable[Path]) -> int:
    """Count the spans of each concept, and write columns ``concept`` and ``count``.

    Args:
        folder: the folder of the shards, which the frequencies are written to.
        shards: the paths of the shards.

    Returns:
        the number of concepts; the most frequent is first.
    """
    counts: Counter[str] = Counter()
    for path in shards:
        with pq.ParquetFile(path) as file:
            column = file.read(columns=["mentions.list.element.concept"])["mentions"]
        spans = pc.struct_field(column.combine_chunks().flatten(), "concept")
        counted = pc.value_counts(spans)
        counts.update(dict(zip(*(part.to_pylist() for part in counted.flatten()), strict=True)))
    order = sorted(counts, key=lambda concept: (-counts[concept], concept))
    concepts = pa.array(order, pa.string())
    numbers = pa.array([counts[concept] for concept in order], pa.int64())
    with new_file(folder / FREQUENCIES, overwrite=True) as file:
        table = pa.table({"concept": concepts, "count": numbers})
        pq.write_table(table, file, compression="zstd")
    return len(order)


def read_frequencies(folder: str | Path) -> dict[str, int]:
    """Read the number of spans of each concept.

    Args:
        folder: a folder of shards.

    Returns:
        the counts by concept, the most frequent first.

    Raises:
        StoreError: if the file is missing or damaged.
    """
    path = Path(folder) / FREQUENCIES
    try:
        table = pq.read_table(path)
        return dict(zip(table["concept"].to_pylist(), table["count"].to_pylist(), strict=True))
    except (OSError, pa.ArrowException, KeyError) as error:
        raise SHARDS.damaged(path, error) from error


def annotate_chunk(out: Path, annotator: Annotator, chunk: Chunk) -> dict[str, Any]:
    """Annotate a chunk into its shard.

    Args:
        out: the folder of the shards.
        annotator: finds and links the spans.
        chunk: the text.

    Returns:
        the report of the shard, which is kept in it.
    """
    report, how, cleaning = AnnotationReport(), annotator.config.mentions, annotator.config.cleaning
    report.add({"rejected": chunk.rejected})
    documents = read_records(chunk, report, mentions=how != "find")
    if cleaning is not None:
        cleaner = Cleaner(cleaning)
        documents = chain.from_iterable(map(cleaner.clean, documents))
        report.cleaned = cleaner.report.counts
    annotated: list[AnnotatedDocument] = []
    was_enabled = gc.isenabled()
    gc.disable()  # it would go through all spans of a chunk many times
    try:
        for batch in make_batches(documents, _DOCUMENTS, _CHARACTERS):
            found = annotator.annotate(batch, report.counts)
            if how != "find":
                found = with_given(found, batch, annotator.kb, how, report.counts)
            annotated += found
        values = report.to_json()
        write_shard(shard_path(out, chunk.index), annotated, values)
    finally:
        if was_enabled:
            gc.enable()
    return values


@dataclass(frozen=True, slots=True)
class Job:
    """Shared input of all workers, besides the text."""

    kb: Path
    out: Path
    config: AnnotationConfig

    def open(self) -> Annotator:
        """Open the annotator, which takes memory and, for large stores, time."""
        return Annotator.open(self.kb, self.config)


def _unfinished(out: Path, chunks: Iterable[Chunk]) -> Iterator[Chunk | Finished[dict[str, Any]]]:
    """Yield the chunks that have no shard, and the reports of the shards that there are."""
    for chunk in chunks:
        path = shard_path(out, chunk.index)
        try:
            yield Finished(read_report(path)) if path.exists() else chunk
        except StoreError:
            path.unlink()  # damaged from outside, since only complete files are written
            yield chunk


PLAN = ArtifactKind(
    format=ANNOTATION,
    version=1,
    called="annotation in progress",
    remedy="remove the folder and run `biograft corpus annotate` again",
    file="annotation.json",
    keys=("made_of",),
)


@dataclass(frozen=True, kw_only=True)
class ExecutionConfig(Config):
    """Execution of an annotation; only ``chunk_bytes`` affects the result."""

    engine: Annotated[str, Choice(*ENGINES)] = "local"
    """Runs the shards: ``local`` processes or ``ray``."""
    workers: Annotated[int, AtLeast(0)] = 0
    """Number of processes; 0: one per core."""
    resume: bool = False
    """Continue a run that was interrupted."""
    reading: InputConfig = field(default_factory=lambda: InputConfig(lines=True))
    """Options for reading files; a line of plain text is a document."""
    chunk_bytes: Annotated[int, AtLeast(1)] = CHUNK_BYTES
    """Size of the text of a shard."""


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
    progress, out = progress or Progress(), Path(out)
    base = KnowledgeBase.open(kb)
    inputs = Inputs([texts] if isinstance(texts, str | Path) else texts, execution.reading)
    files = find_files(inputs)
    job = Job(Path(kb).absolute(), out.absolute(), config)
    plan = made_of(
        base,
        {"index": config.index},
        execution.reading,
        [file.path for file in files],
        settings=config.to_json(),
        chunk_bytes=execution.chunk_bytes,
    )
    # forked workers share the memory of one annotator; torch, which an index may need, cannot fork
    workers = Workers(
        n=execution.workers or n_cores(),
        place=str(job.out),
        remedy="take fewer --workers and continue with --resume",
        fork=config.index is None,
    )
    purpose = f"annotating with --engine {execution.engine}"
    with sole_writer(out):
        _open_output(out, plan, resume=execution.resume)
        started, report, n_shards = time.perf_counter(), AnnotationReport(), 0
        progress.start("annotate")
        chunks = _unfinished(job.out, read_chunks(files, execution.chunk_bytes))
        for shard_report in run_jobs(
            partial(annotate_chunk, job.out), chunks, job, workers, execution.engine, purpose
        ):
            report.add(shard_report)
            n_shards += 1
            progress.advance(shard_report["counts"].get("documents", 0))
        progress.start("count")
        n_concepts = write_frequencies(out, [shard_path(out, n) for n in range(n_shards)])
        progress.finish()
        described = describe_files(out).items()
        content = {
            "made_of": plan,
            "skipped": list(map(str, inputs.skipped)),
            "notes": inputs.notes,
            "n_shards": n_shards,
            "n_documents": report.counts["documents"],
            "n_spans": report.counts["spans"],
            "n_concepts": n_concepts,
            "report": report.to_json(),
            "seconds": round(time.perf_counter() - started, 3),
            "files": {name: each for name, each in described if name.endswith(".parquet")},
        }
        return SHARDS.write(out, content, overwrite=True)


def _open_output(out: Path, plan: dict[str, Any], *, resume: bool) -> None:
    """Create the folder, or check that an existing one was begun with the same inputs."""
    if PLAN.is_free(out):
        PLAN.write(out, {"made_of": plan})
        return
    if not resume:
        raise OutputError(
            f"{out}: exists already; continue it (--resume), remove it or choose another path"
        )
    read_plan(PLAN, out, out, plan)
