"""Cloze queries: texts with a blank made of a store's triples, and comparison of answers.

The rules are those of KeBioLM's probe. Punctuation and Chinese characters are tokens by themselves,
so decoded texts have spaces where names have none; ``answer_key`` removes them on both sides.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.arrays import Int32s
from biograft.errors import ConfigError, FormatError, nearest
from biograft.graph.triples import Triples, read_triples
from biograft.kb.names import HAN
from biograft.kb.sources.files import read_lines
from biograft_lab.probing.config import QueryConfig

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

BLANK = "[MASK]"
"""The blank in a prompt, independent of a model's mask token."""

_IS_A = ("isa", "is a")
_PASSIVE = ("of", "as", "by")
_IN_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）")
_SEPARATE = re.compile(rf"\s*([^\w\s]|[{HAN}])\s*")
"""A punctuation or Chinese character with the spaces around it."""


def relation_text(name: str) -> str:
    """Return the wording of a relation.

    >>> [relation_text(name) for name in ("part_of", "is-a", "may_treat", "diagnosed_by")]
    ['is part of', 'is a', 'may treat', 'is diagnosed by']
    """
    words = re.sub(r"[_\-\s]+", " ", name).strip()
    if words.lower() in _IS_A:
        return "is a"
    return f"is {words}" if words.split(" ")[-1].lower() in _PASSIVE else words


def read_wording(path: Path) -> dict[str, str]:
    """Read the wording of relations: lines of name, tab, words."""
    wording = {}
    for number, line in read_lines(path):
        name, _, words = line.partition("\t")
        if not name.strip() or not words.strip():
            raise FormatError("expected a relation, tab, words", path=path, line=number, text=line)
        wording[name.strip()] = " ".join(words.split())
    return wording


def clean_name(name: str) -> str:
    """Clean a name for queries and answers; a name that is all in brackets keeps them.

    >>> [clean_name(name) for name in ("Heart (organ)", "Beta-2 NOS receptor", "(R)")]
    ['heart', 'beta 2 receptor', '(r)']
    """
    lowered = " ".join(name.lower().split())
    cleaned = _IN_BRACKETS.sub("", lowered.replace(" nos ", " "))
    return " ".join(cleaned.replace("-", " ").split()) or lowered


def answer_key(text: str) -> str:
    """Return the form in which decoded texts and names are compared.

    >>> [answer_key(text) for text in ("Crohn ' s  disease", "2 型 糖 尿 病", "beta - 2 receptor")]
    ["crohn's disease", '2型糖尿病', 'beta 2 receptor']
    """
    return _SEPARATE.sub(r"\1", " ".join(text.lower().replace("-", " ").split()))


@dataclass(frozen=True, slots=True)
class ClozeQuery:
    """A text with a blank, and the concepts that are right answers."""

    prompt: str
    relation: str
    """Name of the relation in the store, not its wording."""
    answers: tuple[str, ...]
    """Ids, in the order of the store."""


@dataclass(frozen=True, slots=True)
class ClozeQueries:
    """Queries of a store, and counts of its triples."""

    queries: tuple[ClozeQuery, ...]
    n_triples: int
    n_nameless: int
    """Triples with an end that has no name in the languages; they are left out."""
    n_different: int
    """Number of different queries before sampling."""


def build_queries(
    base: KnowledgeBase, config: QueryConfig, wording: Mapping[str, str] | None = None
) -> ClozeQueries:
    """Build the queries of a store; equal ones become one with several right concepts.

    ``wording`` overrides ``relation_text`` for some relations.
    """
    triples = _select_relations(read_triples(base), config.relations)
    names = _query_names(base, triples, config.languages)
    named = (names.of_concept[triples.heads] >= 0) & (names.of_concept[triples.tails] >= 0)
    named_triples, queries, n_different = triples.where(named), [], 0
    for row, relation in enumerate(named_triples.relation_names):
        of_relation = named_triples.where(named_triples.relations == row)
        words = (wording or {}).get(relation) or relation_text(relation)
        pairs = _cloze_pairs(of_relation, names, config.masked)
        n_different += len(pairs)
        rng = np.random.default_rng([config.seed, zlib.crc32(relation.encode())])
        for k in _sample(len(pairs), config.per_relation, rng):
            side, text, rows = pairs[k]
            given = names.texts[text]
            prompt = f"{given} {words} {BLANK}" if side == "tail" else f"{BLANK} {words} {given}"
            queries.append(ClozeQuery(prompt, relation, tuple(map(base.id_at, rows.tolist()))))
    sampled = _sample(len(queries), config.limit, np.random.default_rng(config.seed))
    return ClozeQueries(
        tuple(queries[k] for k in sampled), len(triples), int((~named).sum()), n_different
    )


@dataclass(frozen=True, slots=True)
class _QueryNames:
    """The name of each concept in queries; equal names are one text."""

    of_concept: Int32s  # (concepts,): index in texts; -1: no name
    texts: list[str]


def _select_relations(triples: Triples, relations: tuple[str, ...]) -> Triples:
    for name in relations:
        if name not in triples.relation_names:
            raise ConfigError(
                f"relations: none is called {name!r}; {nearest(name, triples.relation_names)}"
            )
    if not relations:
        return triples
    codes = [triples.relation_names.index(name) for name in relations]
    return triples.where(np.isin(triples.relations, codes))


def _query_names(base: KnowledgeBase, triples: Triples, languages: tuple[str, ...]) -> _QueryNames:
    """Return the names of concepts in triples: the first one in the first language with a name."""
    table = base.table("names")
    concepts = table.column("concept").to_numpy()
    tags = table.column("language").to_numpy()
    rows = np.full(len(base), -1, np.int64)
    for language in reversed(languages):
        if language in base.languages:
            rows_of_language = np.flatnonzero(tags == base.languages.index(language))
            with_name, first = np.unique(concepts[rows_of_language], return_index=True)
            rows[with_name] = rows_of_language[first]
    needed = np.zeros(len(base), np.bool_)
    needed[triples.heads] = needed[triples.tails] = True
    concepts_used = np.flatnonzero(needed & (rows >= 0))
    codes: dict[str, int] = {}
    of_concept = np.full(len(base), -1, np.int32)
    for concept, text in zip(
        concepts_used, table.column("text").take(rows[concepts_used]), strict=True
    ):
        of_concept[concept] = codes.setdefault(clean_name(text.as_py()), len(codes))
    return _QueryNames(of_concept, list(codes))


def _cloze_pairs(
    of_relation: Triples, names: _QueryNames, masked: str
) -> list[tuple[str, int, Int32s]]:
    """Return (blank side, name at the other side, rows of right concepts), each pair once."""
    pairs = []
    for side, given, answers in (
        ("tail", of_relation.heads, of_relation.tails),
        ("head", of_relation.tails, of_relation.heads),
    ):
        if masked in (side, "both"):
            pairs += [(side, *pair) for pair in _grouped(names.of_concept[given], answers)]
    return pairs


def _grouped(keys: Int32s, values: Int32s) -> Iterator[tuple[int, Int32s]]:
    """Yield each key with its distinct values, both ascending."""
    if not len(keys):
        return
    pairs = np.unique(np.stack([keys, values]), axis=1)
    starts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    groups = np.split(pairs[1], starts[1:])
    yield from zip(pairs[0, starts].tolist(), groups, strict=True)


def _sample(n: int, limit: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Sample up to ``limit`` of n, in ascending order; 0: all."""
    if not limit or n <= limit:
        return np.arange(n)
    return np.sort(rng.choice(n, limit, replace=False))
