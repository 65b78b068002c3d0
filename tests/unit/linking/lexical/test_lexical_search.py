"""The k nearest texts, against comparing all pairs in plain Python."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from math import log, sqrt

import numpy as np
import pytest

from biograft.linking.lexical import ngrams as weighing, search as searching
from biograft.linking.lexical.ngrams import (
    build_vocabulary,
    encode_texts,
    grams_of,
    join_texts,
    weigh,
)
from biograft.linking.lexical.search import score_texts, search_texts

WORDS = (
    "acute chronic heart kidney failure disease of the type cancer breast infarction 2 ii syndrome "
    "inflammatory renal tumor nananana 4444444 糖尿病 心脏 2型"
).split()


class Setting:
    """Texts with their weights, and the unknown n-gram's."""

    def __init__(self, texts: list[str]) -> None:
        joined = join_texts(texts)
        self.texts = texts
        self.vocabulary, n_grams, total = build_vocabulary(joined)
        grams, ends = encode_texts(joined, self.vocabulary, total)
        self.unknown = log(1 + len(texts)) + 1
        self.weights = weigh(grams, ends, n_grams)

    def search(self, queries: list[str], k: int):
        """Return the indices of the texts found."""
        joined = join_texts(queries)
        found, scores = search_texts(joined, self.vocabulary, self.weights, self.unknown, k)
        return np.where(found >= 0, self.weights.ranks[found].astype(np.int64), -1), scores

    def score(self, queries: list[str], texts):
        """Score texts given by their indices."""
        positions = np.append(np.argsort(self.weights.ranks), -1)[texts]
        return score_texts(
            join_texts(queries), self.vocabulary, self.weights, self.unknown, positions
        )


def plain_vector(text: str, frequency: Counter[int], n: int) -> dict[int, float]:
    counts = counted(text)
    raw = {g: c * (log((1 + n) / (1 + frequency[g])) + 1) for g, c in counts.items()}
    length = sqrt(sum(value**2 for value in raw.values())) or 1.0
    return {gram: value / length for gram, value in raw.items()}


def counted(text: str) -> Counter[int]:
    codes, starts = join_texts([text])
    out = np.zeros(3 * len(codes) + 3, np.uint64)
    return Counter(out[: grams_of(codes, starts[0], starts[1], out)].tolist())


def plain_cosines(texts: list[str], query: str) -> list[float]:
    frequency = Counter(gram for text in texts for gram in counted(text))
    query_weights = plain_vector(query, frequency, len(texts))
    vectors = [plain_vector(text, frequency, len(texts)) for text in texts]
    return [
        sum(query_weights.get(g, 0) * value for g, value in vector.items()) for vector in vectors
    ]


def random_texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 6))) for _ in range(n)]
    return list(dict.fromkeys(texts))


@pytest.mark.parametrize(
    ("n", "k", "seed", "block", "in_many"),
    [
        (400, 1, 0, 7, 0.1),
        (400, 7, 1, 1, 0.1),
        (60, 100, 2, 16, 0.1),
        (1500, 5, 3, 2, 0.5),
        (400, 5, 4, 4096, 0.1),
        (1500, 30, 5, 3, 1.0),
        (900, 3, 6, 4, -1.0),
    ],
)
def test_the_nearest_are_those_of_comparing_all_pairs(n, k, seed, block, in_many, monkeypatch):
    monkeypatch.setattr(weighing, "_BLOCK", block)
    monkeypatch.setattr(weighing, "_IN_MANY", in_many)
    texts = random_texts(n, seed)
    setting = Setting(texts)
    rng = random.Random(seed)
    queries = [*random_texts(12, seed + 50), rng.choice(texts), "hart atack", "zzz qqq", ""]
    queries.append(" ".join(texts[:40])[:500])  # of very many n-grams
    found, scores = setting.search(queries, k)
    everything = np.tile(np.arange(len(texts)), (len(queries), 1))
    full = setting.score(queries, everything)
    for row, query in enumerate(queries):
        cosines = np.array(plain_cosines(texts, query))
        assert full[row] == pytest.approx(cosines, abs=2e-5)
        # ties by lower text, on the very scores that the whole comparison gives
        order = np.lexsort((np.arange(len(texts)), -full[row]))[:k]
        order = order[full[row][order] > 0]
        assert found[row][: len(order)].tolist() == order.tolist()
        assert scores[row][: len(order)].tolist() == full[row][order].tolist()
        assert (found[row][len(order) :] == -1).all()
        assert np.isneginf(scores[row][len(order) :]).all()


@pytest.mark.parametrize("in_many", [-1.0, 0.1, 1.0])
def test_no_score_in_a_block_exceeds_its_bound(in_many, monkeypatch):
    monkeypatch.setattr(weighing, "_BLOCK", 3)
    monkeypatch.setattr(weighing, "_IN_MANY", in_many)
    texts = [*random_texts(200, 4), "", "   "]
    setting = Setting(texts)
    weights = setting.weights
    assert sorted(weights.ranks.tolist()) == list(range(len(texts)))
    assert weights.block_starts.tolist() == [*range(0, len(texts), 3), len(texts)]
    impacts = np.zeros((len(weights.rarity), len(weights.block_starts) - 1))
    for gram, row in enumerate(weights.table_rows.tolist()):
        listed = slice(*weights.list_starts[gram : gram + 2].tolist())
        impacts[gram, weights.list_blocks[listed]] = weights.list_impacts[listed]
        if row >= 0:
            impacts[gram] = weights.table[row]
        impacts[gram] *= weights.largest[gram] / 255
    for text in range(len(texts)):
        grams = weights.grams[weights.gram_ends[text] : weights.gram_ends[text + 1]]
        block = text // 3
        for gram, times in Counter(grams.tolist()).items():
            exact = times * weights.rarity[gram] * weights.inverse_norm[text]
            assert exact <= impacts[gram, block] * (1 + 1e-6)
    assert (impacts > 0).sum() < impacts.size / 2


@pytest.mark.parametrize("in_many", [-1.0, 0.1, 1.0])
@pytest.mark.parametrize("n_words", [1, 4, 80])
def test_bounds_of_queries_in_whole_numbers_are_no_lower_than_scores(in_many, n_words, monkeypatch):
    monkeypatch.setattr(weighing, "_IN_MANY", in_many)
    setting = Setting(random_texts(500, 12))
    weights, starts = setting.weights, setting.weights.block_starts
    queries = [" ".join(random.Random(seed).choices(WORDS, k=n_words)) for seed in range(5)]
    scores = setting.score(queries, np.tile(weights.ranks, (len(queries), 1)).astype(np.int64))
    codes, added = join_texts(queries), np.zeros(len(weights.rarity), np.float32)
    for q, own in enumerate(scores):
        bounds = np.empty(len(starts) - 1, np.uint16)
        query = searching._weigh_query(
            codes, q, setting.vocabulary, weights.rarity, setting.unknown, added
        )
        units = searching._bound_blocks(query, weights, bounds)
        highest = np.maximum.reduceat(own, starts[:-1])
        for bound, score in zip(bounds.tolist(), highest.tolist(), strict=True):
            best = searching._Best(np.zeros(1, np.int64), np.array([score], np.float32))
            assert bound >= searching._least_bound(units, int(score > 0), best) or score == 0
        added[query.grams] = 0


def test_texts_with_the_same_rare_grams_are_neighbours():
    setting = Setting([*random_texts(200, 5), ""])
    weights = setting.weights
    ends = weights.gram_ends.tolist()
    of_texts = [sorted(set(weights.grams[a:b].tolist())) for a, b in itertools.pairwise(ends)]
    frequency = Counter(itertools.chain.from_iterable(of_texts))
    rarest = [sorted((frequency[gram], gram) for gram in grams)[:3] for grams in of_texts]
    last = (len(of_texts), 0)
    assert sorted([*grams, last, last, last][:3] for grams in rarest) == [
        [*grams, last, last, last][:3] for grams in rarest
    ]


@pytest.mark.parametrize("n_chunks", [1, 3, 40])
def test_answers_do_not_depend_on_how_queries_are_divided(n_chunks):
    texts = random_texts(300, 9)
    setting, queries = Setting(texts), random_texts(40, 10)
    found, scores = setting.search(queries, 5)
    size = -(-len(queries) // n_chunks)
    parts = [setting.search(queries[a : a + size], 5) for a in range(0, len(queries), size)]
    assert np.concatenate([part[0] for part in parts]).tolist() == found.tolist()
    assert np.concatenate([part[1] for part in parts]).tolist() == scores.tolist()


def test_a_text_is_nearest_to_itself():
    texts = random_texts(300, 9)
    found, scores = Setting(texts).search(texts, 1)
    assert found[:, 0].tolist() == list(range(len(texts)))
    assert scores[:, 0] == pytest.approx(1, abs=1e-5)


def test_equal_scores_go_to_the_lower_text():
    found, scores = Setting(["ab x", "ab y", "ab z"]).search(["ab w"], 3)
    assert found.tolist() == [[0, 1, 2]]
    assert len(set(scores[0].tolist())) == 1


def test_an_unknown_gram_makes_a_query_less_alike():
    setting = Setting(["heart", "renal"])
    _, scores = setting.search(["heart", "heart zzz"], 1)
    assert scores[1, 0] < scores[0, 0]


def test_chosen_texts_are_scored_and_the_absent_is_nothing():
    setting = Setting(["heart", "renal"])
    scores = setting.score(["heart"], np.array([[1, -1, 0]]))
    assert scores.tolist() == [[0, 0, pytest.approx(1, abs=1e-6)]]
