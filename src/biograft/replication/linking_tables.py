"""Tables of linking experiments: accuracy, supervised linking, generative linking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from biograft.replication.experiment import Experiment
from biograft.replication.results import Row, without_fold

Rows = Sequence[Row]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def linking_accuracy(result: Mapping[str, Any]) -> str:
    """Return acc@1 by set: of test splits where they were measured, else of dev splits."""
    rows = _folds_as_one([row for row in result["rows"] if row["scorer"] == "lenient"])
    tested = {row["set"] for row in rows if row["split"] == "test"}
    shown = [row for row in rows if row["split"] == "test" or row["set"] not in tested]
    encoders = dict.fromkeys(label for row in shown if (label := row["config"].partition(":")[2]))
    sets: dict[tuple[str, str], dict[str, Row]] = {}
    for row in shown:
        sets.setdefault((row["set"], row["split"]), {})[row["config"]] = row
    lines = []
    for (name, split), by_config in sets.items():
        first = next(iter(by_config.values()))
        cells = [name, split, f"{first['n']:,}", f"{first['coverage']:.0f} %"]
        cells += [_lexical(by_config.get("lexical"))]
        lines.append([*cells, *(_dense(by_config, label) for label in encoders)])
    return markdown(["set", "split", "mentions", "reachable", "lexical", *encoders], lines)


def _lexical(row: Row | None) -> str:
    if row is None:
        return ""
    low, high = row.get("intervals", {}).get("acc@1", (None, None))
    interval = f" ({low:.1f}–{high:.1f})" if low is not None else ""
    return f"{row['acc@1']:.1f}{interval}"


def _dense(rows: Mapping[str, Row], encoder: str) -> str:
    """Return acc@1 of an encoder: dense search alone, and together with lexical search."""
    pair = [rows.get(f"{search}:{encoder}") for search in ("dense", "lexical+dense")]
    return " / ".join(f"{row['acc@1']:.1f}" if row else "–" for row in pair) if any(pair) else ""


def _folds_as_one(rows: Rows) -> list[Row]:
    """Replace the folds of a set (NAME-0, NAME-1, ...) by their mean."""
    united: list[Row] = []
    folds: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        name = without_fold(row["set"])
        if name == row["set"]:
            united.append(row)
            continue
        folds.setdefault((name, row["split"], row["config"]), []).append(row)
    for (name, split, config), of_set in folds.items():
        means = {
            key: sum(row[key] for row in of_set) / len(of_set)
            for key in ("acc@1", "acc@5", "coverage")
        }
        label = f"{name}, mean of {len(of_set)} folds"
        n = sum(row["n"] for row in of_set)
        united.append({"set": label, "split": split, "config": config, "n": n, **means})
    return united


_TRAINED = {
    "dense": "fine-tuned",
    "lexical+dense": "fine-tuned + lexical",
    "ranked": "fine-tuned + lexical, ranked",
}


def linking_supervised(result: Mapping[str, Any]) -> str:
    """Return acc@1 and acc@5 over the seeds of each set."""
    lines = []
    for name, seeds in _seeds_of_sets(result["rows"]).items():
        cells = [_mean_of_seeds([seed[config] for seed in seeds]) for config in _TRAINED]
        lines.append([name, str(len(seeds)), *cells])
    return markdown(["set", "seeds", *_TRAINED.values()], lines)


_Metrics = dict[str, dict[str, float]]
"""Of one seed: configuration -> metrics."""


def _seeds_of_sets(rows: Rows) -> dict[str, list[_Metrics]]:
    """Group rows by set and seed; the folds of a set are one, once all have the seed."""
    found: dict[str, dict[int, dict[str, list[Row]]]] = {}
    for row in rows:
        of_seed = found.setdefault(without_fold(row["set"]), {}).setdefault(row["seed"], {})
        of_seed.setdefault(row["config"], []).append(row)
    united: dict[str, list[_Metrics]] = {}
    for name, seeds in found.items():
        n_folds = max(len(of) for by_config in seeds.values() for of in by_config.values())
        label = f"{name}, mean of {n_folds} folds" if n_folds > 1 else name
        for by_config in seeds.values():
            if all(len(of) == n_folds for of in by_config.values()):
                means = {config: _means(of) for config, of in by_config.items()}
                united.setdefault(label, []).append(means)
    return united


def _means(rows: Rows) -> dict[str, float]:
    return {key: sum(row[key] for row in rows) / len(rows) for key in ("acc@1", "acc@5")}


def _mean_of_seeds(metrics: Sequence[Mapping[str, float]]) -> str:
    first, five = ([each[key] for each in metrics] for key in ("acc@1", "acc@5"))
    spread = f" ± {stdev(first):.1f}" if len(first) > 1 else ""
    return f"{fmean(first):.1f}{spread} / {fmean(five):.1f}"


_FULL = "names, then mentions"
_STARTS = ("names only", "mentions only", _FULL)
_TARGETS = {"similar": "most similar to the mention", "shortest": "shortest", "random": "random"}
_NAMES = {"all": "all", "shortest": "shortest", "random": "random"}
_SEARCHES = ("lexical", "dense", "lexical+dense")


def generation_starts(result: Mapping[str, Any]) -> str:
    """Return recall with and without pre-training on names."""
    rows, sets = _united(result)
    lines = [[config, *(_both(_of(rows, name, config)) for name in sets)] for config in _STARTS]
    return markdown(["recall@1 / @5", *sets], lines)


def generation_targets(result: Mapping[str, Any]) -> str:
    """Return recall by the name that is learned and the names that may be generated."""
    rows, sets = _united(result)
    variants = Experiment.load("genbioel-linking").variants
    chosen = [
        label
        for label, variant in variants.items()
        if "search" not in variant and label not in ("names only", "mentions only")
    ]
    complete = [name for name in sets if all(_of(rows, name, label) for label in chosen)]
    lines = []
    for label in chosen:
        variant = variants[label]
        target = _TARGETS[variant.get("target", "similar")]
        names, prompt = _NAMES[variant.get("names", "all")], variant.get("prompt", True)
        cells = [target, names, "yes" if prompt else "no"]
        lines.append([*cells, *(_both(_of(rows, name, label)) for name in complete)])
    return markdown(["learned name", "allowed names", "prompt", *complete], lines)


def generation_searches(result: Mapping[str, Any]) -> str:
    """Return acc@1 and acc@5 of generation, of searches, and of both together."""
    rows, sets = _united(result)
    chosen = [name for name in sets if all(_of(rows, name, config) for config in _SEARCHES)]
    labels = {_FULL: "generative"}
    labels |= {s: s for s in (*_SEARCHES, *(f"generative+{search}" for search in _SEARCHES))}
    lines = [
        [label, *(_both(_of(rows, name, config), ("acc@1", "acc@5")) for name in chosen)]
        for config, label in labels.items()
    ]
    return markdown(["", *chosen], lines)


def generation_populations(result: Mapping[str, Any]) -> str:
    """Return acc@1 on parts of the mentions, without and with pre-training on names."""
    rows, sets = _united(result)
    first = _of(rows, sets[0], _FULL)[0]["populations"]
    lines = []
    for row, part in enumerate(first):
        if part["name"] == "overall":
            continue
        cells = []
        for name in sets:
            both = [_of(rows, name, config) for config in ("mentions only", _FULL)]
            values = [[one["populations"][row]["acc@1"] for one in found] for found in both]
            cells.append(" / ".join(f"{fmean(v):.1f}" for v in values if v))
        lines.append([part["name"], f"{part['n'] / first[0]['n']:.0%}", *cells])
    return markdown(["mentions", "ratio", *sets], lines)


def generation_memory(result: Mapping[str, Any]) -> str:
    """Return the memory of the trie and of vectors."""
    rows = result["rows"]
    trie = next(row for row in rows if row["config"] == _FULL)
    pair = ("dense", trie["set"])
    dense = next(row for row in rows if (row["config"], row["set"]) == pair)
    n = trie["n_concepts"]
    cells = [f"{n:,}", f"{trie['n_names']:,}", f"{trie['trie_bytes'] / n:,.0f}"]
    cells.append(f"{dense['vectors_bytes'] / n:,.0f}")
    head = ["set", "concepts", "names", "trie, bytes a concept", "384-dim fp32 vectors"]
    return markdown(head, [[trie["set"], *cells]])


def _united(result: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
    """Return the rows with the folds of a set under one name, and the names of the sets."""
    rows = [{**row, "set": without_fold(row["set"])} for row in result["rows"]]
    return rows, list(dict.fromkeys(row["set"] for row in rows))


def _of(rows: Rows, name: str, config: str) -> Rows:
    return [row for row in rows if (row["set"], row["config"]) == (name, config)]


def _both(rows: Rows, keys: Iterable[str] = ("recall@1", "recall@5")) -> str:
    return " / ".join(_mean([row[key] for row in rows]) for key in keys) if rows else ""


def _mean(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{fmean(values):.1f} ± {stdev(values):.1f}"
