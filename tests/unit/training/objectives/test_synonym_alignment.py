"""Mining and losses against plain loops, and where they could break."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from biograft.errors import BiograftError
from biograft.training.objectives import (
    LOSSES,
    SynonymAlignment,
    SynonymAlignmentConfig,
    TripletMarginMiner,
)

KINDS = ("all", "hard", "semihard", "none")


def objective(loss="multi_similarity", **options):
    return SynonymAlignment(SynonymAlignmentConfig(loss=loss, **options))


def random_batch(n_rows, n_concepts, seed, width=12):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(n_rows, width, generator=generator, dtype=torch.float64)
    labels = torch.randint(n_concepts, (n_rows,), generator=generator)
    centres = torch.randn(n_concepts, width, generator=generator, dtype=torch.float64)
    return embeddings + centres[labels], labels


def cosines(embeddings):
    rows = normalize(embeddings, dim=1)
    return rows @ rows.T


# ---- the definitions, in plain loops


def enumerate_triplets(embeddings, labels, kind, margin=0.2):
    rows = normalize(embeddings, dim=1)
    kept = []
    for a, p, n in product(range(len(rows)), repeat=3):
        if a == p or labels[a] != labels[p] or labels[a] == labels[n]:
            continue
        gap = float((rows[a] - rows[n]).norm() - (rows[a] - rows[p]).norm())
        if {"all": gap <= margin, "hard": gap <= 0, "semihard": 0 < gap <= margin, "none": True}[
            kind
        ]:
            kept.append((a, p, n))
    return kept


def pairs_of(triplets, embeddings, labels, kind):
    """Positive and negative pairs with repetition; without a miner every pair once."""
    if kind != "none":
        return [(a, p) for a, p, _ in triplets], [(a, n) for a, _, n in triplets]
    everything = [(i, j) for i, j in product(range(len(labels)), repeat=2) if i != j]
    same = [pair for pair in everything if labels[pair[0]] == labels[pair[1]]]
    return same, [pair for pair in everything if labels[pair[0]] != labels[pair[1]]]


def plain_loss(name, embeddings, labels, kind):
    triplets = enumerate_triplets(embeddings, labels, kind)
    positives, negatives = pairs_of(triplets, embeddings, labels, kind)
    rows = normalize(embeddings, dim=1).numpy()
    cos = (rows @ rows.T).tolist()
    if name == "infonce":
        terms = [
            -math.log(
                math.exp(cos[a][p] / 0.07)
                / (
                    math.exp(cos[a][p] / 0.07)
                    + sum(math.exp(cos[a][n] / 0.07) for b, n in negatives if b == a)
                )
            )
            for a, p in positives
        ]
        return sum(terms) / max(len(terms), 1)
    if name == "triplet_margin":
        gaps = [
            float(np.linalg.norm(rows[a] - rows[p]) - np.linalg.norm(rows[a] - rows[n])) + 0.05
            for a, p, n in triplets
        ]
        active = [gap for gap in gaps if gap > 0]
        return sum(active) / max(len(active), 1)
    terms = []
    for a in range(len(rows)):
        near = {p for b, p in positives if b == a}
        far = {n for b, n in negatives if b == a}
        if name == "multi_similarity":
            terms.append(
                math.log(1 + sum(math.exp(-(cos[a][p] - 0.5)) for p in near))
                + math.log(1 + sum(math.exp(60 * (cos[a][n] - 0.5)) for n in far)) / 60
            )
        elif near and far:
            sum_near = sum(
                math.exp(-80 * max(0, 1.4 - cos[a][p]) * (cos[a][p] - 0.6)) for p in near
            )
            sum_far = sum(math.exp(80 * max(0, cos[a][n] + 0.4) * (cos[a][n] - 0.4)) for n in far)
            terms.append(math.log1p(sum_near * sum_far))
    if name == "circle":
        terms = [term for term in terms if term > 0]
    return sum(terms) / max(len(terms), 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize(("n_rows", "n_concepts"), [(6, 6), (9, 1), (12, 4)])
def test_losses_are_what_plain_loops_give(name, kind, n_rows, n_concepts):
    embeddings, labels = random_batch(n_rows, n_concepts, seed=n_rows)
    loss, _ = objective(name, miner=kind).loss(embeddings, {"labels": labels})
    assert float(loss.detach()) == pytest.approx(
        plain_loss(name, embeddings, labels, kind), rel=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_with_equal_vectors_are_counted_alike_from_both_ends(kind):
    """The same name in two concepts: distances tie exactly, and no row may be half mined."""
    embeddings, labels = random_batch(8, 3, seed=1)
    embeddings = embeddings.float().repeat(2, 1)
    labels = torch.cat([labels, (labels + 1) % 3])
    mined = TripletMarginMiner(0.2, kind)(cosines(embeddings), labels)
    if kind != "none":
        assert mined.positive_counts.sum(1).tolist() == mined.negative_counts.sum(1).tolist()
    for name in LOSSES:
        embeddings.requires_grad_(True).grad = None
        loss, _ = objective(name, miner=kind).loss(embeddings, {"labels": labels})
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(embeddings.grad).all()


# ---- what could break


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("scale", [1e-3, 1.0, 3000.0])
def test_half_precision_never_gives_nan(name, dtype, scale):
    embeddings, labels = random_batch(16, 4, seed=3)
    half = (embeddings * scale).to(dtype).requires_grad_(True)
    loss, _ = objective(name).loss(half, {"labels": labels})
    loss.backward()
    wide, _ = objective(name).loss(half.detach().float(), {"labels": labels})
    assert loss.dtype == torch.float32
    assert float(loss.detach()) == float(wide)
    assert torch.isfinite(half.grad).all()


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("labels", [[0], [0, 0], [0, 1], [0, 0, 1, 1]])
def test_a_batch_without_pairs_gives_zero_slopes_not_nan(name, labels):
    embeddings = torch.ones(len(labels), 4, requires_grad=True)
    loss, stats = objective(name).loss(embeddings, {"labels": torch.tensor(labels)})
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(embeddings.grad).all()
    assert all(math.isfinite(value) for value in stats.values())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_embeddings_that_are_not_finite_are_refused(bad):
    embeddings = torch.ones(4, 4)
    embeddings[2, 1] = bad
    with pytest.raises(BiograftError, match=r"not finite.*learning rate"):
        objective().loss(embeddings, {"labels": torch.tensor([0, 1, 0, 1])})


# ---- configuration
