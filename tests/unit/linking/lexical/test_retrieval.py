"""The k nearest texts, against comparing all pairs in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from math import log, sqrt

import numpy as np
import pytest

from biograft.linking.lexical.ngrams import (
    grams_of,
    invert,
    join_texts,
    number_grams,
    spell_texts,
)
from biograft.linking.lexical.retrieval import Weights, score_texts, search_texts, weigh

WORDS = (
    "acute chronic heart kidney failure disease of the type cancer breast infarction 2 ii syndrome "
    "inflammatory renal tumor 糖尿病 心脏 2型"
).split()


class Setting:
    """Texts with their weights, and the unknown n-gram's."""

    def __init__(self, texts: list[str]) -> None:
        joined = join_texts(texts)
        self.texts = texts
        self.vocabulary, n_grams, total = number_grams(joined)
        grams, ends = spell_texts(joined, self.vocabulary, total)
        postings, starts, frequency = invert(grams, ends, n_grams)
        rarity = (np.log((1 + len(texts)) / (1 + frequency)) + 1).astype(np.float32)
        self.unknown = log(1 + len(texts)) + 1
        norm = weigh(grams, ends, rarity)
        self.weights = Weights(postings, starts, grams, ends, rarity, norm)

    def search(self, queries: list[str], k: int):
        return search_texts(join_texts(queries), self.vocabulary, self.weights, self.unknown, k)


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
    asked = plain_vector(query, frequency, len(texts))
    vectors = [plain_vector(text, frequency, len(texts)) for text in texts]
    return [sum(asked.get(g, 0) * value for g, value in vector.items()) for vector in vectors]


def random_texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 6))) for _ in range(n)]
    return list(dict.fromkeys(texts))


@pytest.mark.parametrize(("n", "k", "seed"), [(400, 1, 0), (400, 7, 1), (60, 100, 2), (1500, 5, 3)])
def test_the_nearest_are_those_of_comparing_all_pairs(n, k, seed):
    texts = random_texts(n, seed)
    setting = Setting(texts)
    rng = random.Random(seed)
    queries = [*random_texts(12, seed + 50), rng.choice(texts), "hart atack", "zzz qqq", ""]
    found, scores = setting.search(queries, k)
    everything = np.tile(np.arange(len(texts)), (len(queries), 1))
    joined = join_texts(queries)
    full = score_texts(joined, setting.vocabulary, setting.weights, setting.unknown, everything)
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
    places = np.array([[1, -1, 0]])
    joined = join_texts(["heart"])
    scores = score_texts(joined, setting.vocabulary, setting.weights, setting.unknown, places)
    assert scores.tolist() == [[0, 0, pytest.approx(1, abs=1e-6)]]
