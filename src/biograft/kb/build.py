"""The is-a hierarchy: whether it turns back on itself."""

from __future__ import annotations

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
from biograft.kb.collector import Gathered
from biograft.kb.concepts import (
    Concepts,
    keep_types,
    merge_concepts,
    number_concepts,
    with_alternates,
)
from biograft.kb.config import BuildConfig
from biograft.kb.manifest import BuildReport, SourceReport, is_store, table_sizes, write_manifest
from biograft.kb.tables import GROUPED, Table, TableWriter
from biograft.languages import language_code
from biograft.progress import Progress
from biograft.records import IS_A
from biograft.sources import STARTER, ReadLog, SourceConfig, read_source, resolve

Rows = npt.NDArray[np.uint32]
MAX_PEELS = 200
"""Deeper hierarchies than this are peeled one concept at a time."""


def find_cycle(children: Rows, parents: Rows, n_concepts: int) -> tuple[int, list[int]]:
    """Count the concepts that no peeling frees, and give one cycle among them (empty: none).

    Peeling takes away, again and again, every concept that has no parent left or no child left;
    in a hierarchy without cycles nothing remains.
    """
    for _ in range(MAX_PEELS):
        if not len(children):
            break
        has_parent = np.zeros(n_concepts, bool)
        has_child = np.zeros(n_concepts, bool)
        has_parent[children] = True
        has_child[parents] = True
        kept = has_parent[parents] & has_child[children]
        if kept.all():
            break
        children, parents = children[kept], parents[kept]
    else:
        children, parents = _peel_one_by_one(children, parents)
    if not len(children):
        return 0, []
    return len(np.unique(children)), _walk(children, parents)


def _peel_one_by_one(children: Rows, parents: Rows) -> tuple[Rows, Rows]:
    """Peel what is left of a very deep hierarchy, in time linear in its edges.

    Here only concepts without parents are taken away, so that what hangs below a cycle stays.
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
    kept = ~np.isin(parents, free)
    return children[kept], parents[kept]


def _walk(children: Rows, parents: Rows) -> list[int]:
    """Go from parent to parent until a concept comes again."""
    up = dict(zip(children.tolist(), parents.tolist(), strict=True))
    path: list[int] = []
    seen: dict[int, int] = {}
    node = int(children[0])
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = up[node]
    return [*path[seen[node] :], node]


@dataclass
class _Hasher:
    """Hashes the files of sources in a thread, while they are read."""

    pool: ThreadPoolExecutor
    stop: Event
    futures: dict[Path, Future[str]] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Begin with a file, if it is new."""
        if path not in self.futures:
            self.futures[path] = self.pool.submit(hash_file, path, self.stop)

    def results(self) -> dict[Path, str]:
        """Wait for the hashes of all files."""
        return {path: future.result() for path, future in self.futures.items()}


@dataclass
class _Sources:
    """All sources as read."""

    gathered: Gathered
    logs: list[ReadLog]
    formats: list[str]


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


def _refuse_foreign(out: Path) -> None:
    """Refuse to replace a folder of something else, such as that of the sources."""
    if out.is_dir() and any(out.iterdir()) and not is_store(out):
        raise OutputError(
            f"{out}: holds no knowledge base, so it is not overwritten; remove it or choose "
            "another place"
        )


def _build(
    config: BuildConfig, folder: Path, hasher: _Hasher, progress: Progress, out: Path
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
    warnings = [*_unmet(config, assembly), *_warnings(assembly, concepts)]
    progress.start("hashing the sources")
    hashes = hasher.results()
    progress.finish()
    work.rmdir()
    report = BuildReport(
        store=str(out),
        counts={"concepts": assembly.n_concepts, **table_sizes(folder)},
        merged={
            "concepts": concepts.n_merged,
            **assembly.n_merged,
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
        seconds=dict(progress.seconds),
    )
    write_manifest(folder, config, report, assembly)
    return report


def _read(config: BuildConfig, work: Path, hasher: _Hasher, progress: Progress) -> _Sources:
    """Read every source into gathered tables, hashing its files on the side."""
    sources = _Sources(Gathered(work), [], [])
    for source in map(resolve, config.sources):
        progress.start(f"reading {source.path.name}")
        log = ReadLog(source.path, progress.advance, hasher.add)
        sources.logs.append(log)
        sources.formats.append(source.format)
        with closing(read_source(source, log)) as items:
            for item in items:
                sources.gathered.add(item, log)
        sources.gathered.flush()
    return sources


def _number(config: BuildConfig, sources: _Sources) -> Concepts:
    concepts = number_concepts(sources.gathered)
    if config.merge != "none":
        concepts = merge_concepts(concepts, sources.gathered, config.merge)
    if config.types:
        concepts = keep_types(concepts, sources.gathered, config.types)
    if not len(concepts.ids):
        raise _nothing(config, sources)
    return with_alternates(concepts, sources.gathered)


def _nothing(config: BuildConfig, sources: _Sources) -> InputError:
    """Say why no concept came out: what was read, and what most often stood in the way."""
    n_read = sum(log.n_read for log in sources.logs)
    reasons: Counter[str] = Counter()
    for log in sources.logs:
        reasons.update({f"rejected: {why}": n for why, n in log.rejected.counts.items()})
        reasons.update({f"filtered: {why}": n for why, n in log.filtered.items()})
    told = [f"{n:,} {reason}" for reason, n in reasons.most_common(2)]
    return InputError(
        f"gives no concept ({'; '.join([f'{n_read:,} rows were read', *told])})",
        path=", ".join(str(log.path) for log in sources.logs),
        remedy="check the format and the filters",
    )


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


def _unmet(config: BuildConfig, assembly: Assembly) -> list[str]:
    """Warn of filter words that nothing answered, which are misspelt more often than not."""
    kept = assembly.gathered.vocabularies
    warnings = []
    for option, vocabulary in (
        ("languages", "language"), ("vocabularies", "source"), ("relations", "relation"),
    ):  # fmt: skip
        words = kept[vocabulary].words
        wanted = {word for source in config.sources for word in getattr(source, option)}
        if option == "languages":
            wanted = {language_code(word) for word in wanted}
        for word in sorted(wanted - set(words)):
            hint = nearest(word, words) if words else "nothing was kept"
            warnings.append(f"{option}: nothing in the sources is called {word!r}; {hint}")
    if not assembly.gathered.n_rows["names"]:
        warnings.append("no concept has a name")
    return warnings


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
            f"{concepts.n_ambiguous:,} links were ambiguous (within one source, or not one to one) "
            "and not used to merge"
        )
    return warnings


def build_starter(out: str | Path, *, overwrite: bool = False) -> BuildReport:
    """Build the knowledge base that ships with the package."""
    config = BuildConfig(sources=(SourceConfig(path=Path(STARTER)),))
    return build_store(config, out, overwrite=overwrite)
