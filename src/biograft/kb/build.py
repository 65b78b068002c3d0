"""Build a store: read all sources, number the concepts, write the tables, then the manifest.

Everything happens in a working folder beside the target, which takes the target's name only
when it is whole. A build that fails, is interrupted or killed leaves no store that opens.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import biograft
from biograft.errors import InputError, OutputError
from biograft.kb.assemble import (
    Assembly,
    Ends,
    write_definitions,
    write_ids,
    write_names,
    write_relations,
    write_types,
)
from biograft.kb.concepts import (
    DROPPED,
    Concepts,
    close_types,
    merge_concepts,
    number_concepts,
    renumber,
)
from biograft.kb.config import BuildConfig
from biograft.kb.gather import Gathered
from biograft.kb.hierarchy import find_cycle
from biograft.kb.layout import FORMAT, GROUPED, MANIFEST, SCHEMAS, VERSION, file_name
from biograft.kb.report import BuildReport, SourceReport, config_to_json
from biograft.kb.tables import Table, TableWriter
from biograft.languages import language_code
from biograft.progress import Progress
from biograft.records import IS_A
from biograft.runs import hash_file, new_folder
from biograft.sources import ReadLog, SourceConfig, read_source, resolve


@dataclass
class _Sources:
    """All sources as read."""

    gathered: Gathered
    logs: list[ReadLog]
    formats: list[str]
    hashes: dict[Path, Future[str]]


def build_store(
    config: BuildConfig,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BuildReport:
    """Build a knowledge base from sources into the folder ``out``."""
    out = Path(out)
    progress = progress or Progress(enabled=False)
    with new_folder(out, overwrite=overwrite) as folder, ThreadPoolExecutor(1) as hasher:
        try:
            _refuse_foreign(out)
            report = _build(config, folder, hasher, progress, out)
        except pa.ArrowException as error:
            raise OutputError(f"{out}: cannot be written ({error})") from error
        finally:
            progress.finish()
            hasher.shutdown(cancel_futures=True)
    return report


def _refuse_foreign(out: Path) -> None:
    """Refuse to replace a folder of something else, such as that of the sources."""
    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise OutputError(
            f"{out}: holds no knowledge base, so it is not overwritten; remove it or choose "
            "another place"
        )


def _build(
    config: BuildConfig, folder: Path, hasher: ThreadPoolExecutor, progress: Progress, out: Path
) -> BuildReport:
    work = folder / "work"
    work.mkdir()
    sources = _read(config, work, hasher, progress)
    progress.start("numbering concepts")
    concepts = _number(config, sources)
    sources.gathered.drop("concepts")
    assembly = Assembly(sources.gathered, concepts, folder, work)
    ends = _write_tables(config, assembly, progress)
    _write_concepts(assembly, ends)
    progress.start("checking the hierarchy")
    warnings = _warnings(assembly, concepts)
    progress.start("hashing the sources")
    hashes = {path: future.result() for path, future in sources.hashes.items()}
    progress.finish()
    work.rmdir()
    report = BuildReport(
        store=str(out),
        counts={"concepts": assembly.n_concepts, **_table_sizes(folder)},
        merged={
            "concepts": concepts.n_merged,
            **assembly.n_merged,
            "shared names dropped": assembly.n_shared,
        },
        sources=tuple(
            SourceReport.of(log, form, hashes)
            for log, form in zip(sources.logs, sources.formats, strict=True)
        ),
        warnings=tuple(warnings),
        seconds=dict(progress.seconds),
    )
    _write_manifest(folder, config, report, assembly)
    return report


def _read(
    config: BuildConfig, work: Path, hasher: ThreadPoolExecutor, progress: Progress
) -> _Sources:
    """Read every source into gathered tables, hashing its files on the side."""
    sources = _Sources(Gathered(work), [], [], {})
    for source in map(resolve, config.sources):
        progress.start(f"reading {source.path.name}")
        log = ReadLog(source.path, progress.advance)
        log.leaves_out = bool(source.languages or source.vocabularies or source.term_types)
        sources.logs.append(log)
        sources.formats.append(source.format)
        for item in read_source(source, log):
            sources.gathered.add(item, log)
            for path in log.files:
                if path not in sources.hashes:
                    sources.hashes[path] = hasher.submit(hash_file, path)
        sources.gathered.flush()
        for path in log.files:
            if path not in sources.hashes:
                sources.hashes[path] = hasher.submit(hash_file, path)
    return sources


def _number(config: BuildConfig, sources: _Sources) -> Concepts:
    concepts = number_concepts(sources.gathered)
    if config.merge != "none":
        concepts = merge_concepts(concepts, sources.gathered, config.merge)
    if config.types:
        concepts = _keep_types(concepts, sources.gathered, config.types)
    if not len(concepts.ids):
        first = config.sources[0].path
        found = f"{sources.logs[0].n_read:,} rows were read"
        raise InputError(
            f"gives no concept ({found})",
            path=first,
            remedy="check the format and the filters",
        )
    return concepts


def _keep_types(concepts: Concepts, gathered: Gathered, wanted: tuple[str, ...]) -> Concepts:
    """Drop the concepts that have none of the wanted types."""
    vocabulary = gathered.vocabularies["type"]
    trees = {code: gathered.labels.get(code, ("", ""))[1] for code in vocabulary.words}
    closed = close_types(trees, wanted)
    numbers = [number for number, code in enumerate(vocabulary.words) if code in closed]
    n = len(concepts.ids)
    keep = np.zeros(n, bool)
    for frame in gathered.frames("types"):
        chosen = frame.filter(frame["type"].is_in(numbers))
        rows = concepts.rows_of(chosen["concept"])
        keep[rows.drop_nulls().to_numpy()] = True
    leaders = np.where(keep, np.arange(n, dtype=np.uint32), DROPPED)
    kept = renumber(concepts, leaders.astype(np.uint32))
    kept.n_dropped = n - len(kept.ids)
    return kept


def _write_tables(config: BuildConfig, assembly: Assembly, progress: Progress) -> dict[str, Ends]:
    words = assembly.gathered.vocabularies["language"].words
    wanted = config.languages or next((s.languages for s in config.sources if s.languages), ())
    main = [words.index(tag) for tag in map(language_code, wanted or ("en",)) if tag in words]
    ends: dict[str, Ends] = {}
    progress.start("writing names")
    ends["names"] = write_names(assembly, config.names, main)
    progress.start("writing definitions, types and ids")
    ends["definitions"] = write_definitions(assembly)
    ends["types"] = write_types(assembly)
    ends["ids"] = write_ids(assembly)
    progress.start("writing relations")
    ends["relations"], ends["incoming"] = write_relations(assembly)
    return ends


def _write_concepts(assembly: Assembly, ends: dict[str, Ends]) -> None:
    with TableWriter(assembly.folder, "concepts") as writer:
        columns: dict[str, Any] = {"id": assembly.concepts.ids}
        columns |= {f"{table}_end": ends[table] for table in GROUPED}
        writer.write(columns)


def _warnings(assembly: Assembly, concepts: Concepts) -> list[str]:
    warnings = []
    words = assembly.gathered.vocabularies["relation"].words
    if IS_A in words:
        table = Table(assembly.folder, "relations")
        chosen = table.numbers("relation").all() == words.index(IS_A)
        heads, tails = (table.numbers(column).all()[chosen] for column in ("head", "tail"))
        n, cycle = find_cycle(heads, tails, assembly.n_concepts)
        if cycle:
            path = " -> ".join(concepts.ids[row] for row in cycle[:8])
            warnings.append(
                f"is-a has cycles: {n:,} concepts lie on or between them, such as {path}; "
                "ancestors are still found, each once; mend the source if it is yours"
            )
    if concepts.n_ambiguous:
        warnings.append(
            f"{concepts.n_ambiguous:,} links between sources were ambiguous and not used to merge"
        )
    return warnings


def _table_sizes(folder: Path) -> dict[str, int]:
    tables = ("names", "definitions", "types", "ids", "relations")
    return {table: Table(folder, table).n_rows for table in tables}


def _write_manifest(
    folder: Path, config: BuildConfig, report: BuildReport, assembly: Assembly
) -> None:
    """Write the manifest last: a folder without one is no store."""
    vocabularies = assembly.gathered.vocabularies
    labels = assembly.gathered.labels
    names = Table(folder, "names").numbers("language").all()
    languages = vocabularies["language"].words
    per_language = np.bincount(names, minlength=len(languages)).tolist()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"biograft {biograft.__version__}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": config_to_json(config),
        **{key: value for key, value in report.to_json().items() if key != "store"},
        "n_names_by_language": dict(zip(languages, per_language, strict=True)),
        "vocabularies": {
            "languages": languages,
            "sources": vocabularies["source"].words,
            "relations": vocabularies["relation"].words,
            "types": [[code, *labels.get(code, ("", ""))] for code in vocabularies["type"].words],
        },
        "files": {
            file_name(table): {
                "bytes": (folder / file_name(table)).stat().st_size,
                "sha256": hash_file(folder / file_name(table)),
            }
            for table in SCHEMAS
        },
    }
    path = folder / MANIFEST
    with path.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())


def build_starter(out: str | Path, *, overwrite: bool = False) -> BuildReport:
    """Build the knowledge base that ships with the package."""
    from biograft.sources import STARTER

    config = BuildConfig(sources=(SourceConfig(path=Path(STARTER)),))
    return build_store(config, out, overwrite=overwrite)
