"""Differences between two stores, such as two releases of an ontology.

Concepts are the same if their primary ids are. An old id that is no primary id any more is looked
up in the new store for the concept that took it over: among its alternate ids, then among the
retired ids that its source replaces, then among its cross-references. Whole columns are compared:
memory grows with the tables of ids and names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from biograft.arrays import Array, Uint64s
from biograft.errors import ConfigError, nearest
from biograft.kb.changes import COLUMNS, Change
from biograft.kb.concepts import canonical_ids
from biograft.kb.export import write_lines
from biograft.kb.records import IdKind
from biograft.kb.store import KnowledgeBase
from biograft.kb.tables import ID_KINDS
from biograft.progress import Progress

Rows = Array


class StoreDiff:
    """The differences between two stores: counts, and each change on demand.

    Args:
        old: Earlier knowledge base.
        new: Later knowledge base.
        frames: Changes by kind.

    >>> diff = diff_stores(KnowledgeBase.open("hp-2024"), KnowledgeBase.open("hp-2025"))
    >>> diff.counts["added"]
    312
    >>> next(diff.changes(["renamed"])).new
    ('Atypical absence seizure',)
    """

    def __init__(
        self, old: KnowledgeBase, new: KnowledgeBase, frames: dict[str, pl.DataFrame]
    ) -> None:
        self.old, self.new, self._frames = old, new, frames

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes of each kind that was looked for."""
        return {kind: frame.height for kind, frame in self._frames.items()}

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return any(self.counts.values())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Other explanations of differences: different options of the build."""
        before, after = map(_options, (self.old, self.new))
        names = sorted({*before, *after})
        differing = [name for name in names if before.get(name) != after.get(name)]
        if not differing:
            return ()
        return (f"the stores were built with different options ({', '.join(differing)})",)

    def changes(self, kinds: Collection[str] = ()) -> Iterator[Change]:
        """Yield the changes of some kinds, by default of all, in a fixed order.

        Args:
            kinds: Names of ``CHANGES``.
        """
        for kind, frame in self._frames.items():
            if kind in kinds or not kinds:
                for values in frame.iter_rows(named=True):
                    yield self._change(kind, values)

    def _change(self, kind: str, values: dict[str, Any]) -> Change:
        """Describe a row of a frame, whose columns depend on the kind of change."""
        row, base, n_new = values["row"], self.new, len(self.new)
        lost, gained = values.get("lost") or (), values.get("gained") or ()
        language = ""
        if kind == "added":
            lost = self.old.ids_at(values["other"] or ())
        elif kind in ("retired", "merged", "replaced"):
            base, gained = self.old, self.new.ids_at(values["other"] or ())
        elif kind == "renamed":
            lost, gained = [self.old.name_at(values["old_row"])], [base.name_at(row)]
        elif kind == "name-added":
            name = self.new.name(values["position"])
            gained, language = [name.text], name.language
        elif kind == "name-removed":
            name = self.old.name(values["position"])
            lost, language = [name.text], name.language
        elif kind == "moved":
            lost, gained = (
                [self.new.id_at(k) if k < n_new else self.old.id_at(k - n_new) for k in parents]
                for parents in (lost, gained)
            )
        return Change(
            kind,
            base.id_at(row),
            base.name_at(row),
            tuple(lost),
            tuple(gained),
            language,
            values.get("evidence") or "",
        )

    def examples(self, kind: str, n: int) -> list[Change]:
        """Return the first changes of a kind.

        Args:
            kind: A kind of change.
            n: Maximum number of changes.
        """
        return list(islice(self.changes([kind]), n))

    def write(
        self, target: Path, *, overwrite: bool = False, progress: Progress | None = None
    ) -> int:
        """Write one change a line as TSV or JSONL (gzipped for ``.gz``); return their number.

        Args:
            target: The file; its name tells the format.
            overwrite: Replace an earlier result.
            progress: Display of the progress; None: none.
        """
        changes = self.changes()
        if form_of(target) == ".tsv":
            header = ["\t".join(COLUMNS)]
            lines = chain(header, (change.to_tsv() for change in changes))
        else:
            header = []
            lines = chain(json.dumps(c.to_json(), ensure_ascii=False) for c in changes)
        n_lines = write_lines(lines, target, "changes", overwrite=overwrite, progress=progress)
        return n_lines - len(header)

    def to_json(self, n_examples: int) -> dict[str, Any]:
        """Return sizes, counts and the first changes of each kind as plain values.

        Args:
            n_examples: Number of changes of each kind.
        """
        sizes = {
            f"n_{what}_{age}": n
            for age, base in (("old", self.old), ("new", self.new))
            for what, n in (("concepts", len(base)), ("names", base.n_names))
        }
        return {
            "old": str(self.old.folder),
            "new": str(self.new.folder),
            **sizes,
            "notes": list(self.notes),
            "counts": self.counts,
            "examples": {
                kind: [change.to_json() for change in self.examples(kind, n_examples)]
                for kind in self.counts
            },
        }


def diff_stores(
    old: KnowledgeBase,
    new: KnowledgeBase,
    *,
    only: Collection[str] = (),
    progress: Progress | None = None,
) -> StoreDiff:
    """Compare two stores.

    Args:
        old: The earlier store.
        new: The later one.
        only: Kinds of changes to look for, of ``CHANGES``; none: all.
        progress: Display of the progress; None: none.

    Raises:
        ConfigError: There is no such kind of change.

    >>> diff_stores(old, new, only=["added", "retired"]).counts
    {'added': 312, 'retired': 4}
    """
    for kind in only:
        if kind not in CHANGES:
            raise ConfigError(f"only: no change is called {kind!r}; {nearest(kind, CHANGES)}")
    progress = progress or Progress()
    try:
        progress.start("comparing ids")
        pairs = _Pairs(old, new)
        frames = {}
        for kind, (_, find) in _KINDS.items():
            if kind in only or not only:
                progress.start(f"comparing: {kind}")
                frames[kind] = find(pairs)
    finally:
        progress.finish()
    return StoreDiff(old, new, frames)


class _Pairs:
    """Equal concepts of two stores, and concepts that took over an id."""

    def __init__(self, old: KnowledgeBase, new: KnowledgeBase) -> None:
        self.old_base, self.new_base = old, new
        before, after = _keys(old), _keys(new)
        same = after.join(before, on="key", suffix="_old", maintain_order="left")
        self.gone = before.join(after, on="key", how="anti", maintain_order="left")
        fresh = after.join(before, on="key", how="anti", maintain_order="left")
        self.links = _owners(self.gone, new, (IdKind.ALTERNATE, IdKind.REPLACED, IdKind.XREF))
        """``row`` of the old store, ``other``: a concept of the new one with its id."""
        one_to_one = self.links.filter(
            pl.len().over("row") == 1,
            pl.len().over("other") == 1,
            pl.col("other").is_in(fresh["row"].implode()),
        )
        self.fresh = fresh.filter(~fresh["row"].is_in(one_to_one["other"].implode()))
        old_rows = pl.concat([same["row_old"], one_to_one["row"]]).to_numpy()
        new_rows = pl.concat([same["row"], one_to_one["other"]]).to_numpy()
        order = np.argsort(new_rows, kind="stable")
        self.old: Rows = old_rows[order]
        self.new: Rows = new_rows[order]
        self.existed = np.zeros(len(new), bool)
        self.existed[same["row"].to_numpy()] = True

    @cached_property
    def successors(self) -> Rows:
        """The new row of each old concept, or of the one that took it over; else -1."""
        rows = np.full(len(self.old_base), -1, np.int64)
        single = self.links.filter(pl.len().over("row") == 1)
        rows[single["row"].to_numpy()] = single["other"].to_numpy()
        rows[self.old] = self.new
        return rows

    @cached_property
    def name_changes(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Names gained and lost: the row of the new concept, and of the name in its store.

        The sums of hashes tell which concepts have other names; only those are compared in full.
        """
        bases = (self.old_base, self.new_base)
        labels = list(dict.fromkeys([*self.old_base.languages, *self.new_base.languages]))
        tables = [_names(base, labels) for base in bases]
        sums = [_sums(table, base) for table, base in zip(tables, bases, strict=True)]
        differ = sums[0][self.old] != sums[1][self.new]
        concepts = self.new[differ]
        lost, gained = (
            _names_of(table, base, rows[differ], concepts)
            for table, base, rows in zip(tables, bases, (self.old, self.new), strict=True)
        )
        key = ["row", "language", "text"]
        return (
            gained.join(lost, on=key, how="anti", maintain_order="left").select("row", "position"),
            lost.join(gained, on=key, how="anti", maintain_order="left").select("row", "position"),
        )

    def added(self) -> pl.DataFrame:
        owners = _listed(_owners(self.fresh, self.old_base, (IdKind.ALTERNATE,)))
        return self.fresh.select("row").join(owners, on="row", how="left", maintain_order="left")

    def retired(self) -> pl.DataFrame:
        rest = self.gone.filter(~self.gone["row"].is_in(self.links["row"].implode()))
        considered = _listed(_owners(rest, self.new_base, (IdKind.CONSIDER,)))
        return rest.select("row").join(considered, on="row", how="left", maintain_order="left")

    def taken_over(self) -> pl.DataFrame:
        existed = pl.Series(self.existed[self.links["other"].to_numpy()])
        links = self.links.with_columns(existed=existed)
        return _listed(links).join(
            links.group_by("row").agg(pl.col("existed").any()), on="row", maintain_order="left"
        )

    def renamed(self) -> pl.DataFrame:
        bases = ((self.old_base, self.old), (self.new_base, self.new))
        names = []
        for base, rows in bases:  # the preferred name of each concept, its id if it has none
            starts, ends = _bounds(base)
            positions = pl.select(pl.when(pl.Series(starts < ends)).then(pl.Series(starts)))
            preferred = _texts(base, "names", "text").gather(positions.to_series())
            names.append(preferred.fill_null(_texts(base, "concepts", "id")).gather(rows))
        differ = (names[0] != names[1]).to_numpy()
        return pl.DataFrame({"old_row": self.old[differ], "row": self.new[differ]})

    def moved(self) -> pl.DataFrame:
        """Parents that were gained or lost; an old parent stands for the one that took it over."""
        n = len(self.new_base)
        heads, tails = _is_a(self.old_base)
        paired = np.full(len(self.old_base), -1, np.int64)
        paired[self.old] = self.new
        parents = self.successors[tails]
        parents = np.where(parents < 0, n + tails, parents)
        before = np.stack([paired[heads], parents])
        before = before[:, (before[0] >= 0) & (before[0] != before[1])]
        after = _is_a(self.new_base)
        is_paired = np.zeros(n, bool)
        is_paired[self.new] = True
        return _lost_and_gained(before, after[:, is_paired[after[0]]], n + len(self.old_base))

    def retyped(self) -> pl.DataFrame:
        """Codes of types that were gained or lost."""
        bases = (self.old_base, self.new_base)
        codes = list(dict.fromkeys(kind.code for base in bases for kind in base.types))
        positions = {code: position for position, code in enumerate(codes)}
        sides = []
        for base, rows in zip(bases, (self.old, self.new), strict=True):
            concept_of = np.full(len(base), -1, np.int64)
            concept_of[rows] = self.new
            common = np.array([positions[kind.code] for kind in base.types] or [0], np.int64)
            concepts = concept_of[base.numbers("types", "concept")]
            kinds = common[base.numbers("types", "type")]
            sides.append(np.stack([concepts, kinds])[:, concepts >= 0])
        changed = _lost_and_gained(sides[0], sides[1], max(len(codes), 1))
        code = pl.element().replace_strict(list(range(len(codes))), codes, return_dtype=pl.String)
        return changed.with_columns(pl.col("lost", "gained").list.eval(code))


def _keys(base: KnowledgeBase) -> pl.DataFrame:
    """The canonical primary id and the row of every concept."""
    keys = canonical_ids(_texts(base, "concepts", "id")).alias("key")
    return pl.DataFrame([keys, pl.Series("row", np.arange(len(base), dtype=np.uint32))])


def _owners(gone: pl.DataFrame, base: KnowledgeBase, kinds: tuple[IdKind, ...]) -> pl.DataFrame:
    """Find the concepts that have an id as a further one; the first kind with any wins."""
    found = []
    codes = base.numbers("ids", "kind")
    for kind in kinds:
        rows = np.flatnonzero(codes == ID_KINDS.index(kind)) if gone.height else codes[:0]
        ids = pl.DataFrame(
            {
                "key": canonical_ids(_texts(base, "ids", "id").gather(rows)),
                "other": base.numbers("ids", "concept")[rows],
            }
        )
        links = gone.join(ids, on="key", maintain_order="left").select("row", "other")
        found.append(links.unique(maintain_order=True).with_columns(evidence=pl.lit(str(kind))))
        gone = gone.filter(~gone["row"].is_in(links["row"].implode()))
    return pl.concat(found).sort("row", maintain_order=True)


def _listed(links: pl.DataFrame) -> pl.DataFrame:
    """Collect the other concepts of each row, in order."""
    return links.group_by("row", maintain_order=True).agg("other", pl.col("evidence").first())


def _texts(base: KnowledgeBase, table: str, column: str) -> pl.Series:
    return pl.Series(base.table(table).column(column))


def _bounds(base: KnowledgeBase) -> tuple[Rows, Rows]:
    """The first and the end of each concept's rows in the table of names."""
    ends = base.numbers("concepts", "names_end").astype(np.int64)
    return np.concatenate([ends[:1] * 0, ends[:-1]]), ends


def _names(base: KnowledgeBase, languages: list[str]) -> pl.DataFrame:
    """Language and text of all names; languages are positions in a list for both stores."""
    common = np.array([languages.index(tag) for tag in base.languages] or [0], np.uint16)
    language = pl.Series("language", common[base.numbers("names", "language")])
    return pl.DataFrame([language, _texts(base, "names", "text").alias("text")])


def _sums(names: pl.DataFrame, base: KnowledgeBase) -> Uint64s:
    """Sum the hashes of each concept's names: the order of names does not count."""
    running = np.zeros(names.height + 1, np.uint64)
    if names.height:
        np.cumsum(names.hash_rows().to_numpy(), out=running[1:])
    starts, ends = _bounds(base)
    return running[ends] - running[starts]


def _names_of(names: pl.DataFrame, base: KnowledgeBase, rows: Rows, concepts: Rows) -> pl.DataFrame:
    """The names of some concepts, under other numbers of the concepts."""
    starts, ends = (bound[rows] for bound in _bounds(base))
    sizes = ends - starts
    positions = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return names[positions].with_columns(
        row=pl.Series(np.repeat(concepts, sizes)), position=pl.Series(positions)
    )


def _is_a(base: KnowledgeBase) -> Rows:
    """The heads and tails of the is-a relations."""
    return np.stack([base.hierarchy.heads, base.hierarchy.tails]).astype(np.int64)


def _lost_and_gained(before: Rows, after: Rows, n_values: int) -> pl.DataFrame:
    """Compare sets of (row, value), given as two rows of numbers; list the values of each row."""
    first, second = (np.unique(rows * n_values + values) for rows, values in (before, after))
    lost, gained = (
        pl.DataFrame({"row": rows // n_values, name: rows % n_values})
        .group_by("row", maintain_order=True)
        .agg(name)
        for name, rows in (
            ("lost", np.setdiff1d(first, second, assume_unique=True)),
            ("gained", np.setdiff1d(second, first, assume_unique=True)),
        )
    )
    return lost.join(gained, on="row", how="full", coalesce=True).sort("row")


def _options(base: KnowledgeBase) -> dict[str, Any]:
    """The options of a build by name; those of its sources as a list."""
    config = dict(base.manifest.get("config", {}))
    sources = config.pop("sources", [])
    keys = {key for source in sources for key in source}
    return {**config, **{key: [source.get(key) for source in sources] for key in keys}}


_KINDS: dict[str, tuple[str, Callable[[_Pairs], pl.DataFrame]]] = {
    "added": ("new concepts", _Pairs.added),
    "retired": ("concepts that are gone", _Pairs.retired),
    "merged": ("concepts merged into another", lambda pairs: pairs.taken_over().filter("existed")),
    "replaced": (
        "concepts replaced by a new one",
        lambda pairs: pairs.taken_over().filter(~pl.col("existed")),
    ),
    "renamed": ("other preferred names", _Pairs.renamed),
    "name-added": ("names gained", lambda pairs: pairs.name_changes[0]),
    "name-removed": ("names lost", lambda pairs: pairs.name_changes[1]),
    "moved": ("concepts with other parents", _Pairs.moved),
    "types-changed": ("concepts with other types", _Pairs.retyped),
}

CHANGES = {kind: about for kind, (about, _) in _KINDS.items()}
"""The kinds of changes and what they are, in the order of a report."""


def form_of(target: Path) -> str:
    """Return ``.tsv`` or ``.jsonl`` by the name of a file; refuse other names.

    Args:
        target: The file.
    """
    name = target.name.removesuffix(".gz")
    for suffix in (".tsv", ".jsonl"):
        if name.endswith(suffix):
            return suffix
    raise ConfigError(f"{target}: expected a name that ends in .tsv, .jsonl or .gz of them")
