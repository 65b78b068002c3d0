"""The tables of pre-training and of what is fine-tuned from it, from their result files."""

from __future__ import annotations

import json
from statistics import fmean, stdev
from typing import Any

from result_rows import without_fold

from biograft.metrics import paired_t


def pretrain_step(result: dict[str, Any]) -> str:
    """Say what a step with the entity memory costs."""
    n_mentions, n_entities = result["mentions_of_a_batch"], result["n_entities"]
    ours, theirs = result["kebiolm_tokens_per_second"], result["mlm_tokens_per_second"]
    return f"""A step of KeBioLM takes {result["kebiolm_over_mlm"]:.2f} times as long as one of
plain masked language modelling with the same encoder (MiniLM's size; {result["batch"]} sequences
of {result["length"]} tokens with {n_mentions:.0f} mentions, {n_entities:,} entities,
{result["n_nearest"]} nearest): {ours:,.0f} against {theirs:,.0f} tokens a second on
{result["machine"]["n_cores"]} cores
([result](../benchmarks/results/pretrain_step.json), `python benchmarks/pretrain_step.py --json`).
{_searching(result)}
{_other_steps(result)}"""


def _other_steps(result: dict[str, Any]) -> str:
    """Say what the other recipes' steps take."""
    if "smedbert" not in result:
        return ""
    told = result["smedbert"]
    return f"""
A step with EMBERT's objectives takes {result["embert_over_mlm"]:.2f} times as long as a plain one;
one of SMedBERT {result["smedbert_over_mlm"]:.2f} times (sequences of {told["length"]} tokens with
{told["mentions"]} mentions, {told["n_neighbours"]} neighbours each).
{_equation_18(result)}"""


def _equation_18(result: dict[str, Any]) -> str:
    """Say what the fast form of SMedBERT's scores takes, where that was measured."""
    told = result.get("eq18_over_slow")
    if told is None:
        return ""
    return f"""Scoring neighbours by its equation 18 takes {told["forward"]:.2f} times as long as
projecting every entity, {told["with_backward"]:.2f} times with the backward pass
({told["n_edges"]:,} neighbours, each beside {told["n_negatives"]} other entities, vectors of
{told["dim"]} that do not learn).
"""


def _searching(result: dict[str, Any]) -> str:
    """Say what the search for the nearest entities takes, exactly and in clusters."""
    exact, near = result["nearest_over_mlm"], result["approximate_over_mlm"]
    found = {name: near[name]["recall_at_100"] for name in ("grouped", "random")}
    exact_shares = (
        f"{exact['50000']:.1%} at 50,000 entities and {exact['1000000']:.0%} at a million"
    )
    return f"""Of a plain step the exact search takes {exact_shares}; in
{near["n_probed"]} clusters of {near["n_entities"]:,} it takes {near["grouped"]["over_mlm"]:.0%}
and finds {found["grouped"]:.0%} of the exact hundred, where the vectors are groups and noise in
equal parts. Of independent random numbers it finds {found["random"]:.0%}."""


def kebiolm_tasks(result: dict[str, Any]) -> str:
    """Set the encoders side by side on each set."""
    rows = result["rows"]
    labels = rows[0]["labels"]
    lines = [
        f"| set (train / test) | {' | '.join(labels)} | kebiolm - mlm (p) | in store / table |",
        "|---" * (len(labels) + 3) + "|",
    ]
    for row in rows:
        sizes = row["n_examples"]
        cells = [f"{row['set']} ({sizes['train']:,} / {sizes['test']:,})"]
        cells += [_mean_of(row["encoders"][label]["test"]) for label in labels]
        cells.append(_difference(row["differences"], "kebiolm", "mlm"))
        cells.append(_coverage(row.get("coverage")))
        lines.append(f"| {' | '.join(cells)} |")
    seeds = sorted({len(row["seeds"]) for row in rows}, reverse=True)
    return f"""F1 on test in percent; mean and standard deviation over {seeds[0]} seeds where a
deviation is told, else one seed; {rows[0]["epochs"]} epochs, the best of them chosen on dev; p of
Welch's test ([result](../benchmarks/results/kebiolm_tasks.json), `{rows[0]["command"]}`):

{chr(10).join(lines)}
"""


HELD_OUT = {
    "kebiolm_ablations": {
        "masked_tokens.accuracy": "masked",
        "entity_linking.accuracy": "entities",
    },
    "embert_ablations": {
        "masked_tokens.accuracy": "masked",
        "context_entity_consistency.accuracy": "consistent",
        "entity_segmentation.accuracy": "ends",
    },
    "embert_english_ablations": {"masked_tokens.accuracy": "masked"},
    "smedbert_ablations": {
        "masked_tokens.accuracy": "masked",
        "masked_neighbour.accuracy": "neighbours",
        "sentence_order.accuracy": "order",
    },
    "smedbert_english_ablations": {
        "masked_tokens.accuracy": "masked",
        "masked_neighbour.accuracy": "neighbours",
    },
    "smedbert_neighbours_ablations": {"masked_tokens.accuracy": "masked"},
    "told_share": {},
    "sixth_tasks": {},
}
"""Of each file of ablations, the figures of held-out text, and their columns' names."""


def ablations(place: str, result: dict[str, Any]) -> str:
    """Say what the objectives and the tasks make of encoders that lack a part."""
    told = HELD_OUT[place]
    rows = folds_as_one(result["rows"])
    sets = [row["set"] for row in rows]
    lines = [
        f"| encoder | {' | '.join([*(f'{name}, %' for name in told.values()), *sets])} |",
        "|---" * (1 + len(told) + len(sets)) + "|",
    ]
    for label in dict.fromkeys(label for row in rows for label in row["encoders"]):
        held_out = _held_out(rows, label)
        cells = [f"{100 * held_out[key]:.1f}" if key in held_out else "" for key in told]
        cells += [_cell(row, label) for row in rows]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    before = "Held-out text, then the" if told else "The"
    of = f", here of {sets[0]}" if len(sets) > 1 else ""
    return f"""{before} main figure of each set on test, in percent, {_over(rows)}
([result](../benchmarks/results/{place}.json) with its commands{of}: `{rows[0]["command"]}`).
Fine-tuned: {"; ".join(map(_settings, rows))}.

{chr(10).join(lines)}
"""


def _settings(row: dict[str, Any]) -> str:
    """Say on how much a set's models were fine-tuned, and how, where not as the recipe has it."""
    changes = "".join(f", `{change}`" for change in row.get("task_changes") or ())
    n_examples = row["n_examples"]["train"]
    return f"*{row['set']}* on {n_examples:,} examples, {row['epochs']} epochs{changes}"


def _held_out(rows: list[dict[str, Any]], label: str) -> dict[str, float]:
    """Give what an encoder reached on held-out text, from the first row that tells."""
    told: list[dict[str, float]] = [row.get("held_out", {}).get(label, {}) for row in rows]
    return next((found for found in told if found), {})


def _over(rows: list[dict[str, Any]]) -> str:
    """Say over what the means are, and what the values of p are of."""
    seeds, over, tests = max(len(row["seeds"]) for row in rows), [], []
    if seeds > 1:
        over.append(f"{seeds} seeds")
        tests.append("of Welch's test")
    if any("folds" in row for row in rows):
        over.append("folds")
        tests.append("over folds of the paired one, too small as folds share texts")
    if not over:
        return "one seed"
    against = f" (p against *all* {', '.join(tests)})" if "all" in rows[0]["encoders"] else ""
    return f"mean and deviation over {' or '.join(over)}{against}"


def folds_as_one(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put one row over the folds of a set, measured in the same way, in place of theirs."""
    united: dict[str, list[dict[str, Any]]] = {}
    for number, row in enumerate(rows):
        name = without_fold(row["set"])
        settings = [row.get(key) for key in ("seeds", "epochs", "most", "task_changes")]
        if name == row["set"]:  # no fold: a row of its own, whatever others there are
            settings.append(number)
        united.setdefault(json.dumps([name, settings]), []).append(row)
    return [of[0] if len(of) == 1 else _over_folds(of) for of in united.values()]


def _over_folds(folds: list[dict[str, Any]]) -> dict[str, Any]:
    values = {
        label: [row["encoders"][label]["test"]["mean"] for row in folds]
        for label in folds[0]["encoders"]
    }
    return {
        **folds[0],
        "set": f"{without_fold(folds[0]['set'])}, {len(folds)} folds",
        "folds": len(folds),
        "encoders": {
            label: {"test": {"values": of, "mean": fmean(of), "deviation": stdev(of)}}
            for label, of in values.items()
        },
        "differences": [
            {"of": "all", "against": label, "p": {"paired": paired_t(values["all"], of).p}}
            for label, of in values.items()
            if "all" in values and label != "all"
        ],
    }


def _cell(row: dict[str, Any], label: str) -> str:
    found = row["encoders"].get(label)
    return _mean_of(found["test"]) + _doubt(row, label) if found else ""


def _doubt(row: dict[str, Any], label: str) -> str:
    """Say how likely so large a difference to the whole would be by chance."""
    pair = {label, "all"}
    found = [each for each in row["differences"] if {each["of"], each["against"]} == pair]
    test = "paired" if "folds" in row else "welch"
    return f" ({found[0]['p'][test]:.2f})" if found else ""


def _mean_of(figures: dict[str, Any]) -> str:
    if len(figures["values"]) == 1:
        return f"{figures['mean']:.1f}"
    return f"{figures['mean']:.1f} ± {figures['deviation']:.1f}"


def _difference(differences: list[dict[str, Any]], of: str, against: str) -> str:
    for each in differences:
        if (each["of"], each["against"]) == (of, against):
            return f"{each['by']:+.1f} ({each['p']['welch']:.2f})"
    return ""


def _coverage(shares: dict[str, Any] | None) -> str:
    return f"{shares['in_store']:.0%} / {shares['in_table']:.0%}" if shares else ""
