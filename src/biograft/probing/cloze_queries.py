"""How concepts and relations are put into words for a query, and answers compared with names.

The rules are those of KeBioLM's probe. Signs and Chinese characters are tokens by themselves, so
that a decoded text has blanks where a name has none; ``answer_key`` drops them on both sides.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.artifacts import new_file
from biograft.errors import ConfigError, FormatError, OutputError, nearest
from biograft.graph.triples import Ints, Triples, read_triples
from biograft.sources.files import read_lines
from biograft.text import HAN

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

BLANK = "[MASK]"
"""What stands in a prompt for the answer, whatever a model calls its token."""

_IS_A = ("isa", "is a")
_PASSIVE = ("of", "as", "by")
_IN_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）")
_ALONE = re.compile(rf"\s*([^\w\s]|[{HAN}])\s*")
"""A sign or a Chinese character, with the blanks beside it."""


def relation_text(name: str) -> str:
    """Say a relation in words.

    >>> [relation_text(name) for name in ("part_of", "is-a", "may_treat", "diagnosed_by")]
    ['is part of', 'is a', 'may treat', 'is diagnosed by']
    """
    words = re.sub(r"[_\-\s]+", " ", name).strip()
    if words.lower() in _IS_A:
        return "is a"
    return f"is {words}" if words.split(" ")[-1].lower() in _PASSIVE else words


def read_wording(path: Path) -> dict[str, str]:
    """Read how relations are to be said: lines of name, tab, words."""
    wording = {}
    for number, line in read_lines(path):
        name, _, words = line.partition("\t")
        if not name.strip() or not words.strip():
            raise FormatError("expected a relation, tab, words", path=path, line=number, text=line)
        wording[name.strip()] = " ".join(words.split())
    return wording


def clean_name(name: str) -> str:
    """Write a name as queries and answers have it; one all in brackets keeps them.

    >>> [clean_name(name) for name in ("Heart (organ)", "Beta-2 NOS receptor", "(R)")]
    ['heart', 'beta 2 receptor', '(r)']
    """
    lowered = " ".join(name.lower().split())
    cleaned = _IN_BRACKETS.sub("", lowered.replace(" nos ", " "))
    return " ".join(cleaned.replace("-", " ").split()) or lowered


def answer_key(text: str) -> str:
    """Make the form under which a decoded text and a name are compared.

    >>> [answer_key(text) for text in ("Crohn ' s  disease", "2 型 糖 尿 病", "beta - 2 receptor")]
    ["crohn's disease", '2型糖尿病', 'beta 2 receptor']
    """
    return _ALONE.sub(r"\1", " ".join(text.lower().replace("-", " ").split()))


SIDES = ("both", "head", "tail")


@dataclass(frozen=True, slots=True)
class ClozeQuery:
    """A text with a blank, and the concepts whose names fill it rightly."""

    prompt: str
    relation: str
    """Name of the relation in the store, not its words."""
    answers: tuple[str, ...]
    """Ids, in the order of the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig:
    """Which queries are made of a store."""

    languages: tuple[str, ...] = ("en",)
    """Names in these only; the first in which a concept has one stands in its queries."""
    masked: str = "both"
    """Which end is left blank."""
    relations: tuple[str, ...] = ()
    """Only these; none: all."""
    per_relation: int = 200
    """How many of a relation, drawn at random; 0: all."""
    limit: int = 0
    """How many in all, drawn at random from those; 0: all."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.languages:
            raise ConfigError("languages: expected at least one, found none")
        if self.masked not in SIDES:
            raise ConfigError(f"masked: expected one of {', '.join(SIDES)}, found {self.masked!r}")
        for key in ("per_relation", "limit", "seed"):
            if getattr(self, key) < 0:
                raise ConfigError(f"{key}: expected 0 or more, found {getattr(self, key)}")


@dataclass(frozen=True, slots=True)
class ClozeQueries:
    """Queries made of a store, and what became of its triples."""

    queries: tuple[ClozeQuery, ...]
    n_triples: int
    n_nameless: int
    """Triples left out: one of their ends has no name in the languages."""
    n_different: int
    """Different queries there were before any was drawn."""


def build_queries(
    base: KnowledgeBase, config: QueryConfig, wording: Mapping[str, str] | None = None
) -> ClozeQueries:
    """Make the queries of a store; equal ones become one with several right concepts.

    ``wording`` says some relations in other words than ``relation_text``.
    """
    triples = _chosen_relations(read_triples(base), config.relations)
    names = _own_names(base, triples, config.languages)
    named = (names.of_concept[triples.heads] >= 0) & (names.of_concept[triples.tails] >= 0)
    kept, queries, n_different = triples.where(named), [], 0
    for number, relation in enumerate(kept.relation_names):
        part = kept.where(kept.relations == number)
        words = (wording or {}).get(relation) or relation_text(relation)
        found = _blanks(part, names, config.masked)
        n_different += len(found)
        rng = np.random.default_rng([config.seed, zlib.crc32(relation.encode())])
        for k in _draw(len(found), config.per_relation, rng):
            side, text, rows = found[k]
            known = names.texts[text]
            prompt = f"{known} {words} {BLANK}" if side == "tail" else f"{BLANK} {words} {known}"
            queries.append(ClozeQuery(prompt, relation, tuple(map(base.id_at, rows.tolist()))))
    drawn = _draw(len(queries), config.limit, np.random.default_rng(config.seed))
    return ClozeQueries(
        tuple(queries[k] for k in drawn), len(triples), int((~named).sum()), n_different
    )


@dataclass(frozen=True, slots=True)
class _OwnNames:
    """The name under which each concept stands in a query; equal names are one."""

    of_concept: Ints  # (concepts,): place in texts; -1: no name
    texts: list[str]


def _chosen_relations(triples: Triples, relations: tuple[str, ...]) -> Triples:
    for name in relations:
        if name not in triples.relation_names:
            raise ConfigError(
                f"relations: none is called {name!r}; {nearest(name, triples.relation_names)}"
            )
    if not relations:
        return triples
    numbers = [triples.relation_names.index(name) for name in relations]
    return triples.where(np.isin(triples.relations, numbers))


def _own_names(base: KnowledgeBase, triples: Triples, languages: tuple[str, ...]) -> _OwnNames:
    """Find the first name in the first language that has one, of concepts in triples."""
    table = base.table("names")
    concepts = table.column("concept").to_numpy()
    tags = table.column("language").to_numpy()
    rows = np.full(len(base), -1, np.int64)
    for language in reversed(languages):
        if language in base.languages:
            own = np.flatnonzero(tags == base.languages.index(language))
            there, first = np.unique(concepts[own], return_index=True)
            rows[there] = own[first]
    asked = np.zeros(len(base), np.bool_)
    asked[triples.heads] = asked[triples.tails] = True
    wanted = np.flatnonzero(asked & (rows >= 0))
    places: dict[str, int] = {}
    of_concept = np.full(len(base), -1, np.int32)
    for concept, text in zip(wanted, table.column("text").take(rows[wanted]), strict=True):
        of_concept[concept] = places.setdefault(clean_name(text.as_py()), len(places))
    return _OwnNames(of_concept, list(places))


def _blanks(part: Triples, names: _OwnNames, masked: str) -> list[tuple[str, int, Ints]]:
    """Give (side that is blank, name at the other, rows of right concepts), each pair once."""
    found = []
    for side, known, answers in (
        ("tail", part.heads, part.tails),
        ("head", part.tails, part.heads),
    ):
        if masked in (side, "both"):
            found += [(side, *each) for each in _grouped(names.of_concept[known], answers)]
    return found


def _grouped(keys: Ints, values: Ints) -> Iterator[tuple[int, Ints]]:
    """Give each key with its different values, both ascending."""
    if not len(keys):
        return
    pairs = np.unique(np.stack([keys, values]), axis=1)
    starts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    groups = np.split(pairs[1], starts[1:])
    yield from zip(pairs[0, starts].tolist(), groups, strict=True)


def _draw(n: int, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw at most so many of n, in ascending order; 0: all."""
    if not most or n <= most:
        return np.arange(n)
    return np.sort(rng.choice(n, most, replace=False))


def write_queries(path: Path, queries: Iterable[ClozeQuery], *, overwrite: bool = False) -> None:
    """Write queries, a line each."""
    with new_file(path, overwrite=overwrite) as file:
        for query in queries:
            for text in (query.relation, *query.answers):
                if set(text) & set("\t\n\r") or (text != query.relation and "|" in text):
                    raise OutputError(f"{path}: cannot hold {text!r}; it has a tab, a line or '|'")
            fields = (query.prompt, query.relation, "|".join(query.answers))
            file.write(("\t".join(fields) + "\n").encode())


def read_queries(path: Path, base: KnowledgeBase) -> tuple[ClozeQuery, ...]:
    """Read queries; every right concept must be in the store, which knows its names."""
    queries = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.rstrip("\n").split("\t")
        if len(fields) != 3 or fields[0].count(BLANK) != 1:
            raise FormatError(
                f"expected a prompt with one {BLANK}, a relation and ids, parted by tabs",
                path=path, line=number, text=line,
            )  # fmt: skip
        answers = tuple(fields[2].split("|"))
        unknown = [answer for answer in answers if base.find_row(answer) is None]
        if unknown:
            raise FormatError(
                f"no concept of {base.folder} has the id {unknown[0]!r}",
                path=path, line=number, remedy="ask with the knowledge base they were made of",
            )  # fmt: skip
        queries.append(ClozeQuery(fields[0], fields[1], answers))
    if not queries:
        raise FormatError("holds no queries", path=path)
    return tuple(queries)
