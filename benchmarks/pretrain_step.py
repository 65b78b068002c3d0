"""What a step of KeBioLM, and of EMBERT, costs beside one of plain masked language modelling.

All train the same encoder (random weights) on the same drawn batches: forward, backward, clip,
AdamW. KeBioLM adds the entity memory, detection, and linking over the whole table; EMBERT its three
objectives, half of the mentions replaced and those of several tokens long. Steps are timed in turn
in one process, and medians compared. ``nearest_over_mlm`` is what the exact search
for the nearest entities takes of a plain step, at 50 thousand and a million entities;
``approximate_over_mlm`` the same of the search in clusters (``knowledge.n_probed``) of a million,
with the share of the exact hundred that it finds and what making the clusters takes: ``grouped``
are unit vectors of groups and noise in equal parts, and queries near some; ``random`` are
independent normal numbers, which have no groups, the worst case.

    python benchmarks/pretrain_step.py --quick --json     under a minute
    python benchmarks/pretrain_step.py --json >benchmarks/results/pretrain_step.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from command_line import run_with, start_parser
from machine import describe_command, describe_commit, describe_machine, peak_gib
from timing import in_turn
from torch.nn.functional import normalize
from transformers import BertConfig, BertForMaskedLM

from biograft.nn.knowledge import KnowledgeBertForMaskedLM
from biograft.nn.knowledge.clusters import RENEWED_AFTER, Clusters
from biograft.nn.knowledge.nearest import nearest_rows
from biograft.objectives import OBJECTIVES
from biograft.objectives.graph import GraphOfEntities
from biograft.objectives.records import (
    CONSISTENT,
    HEAD_START,
    IGNORED,
    PIECE_ENDS,
    TextBatch,
    TextExample,
    collate,
)
from biograft.objectives.setting import Setting
from biograft.objectives.showing import Showing
from biograft.objectives.states import TensorBatch
from biograft.recipes.text_model import TextModel
from biograft.training import TrainingConfig
from biograft.training.optimiser import make_optimiser

N_TOKENS, N_SPECIAL, MASK = 30_522, 5, 4
WIDTH, LAYERS, HEADS = 384, 6, 12
DIM, N_NEAREST, AFTER = 100, 100, 4
N_PROBED, GROUP = 32, 500
"""Clusters looked into; rows of a group of the grouped table."""
MENTIONS_OF_100_TOKENS = 8
"""About what annotated abstracts have."""
N_NEIGHBOURS, N_RELATIONS, N_TYPES = 10, 56, 26
"""Of the graph of SMedBERT."""
LONG, MENTIONS_OF_LONG = 512, 40
"""Tokens and mentions of a sample of SMedBERT; a batch has as many tokens as the others."""
_SMEDBERT = ("masked_tokens", "masked_neighbour", "masked_mention")
_KEBIOLM = ("masked_tokens", "entity_detection", "entity_linking")
_EMBERT = (
    "context_entity_consistency",
    "bidirectional_entity_masking",
    "entity_segmentation",
    "masked_tokens",
)


def run(options: argparse.Namespace) -> None:
    """Time both, and print what came out."""
    draw = np.random.default_rng(0)
    n_batches = 2 if options.quick else 6
    sizes = (options.batch, options.length, options.entities)
    examples = _draw_batches(
        draw, n_batches, *sizes, options.length * MENTIONS_OF_100_TOKENS // 100
    )
    n_long = max(1, options.batch * options.length // LONG)
    long_examples = _draw_batches(draw, n_batches, n_long, LONG, options.entities, MENTIONS_OF_LONG)
    torch.manual_seed(0)
    bert = BertForMaskedLM(_bert_config(options.length))
    plain = _stepper(bert, _KEBIOLM[:1], examples)
    table = torch.randn(options.entities, DIM) / DIM**0.5
    grafted = KnowledgeBertForMaskedLM.from_bert(
        bert, table, knowledge_after=AFTER, n_nearest=N_NEAREST
    )
    steps = {"mlm": plain, "kebiolm": _stepper(grafted, _KEBIOLM, examples)}
    steps["embert"] = _stepper(BertForMaskedLM(_bert_config(options.length)), _EMBERT, examples)
    graph = _draw_graph(draw, options.entities)
    seeing = KnowledgeBertForMaskedLM.from_bert(
        BertForMaskedLM(_bert_config(LONG)), table, knowledge_after={"neighbour_attention": 5},
        graph={"neighbours": graph.neighbours, "types": graph.types},
        n_neighbours=N_NEIGHBOURS, freeze_entities=True,
    )  # fmt: skip
    steps["long_mlm"] = _stepper(BertForMaskedLM(_bert_config(LONG)), _KEBIOLM[:1], long_examples)
    steps["smedbert"] = _stepper(seeing, _SMEDBERT, long_examples, graph)
    for step in steps.values():
        step(0)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for n in range(n_batches * (2 if options.quick else options.runs)):
        for name, timed in zip(
            steps, in_turn(1, *(partial(s, n) for s in steps.values())), strict=True
        ):
            seconds[name].append(timed.seconds)
    n_tokens = options.batch * options.length
    mlm_seconds = statistics.median(seconds["mlm"])
    n_queries = sum(len(example.mentions) for example in examples[0])
    told = {
        "benchmark": "pretrain_step",
        "command": describe_command("pretrain_step.py", sys.argv[1:]),
        "commit": describe_commit(),
        "machine": describe_machine(),
        "batch": options.batch,
        "length": options.length,
        "n_entities": options.entities,
        "n_nearest": N_NEAREST,
        "mentions_of_a_batch": round(
            statistics.mean(len(e.mentions) for batch in examples for e in batch) * options.batch, 1
        ),
        **{
            f"{name}_tokens_per_second": n_tokens / statistics.median(found)
            for name, found in seconds.items()
            if name not in ("long_mlm", "smedbert")
        },
        "peak_gib": round(peak_gib(), 3),
        "nearest_over_mlm": _nearest(n_queries, mlm_seconds),
        "approximate_over_mlm": _approximate(
            100_000 if options.quick else 1_000_000, n_queries, mlm_seconds
        ),
        **{f"{name}_over_mlm": _ratio(seconds, name) for name in ("kebiolm", "embert")},
        "smedbert_over_mlm": _ratio(seconds, "smedbert", "long_mlm"),
        "smedbert": {"length": LONG, "mentions": MENTIONS_OF_LONG, "n_neighbours": N_NEIGHBOURS},
    }
    print(json.dumps(told) if options.json else json.dumps(told, indent=1))


def _ratio(seconds: dict[str, list[float]], name: str, plain: str = "mlm") -> float:
    """Give the median ratio to plain steps of the same turn."""
    pairs = zip(seconds[name], seconds[plain], strict=True)
    return round(statistics.median(ours / theirs for ours, theirs in pairs), 3)


def _nearest(n_queries: int, step_seconds: float) -> dict[str, float]:
    """Say how much of a plain step the exact search takes, by the size of the table."""
    queries = torch.randn(n_queries, DIM)
    shares = {}
    for n in (50_000, 1_000_000):
        table = torch.randn(n, DIM)
        (found,) = in_turn(3, partial(nearest_rows, queries, table, N_NEAREST))
        shares[str(n)] = round(found.seconds / step_seconds, 4)
    return shares


def _approximate(n_rows: int, n_queries: int, step_seconds: float) -> dict[str, Any]:
    """Say how much of a plain step the search in clusters takes, and what it finds."""
    told: dict[str, Any] = {
        "n_entities": n_rows, "n_probed": N_PROBED, "renewed_after": RENEWED_AFTER
    }  # fmt: skip
    for name, (table, queries) in {
        "grouped": _draw_grouped(n_rows, n_queries),
        "random": (torch.randn(n_rows, DIM), torch.randn(n_queries, DIM)),
    }.items():
        clusters = Clusters(n_rows, DIM, N_PROBED).eval()
        (making,) = in_turn(1, partial(clusters.make, table))
        exact, near = in_turn(
            3,
            partial(nearest_rows, queries, table, N_NEAREST),
            partial(clusters.search, queries, table, N_NEAREST),
        )
        same = (near.result.unsqueeze(2) == exact.result.unsqueeze(1)).sum()
        told[name] = {
            "over_mlm": round(near.seconds / step_seconds, 4),
            "exact_over_mlm": round(exact.seconds / step_seconds, 4),
            "making_over_mlm": round(making.seconds / step_seconds, 2),
            f"recall_at_{N_NEAREST}": round(int(same) / exact.result.numel(), 4),
        }
    return told


def _draw_grouped(n_rows: int, n_queries: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw unit vectors, of groups and noise in equal parts, and some with more noise to seek."""
    centres = torch.randn(n_rows // GROUP, DIM)
    table = centres.repeat(GROUP, 1) + torch.randn(n_rows, DIM)
    queries = table[torch.randint(n_rows, (n_queries,))] + torch.randn(n_queries, DIM)
    return normalize(table, dim=1), normalize(queries, dim=1)


def _bert_config(length: int) -> BertConfig:
    return BertConfig(
        vocab_size=N_TOKENS,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=max(512, length),
    )


def _draw_graph(draw: np.random.Generator, n_entities: int) -> GraphOfEntities:
    shape = (n_entities, N_NEIGHBOURS)
    return GraphOfEntities(
        neighbours=draw.integers(0, n_entities, shape),
        relations=draw.integers(0, N_RELATIONS, shape),
        signs=draw.choice([-1, 1], shape),
        types=draw.integers(0, N_TYPES, n_entities),
        counts=draw.zipf(1.5, n_entities).clip(max=1_000_000),
        relation_vectors=draw.standard_normal((N_RELATIONS, DIM), np.float32),
        projections=draw.standard_normal((N_RELATIONS, DIM, DIM), np.float32) / DIM**0.5,
    )


def _draw_batches(
    draw: np.random.Generator, n: int, batch: int, length: int, n_entities: int, mentions: int
) -> list[list[TextExample]]:
    return [
        [_draw_example(draw, length, n_entities, max(1, mentions)) for _ in range(batch)]
        for _ in range(n)
    ]


def _draw_example(draw: np.random.Generator, length: int, n_entities: int, n: int) -> TextExample:
    """Draw tokens, words of one or two tokens, and disjoint mentions of one to four."""
    tokens = draw.integers(N_SPECIAL, N_TOKENS, length)
    tokens[[0, -1]] = 1, 2
    words = np.cumsum(draw.random(length) < 0.7, dtype=np.int64)
    words[[0, -1]] = -1
    first = np.sort(draw.choice(np.arange(1, length - 5, 5), n, replace=False))
    last = first + draw.integers(0, 4, n)
    rows = draw.integers(0, n_entities, n)
    mentions = np.column_stack([first, last, rows])
    ends = np.full(length, IGNORED)
    for begin, end in mentions[last > first, :2]:
        ends[begin : end + 1] = 0
        ends[[(begin + end) // 2, end]] = 1
    heads = np.where(last > first, (first + last) // 2 + 1, IGNORED)
    consistent = np.where(draw.random(n) < 0.5, draw.integers(0, 2, n), IGNORED)
    return TextExample(
        tokens,
        np.zeros_like(tokens),
        words,
        mentions,
        token_labels={PIECE_ENDS: ends},
        mention_labels={HEAD_START: heads, CONSISTENT: consistent},
    )


def _stepper(
    lm: Any,
    names: tuple[str, ...],
    examples: list[list[TextExample]],
    graph: GraphOfEntities | None = None,
) -> Callable[[int], None]:
    """Make what does one whole step on a batch."""
    setting = Setting(
        mask=MASK, n_tokens=N_TOKENS, special=tuple(range(N_SPECIAL)), width=WIDTH,
        graph=graph, embeddings=lm.get_input_embeddings().weight,
    )  # fmt: skip
    built = {name: OBJECTIVES.load(name)().build(setting) for name in names}
    telling = [] if graph is None else [Showing(setting.shown)]
    steps = sorted([*built.values(), *telling], key=lambda each: getattr(each, "turn", 0))
    model = TextModel(lm, built).train()
    optimiser = make_optimiser(model, TrainingConfig())
    batches = [_prepared(of_batch, steps) for of_batch in examples]

    def step(n: int) -> None:
        optimiser.zero_grad(set_to_none=True)
        loss, _ = model(TensorBatch.of(batches[n % len(batches)]), {})
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def _prepared(examples: list[TextExample], steps: list[Any]) -> TextBatch:
    draw, made = np.random.default_rng(1), []
    for example in examples:
        prepared = example
        for step in steps:
            prepared = step.prepare(prepared, draw)
        made.append(prepared)
    return collate(made, 0)


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    parser.add_argument("--batch", type=int, default=16, help="sequences of a step")
    parser.add_argument("--length", type=int, default=128, help="tokens of each")
    parser.add_argument("--entities", type=int, default=50_000, help="rows of the entity table")
    parser.add_argument("--runs", type=int, default=3, help="how often each batch is used")
    parser.add_argument("--quick", action="store_true", help="two batches, used twice")
    parser.add_argument("--json", action="store_true", help="one line")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
