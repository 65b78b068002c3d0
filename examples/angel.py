"""ANGEL (Kim et al. 2025): a generative linker prefers right names to the wrong ones it generates.

python examples/angel.py KB LINKER TRAIN.pubtator DEV.pubtator RUN
"""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from biograft.evaluation import read_gold
from biograft.linking import GenerativeTraining, Linker
from biograft.training import Task, train
from biograft.training.batches import EpochOrder, OrderedBatches
from biograft.training.linkers import NameScores, collect_pairs
from biograft.training.linkers.generative import measure


@dataclass(frozen=True, kw_only=True)
class Angel:
    """Settings of the pairs and of the loss."""

    beta: float = 0.1  # scale of the rewards
    n_wrong: int = 5  # wrong names of a mention
    source: str = "beam"  # of wrong names: what the linker generates, or lexical "search"
    reference: bool = True  # DPO, relative to the linker before; False: SimPO, a mean over tokens
    margin: float = 0.0  # by which right names are to lead


def preference_loss(right, wrong, config):
    """Rows are the log-probability of a name, its number of tokens, the log-probability before."""
    rewards = [s[:, 0] - s[:, 2] if config.reference else s[:, 0] / s[:, 1] for s in (right, wrong)]
    gap = config.beta * (rewards[0] - rewards[1]) - config.margin
    return torch.nn.functional.softplus(-gap).mean(), {"preferred": (gap > 0).float().mean().item()}


def train_angel(linker, queries, dev, run, config=Angel(), resume=False, **training):
    """Train on the pairs of `queries`; save `run/model`."""
    pairs = collect_pairs(linker, queries, config.n_wrong, config.source)
    model, training = NameScores(linker.ranker.seq2seq), GenerativeTraining(**training)
    before = torch.stack([model.eval()(pair).detach()[:, 0] for pair in pairs])  # (pairs, 2)

    def loss(model, rows):
        scores = model([pairs[row][side] for side in (0, 1) for row in rows])
        scores = torch.cat([scores, before[rows].T.reshape(-1, 1)], 1)
        return preference_loss(*scores.chunk(2), config)

    batches = OrderedBatches(EpochOrder.for_training(len(pairs), training), lambda _, rows: rows)
    described, evaluate = asdict(config), lambda: measure(linker.ranker, None, dev)
    task = Task(model, batches, loss, evaluate=evaluate, described=described)
    report = train(task, training, run, resume=resume).metrics()
    if batches.order.shard.rank == 0:
        linker.ranker.save(run / "model", report, described)
    return report


if __name__ == "__main__":
    gold = [read_gold(path, "pubtator").queries for path in sys.argv[3:5]]
    print(train_angel(Linker.open(sys.argv[1], model=sys.argv[2]), *gold, Path(sys.argv[5])))
