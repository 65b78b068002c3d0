"""Candidates of a pool of names, against plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from biograft.kb import KnowledgeBase, build_starter
from biograft.linking import Candidate, CandidateBuilder, CandidatePool, Evidence
from biograft.linking.fusion import PREFERENCE, SAME_NAME

N_ROWS = 60


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "kb"
    build_starter(folder)
    return KnowledgeBase.open(folder)


@st.composite
def pools(draw):
    """Rows, scores and ranks as generators give them; scores often tie."""
    n_texts, n_generators = draw(st.integers(0, 3)), draw(st.integers(1, 2))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    lines = [np.sort(rng.choice(N_ROWS, rng.integers(0, 20), replace=False)) for _ in range(3)]
    lines = lines[:n_texts]
    width = max(map(len, lines), default=0)
    rows = np.full((n_texts, width), -1, np.int64)
    scores = np.full((n_generators, n_texts, width), -np.inf, np.float32)
    ranks = np.zeros(scores.shape, np.int32)
    for text, line in enumerate(lines):
        rows[text, : len(line)] = line
        for generator in range(n_generators):
            found = rng.choice([0.3, 0.5, 0.99, 1.0, -np.inf], len(line))
            scores[generator, text, : len(line)] = found
            order = np.argsort(-found, kind="stable")
            ranks[generator, text, order] = np.arange(1, len(line) + 1)
            ranks[generator, text, : len(line)][rng.random(len(line)) < 0.3] = 0
    return CandidatePool(("lexical", "dense")[:n_generators], rows, scores, ranks)


def plain(kb, pool, scores, k, *, by_concept):
    concepts, results = kb.numbers("names", "concept"), []
    for text in range(len(pool)):
        rows = pool.rows[text].tolist()
        columns = [n for n, row in enumerate(rows) if row >= 0 and np.isfinite(scores[text, n])]

        def key(column, rows=rows, text=text):
            score, kind = scores[text, column], kb.name(rows[column]).kind
            preference = PREFERENCE.index(kind) if score >= SAME_NAME else 0
            return -score, preference, rows[column]

        groups = {}
        for column in sorted(columns, key=key):
            groups.setdefault(concepts[rows[column]] if by_concept else column, []).append(column)
        candidates = []
        for names in list(groups.values())[:k]:
            evidence = []
            for generator, name in enumerate(pool.generators):
                ranks = pool.ranks[generator, text]
                ranked = [column for column in names if ranks[column]]
                if ranked:
                    best = min(ranked, key=lambda column, ranks=ranks: ranks[column])
                    score = float(pool.scores[generator, text, best])
                    found = kb.name(rows[best]).text
                    evidence.append(Evidence(name, found, int(ranks[best]), score))
            row = rows[names[0]]
            concept = int(concepts[row])
            candidates.append(
                Candidate(
                    kb.id_at(concept),
                    kb.name_at(concept),
                    kb.name(row).text,
                    float(scores[text, names[0]]),
                    evidence=tuple(evidence),
                    types=tuple(kind.code for kind in kb.concept_at(concept).types),
                )
            )
        if by_concept and candidates and candidates[0].score >= SAME_NAME:
            firsts = [names[0] for names in groups.values()]
            tied = [c for c in firsts[1:] if key(c)[:2] == key(firsts[0])[:2]]
            ids = tuple(kb.id_at(int(concepts[rows[column]])) for column in tied)
            candidates[0] = replace(candidates[0], tied=ids)
        results.append(candidates)
    return results


@settings(max_examples=150, deadline=None)
@given(pool=pools(), k=st.integers(1, 6))
def test_candidates_are_those_of_plain_loops(kb, pool, k):
    builder, scores = CandidateBuilder(kb), pool.scores.max(axis=0)
    assert builder.by_concept(pool, scores, k) == plain(kb, pool, scores, k, by_concept=True)
    assert builder.by_name(pool, scores, k) == plain(kb, pool, scores, k, by_concept=False)
