"""What is asked of a linker in an evaluation: a mention, its gold concepts, where it stands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from biograft.documents import Document
from biograft.errors import ConfigError, FormatError
from biograft.registry import Registry
from biograft.sources.log import ReadLog

NIL_MARKS = frozenset({"", "-1", "cui-less", "-"})
"""What benchmark files write, in any case, where no concept fits."""


@dataclass(frozen=True, slots=True)
class LinkQuery:
    """A mention to be linked.

    ``gold`` are all ids that count as right, none of them: NIL. ``needed`` says how they belong
    together: a composite mention means one concept of every group. Where the gold is given by
    names, ``gold_names`` holds them until the store says whose names they are.
    """

    mention: str
    gold: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    """What is looked up: the mention, or what the benchmark splits it into."""
    needed: tuple[frozenset[str], ...] = ()
    gold_names: tuple[str, ...] = ()
    document: str = ""
    start: int | None = None
    end: int | None = None
    context: str = ""
    """The text that ``start`` and ``end`` count in, where the format has it."""
    type: str = ""

    def __post_init__(self) -> None:
        if not self.parts:
            object.__setattr__(self, "parts", (self.mention,))
        if self.gold and not self.needed:
            object.__setattr__(self, "needed", tuple(frozenset({i}) for i in sorted(self.gold)))

    @property
    def is_nil(self) -> bool:
        """Whether no concept fits."""
        return not self.gold and not self.gold_names

    @property
    def is_composite(self) -> bool:
        """Whether the mention speaks of several concepts."""
        return len(self.needed) > 1 or len(self.gold_names) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldConfig:
    """Which queries of a gold file are asked, and how composites are taken."""

    types: tuple[str, ...] = ()
    """Mentions of these types only; none: all."""
    keep_nil: bool = False
    """Ask also where the gold answer is NIL."""
    split_composites: bool = True
    """Split mentions where the benchmark marks parts (BioSyn files); the published fast path
    does not, and leaves ``+`` alone."""
    drop_composites: bool = False
    drop_duplicates: bool = False
    """Ask each mention with the same gold once (case does not matter)."""


class GoldReader(Protocol):
    """Reads the queries of one format; what is wrong in the file goes to the log."""

    def __call__(self, path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
        """Read queries in the order of the file."""


def gold_ids(cells: Iterable[str]) -> tuple[str, ...]:
    """Bring the ids of a cell to what they name: blanks off, marks of NIL left out, each once."""
    stripped = (cell.strip() for cell in cells)
    return tuple(dict.fromkeys(cell for cell in stripped if cell.lower() not in NIL_MARKS))


_HOME = "biograft.evaluation.gold_formats"
_PUBTATOR = "PubTator documents with mentions, plain or gz"
_SAMPLE = "JSON lines of documents with mentions; 'starter' is the built-in sample"

GOLD_FORMATS: Registry[GoldReader] = Registry(
    "gold format",
    {
        "biosyn": (
            f"{_HOME}:read_biosyn",
            "*.concept files: doc||start|end||type||mention||id; folder, file, or TAR::FOLDER",
        ),
        "pubtator": (f"{_HOME}:read_pubtator_queries", _PUBTATOR),
        "aap": (f"{_HOME}:read_aap", "AskAPatient: id, concept name, phrase; tab-separated"),
        "xlbel": (f"{_HOME}:read_xlbel", "XL-BEL: ids||mention||sentence with <tgt> marks"),
        "procedures": (
            f"{_HOME}:read_procedures",
            "Chinese terms and their standard names (joined by ##); tab-separated",
        ),
        "sample": (f"{_HOME}:read_sample", _SAMPLE),
    },
)


@dataclass(frozen=True, slots=True)
class Gold:
    """The queries of a gold standard, and the log of what was left out of it and why."""

    queries: tuple[LinkQuery, ...]
    log: ReadLog


def read_gold(path: str | Path, form: str, config: GoldConfig | None = None) -> Gold:
    """Read the queries of a gold standard; a file without any is refused."""
    config = config or GoldConfig()
    reader = GOLD_FORMATS.load(form)
    log = ReadLog(Path(path))
    queries = tuple(_wanted(reader(str(path), config, log), config, log))
    if not queries:
        raise nothing_left(f"no query of format {form!r} is left of {log.n_read:,} rows", log, path)
    return Gold(queries, log)


def nothing_left(found: str, log: ReadLog, path: str | Path) -> FormatError:
    """Say that all of a gold standard was left out, and why."""
    left_out = {**log.rejected.counts, **log.filtered}
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in left_out.items())
    message = f"{found} ({reasons})" if reasons else found
    return FormatError(message, path=path, remedy="check the format and the filters")


def _wanted(queries: Iterable[LinkQuery], config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Leave out what the configuration does not ask for, counting why."""
    seen: set[tuple[str, frozenset[str], tuple[str, ...]]] = set()
    for query in queries:
        if config.types and query.type not in config.types:
            log.filter("of another type")
        elif query.is_nil and not config.keep_nil:
            log.filter("without gold concept (NIL)")
        elif query.is_composite and config.drop_composites:
            log.filter("composite")
        else:
            key = (query.mention.lower(), query.gold, query.gold_names)
            if config.drop_duplicates and key in seen:
                log.filter("asked before")
                continue
            seen.add(key)
            yield query


class TextReader(Protocol):
    """Reads the documents of one format; what is wrong in the file goes to the log."""

    def __call__(self, path: str, log: ReadLog) -> Iterator[Document]:
        """Read documents in the order of the file."""


TEXT_FORMATS: Registry[TextReader] = Registry(
    "gold format",
    {
        "pubtator": (f"{_HOME}:read_pubtator_documents", _PUBTATOR),
        "sample": (f"{_HOME}:read_sample_documents", _SAMPLE),
    },
)


@dataclass(frozen=True, slots=True)
class GoldTexts:
    """The documents of a gold standard, and the log of what was left out of it and why."""

    documents: tuple[Document, ...]
    log: ReadLog


def read_gold_texts(
    path: str | Path, form: str, *, types: Collection[str] = (), limit: int = 0
) -> GoldTexts:
    """Read the documents of a gold standard, the first ``limit`` of them if that is not 0.

    Of their mentions only those of certain types stay, if any are named; a document without any
    stays too, since what is found in it is wrong.
    """
    if form in GOLD_FORMATS and form not in TEXT_FORMATS:
        raise ConfigError(
            f"format: {form!r} has no texts with all their mentions marked; expected one that "
            f"has: {', '.join(TEXT_FORMATS)}"
        )
    log = ReadLog(Path(path))
    read = islice(TEXT_FORMATS.load(form)(str(path), log), limit or None)
    documents = tuple(_of_types(read, types, log))
    if not any(document.mentions for document in documents):
        found = f"no mention is left of {len(documents):,} documents of format {form!r}"
        raise nothing_left(found, log, path)
    return GoldTexts(documents, log)


def _of_types(
    documents: Iterable[Document], types: Collection[str], log: ReadLog
) -> Iterator[Document]:
    """Leave out the mentions of other types, counting them."""
    for document in documents:
        kept = tuple(m for m in document.mentions if not types or m.type in types)
        log.filter("of another type", len(document.mentions) - len(kept))
        yield replace(document, mentions=kept)
