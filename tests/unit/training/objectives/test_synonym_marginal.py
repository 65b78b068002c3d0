"""The marginal loss against plain loops, and the scores against scores made one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tiny_models import tiny_encoder_folder

from biograft.models import TextEncoder
from biograft.training.objectives import (
    BankMarginal,
    EncoderReader,
    SynonymMarginal,
    SynonymMarginalConfig,
    marginal_loss,
)

TEXTS = [
    "belly ache",
    "head",
    "abdominal pain",
    "pain of the whole upper and lower abdomen since yesterday",
    "headache",
    "cold",
]


@pytest.fixture
def encoder(tmp_path):
    return TextEncoder.from_pretrained(tiny_encoder_folder(tmp_path / "tiny", TEXTS))


def vectors_of(encoder, texts):
    return EncoderReader(encoder, {}, by_length=True).eval()._encode(texts, 0)


def plain_loss(scores, gold):
    losses = []
    for line, right in zip(scores.tolist(), gold.tolist(), strict=True):
        total = sum(math.exp(score) for score in line)
        if any(right):
            chance = sum(math.exp(s) for s, is_gold in zip(line, right, strict=True) if is_gold)
            losses.append(-math.log(chance / total))
    return sum(losses) / max(len(losses), 1)


@pytest.mark.parametrize("seed", range(2))
def test_the_loss_is_that_of_plain_loops(seed):
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(7, 9, generator=generator, dtype=torch.float64)
    gold = torch.rand(7, 9, generator=generator) < 0.2
    gold[0] = False
    gold[1] = True
    loss, statistics = marginal_loss(scores, gold)
    assert float(loss) == pytest.approx(plain_loss(scores, gold), rel=1e-12)
    counted = gold.any(1)
    assert statistics["with_gold"] == pytest.approx(float(counted.float().mean()))
    best = [bool(right[line.argmax()]) for line, right in zip(scores, gold, strict=True)]
    assert statistics["gold_first"] == pytest.approx(sum(best) / int(counted.sum()))
    chances = (scores.softmax(1) * gold).sum(1)[counted]
    assert statistics["gold_probability"] == pytest.approx(float(chances.mean()))


def test_the_gradient_is_right_and_finite_with_filler():
    scores = torch.tensor([[1.0, -2.0, 0.5], [0.3, 0.1, 0.2]], dtype=torch.float64)
    gold = torch.tensor([[True, False, True], [False, False, True]])
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: marginal_loss(s, gold)[0], (scores,))
    filler = torch.full((2, 2), torch.finfo(torch.float64).min / 4, dtype=torch.float64)
    filled = torch.cat([scores, filler], dim=1)
    loss, _ = marginal_loss(filled, torch.cat([gold, gold[:, :2] & False], dim=1))
    torch.testing.assert_close(loss, marginal_loss(scores, gold)[0])
    (gradient,) = torch.autograd.grad(loss, scores)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_scores_are_those_of_one_pair_after_the_other(encoder, similarity):
    mentions, names = TEXTS[:2], TEXTS[2:]
    candidates = torch.tensor([[3, 0, -1], [1, 2, 0]])
    lexical = torch.tensor([[0.1, 0.7, 0.0], [0.0, 0.9, 0.2]])
    options = {"similarity": similarity, "temperature": 0.5, "lexical_weight": 0.3}
    with torch.no_grad():
        objective = SynonymMarginal(SynonymMarginalConfig(**options))
        batch = {"names": candidates, "lexical": lexical}
        found = objective.scores(vectors_of(encoder, TEXTS), batch)
    unit = similarity == "cosine"
    left = encoder.encode(mentions, normalize=unit, precision="fp32")
    right = encoder.encode(names, normalize=unit, precision="fp32")
    for row in range(2):
        for column in range(3):
            name = int(candidates[row, column])
            if name < 0:
                assert found[row, column] < -1e30
                continue
            near = float(np.dot(left[row], right[name])) + 0.3 * float(lexical[row, column])
            assert float(found[row, column]) == pytest.approx(near / 0.5, rel=1e-4)


def test_the_lexical_weight_has_a_learning_rate_of_its_own():
    config = SynonymMarginalConfig(lexical_weight=0.4, lexical_rate_factor=200)
    weight = SynonymMarginal(config).head
    assert weight().item() == pytest.approx(0.4)
    optimiser = torch.optim.AdamW(weight.parameters(), lr=1e-4, weight_decay=0)
    (-3 * weight()).backward()
    assert float(weight.slow.grad) == pytest.approx(-3)
    optimiser.step()
    assert weight().item() == pytest.approx(0.4 + 200 * 1e-4, rel=1e-4)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_bank_scores_kept_names_as_kept_and_fresh_ones_as_encoded_now(encoder, similarity):
    config = SynonymMarginalConfig(similarity=similarity, temperature=0.5)
    bank = torch.randn(5, encoder.dim, generator=torch.Generator().manual_seed(1))
    fresh, asked = torch.tensor([1, 4]), TEXTS[:5]
    withheld = torch.zeros(5, 5, dtype=torch.bool)
    withheld[0, 2] = withheld[3, 1] = True
    batch = {"bank": bank, "fresh": fresh, "withheld": withheld}
    scores = BankMarginal(config).scores(vectors_of(encoder, asked), batch)
    vectors = torch.cat([encoder.embed(encoder.tokenize([text])) for text in asked])
    if similarity == "cosine":
        vectors = vectors / vectors.norm(dim=1, keepdim=True)
    for line in range(5):
        for row in range(5):
            name = vectors[3] if row == 1 else vectors[4] if row == 4 else bank[row]
            expected = float((vectors[line] @ name).detach()) / 0.5
            if withheld[line, row]:
                assert scores[line, row] < -1e30
            else:
                assert float(scores[line, row].detach()) == pytest.approx(expected, abs=1e-4)
    scores[0, 4].backward()  # through the name that was encoded, too
    grown = encoder.model.get_input_embeddings().weight.grad
    cold = encoder.tokenize(["headache"])["input_ids"][0, 1]
    assert grown[cold].abs().sum() > 0
