"""The numbers a ranker sees, against an implementation in plain loops."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from biograft.linking import (
    DEFAULT_STEPS,
    FeatureExtractor,
    FusedSearch,
    LexicalIndex,
    MentionMemory,
    NameHits,
    assign_folds,
    feature_names,
)
from biograft.linking.supervised import ALL

TEXTS = ["MS", "cold", "Mitral  stenosis", "failure of a kidney", "heart", "qqqq", ""]


class Letters:
    """Scores names by their number of letters in common; holds every second name only."""

    name = "letters"

    def __init__(self, kb):
        self.names = kb.table("names").column("text").to_pylist()

    def score(self, texts, rows):
        scores = np.full(rows.shape, -np.inf, np.float32)
        for line, text in enumerate(texts):
            for column, row in enumerate(rows[line].tolist()):
                if row >= 0 and row % 2 == 0:
                    own = set(self.names[row])
                    scores[line, column] = len(own & set(text.lower())) / len(own) - 0.3
        return scores

    def search(self, texts, k):
        rows = np.tile(np.arange(len(self.names)), (len(texts), 1))
        scores = self.score(texts, rows)
        order = np.lexsort((rows, -scores), axis=1)[:, :k]
        found = np.take_along_axis(scores, order, axis=1)
        return NameHits(np.where(np.isfinite(found), order, -1), found)


@pytest.fixture
def memory(ward):
    memory = MentionMemory(len(ward.kb))
    for n, mention in enumerate(ward.mentions):
        memory.add(mention.text, [ward.kb.row(i) for i in mention.concepts], n % 3)
    memory.add("cold", [ward.kb.row("CHILL")], 2)
    return memory


def plain_features(kb, memory, text, found, leave_out, excluded):
    """Make the features of each concept by name: plain loops, one definition after the other."""
    pool, index = found
    all_names = [(n.text, c) for c, concept in enumerate(kb) for n in concept.names]
    of_concept = defaultdict(list)
    for column, row in enumerate(pool.rows[index].tolist()):
        if row >= 0 and not excluded[column]:
            scores = [float(s[index, column]) for s in pool.scores]
            scores = [s if math.isfinite(s) else 0.0 for s in scores]
            of_concept[all_names[row][1]].append((column, all_names[row][0], scores))
    n_generators = len(pool.generators)
    top = [max(e[2][g] for v in of_concept.values() for e in v) for g in range(n_generators)]
    counts, seen = memory.linked(text, leave_out)
    words = set(DEFAULT_STEPS(text).split())
    candidates = {}
    for concept, entries in sorted(of_concept.items()):
        values, best = [], []
        for g in range(n_generators):
            own = [e[2][g] for e in entries]
            best.append(own.index(max(own)))
            rest = [0.0 if k == best[g] else s for k, s in enumerate(own)]
            values += [max(own), max(rest), max(own) - top[g], float(max(own) - top[g] > -1e-6)]
            values.append(0.05 * math.log(sum(math.exp((s - 1) / 0.05) for s in own)) + 1)
        for a in range(n_generators):
            values += [entries[best[b]][2][a] for b in range(n_generators) if a != b]
        equal = [e for e in entries if e[2][0] >= 0.99 - 1e-4]
        shared = []
        for _, name, _ in entries:
            theirs = set(DEFAULT_STEPS(name).split())
            shared.append(len(words & theirs) / len(words | theirs) if words | theirs else 0.0)
        values += [
            float(any(name.casefold() == text.casefold() for _, name, _ in equal)),
            float(bool(equal)),
            max(shared),
            counts.get(concept, 0) / max(seen, 1),
            float(seen > 0),
            math.log1p(counts.get(concept, 0)),
            math.log1p(memory.frequency(leave_out)[concept]),
            math.log1p(sum(c == concept for _, c in all_names)),
        ]
        chosen = max(entries, key=lambda e: (np.float32(sum(map(np.float32, e[2]))), -e[0]))
        candidates[concept] = (values, chosen[0])
    return candidates


@pytest.mark.parametrize("leave_out", [ALL, 2])
@pytest.mark.parametrize("n_excluded", [0, 3])
def test_features_are_those_of_plain_loops(ward, memory, leave_out, n_excluded):
    search = FusedSearch([LexicalIndex.build(ward.kb), Letters(ward.kb)])
    extractor, pool = FeatureExtractor(ward.kb, memory), search.collect(TEXTS, 6)
    for index, text in enumerate(TEXTS):
        excluded = np.zeros(pool.rows.shape[1], bool)
        excluded[:n_excluded] = True
        candidates = extractor.compute(text, pool, index, leave_out=leave_out, excluded=excluded)
        expected = plain_features(ward.kb, memory, text, (pool, index), leave_out, excluded)
        assert candidates.concepts.tolist() == list(expected)
        assert candidates.best.tolist() == [best for _, best in expected.values()]
        features = np.array([values for values, _ in expected.values()])
        assert candidates.features.shape == (len(expected), len(feature_names(pool.generators)))
        np.testing.assert_allclose(
            candidates.features, features.reshape(candidates.features.shape), atol=1e-6
        )


def test_a_text_without_candidates_has_no_features(ward, memory):
    pool = ward.search.collect(["qqqq"], 3)
    candidates = FeatureExtractor(ward.kb, memory).compute("qqqq", pool, 0)
    assert candidates.features.shape == (0, len(feature_names(["lexical"])))
    assert len(candidates.concepts) == len(candidates.best) == 0


def test_every_column_has_a_name_of_its_own():
    names = feature_names(["lexical", "dense", "third"])
    assert len(set(names)) == len(names) == 3 * 5 + 6 + 8


N = 4
added = st.lists(
    st.tuples(
        st.sampled_from(["a", "A", "b ", "c  d", "C d"]),
        st.sets(st.integers(0, N - 1)),
        st.integers(0, 2),
    )
)


def key(text):
    return " ".join(text.split()).casefold()


@given(added, st.sampled_from([ALL, 0, 1, 2]), st.sampled_from(["a", "B", "c d", "never"]))
def test_counts_are_those_of_a_plain_loop(entries, left_out, query):
    memory = MentionMemory(N)
    linked, seen, often = Counter(), 0, [0] * N
    for text, concepts, fold in entries:
        memory.add(text, concepts, fold)
        if fold == left_out:
            continue
        for concept in concepts:
            often[concept] += 1
        if key(text) == key(query):
            seen += 1
            linked.update(concepts)
    assert memory.linked(query, left_out) == (dict(linked), seen)
    assert memory.frequency(left_out).tolist() == often
    for concept in range(N):
        folds = {f for text, rows, f in entries if key(text) == key(query) and concept in rows}
        assert memory.folds_of(query, concept) == folds


def test_json_gives_back_everything_but_the_folds(ward):
    memory = MentionMemory(len(ward.kb))
    memory.add("Ms", [1, 2], 0)
    memory.add("ms", [1], 1)
    memory.add("nothing fits", [], 1)
    read = MentionMemory.from_json(json.loads(json.dumps(memory.to_json(ward.kb))), ward.kb)
    for text in ("MS", "nothing fits", "never"):
        assert read.linked(text) == memory.linked(text)
    assert read.frequency().tolist() == memory.frequency().tolist()
    assert read.to_json(ward.kb) == memory.to_json(ward.kb)


def test_a_store_that_lost_a_concept_forgets_it_alone(ward, store_of):
    memory = MentionMemory(len(ward.kb))
    memory.add("ms", [ward.kb.row("SCLEROSIS")])
    memory.add("ms", [ward.kb.row("STENOSIS")])
    less = store_of([{"id": "STENOSIS", "name": "mitral stenosis"}], "less")
    read = MentionMemory.from_json(memory.to_json(ward.kb), less)
    assert read.linked("ms") == ({0: 1}, 2)
    assert read.frequency().tolist() == [1]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_folds_are_even_and_the_same_for_the_same_seed(n):
    documents = [f"d{k}" for k in range(20)]
    folds = assign_folds([*documents, *documents], n, seed=1)
    assert folds == assign_folds(reversed(documents), n, seed=1)
    assert folds != assign_folds(documents, n, seed=2)
    sizes = np.bincount(list(folds.values()), minlength=n)
    assert sizes.max() - sizes.min() <= 1
