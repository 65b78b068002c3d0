"""Read a gold standard of any registered format as queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from biograft.errors import FormatError
from biograft.evaluation.queries import GoldConfig, GoldReader, LinkQuery
from biograft.registry import Registry
from biograft.sources.log import ReadLog

_HELP = {
    "biosyn": "*.concept files: doc||start|end||type||mention||id; folder, file, or TAR::FOLDER",
    "pubtator": "PubTator documents with mentions, plain or gz",
    "aap": "AskAPatient: id, concept name, phrase; tab-separated",
    "xlbel": "XL-BEL: ids||mention||sentence with <tgt> marks",
    "procedures": "Chinese terms and their standard names (joined by ##); tab-separated",
    "sample": "JSON lines of documents with mentions; 'starter' is the built-in sample",
}
"""What each module of ``evaluation.formats`` reads."""


def functions_of(formats: Iterable[str], function: str) -> dict[str, tuple[str, str]]:
    """Name a function of formats' modules, with the formats' help, for a registry."""
    return {
        name: (f"biograft.evaluation.formats.{name}:{function}", _HELP[name]) for name in formats
    }


GOLD_FORMATS: Registry[GoldReader] = Registry("gold format", functions_of(_HELP, "read"))


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
