"""Answer ranking: training on a toy set, sampled negatives, losses, acc@1 and MRR."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError
from biograft.models.tasks import RankingConfig, RankingModel, ranking_report
from biograft.text import Answer, RankingExample
from biograft.training.tasks import fit

TOPICS = ("fever", "cancer", "attack", "pain")
FRAMES = ("{}", "no {} today", "a {} was found", "he took {}")
VERBS = ("no", "helps", "after", "and")


def questions(frames, right="helps"):
    """Four answers to each question, of which the one with a certain word is right."""
    return [
        RankingExample(
            frame.format(topic),
            tuple(
                Answer(f"{TOPICS[k - n]} {verb}", int(verb == right))
                for n, verb in enumerate(VERBS)
            ),
            f"{topic}-{frame}",
        )
        for frame in frames
        for k, topic in enumerate(TOPICS)
    ]


@pytest.fixture
def create(load):
    """Make a model: ``create(examples, loss="listwise")``."""

    def make(examples, **values):
        torch.manual_seed(1)
        return RankingModel.from_examples(load(), RankingConfig(**values), examples)

    return make


@pytest.mark.parametrize(("loss", "right"), [("pairwise", "helps"), ("listwise", "no")])
def test_answers_of_questions_in_frames_never_seen(loss, right, create, training, tmp_path):
    train, dev = questions(FRAMES[:2], right), questions(FRAMES[2:], right)
    settings = training(epochs=20, batch_size=8)
    model = create(train, loss=loss, negatives=2, training=settings)
    fitted = fit(model, train, dev, tmp_path / "run", seed=1)
    assert fitted.report.chance["acc@1"] == 0.25
    assert fitted.report.accuracy == 1.0
    best = fitted.epochs[fitted.best_epoch - 1]
    assert best == {"epoch": fitted.best_epoch, "acc@1": 1.0, "mrr": 1.0}


def test_negatives_are_sampled_anew_each_epoch_by_the_seed(create):
    examples = questions(FRAMES)
    model = create(examples, negatives=1)
    items, lost = model.training_items(examples)
    assert (len(items), dict(lost)) == (len(examples), {})
    assert all(len(item.wrong) == 3 for item in items)

    def sampled(*seed):
        chosen = model.sample_epoch(items, np.random.default_rng(seed))
        assert [item.correct for item in chosen] == [item.correct for item in items]
        positions = [item.wrong.index(c.wrong[0]) for item, c in zip(items, chosen, strict=True)]
        assert all(len(item.wrong) == 1 for item in chosen)
        return positions

    assert sampled(1, 0) == sampled(1, 0)
    assert sampled(1, 0) != sampled(1, 1) != sampled(2, 0)
    seen = {position for epoch in range(9) for position in sampled(1, epoch)[:1]}
    assert seen == {0, 1, 2}


def test_each_right_answer_is_learned_against_wrong_ones_only(create):
    examples = [
        RankingExample("fever", (Answer("aspirin", 2), Answer("lung"), Answer("cold", 1))),
        RankingExample("cancer", (Answer("lung", 1),)),
        RankingExample("pain", (Answer("lung"), Answer("heart"))),
    ]
    model = create(examples)
    items, lost = model.training_items(examples)
    assert [len(item.wrong) for item in items] == [1, 1]
    assert items[0].wrong == items[1].wrong
    assert lost == {"questions without a wrong answer": 1, "questions without a correct answer": 1}
    single = create(questions(FRAMES[:1]), questions="single")
    assert single.training_items(examples)[0] == []


@pytest.mark.parametrize("loss", ["pairwise", "listwise"])
def test_the_loss_against_a_plain_loop(loss, create):
    examples = questions(FRAMES[:2])
    model = create(examples, loss=loss, negatives=0, dropout=0.0)
    items, _ = model.training_items(examples)
    model.network.eval()
    with torch.no_grad():
        found, _ = model.loss(model.network, items)
    each = []
    for example, answer in zip(examples, model.predict(examples, "fp32"), strict=True):
        scores = torch.tensor(answer.scores)
        right = next(k for k, a in enumerate(example.candidates) if a.relevance)
        if loss == "listwise":
            each.append(-scores.log_softmax(0)[right])
        else:
            sigmoids = scores.sigmoid()
            each += [
                (0.3 - sigmoids[right] + s).clamp(min=0)
                for k, s in enumerate(sigmoids)
                if k != right
            ]
    assert float(found) == pytest.approx(float(sum(each) / len(each)), rel=1e-5)


def question(*relevances):
    return RankingExample("q", tuple(Answer(f"a{k}", r) for k, r in enumerate(relevances)))


def worst_rank(example, scores):
    """The worst rank of the first right answer over all orders that the scores allow."""
    worst = 0
    for order in itertools.permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            first = next(k for k, a in enumerate(order, 1) if example.candidates[a].relevance > 0)
            worst = max(worst, first)
    return worst


@pytest.mark.parametrize("seed", range(2))
def test_metrics_against_all_orders(seed):
    rng = np.random.default_rng(seed)
    examples = [question(*rng.integers(0, 2, 5).tolist()) for _ in range(20)]
    scores = [tuple(rng.integers(0, 4, 5).tolist()) for _ in examples]
    report = ranking_report(examples, scores, "answered")
    ranks = [worst_rank(e, s) for e, s in zip(examples, scores, strict=True) if e.n_relevant]
    metrics = report.to_json()
    assert list(report.ranks) == ranks
    assert metrics["acc@1"] == pytest.approx(sum(rank == 1 for rank in ranks) / len(ranks))
    assert metrics["mrr"] == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks))


def test_ties_are_held_against_the_model_and_counted():
    examples = [question(1, 0, 0), question(0, 1), question(1, 1)]
    metrics = ranking_report(examples, [(0, 0, 0), (0, 1), (2, 2)], "answered").to_json()
    assert (metrics["n_tied"], metrics["ties"]) == (1, "against the model")
    assert metrics["acc@1"] == pytest.approx(2 / 3)
    assert metrics["mrr"] == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert metrics["n_without_wrong"] == 1


def test_questions_left_out_are_counted_and_chance_is_that_of_the_others():
    examples = [question(0, 0), question(1, 0), question(1, 1, 0), question(1)]
    scores = [(0,) * len(example.candidates) for example in examples]
    metrics = ranking_report(examples, scores, "answered").to_json()
    assert (metrics["n_questions"], metrics["left_out"]) == (
        3,
        {"questions without a correct answer": 1},
    )
    assert metrics["chance"]["acc@1"] == pytest.approx((1 / 2 + 2 / 3 + 1) / 3)
    single = ranking_report(examples, scores, "single").to_json()
    assert (single["n_questions"], sum(single["left_out"].values())) == (1, 3)
    assert set(single["left_out"]) == {
        "questions without a correct answer",
        "questions with several correct answers",
        "questions without a wrong answer",
    }
    assert single["chance"] == {"acc@1": 0.5, "mrr": 0.75}


def test_no_measurable_question_is_refused():
    with pytest.raises(ConfigError, match="none of 1 questions can be measured"):
        ranking_report([question(0, 0)], [(1, 2)], "answered")
    with pytest.raises(ConfigError, match="0 predictions for 1 questions"):
        ranking_report([question(0, 1)], [], "answered")
