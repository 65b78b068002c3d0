"""Ranking as a whole: learned from a toy set, wrong answers drawn anew, scores alike anywhere."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from biograft.corpus.tasks.records import Answer, RankingExample
from biograft.errors import ConfigError
from biograft.tasks.configs import NerConfig, RankingConfig
from biograft.tasks.model import ChoosingModel
from biograft.tasks.ner import NerModel
from biograft.tasks.ranking import RankingAnswer, RankingModel
from biograft.tasks.training import fit

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
def start(load):
    """Make a model: ``start(examples, loss="listwise")``."""

    def make(examples, **values):
        torch.manual_seed(1)
        return RankingModel.start(load(), RankingConfig(**values), examples)

    return make


@pytest.mark.parametrize("right", ["helps", "no"])  # what a model knew before is one of them
@pytest.mark.parametrize("loss", ["pairwise", "listwise"])
def test_answers_of_questions_in_frames_never_seen(loss, right, start, training, tmp_path):
    train, dev = questions(FRAMES[:2], right), questions(FRAMES[2:], right)
    settings = training(epochs=20, batch_size=8)
    model = start(train, loss=loss, negatives=2, training=settings)
    fitted = fit(model, train, dev, tmp_path / "run", seed=1)
    assert fitted.report.chance["acc@1"] == 0.25
    assert fitted.report.accuracy == 1.0
    best = fitted.epochs[fitted.best_epoch - 1]
    assert best == {"epoch": fitted.best_epoch, "acc@1": 1.0, "mrr": 1.0}


def test_wrong_answers_are_drawn_anew_each_epoch_and_by_the_seed(start):
    examples = questions(FRAMES)
    model = start(examples, negatives=1)
    items, lost = model.learnable(examples)
    assert (len(items), dict(lost)) == (len(examples), {})
    assert all(len(item.wrong) == 3 for item in items)

    def drawn(*seed):
        chosen = model.choose(items, np.random.default_rng(seed))
        assert [item.right for item in chosen] == [item.right for item in items]
        places = [item.wrong.index(c.wrong[0]) for item, c in zip(items, chosen, strict=True)]
        assert all(len(item.wrong) == 1 for item in chosen)
        return places

    assert drawn(1, 0) == drawn(1, 0)
    assert drawn(1, 0) != drawn(1, 1) != drawn(2, 0)
    seen = {place for epoch in range(9) for place in drawn(1, epoch)[:1]}
    assert seen == {0, 1, 2}


@pytest.mark.parametrize(("negatives", "n"), [(0, 3), (2, 2), (7, 3)])
def test_so_many_wrong_answers_as_there_are(negatives, n, start):
    examples = questions(FRAMES[:1])
    model = start(examples, negatives=negatives)
    items, _ = model.learnable(examples)
    chosen = model.choose(items, np.random.default_rng(1))
    assert [len(item.wrong) for item in chosen] == [n] * len(items)
    for item in chosen:
        assert len({id(sequence) for sequence in item.wrong}) == n
        assert item.tokens == max((s.tokens for s in (item.right, *item.wrong)), key=len)


def test_each_right_answer_is_learned_against_wrong_ones_only(start):
    examples = [
        RankingExample("fever", (Answer("aspirin", 2), Answer("lung"), Answer("cold", 1))),
        RankingExample("cancer", (Answer("lung", 1),)),
        RankingExample("pain", (Answer("lung"), Answer("heart"))),
    ]
    model = start(examples)
    items, lost = model.learnable(examples)
    assert [len(item.wrong) for item in items] == [1, 1]
    assert items[0].wrong == items[1].wrong
    assert lost == {"questions without a wrong answer": 1, "questions without a right answer": 1}
    single = start(questions(FRAMES[:1]), questions="single")
    assert single.learnable(examples)[0] == []


def test_a_score_is_of_question_and_answer_together(start):
    example = questions(FRAMES[:1])[0]
    model = start([example])
    encoder = model.network.encoder
    [answer] = model.predict([example], "fp32")
    encoder.model.eval()
    for candidate, score in zip(example.candidates, answer.scores, strict=True):
        asked = {"return_tensors": "pt", "return_token_type_ids": True}
        inputs = encoder.tokenizer(example.query, candidate.text, **asked)
        with torch.no_grad():
            expected = model.network.head.linear(encoder.model(**inputs).last_hidden_state[0, 0])
        assert score == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize("loss", ["pairwise", "listwise"])
def test_the_loss_against_a_plain_loop(loss, start):
    examples = questions(FRAMES[:2])
    model = start(examples, loss=loss, negatives=0, dropout=0.0)
    items, _ = model.learnable(examples)
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
            shares = scores.sigmoid()
            each += [
                (0.3 - shares[right] + share).clamp(min=0)
                for k, share in enumerate(shares)
                if k != right
            ]
    assert float(found) == pytest.approx(float(sum(each) / len(each)), rel=1e-5)


def test_scores_are_the_same_in_any_company_and_in_the_order_of_candidates(start):
    examples = questions(FRAMES[:2])
    long = tuple(Answer("cold " * n) for n in (30, 1, 9))
    examples.append(RankingExample("a cold fever", long))
    model = start(examples)
    together = model.predict(examples, "fp32")
    for example, answer in zip(examples, together, strict=True):
        assert len(answer.scores) == len(example.candidates)
        for k, candidate in enumerate(example.candidates):
            alone = model.predict([replace(example, candidates=(candidate,))], "fp32")
            assert answer.scores[k] == pytest.approx(alone[0].scores[0], abs=1e-6)
    assert model.predict([]) == []


def test_the_order_of_answers():
    assert RankingAnswer((0.5, 2.0, 0.5, -1.0)).order == (1, 0, 2, 3)


def test_answers_are_lines_with_scores_and_rank(start, tmp_path):
    examples = [questions(FRAMES[:1])[0], RankingExample("q", (Answer("lung"),))]
    answers = [RankingAnswer((0.5, 0.5, 0.1, 0.0)), RankingAnswer((1.0,))]
    start(examples).write(examples, answers, tmp_path / "answers.jsonl")
    first, second = map(json.loads, (tmp_path / "answers.jsonl").read_text().splitlines())
    assert (first["row"], first["relevance"], first["rank"]) == (0, [0, 1, 0, 0], 2)
    assert (first["scores"], first["id"]) == ([0.5, 0.5, 0.1, 0.0], examples[0].id)
    assert second["rank"] is None


def test_without_right_and_wrong_answers_there_is_nothing_to_learn(start):
    with pytest.raises(ConfigError, match="none of 1 questions to learn from"):
        start([RankingExample("q", (Answer("lung", 1),))])


def test_only_models_that_choose_are_asked_to(start, load, documents):
    assert isinstance(start(questions(FRAMES)), ChoosingModel)
    config = NerConfig(overlap=4)
    assert not isinstance(NerModel.start(load(), config, documents), ChoosingModel)
