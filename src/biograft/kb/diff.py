"""Differences between two stores, such as two releases of an ontology.

Concepts are the same if their primary ids are. An old id that is no primary id any more is looked
up in the new store for the concept that took it over: among its alternate ids, then among the
retired ids that its source replaces, then among its cross-references. Whole columns are compared:
memory grows with the tables of ids and names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.errors import ConfigError, nearest
from biograft.kb.concepts import canonical_ids
from biograft.kb.export import write_lines
from biograft.kb.records import IS_A, IdKind
from biograft.kb.store import KnowledgeBase
from biograft.kb.tables import ID_KINDS
from biograft.progress import Progress

Rows = npt.NDArray[Any]

_COLUMNS = ("change", "id", "name", "old", "new", "language", "evidence")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two stores.

    ``id`` and ``name`` are those of the new store, or of the old one if the concept is gone.
    ``old`` and ``new`` hold what was lost and gained: names, ids of parents, codes of types. For a
    concept that another took over, ``new`` holds the id of that one, for another that is gone those
    that the new store says to consider; for a new concept, ``old`` holds the id of the concept that
    had its id as an alternate one.
    """

    change: str
    id: str
    name: str
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    language: str = ""
    evidence: str = ""
    """By which kind of id the other concept was found (``biograft.kb.records.IdKind``)."""

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain values, without empty ones."""
        return {key: value for key, value in asdict(self).items() if value}

    def to_tsv(self) -> str:
        """Return the change as a line of a TSV file; several values are separated by ``|``."""
        cells = (getattr(self, column) for column in _COLUMNS)
        texts = (cell if isinstance(cell, str) else "|".join(cell) for cell in cells)
        return "\t".join(" ".join(text.split()) for text in texts)


class StoreDiff:
    """The differences between two stores: counts, and each change on demand.

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
        options = [_options(base) for base in (self.old, self.new)]
        differing = sorted(key for key in {**options[0], **options[1]}
                           if options[0].get(key) != options[1].get(key))  # fmt: skip
        if not differing:
            return ()
        return (f"the stores were built with different options ({', '.join(differing)})",)

    @cached_property
    def type_codes(self) -> list[str]:
        """The codes of the types of both stores."""
        return _type_codes(self.old, self.new)

    def changes(self, kinds: Collection[str] = ()) -> Iterator[Change]:
        """Yield the changes of some kinds, by default of all, in a fixed order."""
        for kind, frame in self._frames.items():
            if kind in kinds or not kinds:
                show = _KINDS[kind].show
                for values in frame.iter_rows(named=True):
                    yield show(self, kind, values)

    def examples(self, kind: str, n: int) -> list[Change]:
        """Return the first changes of a kind."""
        return list(islice(self.changes([kind]), n))

    def write(
        self, target: Path, *, overwrite: bool = False, progress: Progress | None = None
    ) -> int:
        """Write one change a line as TSV or JSONL (gzipped for ``.gz``); return their number."""
        lines = (_tsv if form_of(target) == ".tsv" else _jsonl)(self)
        n_lines = write_lines(lines, target, "changes", overwrite=overwrite, progress=progress)
        return n_lines - (form_of(target) == ".tsv")

    def to_json(self, n_examples: int) -> dict[str, Any]:
        """Return sizes, counts and the first changes of each kind as plain values."""
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
    """Compare two stores; ``only`` restricts the kinds of changes.

    >>> diff_stores(old, new, only=["added", "retired"]).counts
    {'added': 312, 'retired': 4}
    """
    for kind in only:
        if kind not in CHANGES:
            raise ConfigError(f"only: no change is called {kind!r}; {nearest(kind, CHANGES)}")
    progress = progress or Progress(enabled=False)
    try:
        progress.start("comparing ids")
        pairs = _Pairs(old, new)
        frames = {}
        for kind, entry in _KINDS.items():
            if kind in only or not only:
                progress.start(f"comparing: {kind}")
                frames[kind] = entry.find(pairs)
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
    def _name_changes(self) -> tuple[pl.DataFrame, pl.DataFrame]:
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
        return _without(gained, lost), _without(lost, gained)

    def names_added(self) -> pl.DataFrame:
        return self._name_changes[0]

    def names_removed(self) -> pl.DataFrame:
        return self._name_changes[1]

    def added(self) -> pl.DataFrame:
        owners = _owners(self.fresh, self.old_base, (IdKind.ALTERNATE,))
        return self.fresh.select("row").join(
            _listed(owners), on="row", how="left", maintain_order="left"
        )

    def retired(self) -> pl.DataFrame:
        rest = self.gone.filter(~self.gone["row"].is_in(self.links["row"].implode()))
        considered = _listed(_owners(rest, self.new_base, (IdKind.CONSIDER,)))
        return rest.select("row").join(considered, on="row", how="left", maintain_order="left")

    def merged(self) -> pl.DataFrame:
        return self._taken_over().filter("existed")

    def replaced(self) -> pl.DataFrame:
        return self._taken_over().filter(~pl.col("existed"))

    def _taken_over(self) -> pl.DataFrame:
        existed = pl.Series(self.existed[self.links["other"].to_numpy()])
        links = self.links.with_columns(existed=existed)
        return _listed(links).join(
            links.group_by("row").agg(pl.col("existed").any()), on="row", maintain_order="left"
        )

    def renamed(self) -> pl.DataFrame:
        bases = ((self.old_base, self.old), (self.new_base, self.new))
        before, after = (_preferred(base).gather(rows) for base, rows in bases)
        differ = (before != after).to_numpy()
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
        after = np.stack(_is_a(self.new_base))
        is_paired = np.zeros(n, bool)
        is_paired[self.new] = True
        return _lost_and_gained(before, after[:, is_paired[after[0]]], n + len(self.old_base))

    def retyped(self) -> pl.DataFrame:
        """Types that were gained or lost, as positions among the types of both stores."""
        codes = _type_codes(self.old_base, self.new_base)
        positions = {code: position for position, code in enumerate(codes)}
        sides = []
        for base, rows in ((self.old_base, self.old), (self.new_base, self.new)):
            concept_of = np.full(len(base), -1, np.int64)
            concept_of[rows] = self.new
            common = np.array([positions[kind.code] for kind in base.types] or [0], np.int64)
            concepts = concept_of[base.numbers("types", "concept")]
            kinds = common[base.numbers("types", "type")]
            sides.append(np.stack([concepts, kinds])[:, concepts >= 0])
        return _lost_and_gained(sides[0], sides[1], max(len(codes), 1))


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


def _preferred(base: KnowledgeBase) -> pl.Series:
    """The preferred name of every concept, its id if it has none."""
    starts, ends = _bounds(base)
    named = pl.Series(starts < ends)
    positions = pl.select(pl.when(named).then(pl.Series(starts))).to_series()
    return _texts(base, "names", "text").gather(positions).fill_null(_texts(base, "concepts", "id"))


def _names(base: KnowledgeBase, languages: list[str]) -> pl.DataFrame:
    """Language and text of all names; languages are positions in a list for both stores."""
    common = np.array([languages.index(tag) for tag in base.languages] or [0], np.uint16)
    language = pl.Series("language", common[base.numbers("names", "language")])
    return pl.DataFrame([language, _texts(base, "names", "text").alias("text")])


def _sums(names: pl.DataFrame, base: KnowledgeBase) -> npt.NDArray[np.uint64]:
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


def _without(names: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    left = names.join(others, on=["row", "language", "text"], how="anti", maintain_order="left")
    return left.select("row", "position")


def _is_a(base: KnowledgeBase) -> tuple[Rows, Rows]:
    """Heads and tails of the is-a relations."""
    labels = base.relation_names
    code = labels.index(IS_A) if IS_A in labels else -1
    rows = np.flatnonzero(base.numbers("relations", "relation") == code)
    heads, tails = (
        base.numbers("relations", end)[rows].astype(np.int64) for end in ("head", "tail")
    )
    return heads, tails


def _type_codes(old: KnowledgeBase, new: KnowledgeBase) -> list[str]:
    """The codes of the types of both stores, each once."""
    return list(dict.fromkeys(kind.code for base in (old, new) for kind in base.types))


def _lost_and_gained(before: Rows, after: Rows, n_values: int) -> pl.DataFrame:
    """Compare sets of (row, value), given as two rows of numbers; list the values of each row."""
    packed = [np.unique(rows * n_values + values) for rows, values in (before, after)]
    lost, gained = (
        _unpacked(np.setdiff1d(packed[a], packed[b], assume_unique=True), n_values, name)
        for a, b, name in ((0, 1, "lost"), (1, 0, "gained"))
    )
    return lost.join(gained, on="row", how="full", coalesce=True).sort("row")


def _unpacked(packed: Rows, n_values: int, name: str) -> pl.DataFrame:
    frame = pl.DataFrame({"row": packed // n_values, name: packed % n_values})
    return frame.group_by("row", maintain_order=True).agg(name)


def _options(base: KnowledgeBase) -> dict[str, Any]:
    """The options of a build by name; those of its sources as a list."""
    config = dict(base.manifest.get("config", {}))
    sources = config.pop("sources", [])
    keys = {key for source in sources for key in source}
    return {**config, **{key: [source.get(key) for source in sources] for key in keys}}


# ---- changes as records

Values = dict[str, Any]


def _show_added(diff: StoreDiff, kind: str, values: Values) -> Change:
    row, owners = values["row"], values["other"] or ()
    evidence = values["evidence"] or ""
    others = tuple(diff.old.ids_at(owners))
    return Change(kind, diff.new.id_at(row), diff.new.name_at(row), others, evidence=evidence)


def _show_gone(diff: StoreDiff, kind: str, values: Values) -> Change:
    row, others = values["row"], tuple(diff.new.ids_at(values["other"] or ()))
    evidence = values["evidence"] or ""
    base = diff.old
    return Change(kind, base.id_at(row), base.name_at(row), new=others, evidence=evidence)


def _show_renamed(diff: StoreDiff, kind: str, values: Values) -> Change:
    row, before = values["row"], diff.old.name_at(values["old_row"])
    name = diff.new.name_at(row)
    return Change(kind, diff.new.id_at(row), name, (before,), (name,))


def _show_name(diff: StoreDiff, kind: str, values: Values) -> Change:
    gained, row = kind == "name-added", values["row"]
    name = (diff.new if gained else diff.old).name(values["position"])
    old, new = ((), (name.text,)) if gained else ((name.text,), ())
    return Change(kind, diff.new.id_at(row), diff.new.name_at(row), old, new, name.language)


def _show_moved(diff: StoreDiff, kind: str, values: Values) -> Change:
    row, n = values["row"], len(diff.new)
    lost, gained = (
        tuple(diff.new.id_at(k) if k < n else diff.old.id_at(k - n) for k in values[name] or ())
        for name in ("lost", "gained")
    )
    return Change(kind, diff.new.id_at(row), diff.new.name_at(row), lost, gained)


def _show_types(diff: StoreDiff, kind: str, values: Values) -> Change:
    row, codes = values["row"], diff.type_codes
    lost, gained = (tuple(codes[k] for k in values[name] or ()) for name in ("lost", "gained"))
    return Change(kind, diff.new.id_at(row), diff.new.name_at(row), lost, gained)


@dataclass(frozen=True, slots=True)
class _Kind:
    help: str
    find: Callable[[_Pairs], pl.DataFrame]
    show: Callable[[StoreDiff, str, Values], Change]


_KINDS = {
    "added": _Kind("new concepts", _Pairs.added, _show_added),
    "retired": _Kind("concepts that are gone", _Pairs.retired, _show_gone),
    "merged": _Kind("concepts merged into another", _Pairs.merged, _show_gone),
    "replaced": _Kind("concepts replaced by a new one", _Pairs.replaced, _show_gone),
    "renamed": _Kind("other preferred names", _Pairs.renamed, _show_renamed),
    "name-added": _Kind("names gained", _Pairs.names_added, _show_name),
    "name-removed": _Kind("names lost", _Pairs.names_removed, _show_name),
    "moved": _Kind("concepts with other parents", _Pairs.moved, _show_moved),
    "types-changed": _Kind("concepts with other types", _Pairs.retyped, _show_types),
}

CHANGES = {kind: entry.help for kind, entry in _KINDS.items()}
"""The kinds of changes and what they are, in the order of a report."""


def _tsv(diff: StoreDiff) -> Iterator[str]:
    yield "\t".join(_COLUMNS)
    yield from (change.to_tsv() for change in diff.changes())


def _jsonl(diff: StoreDiff) -> Iterator[str]:
    return (json.dumps(change.to_json(), ensure_ascii=False) for change in diff.changes())


def form_of(target: Path) -> str:
    """Return ``.tsv`` or ``.jsonl`` by the name of a file; refuse other names."""
    name = target.name.removesuffix(".gz")
    for suffix in (".tsv", ".jsonl"):
        if name.endswith(suffix):
            return suffix
    raise ConfigError(f"{target}: expected a name that ends in .tsv, .jsonl or .gz of them")
