"""acc@1 and MRR against plain loops; ties, questions without answers, chance."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest

from biograft.corpus.tasks.records import Answer, RankingExample
from biograft.errors import ConfigError
from biograft.tasks.ranking import ranking_report


def question(*relevances):
    return RankingExample("q", tuple(Answer(f"a{k}", r) for k, r in enumerate(relevances)))


def worst_rank(example, scores):
    """The worst rank of the first right answer over all orders that the scores allow."""
    worst = 0
    for order in permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            first = next(k for k, a in enumerate(order, 1) if example.candidates[a].relevance > 0)
            worst = max(worst, first)
    return worst


@pytest.mark.parametrize("seed", range(5))
def test_figures_against_all_orders(seed):
    draw = np.random.default_rng(seed)
    examples = [question(*draw.integers(0, 2, 5).tolist()) for _ in range(20)]
    scores = [tuple(draw.integers(0, 4, 5).tolist()) for _ in examples]
    report = ranking_report(examples, scores, "answered")
    ranks = [worst_rank(e, s) for e, s in zip(examples, scores, strict=True) if e.n_relevant]
    told = report.to_json()
    assert list(report.ranks) == ranks
    assert told["acc@1"] == pytest.approx(sum(rank == 1 for rank in ranks) / len(ranks))
    assert told["mrr"] == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks))


def test_ties_are_held_against_the_model_and_counted():
    examples = [question(1, 0, 0), question(0, 1), question(1, 1)]
    told = ranking_report(examples, [(0, 0, 0), (0, 1), (2, 2)], "answered").to_json()
    assert (told["n_tied"], told["ties"]) == (1, "against the model")
    assert told["acc@1"] == pytest.approx(2 / 3)
    assert told["mrr"] == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert told["n_without_wrong"] == 1


def test_questions_left_out_are_counted_and_chance_is_that_of_the_others():
    examples = [question(0, 0), question(1, 0), question(1, 1, 0), question(1)]
    scores = [(0,) * len(example.candidates) for example in examples]
    told = ranking_report(examples, scores, "answered").to_json()
    assert (told["n_questions"], told["left_out"]) == (3, {"questions without a right answer": 1})
    assert told["chance"]["acc@1"] == pytest.approx((1 / 2 + 2 / 3 + 1) / 3)
    single = ranking_report(examples, scores, "single").to_json()
    assert (single["n_questions"], sum(single["left_out"].values())) == (1, 3)
    assert set(single["left_out"]) == {
        "questions without a right answer",
        "questions with several right answers",
        "questions without a wrong answer",
    }
    assert single["chance"] == {"acc@1": 0.5, "mrr": 0.75}


def test_nothing_to_measure_is_said():
    with pytest.raises(ConfigError, match="none of 1 questions can be measured"):
        ranking_report([question(0, 0)], [(1, 2)], "answered")
    with pytest.raises(ConfigError, match="0 answers to 1 questions"):
        ranking_report([question(0, 1)], [], "answered")
