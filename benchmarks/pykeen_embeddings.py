"""Train and rank with PyKEEN; run by graph_embeddings.py with another interpreter.

python pykeen_embeddings.py <settings.json, where settings name a folder of .npy triples.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Train, rank if there is something to rank, print one JSON object."""
    settings = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # PyKEEN talks while it works
        result = measure(settings)
    print(json.dumps(result))


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Train with settings that both sides have alike."""
    torch: Any = importlib.import_module("torch")
    pykeen: dict[str, Any] = {
        name: importlib.import_module(f"pykeen.{name}")
        for name in ("models", "triples", "training", "evaluation")
    }
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(settings["seed"])
    splits = {
        path.stem: torch.as_tensor(np.load(path)).long()
        for path in Path(settings["folder"]).glob("*.npy")
    }
    factory = pykeen["triples"].CoreTriplesFactory(
        splits["train"], settings["n_entities"], settings["n_relations"]
    )
    model = make_model(torch, pykeen["models"], factory, settings)
    optimiser = getattr(torch.optim, settings["optimiser"])(
        model.parameters(), lr=settings["learning_rate"]
    )
    loop = pykeen["training"].SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=optimiser,
        negative_sampler_kwargs={"num_negs_per_pos": settings["negatives"]},
    )
    start = time.perf_counter()
    losses = loop.train(
        triples_factory=factory,
        num_epochs=settings["epochs"],
        batch_size=settings["batch"],
        use_tqdm=False,
    )
    result = {"seconds": time.perf_counter() - start, "loss": float(losses[-1])}
    if "test" in splits:
        result |= rank(pykeen["evaluation"], model, splits)
    return result


def make_model(torch: Any, models: Any, factory: Any, settings: dict[str, Any]) -> Any:
    """Make a model; TransR's projections begin as ours do, as identities."""
    shared = {
        "triples_factory": factory,
        "embedding_dim": settings["dim"],
        "scoring_fct_norm": 2,
        "loss": "marginranking",
        "loss_kwargs": {"margin": settings["margin"]},
        "random_seed": settings["seed"],
    }
    if settings["model"] == "transe":
        return models.TransE(**shared)

    def identity(table: Any) -> Any:
        with torch.no_grad():
            return table.copy_(torch.eye(*table.shape[-2:]).expand_as(table))

    return models.TransR(
        **shared, relation_dim=settings["dim"], relation_projection_initializer=identity
    )


def rank(evaluation: Any, model: Any, splits: dict[str, Any]) -> dict[str, float]:
    """Rank the test split, filtered by all splits."""
    found = evaluation.RankBasedEvaluator().evaluate(
        model=model,
        mapped_triples=splits["test"],
        additional_filter_triples=[splits["train"], splits["valid"]],
        use_tqdm=False,
    )
    names = {
        "mrr": "both.realistic.inverse_harmonic_mean_rank",
        "hits@10": "both.realistic.hits_at_10",
    }
    return {name: 100 * float(found.get_metric(key)) for name, key in names.items()}


if __name__ == "__main__":
    main()
