"""Cost of a training step of KeBioLM, EMBERT and SMedBERT, beside plain masked language modelling.

All train an encoder of the same size (random weights) on random batches: forward, backward, clip,
AdamW. KeBioLM adds the entity memory, detection, and linking over the whole table; EMBERT its three
objectives, half of the mentions replaced and those of several tokens long. SMedBERT reads longer
segment pairs, which the plain step beside it (``long_mlm``) reads too; it adds neighbours
of entities, vectors of 200 that do not learn, and its objectives, sentence order among them. Steps
alternate in one process, and medians compared; the first step of each, in which SMedBERT
computes the lengths that it keeps for a whole run, does not count.

``nearest_over_mlm`` is what the exact search for the nearest entities takes of a plain step, at 50
thousand and a million entities; ``approximate_over_mlm`` the same of the search in clusters
(``knowledge.n_probed``) of a million, with its recall of the exact hundred and the cost of
making the clusters: ``grouped`` are unit vectors of groups and noise in equal parts, and
queries near some; ``random`` are independent normal numbers, which have no groups, the worst case.
``eq18_over_slow`` is what scoring neighbours by SMedBERT's equation 18 takes of the time that
projecting every entity takes, for the mentions of a batch; see ``neighbour_scores.py``.

    python benchmarks/pretrain_step.py --quick --json     about a minute
    python benchmarks/pretrain_step.py --json >benchmarks/results/pretrain_step.json
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from machine import describe_command, describe_commit, peak_gib
from neighbour_scores import compare_forms
from sampled_text import (
    GRAPH_DIM,
    MASK,
    N_NEIGHBOURS,
    N_SPECIAL,
    N_TOKENS,
    as_segment_pair,
    sample_batches,
    sample_graph,
)
from script_options import run_with, start_parser
from timing import interleave
from torch.nn.functional import normalize
from transformers import BertConfig, BertForMaskedLM

from biograft.compute import describe_machine
from biograft.models.knowledge import KnowledgeBertForMaskedLM
from biograft.models.knowledge.nearest import REBUILT_AFTER, Clusters, nearest_rows
from biograft.training import TrainingConfig
from biograft.training.loop import make_optimiser
from biograft.training.objectives import OBJECTIVES
from biograft.training.objectives.examples import (
    EntityGraph,
    EntityVisibility,
    Setting,
    TextBatch,
    TextExample,
    collate,
    sort_by_order,
)
from biograft.training.objectives.model import ObjectiveModel
from biograft.training.pretraining.language_modelling import TextReader

WIDTH, LAYERS, HEADS = 384, 6, 12
MENTIONS_OF_100_TOKENS = 8
"""About what annotated abstracts have."""
LONG, MENTIONS_OF_LONG = 512, 40
"""Tokens and mentions of a sample of SMedBERT; a batch has as many tokens as the others."""
DIM, N_NEAREST, AFTER = 100, 100, 4
N_PROBED, GROUP = 32, 500
"""Clusters searched; rows of a group of the grouped table."""
EXACTLY_SEARCHED, CLUSTERED, CLUSTERED_QUICK = (50_000, 1_000_000), 1_000_000, 100_000
"""Rows of the tables that are searched."""
_SMEDBERT = ("masked_tokens", "sentence_order", "masked_neighbour", "masked_mention")
_PLAIN = ("masked_tokens",)
_KEBIOLM = ("masked_tokens", "entity_detection", "entity_linking")
_EMBERT = (
    "context_entity_consistency",
    "bidirectional_entity_masking",
    "entity_segmentation",
    "masked_tokens",
)


def run(options: argparse.Namespace) -> None:
    """Time everything and print the result."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    examples, long_examples = _sample_examples(rng, options)
    graph = sample_graph(rng, options.entities)
    steps = _make_steps(options, examples, long_examples, graph)
    seconds = _time_steps(steps, len(examples) * (2 if options.quick else options.runs))
    mlm_seconds = statistics.median(seconds["mlm"])
    n_queries = sum(len(example.mentions) for example in examples[0])
    n_mentions = sum(len(example.mentions) for example in long_examples[0])
    n_clustered = CLUSTERED_QUICK if options.quick else CLUSTERED
    result = {
        **_describe(options, examples),
        **_tokens_per_second(seconds, options.batch * options.length),
        "peak_gib": round(peak_gib(), 3),
        "nearest_over_mlm": _nearest(n_queries, mlm_seconds),
        "approximate_over_mlm": _approximate(n_clustered, n_queries, mlm_seconds),
        **{f"{name}_over_mlm": _ratio(seconds, name) for name in ("kebiolm", "embert")},
        "smedbert_over_mlm": _ratio(seconds, "smedbert", "long_mlm"),
        "smedbert": {
            "length": LONG,
            "mentions": MENTIONS_OF_LONG,
            "n_neighbours": N_NEIGHBOURS,
            "dim": GRAPH_DIM,
        },
        "eq18_over_slow": compare_forms(graph, n_mentions, 10 if options.quick else 50),
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=1))


def _make_steps(
    options: argparse.Namespace,
    examples: list[list[TextExample]],
    long_examples: list[list[TextExample]],
    graph: EntityGraph,
) -> dict[str, Callable[[int], None]]:
    """Return a function that runs a step, for each kind."""
    bert = BertForMaskedLM(_bert_config(options.length))
    kebiolm = KnowledgeBertForMaskedLM.from_bert(
        bert,
        _sample_table(options.entities, DIM),
        knowledge_layers={"entity_memory": {"after": AFTER, "n_nearest": N_NEAREST}},
    )
    smedbert = KnowledgeBertForMaskedLM.from_bert(
        BertForMaskedLM(_bert_config(LONG)),
        _sample_table(options.entities, GRAPH_DIM),
        knowledge_layers={"neighbour_attention": {"after": 5, "n_neighbours": N_NEIGHBOURS}},
        graph={"neighbours": graph.neighbours, "types": graph.types},
        freeze_entities=True,
    )
    long_bert = BertForMaskedLM(_bert_config(LONG))
    return {
        "mlm": _stepper(bert, _PLAIN, examples),
        "kebiolm": _stepper(kebiolm, _KEBIOLM, examples),
        "embert": _stepper(BertForMaskedLM(_bert_config(options.length)), _EMBERT, examples),
        "long_mlm": _stepper(long_bert, _PLAIN, long_examples),
        "smedbert": _stepper(smedbert, _SMEDBERT, long_examples, graph),
    }


def _time_steps(steps: dict[str, Callable[[int], None]], n_rounds: int) -> dict[str, list[float]]:
    """Time steps of every kind, interleaved, after one of each that does not count."""
    for step in steps.values():
        step(0)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for n in range(n_rounds):
        timed = interleave(1, *(partial(step, n) for step in steps.values()))
        for name, each in zip(steps, timed, strict=True):
            seconds[name].append(each.seconds)
    return seconds


def _describe(options: argparse.Namespace, examples: list[list[TextExample]]) -> dict[str, Any]:
    """Return the settings of the measurement."""
    mentions = statistics.mean(len(e.mentions) for batch in examples for e in batch)
    return {
        "benchmark": "pretrain_step",
        "command": describe_command("pretrain_step.py", sys.argv[1:]),
        "commit": describe_commit(),
        "machine": describe_machine(),
        "batch": options.batch,
        "length": options.length,
        "n_entities": options.entities,
        "n_nearest": N_NEAREST,
        "mentions_of_a_batch": round(mentions * options.batch, 1),
    }


def _tokens_per_second(seconds: dict[str, list[float]], n_tokens: int) -> dict[str, float]:
    """Return the speed of the steps on the shorter sequences."""
    return {
        f"{name}_tokens_per_second": n_tokens / statistics.median(seconds[name])
        for name in ("mlm", "kebiolm", "embert")
    }


def _ratio(seconds: dict[str, list[float]], name: str, plain: str = "mlm") -> float:
    """Return the median ratio to plain steps of the same round."""
    pairs = zip(seconds[name], seconds[plain], strict=True)
    return round(statistics.median(ours / theirs for ours, theirs in pairs), 3)


def _nearest(n_queries: int, step_seconds: float) -> dict[str, float]:
    """Return the time of the exact search over that of a plain step, by table size."""
    queries = torch.randn(n_queries, DIM)
    ratios = {}
    for n in EXACTLY_SEARCHED:
        table = torch.randn(n, DIM)
        (timed,) = interleave(3, partial(nearest_rows, queries, table, N_NEAREST))
        ratios[str(n)] = round(timed.seconds / step_seconds, 4)
    return ratios


def _approximate(n_rows: int, n_queries: int, step_seconds: float) -> dict[str, Any]:
    """Return the time of the search in clusters over that of a plain step, and its recall."""
    result: dict[str, Any] = {
        "n_entities": n_rows,
        "n_probed": N_PROBED,
        "renewed_after": REBUILT_AFTER,
    }
    for name, (table, queries) in {
        "grouped": _sample_grouped(n_rows, n_queries),
        "random": (torch.randn(n_rows, DIM), torch.randn(n_queries, DIM)),
    }.items():
        clusters = Clusters(n_rows, DIM, N_PROBED).eval()
        (making,) = interleave(1, partial(clusters.build, table))
        exact, near = interleave(
            3,
            partial(nearest_rows, queries, table, N_NEAREST),
            partial(clusters.search, queries, table, N_NEAREST),
        )
        same = (near.result.unsqueeze(2) == exact.result.unsqueeze(1)).sum()
        result[name] = {
            "over_mlm": round(near.seconds / step_seconds, 4),
            "exact_over_mlm": round(exact.seconds / step_seconds, 4),
            "making_over_mlm": round(making.seconds / step_seconds, 2),
            f"recall_at_{N_NEAREST}": round(int(same) / exact.result.numel(), 4),
        }
    return result


def _sample_grouped(n_rows: int, n_queries: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample unit vectors, of groups and noise in equal parts, and noisier ones as queries."""
    centres = torch.randn(n_rows // GROUP, DIM)
    table = centres.repeat(GROUP, 1) + torch.randn(n_rows, DIM)
    queries = table[torch.randint(n_rows, (n_queries,))] + torch.randn(n_queries, DIM)
    return normalize(table, dim=1), normalize(queries, dim=1)


def _sample_table(n_entities: int, dim: int) -> torch.Tensor:
    return torch.randn(n_entities, dim) / math.sqrt(dim)


def _sample_examples(
    rng: np.random.Generator, options: argparse.Namespace
) -> tuple[list[list[TextExample]], list[list[TextExample]]]:
    """Sample batches, and those for SMedBERT, of longer segment pairs."""
    n_batches, n_entities = 2 if options.quick else 6, options.entities
    n_mentions = options.length * MENTIONS_OF_100_TOKENS // 100
    n_long = max(1, options.batch * options.length // LONG)
    batches = sample_batches(rng, n_batches, options.batch, options.length, n_entities, n_mentions)
    long = sample_batches(rng, n_batches, n_long, LONG, n_entities, MENTIONS_OF_LONG)
    return batches, [[as_segment_pair(example) for example in batch] for batch in long]


def _bert_config(length: int) -> BertConfig:
    return BertConfig(
        vocab_size=N_TOKENS,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=max(512, length),
    )


def _stepper(
    lm: Any,
    names: tuple[str, ...],
    examples: list[list[TextExample]],
    graph: EntityGraph | None = None,
) -> Callable[[int], None]:
    """Return a function that runs one whole step on a batch."""
    setting = Setting(
        mask=MASK,
        n_tokens=N_TOKENS,
        special=tuple(range(N_SPECIAL)),
        width=WIDTH,
        graph=graph,
        embeddings=lm.get_input_embeddings().weight,
    )
    built = {name: OBJECTIVES.load(name)().build(setting) for name in names}
    transforms = (
        [] if graph is None else [EntityVisibility(setting.entity_visibility, graph.neighbours)]
    )
    steps = sort_by_order([*built.values(), *transforms])
    model = ObjectiveModel(TextReader(lm), built).train()
    optimiser = make_optimiser(model, TrainingConfig())
    batches = [_prepared(of_batch, steps) for of_batch in examples]

    def step(n: int) -> None:
        optimiser.zero_grad(set_to_none=True)
        loss, _ = model(batches[n % len(batches)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def _prepared(examples: list[TextExample], steps: Sequence[Any]) -> TextBatch:
    rng, made = np.random.default_rng(1), []
    for example in examples:
        prepared = example
        for step in steps:
            prepared = step.prepare(prepared, rng)
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
