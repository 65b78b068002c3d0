"""How often a generative linker is right on mentions held out, alone and beside a search.

Names are counted, as the paper does: the right concept among those of the first name, or of one
of the first five different names. Mentions without a gold concept are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.linking.candidates import Rows, Scores
from biograft.linking.config import LinkerConfig
from biograft.linking.forms import Forms
from biograft.linking.fusing import FusedSearch
from biograft.linking.gathering import Gathered, gather_nothing
from biograft.linking.generative.mixing import Held, Mixing, fit_share, searched
from biograft.linking.generative.ranker import GenerativeRanker
from biograft.linking.rerank.examples import GoldQuery

CUTOFFS = (1, 5)
_DEPTH = LinkerConfig.depth
"""Names that each generator of the search is asked for, as a linker asks."""
_AT_ONCE = 512


class _Part(NamedTuple):
    """The names of one part of a query, with both scores."""

    query: int
    rows: Rows
    scored: Gathered  # of this part alone
    right: npt.NDArray[np.bool_]


def measure(
    ranker: GenerativeRanker, search: FusedSearch | None, queries: Sequence[GoldQuery]
) -> dict[str, float]:
    """Give the recall at 1 and 5 names of mentions that have a gold concept."""
    asked = [query for query in queries if query.gold]
    used = search if ranker.needs_search else None
    hits = {k: np.ones(len(asked), np.bool_) for k in CUTOFFS}
    for part in _parts(ranker, used, asked):
        first = _first_right(ranker, part, ranker.mixing(part.scored)[0])
        for k in CUTOFFS:
            hits[k][part.query] &= first < k
    found = {f"recall@{k}": float(hits[k].mean()) if asked else 0.0 for k in CUTOFFS}
    return {"n": len(asked), **found}


def fit_mixing(
    ranker: GenerativeRanker, search: FusedSearch, queries: Sequence[GoldQuery]
) -> tuple[Mixing, dict[str, float]]:
    """Choose how much generation counts beside a search; give the accuracies, too."""
    asked = [query for query in queries if query.gold]
    rescore, weights = ranker.config.rescore, dict(search.weights)
    both = GenerativeRanker(
        ranker.kb, ranker.namer, ranker.names, ranker.config, Mixing(0.5, rescore, weights)
    )
    held = [
        Held(
            part.query,
            part.scored.scores[-1][0],
            both.mixing.search_scores(searched(part.scored))[0],
            part.right,
        )
        for part in _parts(both, search, asked)
    ]
    share, told = fit_share(held)
    return Mixing(share, rescore, weights if share < 1 else {}), {"generative_share": share, **told}


def _parts(
    ranker: GenerativeRanker, search: FusedSearch | None, queries: Sequence[GoldQuery]
) -> Iterator[_Part]:
    """Score the names of each part of each query."""
    asked = Forms(ranker.kb, abbreviations=True, composites=False).of_queries(queries)
    owners = [number for number, query in enumerate(queries) for _ in query.parts]
    gold = [ranker.kb.rows_of(query.gold) for query in queries]
    concepts = ranker.kb.table("names").column("concept").to_numpy()
    for start in range(0, len(asked), _AT_ONCE):
        chunk = asked[start : start + _AT_ONCE]
        texts, contexts = [form for form, _ in chunk], [context for _, context in chunk]
        gathered = search.gather(texts, _DEPTH) if search else gather_nothing(len(texts))
        scored = ranker.score(texts, gathered, contexts)
        for line in range(len(chunk)):
            there = scored.rows[line] >= 0
            own = Gathered(
                scored.generators,
                scored.rows[line : line + 1, there],
                scored.scores[:, line : line + 1, there],
                scored.ranks[:, line : line + 1, there],
            )
            query = owners[start + line]
            right = np.isin(concepts[own.rows[0]], gold[query])
            yield _Part(query, own.rows[0], own, right)


def _first_right(ranker: GenerativeRanker, part: _Part, scores: Scores) -> float:
    """Say how many different names stand before the first right one; infinite if none is."""
    before: set[int] = set()
    order = np.lexsort((part.rows, -scores))
    sequences = ranker.names.numbers[part.rows]
    # a name that cannot be generated stands for itself
    names = np.where(sequences >= 0, sequences, -1 - part.rows)
    best: float = float("inf")
    for place in order.tolist():
        if not np.isfinite(scores[place]):
            break
        name = int(names[place])
        if part.right[place]:
            best = min(best, len(before - {name}))
            break
        before.add(name)
    return best
