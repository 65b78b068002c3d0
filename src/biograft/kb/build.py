"""Build a knowledge base: read sources, merge concepts, write tables and the manifest."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.artifacts import hash_file, new_folder
from biograft.errors import InputError, OutputError, nearest
from biograft.kb.assembly import (
    Assembly,
    Ends,
    write_definitions,
    write_ids,
    write_names,
    write_relations,
    write_types,
)
from biograft.kb.collector import CollectedRecords
from biograft.kb.concepts import (
    Concepts,
    add_alternates,
    filter_types,
    number_concepts,
)
from biograft.kb.config import BuildConfig
from biograft.kb.manifest import BuildReport, SourceReport, is_store, table_sizes, write_manifest
from biograft.kb.merging import OTHER_NAMES, SEVERAL, merge_concepts
from biograft.kb.names import language_code
from biograft.kb.records import IS_A
from biograft.kb.sources import STARTER, ReadLog, SourceConfig, read_source, resolve
from biograft.kb.sources.iris import ConceptIris
from biograft.kb.tables import GROUPED, Table, TableWriter
from biograft.progress import Progress


@dataclass
class _Hasher:
    """Hashes source files in a thread while they are read."""

    pool: ThreadPoolExecutor
    stop: Event
    futures: dict[Path, Future[str]] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Start hashing a file, unless it is hashed already."""
        if path not in self.futures:
            self.futures[path] = self.pool.submit(hash_file, path, self.stop)

    def results(self) -> dict[Path, str]:
        """Wait for the hashes of all files."""
        return {path: future.result() for path, future in self.futures.items()}


@dataclass
class _Sources:
    """Collected records, logs and formats of all sources."""

    records: CollectedRecords
    logs: list[ReadLog]
    formats: list[str]
    iris: ConceptIris = field(default_factory=ConceptIris)


MERGED_TABLES = ("names", "definitions", "types", "ids", "relations")
"""Tables of which equal rows are merged."""


def build_store(
    config: BuildConfig,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BuildReport:
    """Build a knowledge base from sources into the folder ``out``.

    >>> config = BuildConfig(sources=(SourceConfig(path=Path("MRCONSO.RRF")),), languages=("en",))
    >>> build_store(config, "kb").counts["concepts"]
    """
    out = Path(out)
    progress = progress or Progress(enabled=False)
    _refuse_fork(out)
    stop = Event()
    with new_folder(out, overwrite=overwrite) as folder, ThreadPoolExecutor(1) as pool:
        try:
            _refuse_foreign(out)
            report = _build(config, folder, _Hasher(pool, stop), progress, out)
        except pa.ArrowException as error:
            raise OutputError(f"{out}: cannot be written ({error})") from error
        finally:
            stop.set()
            progress.finish()
            pool.shutdown(cancel_futures=True)
    return report


_BUILDERS: set[int] = set()
"""Processes that have built a store: this one, and those it was forked from."""


def _refuse_fork(out: Path) -> None:
    """Refuse to wait for ever: a forked process has the locks of polars, but not its threads."""
    if _BUILDERS and os.getpid() not in _BUILDERS:
        raise OutputError(
            f"{out}: a process that was forked after its parent had built a store cannot build "
            "another; start it with the method spawn (multiprocessing.get_context('spawn'))"
        )
    _BUILDERS.add(os.getpid())


def _refuse_foreign(out: Path) -> None:
    """Refuse to replace a folder that is no store, such as that of the sources."""
    if out.is_dir() and any(out.iterdir()) and not is_store(out):
        raise OutputError(
            f"{out}: holds no knowledge base, so it is not overwritten; remove it or choose "
            "another folder"
        )


def _build(
    config: BuildConfig, folder: Path, hasher: _Hasher, progress: Progress, out: Path
) -> BuildReport:
    work = folder / "work"
    work.mkdir()
    sources = _read(config, work, hasher, progress)
    progress.start("numbering concepts")
    concepts = _number(config, sources)
    sources.records.drop("concepts")
    assembly = Assembly(sources.records, concepts, folder, work)
    ends = _write_tables(config, assembly, progress)
    _write_concepts(assembly, ends)
    progress.start("checking the hierarchy")
    warnings = [
        *sources.iris.warnings(),
        *_unused_filters(config, assembly),
        *_warnings(assembly, concepts),
    ]
    progress.start("hashing the sources")
    hashes = hasher.results()
    progress.finish()
    work.rmdir()
    report = BuildReport(
        store=str(out),
        counts={"concepts": assembly.n_concepts, **table_sizes(folder)},
        merged={
            "concepts": concepts.n_merged,
            **{table: assembly.n_merged.get(table, 0) for table in MERGED_TABLES},
        },
        dropped={
            "concepts of other types": concepts.n_dropped,
            "names that several concepts share": assembly.n_shared,
        },
        sources=tuple(
            SourceReport.of(log, form, hashes)
            for log, form in zip(sources.logs, sources.formats, strict=True)
        ),
        warnings=tuple(warnings),
        unmerged=tuple(concepts.unmerged.rows()),
        seconds=dict(progress.seconds),
    )
    write_manifest(folder, config, report, assembly)
    return report


def _read(config: BuildConfig, work: Path, hasher: _Hasher, progress: Progress) -> _Sources:
    """Read every source into tables and hash its files meanwhile."""
    sources = _Sources(CollectedRecords(work), [], [])
    for source in map(resolve, config.sources):
        progress.start(f"reading {source.path.name}")
        log = ReadLog(source.path, progress.advance, hasher.add, sources.iris)
        sources.logs.append(log)
        sources.formats.append(source.format)
        with closing(read_source(source, log)) as items:
            for item in items:
                sources.records.add(item, log)
        sources.records.flush()
    return sources


def _number(config: BuildConfig, sources: _Sources) -> Concepts:
    concepts = number_concepts(sources.records)
    if config.merge != "none":
        concepts = merge_concepts(concepts, sources.records, config.merge)
    if config.types:
        concepts = filter_types(concepts, sources.records, config.types)
    if not len(concepts.ids):
        raise _no_concepts(sources)
    return add_alternates(concepts, sources.records)


def _no_concepts(sources: _Sources) -> InputError:
    """Return the error for a build without concepts, with the most frequent reasons."""
    n_read = sum(log.n_read for log in sources.logs)
    reasons: Counter[str] = Counter()
    for log in sources.logs:
        reasons.update({f"rejected: {why}": n for why, n in log.rejected.counts.items()})
        reasons.update({f"filtered: {why}": n for why, n in log.filtered.items()})
    top = [f"{n:,} {reason}" for reason, n in reasons.most_common(2)]
    return InputError(
        f"contains no concept ({'; '.join([f'{n_read:,} rows were read', *top])})",
        path=", ".join(str(log.path) for log in sources.logs),
        remedy="check the format and the filters",
    )


def _write_tables(config: BuildConfig, assembly: Assembly, progress: Progress) -> dict[str, Ends]:
    tags = assembly.records.vocabularies["language"].labels
    preferred = config.languages or next((s.languages for s in config.sources if s.languages), ())
    main = [tags.index(tag) for tag in map(language_code, preferred or ("en",)) if tag in tags]
    progress.start("writing tables")
    with ThreadPoolExecutor(1) as pool:  # names take about as long as all others
        rest = pool.submit(_write_rest, assembly)
        ends = {"names": write_names(assembly, config.names, main)}
        return ends | rest.result()


def _write_rest(assembly: Assembly) -> dict[str, Ends]:
    """Write all tables but those of concepts and names."""
    ends = {
        "definitions": write_definitions(assembly),
        "types": write_types(assembly),
        "ids": write_ids(assembly),
    }
    ends["relations"], ends["incoming"] = write_relations(assembly)
    return ends


def _write_concepts(assembly: Assembly, ends: dict[str, Ends]) -> None:
    with TableWriter(assembly.folder, "concepts") as writer:
        columns: dict[str, Any] = {"id": assembly.concepts.ids}
        columns |= {f"{table}_end": ends[table] for table in GROUPED}
        writer.write(columns)


def _unused_filters(config: BuildConfig, assembly: Assembly) -> list[str]:
    """Warn of filter values that match nothing in the sources; most are misspelt."""
    vocabularies = assembly.records.vocabularies
    warnings = []
    for option, vocabulary in (
        ("languages", "language"), ("vocabularies", "source"), ("keep_concepts_of", "source"),
        ("relations", "relation"),
    ):  # fmt: skip
        labels = vocabularies[vocabulary].labels
        values = {value for source in config.sources for value in getattr(source, option)}
        if option == "languages":
            values = {language_code(value) for value in values}
        for value in sorted(values - set(labels)):
            hint = nearest(value, labels) if labels else "nothing was kept"
            warnings.append(f"{option}: nothing in the sources is called {value!r}; {hint}")
    if not assembly.records.n_rows["names"]:
        warnings.append("no concept has a name")
    return warnings


def _warnings(assembly: Assembly, concepts: Concepts) -> list[str]:
    warnings = []
    names = assembly.records.vocabularies["relation"].labels
    if IS_A in names:
        table = Table(assembly.folder, "relations")
        is_a = table.numbers("relation").all() == names.index(IS_A)
        heads, tails = (table.numbers(column).all()[is_a] for column in ("head", "tail"))
        n, cycle = find_cycle(heads, tails, assembly.n_concepts)
        if cycle:
            path = " -> ".join(concepts.ids[row] for row in cycle[:8])
            warnings.append(
                f"is-a has cycles: {n:,} concepts lie on or between them, such as {path}; "
                "ancestors are still found, each once; correct the source if it is yours"
            )
    if concepts.n_ambiguous:
        warnings.append(
            f"{concepts.n_ambiguous:,} links were ambiguous (within one source, or not one to one) "
            "and not used to merge"
        )
    near = concepts.unmerged["reason"].is_in([SEVERAL, OTHER_NAMES]).sum()
    if near:
        warnings.append(
            f"{near:,} cross-references were not used to merge: one of several to a vocabulary, or "
            "to a concept of other names (--merge xrefs-all uses them, --unmerged lists them)"
        )
    return warnings


def build_starter(out: str | Path, *, overwrite: bool = False) -> BuildReport:
    """Build the starter knowledge base that ships with the package.

    >>> build_starter("kb").counts["concepts"]
    896
    """
    config = BuildConfig(sources=(SourceConfig(path=Path(STARTER)),))
    return build_store(config, out, overwrite=overwrite)


# ---- cycles in the hierarchy

Rows = npt.NDArray[np.uint32]
MAX_PEELS = 200
"""Deeper hierarchies than this are peeled one concept at a time."""


def find_cycle(children: Rows, parents: Rows, n_concepts: int) -> tuple[int, list[int]]:
    """Find cycles in a hierarchy: the number of concepts on or between them, and one of them.

    Concepts without a remaining parent or child are removed repeatedly; in a hierarchy without
    cycles nothing remains.
    """
    for _ in range(MAX_PEELS):
        if not len(children):
            break
        has_parent = np.zeros(n_concepts, bool)
        has_child = np.zeros(n_concepts, bool)
        has_parent[children] = True
        has_child[parents] = True
        inner = has_parent[parents] & has_child[children]
        if inner.all():
            break
        children, parents = children[inner], parents[inner]
    else:
        children, parents = _peel_one_by_one(children, parents)
    if not len(children):
        return 0, []
    return len(np.unique(children)), _walk(children, parents)


def _peel_one_by_one(children: Rows, parents: Rows) -> tuple[Rows, Rows]:
    """Peel the rest of a very deep hierarchy, in time linear in its edges.

    Only concepts without parents are removed, so concepts below a cycle remain.
    """
    below: dict[int, list[int]] = {}
    n_parents: dict[int, int] = {}
    for child, parent in zip(children.tolist(), parents.tolist(), strict=True):
        below.setdefault(parent, []).append(child)
        n_parents[child] = n_parents.get(child, 0) + 1
    queue = [node for node in below if node not in n_parents]
    for node in queue:
        for child in below.get(node, ()):
            n_parents[child] -= 1
            if not n_parents[child]:
                queue.append(child)
    free = np.array(sorted(queue), np.uint32)
    linked = ~np.isin(parents, free)
    return children[linked], parents[linked]


def _walk(children: Rows, parents: Rows) -> list[int]:
    """Follow parents until a concept occurs twice, and return the cycle."""
    up = dict(zip(children.tolist(), parents.tolist(), strict=True))
    path: list[int] = []
    seen: dict[int, int] = {}
    node = int(children[0])
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = up[node]
    return [*path[seen[node] :], node]
