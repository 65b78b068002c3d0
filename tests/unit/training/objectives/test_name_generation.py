"""Name generation: encoding, and the loss against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from tiny_seq2seq import tiny_seq2seq

from biograft.text.trie import FlatTrie
from biograft.training.objectives import (
    NameExample,
    NameGenerationConfig,
    NameReader,
    ObjectiveModel,
    SequenceBatch,
    Setting,
)

EXAMPLES = [
    NameExample("no START heart attack END seen", "heart attack is", "myocardial infarction"),
    NameExample("START flu END", "flu is", "influenza"),
    NameExample("START mi END was treated with aspirin for years", "", "heart attack"),
]


@pytest.fixture(scope="module")
def seq2seq():
    return tiny_seq2seq([each.source + " " + each.target for each in EXAMPLES])


def build(trie=None, **options):
    return NameGenerationConfig(**options).build(Setting(width=4, trie=trie))


def model_of(seq2seq, objective):
    objectives = {"names": objective}
    return ObjectiveModel(NameReader(seq2seq, objectives), objectives).eval()


def loss_of(objective, labels, *passes):
    """The loss of logits for these labels; the inputs of the model do not count."""
    return objective.loss(passes, SequenceBatch(labels, labels, labels, labels, labels))


def plain_loss(logits, labels, smoothing, form):
    """Compute the smoothed loss token by token, in Python's own numbers."""
    total, n = 0.0, 0
    for row, row_labels in zip(logits.tolist(), labels.tolist(), strict=True):
        for scores, label in zip(row, row_labels, strict=True):
            if label == -100:
                continue
            norm = math.log(sum(math.exp(score) for score in scores))
            minus = [norm - score for score in scores]
            v = len(scores)
            if form == "mean":
                total += (1 - smoothing) * minus[label] + smoothing * sum(minus) / v
            else:
                each = smoothing / (v - 1)
                total += (1 - smoothing - each) * minus[label] + each * sum(minus)
            n += 1
    return total / n


class TestEncoding:
    def test_only_the_name_and_its_end_are_labelled(self, seq2seq):
        batch = build().encode(seq2seq, EXAMPLES)
        assert len(batch) == 3
        for row, example in enumerate(EXAMPLES):
            prompt, name = (
                seq2seq.tokens([example.prompt])[0],
                seq2seq.tokens([example.target])[0],
            )
            n = 1 + len(prompt) + len(name)
            assert batch.decoder_inputs[row, :n].tolist() == [seq2seq.start, *prompt, *name]
            assert set(batch.decoder_inputs[row, n:].tolist()) <= {seq2seq.padding}
            wanted = [-100] * len(prompt) + [*name, seq2seq.end]
            kept = [column for column in batch.columns.tolist() if column < n]
            assert batch.labels[row, : len(kept)].tolist() == [wanted[c] for c in kept]
            assert set(batch.labels[row, len(kept) :].tolist()) <= {-100}
            source = seq2seq.source_tokens([example.source])[0]
            assert batch.sources[row, : len(source)].tolist() == source
            assert int(batch.source_mask[row].sum()) == len(source)
        names = [seq2seq.tokens([each.target])[0] for each in EXAMPLES]
        assert build().count(batch) == sum(map(len, names)) + 3

    def test_a_prompt_that_is_too_long_loses_its_beginning(self):
        short = tiny_seq2seq(["heart attack is"] * 9, max_length=12)
        long = NameExample("START x END", "very " * 9 + "heart is", "attack")
        batch = build().encode(short, [long])
        inputs = batch.decoder_inputs[0].tolist()
        prompt, name = short.tokens([long.prompt, "attack"])
        assert (short.longest_name, len(name)) == (5, 1)
        assert inputs == [short.start, *prompt[-6:], *name]  # as much as linking leaves to it
        endless = NameExample("START x END", "x is", "attack " * 9)
        batch = build().encode(short, [endless])
        assert batch.labels[0].tolist() == [*short.tokens([endless.target])[0][:5], short.end]


class TestLoss:
    @pytest.mark.parametrize("form", ["mean", "fairseq"])
    @pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
    def test_it_is_that_of_plain_loops(self, form, smoothing):
        torch.manual_seed(1)
        logits = torch.randn(3, 4, 7, dtype=torch.float64, requires_grad=True)
        labels = torch.tensor([[-100, 2, 3, -100], [6, 0, 5, 1], [-100] * 4])
        objective = build(label_smoothing=smoothing, form=form)
        loss, stats = loss_of(objective, labels, logits)
        assert float(loss.detach()) == pytest.approx(
            plain_loss(logits, labels, smoothing, form), abs=1e-12
        )
        assert stats["nll"] == pytest.approx(plain_loss(logits, labels, 0.0, form), abs=1e-12)
        loss.backward()
        assert (logits.grad[labels == -100] == 0).all()
        assert (logits.grad[labels != -100].abs().sum(-1) > 0).all()

    def test_nothing_labelled_is_no_loss(self):
        logits = torch.randn(2, 3, 5, requires_grad=True)
        loss, stats = loss_of(build(r_drop=1.0), torch.full((2, 3), -100), logits, logits * 2)
        loss.backward()
        assert float(loss.detach()) == 0
        assert set(stats.values()) == {0.0}
        assert (logits.grad == 0).all()

    def test_two_passes(self):
        torch.manual_seed(2)
        first, second = torch.randn(2, 2, 3, 5, dtype=torch.float64)
        labels = torch.tensor([[-100, 2, 3], [4, 0, 1]])
        loss, _ = loss_of(build(r_drop=0.7), labels, first, second)
        halves = [float(loss_of(build(), labels, each)[0]) for each in (first, second)]
        apart = 0.0
        for row, column in torch.nonzero(labels != -100).tolist():
            p, q = (each[row, column].softmax(-1).tolist() for each in (first, second))
            apart += sum((a - b) * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True))
        assert float(loss) == pytest.approx(sum(halves) / 2 + 0.7 * apart / 2 / 5, abs=1e-12)


class TestTraining:
    def test_parts_by_their_multipliers_are_the_whole(self, seq2seq):
        objective = build()
        model = model_of(seq2seq, objective)
        whole = objective.encode(seq2seq, EXAMPLES)
        loss, stats = model(whole)
        parts = [objective.encode(seq2seq, each) for each in (EXAMPLES[:1], EXAMPLES[1:])]
        counted, n = model.counts(whole), {}
        total, sums = 0.0, dict.fromkeys(stats, 0.0)
        for part in parts:
            n = {key: 2 * value / counted[key] for key, value in model.counts(part).items()}
            of_part, part_stats = model(part, n)
            total += float(of_part.detach()) / 2
            sums = {key: sums[key] + part_stats[key] / 2 for key in sums}
        assert total == pytest.approx(float(loss.detach()), rel=1e-6, abs=1e-5)
        assert sums == pytest.approx(stats, rel=1e-6, abs=1e-5)
        found = model.evaluate(parts, "fp32")
        assert {key: found[key] for key in stats} == pytest.approx(stats, rel=1e-6, abs=1e-5)

    def test_the_second_pass_has_another_dropout(self, seq2seq):
        objective = build(r_drop=5.0)
        model, batch = model_of(seq2seq, objective), objective.encode(seq2seq, EXAMPLES)
        plain, _ = model_of(seq2seq, build())(batch)
        model.train()
        same, _ = model(batch)  # the tiny model has no dropout
        for layer in (*seq2seq.model.model.encoder.layers, *seq2seq.model.model.decoder.layers):
            layer.dropout = 0.5
        other, _ = model(batch)
        for layer in (*seq2seq.model.model.encoder.layers, *seq2seq.model.model.decoder.layers):
            layer.dropout = 0.0
        model.eval()
        torch.testing.assert_close(same, plain)
        assert float(other.detach()) > float(plain.detach()) + 0.01


def trie_of(seq2seq, names):
    ended = [[*seq2seq.tokens([name])[0], seq2seq.end] for name in names]
    flat = np.array([token for name in ended for token in name], np.int64)
    return FlatTrie.build(flat, np.cumsum([len(name) for name in ended]))[0]


def plain_unlikelihood(scores, names, allowed):
    """Compute the penalty token by token; ``allowed`` are all names, each with its end."""
    penalties, row = [], 0
    for name in names:
        for k, token in enumerate(name):
            after = {other[k] for other in allowed if len(other) > k and other[:k] == name[:k]}
            others = after - {token} if token in after else set()
            if others:
                penalties.append(
                    max(-math.log(1 - min(math.exp(scores[row][t]), 0.9999)) for t in others)
                )
            row += 1
    return sum(penalties) / max(1, len(penalties)), len(penalties)


NAMES = ["flu", "flu seen", "heart attack", "heart", "myocardial infarction", "mi seen", "seen"]


class TestUnlikelihood:
    @given(st.sets(st.sampled_from(NAMES), min_size=1), st.integers(0, 99))
    def test_it_is_that_of_plain_loops(self, seq2seq, allowed, seed):
        """Some of the names are not in the trie."""
        torch.manual_seed(seed)
        objective = build(trie_of(seq2seq, allowed), unlikelihood=1.0)
        batch = objective.encode(seq2seq, [NameExample("", "", name) for name in NAMES])
        n_tokens = len(seq2seq.tokenizer)
        logits = 3 * torch.randn(*batch.labels.shape, n_tokens, dtype=torch.float64)
        scores = logits.log_softmax(-1)[batch.labels != -100].tolist()
        names, known = (
            [[*seq2seq.tokens([name])[0], seq2seq.end] for name in some]
            for some in (NAMES, allowed)
        )
        expected, n = plain_unlikelihood(scores, names, known)
        assert batch.siblings.n_branches == n
        found, _ = objective.terms["unlikelihood"].loss([logits], batch)
        assert float(found) == pytest.approx(expected, abs=1e-9)

    def test_a_certain_wrong_token_has_a_finite_penalty(self, seq2seq):
        objective = build(trie_of(seq2seq, ["heart", "seen"]), unlikelihood=1.0)
        batch = objective.encode(seq2seq, [NameExample("", "", "heart")])
        logits = torch.zeros(*batch.labels.shape, len(seq2seq.tokenizer))
        logits[0, 0, seq2seq.tokens(["seen"])[0][0]] = 99
        loss, _ = objective.terms["unlikelihood"].loss([logits.requires_grad_()], batch)
        assert float(loss.detach()) == pytest.approx(-math.log(1e-4), rel=1e-2)
        loss.backward()
        assert torch.isfinite(logits.grad).all()

    def test_it_is_added_by_its_weight_and_makes_siblings_unlikely(self, seq2seq):
        trie = trie_of(seq2seq, [each.target for each in EXAMPLES])
        plain, both = build(), build(trie, unlikelihood=0.5)
        model, batch = model_of(seq2seq, both), both.encode(seq2seq, EXAMPLES)
        counts = model.counts(batch)
        assert 0 < counts["names.unlikelihood"] < counts["names"]
        loss, stats = model(batch)
        without, _ = model_of(seq2seq, plain)(plain.encode(seq2seq, EXAMPLES))
        torch.testing.assert_close(loss, without + 0.5 * stats["names.unlikelihood.loss"])
        parts = [both.encode(seq2seq, part) for part in (EXAMPLES[:1], EXAMPLES[1:])]
        shares = [{k: n / counts[k] for k, n in model.counts(part).items()} for part in parts]
        losses = [model(*each)[0] for each in zip(parts, shares, strict=True)]
        torch.testing.assert_close(sum(losses), loss)
