"""The marginal loss against plain loops, and the scores against scores made one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_models import tiny_encoder_folder

from biograft.errors import ConfigError
from biograft.linking import LinkerRecipe
from biograft.nn import TextEncoder
from biograft.objectives import BankScorer, NameScorer, SynonymMarginalConfig, marginal_loss
from biograft.objectives.synonym_marginal import tokenize_in_batches

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


def scorer(encoder, **options):
    return NameScorer(encoder, SynonymMarginalConfig(**options)).eval()


def plain_loss(scores, gold):
    losses = []
    for line, right in zip(scores.tolist(), gold.tolist(), strict=True):
        total = sum(math.exp(score) for score in line)
        if any(right):
            chance = sum(math.exp(s) for s, is_gold in zip(line, right, strict=True) if is_gold)
            losses.append(-math.log(chance / total))
    return sum(losses) / max(len(losses), 1)


@pytest.mark.parametrize("seed", range(5))
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


def test_a_batch_without_gold_teaches_nothing():
    scores = torch.randn(3, 4, requires_grad=True)
    loss, statistics = marginal_loss(scores, torch.zeros(3, 4, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert not scores.grad.any()
    assert statistics == {"with_gold": 0.0, "gold_probability": 0.0, "gold_first": 0.0}


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_scores_are_those_of_one_pair_after_the_other(encoder, similarity):
    mentions, names = TEXTS[:2], TEXTS[2:]
    candidates = torch.tensor([[3, 0, -1], [1, 2, 0]])
    lexical = torch.tensor([[0.1, 0.7, 0.0], [0.0, 0.9, 0.2]])
    options = {"similarity": similarity, "temperature": 0.5, "lexical_weight": 0.3}
    with torch.no_grad():
        found = scorer(encoder, **options)(tokenize_in_batches(encoder, TEXTS), candidates, lexical)
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


def test_the_published_setting_has_inner_products_and_no_temperature(encoder):
    """The recipe of BioSyn against plain loops; a mention without a right candidate is skipped."""
    config = LinkerRecipe.load("linker-encoder-biosyn").config
    assert (config.loss, config.k, config.missing_gold, config.refresh) == (
        "marginal", 20, "skip", "full",
    )  # fmt: skip
    training, start = config.training, config.marginal
    assert (training.epochs, training.batch_size, training.learning_rate) == (10, 16, 1e-5)
    assert (training.schedule, training.warmup_ratio, training.weight_decay) == (
        "constant",
        0,
        0.01,
    )
    assert start.lexical_weight == 0
    assert start.lexical_rate_factor * training.learning_rate == pytest.approx(0.01)

    mentions, names = TEXTS[:3], TEXTS[3:]
    places = torch.tensor([[0, 1, 2], [2, 0, 1], [1, 0, 2]])
    gold = torch.tensor([[True, False, True], [False] * 3, [False, True, False]])
    lexical = torch.rand(3, 3, generator=torch.Generator().manual_seed(0))
    weight = 0.7  # as if it were learned
    model = NameScorer(encoder, replace(start, lexical_weight=weight)).eval()
    with torch.no_grad():
        scores = model(tokenize_in_batches(encoder, TEXTS), places, lexical)
    loss, _ = marginal_loss(scores, gold)
    left, right = (
        encoder.encode(texts, normalize=False, precision="fp32").tolist()
        for texts in (mentions, names)
    )
    losses = []
    for k, vector in enumerate(left):
        products = []
        for column, place in enumerate(places[k].tolist()):
            product = sum(x * y for x, y in zip(vector, right[place], strict=True))
            products.append(product + weight * float(lexical[k, column]))
        top = max(products)
        chances = [math.exp(product - top) for product in products]
        chance = sum(c for c, is_gold in zip(chances, gold[k].tolist(), strict=True) if is_gold)
        if chance:
            losses.append(-math.log(chance / sum(chances)))
    assert len(losses) == 2
    assert float(loss) == pytest.approx(sum(losses) / 2, rel=1e-4, abs=1e-5)
    ours = LinkerRecipe.load("linker-encoder")
    assert ours.config.marginal != start
    assert "our variant" in ours.about


def test_texts_are_tokenised_in_batches_and_keep_their_order(encoder):
    names = [*(TEXTS[0] for _ in range(300)), TEXTS[3]]
    texts = tokenize_in_batches(encoder, names)
    assert len(texts.batches) > 1
    widths = [tokens["input_ids"].shape[1] for tokens in texts.batches]
    assert min(widths) < max(widths)
    rows = [row[mask.bool()].tolist() for tokens in texts.batches
            for row, mask in zip(*tokens.values(), strict=True)]  # fmt: skip
    whole = encoder.tokenize(names)
    for text, place in enumerate(texts.rows.tolist()):
        mask = whole["attention_mask"][text].bool()
        assert rows[place] == whole["input_ids"][text][mask].tolist()


def test_the_lexical_weight_has_a_learning_rate_of_its_own(encoder):
    part = scorer(encoder, lexical_weight=0.4, lexical_rate_factor=200)
    assert part.lexical_weight.item() == pytest.approx(0.4)
    optimiser = torch.optim.AdamW(part.parameters(), lr=1e-4, weight_decay=0)
    (-3 * part.lexical_weight).backward()
    assert float(part.slow_weight.grad) == pytest.approx(-3)
    optimiser.step()
    assert part.lexical_weight.item() == pytest.approx(0.4 + 200 * 1e-4, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "euclid"}, "similarity: expected one of cosine, dot, found 'euclid'"),
        ({"temperature": 0}, "temperature: expected a number above 0, found 0"),
        (
            {"lexical_rate_factor": float("nan")},
            "lexical_rate_factor: expected a number above 0, found nan",
        ),
        ({"lexical_weight": -1}, "lexical_weight: expected at least 0, found -1"),
    ],
)
def test_a_configuration_that_cannot_be(options, message):
    with pytest.raises(ConfigError, match=message):
        SynonymMarginalConfig(**options)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_bank_scores_kept_names_as_kept_and_fresh_ones_as_encoded_now(encoder, similarity):
    config = SynonymMarginalConfig(similarity=similarity, temperature=0.5)
    model = BankScorer(encoder, config).eval()
    bank = torch.randn(5, encoder.dim, generator=torch.Generator().manual_seed(1))
    fresh, asked = torch.tensor([1, 4]), TEXTS[:5]
    withheld = torch.zeros(5, 5, dtype=torch.bool)
    withheld[0, 2] = withheld[3, 1] = True
    scores = model(tokenize_in_batches(encoder, asked), bank, fresh, withheld)
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
