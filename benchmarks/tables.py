"""Write the tables in documents from the result files, so that no figure is typed by hand.

python benchmarks/tables.py            rewrite the documents
python benchmarks/tables.py --check    exit with 1 if one is not up to date
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from generation_tables import genbioel_linking, trie
from pretraining_tables import HELD_OUT, ablations, kebiolm_tasks, pretrain_step
from probing_tables import attention_change, kebiolm_probe, similar_names
from result_rows import without_fold

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS = (
    "README.md",
    "docs/graph.md",
    "docs/annotation.md",
    "docs/pretraining.md",
    "docs/pretraining-results.md",
    "docs/probing.md",
    "docs/generation.md",
)


def kb_build(result: dict[str, Any]) -> str:
    """Sum up the build of a UMLS-sized store."""
    rows = (result["n_name_rows"] + result["n_relation_rows"]) / 1e6
    ours, python = result["biograft"], result["python"]
    return f"""A store of UMLS's shape, {rows:.0f} million rows (MRCONSO and MRREL) on two cores,
against a plain-Python build of the same store (dicts and SQLite) in the same run
([result](benchmarks/results/kb_build.json), `python benchmarks/kb_build.py`):

| | biograft | plain Python |
|---|---|---|
| build, rows per second | {_rate(result, ours)} | {_rate(result, python)} |
| ratio of times | 1 | {result["speedup_over_python"]:.1f} |
| peak memory, GiB | {ours["peak_gib"]:.1f} | {python["peak_gib"]:.1f} |
| open the store | {result["open_ms"]:.0f} ms | |
| look-up by id / by name | {result["id_us"]:.0f} µs / {result["name_us"]:.0f} µs | |

{_larger()}
"""


def _larger() -> str:
    """Say in a sentence what the build of UMLS's own size took."""
    result = json.loads((RESULTS / "kb_build_15m.json").read_text(encoding="utf-8"))
    names, relations = result["n_name_rows"] / 1e6, result["n_relation_rows"] / 1e6
    return (
        f"With {names:.0f} million rows of names and {relations:.0f} million relations, once: "
        f"{result['biograft']['seconds']:.0f} s, {result['peak_gib']:.1f} GiB, opened in "
        f"{result['open_ms']:.0f} ms ([result](benchmarks/results/kb_build_15m.json))."
    )


def _rate(result: dict[str, Any], step: dict[str, Any]) -> str:
    rows = result["n_name_rows"] + result["n_relation_rows"]
    return f"{rows / step['seconds'] / 1e3:,.0f} thousand"


def linking_speed(result: dict[str, Any]) -> str:
    """Sum up how fast names are found, encoded and searched."""
    machine, rows = result["machine"], list(_speed_rows(result["parts"]))
    quick_numbers = "with" if machine["bf16"] else "without"
    return f"""On {machine["n_cores"]} cores ({machine["processor"]}, {quick_numbers} bfloat16
instructions), medians of runs in turn in one process
([result](benchmarks/results/linking_speed.json), `python benchmarks/linking_speed.py --full`):

| | biograft, per second | against | per second | ratio |
|---|---|---|---|---|
{chr(10).join(rows)}

{_million_names(result["parts"])}
"""


def _speed_rows(parts: dict[str, Any]) -> Iterator[str]:
    """Give a line for every comparison that was made."""
    for name, label in (("lexical", "synthetic"), ("ncbi", "NCBI disease")):
        if "over_sklearn" in (part := parts.get(name, {})):
            what = f"mentions, {part['n_names']:,} {label} names, by letters"
            theirs = part["sklearn_mentions_per_second"]
            yield _speed_row(what, part["mentions_per_second"], "scikit-learn tf-idf", theirs)
        if "sklearn_sparse_mentions_per_second" in part:
            theirs = part["sklearn_sparse_mentions_per_second"]
            other = "the same, its product kept sparse"
            yield _speed_row("the same", part["mentions_per_second"], other, theirs)
    scispacy, ncbi = parts.get("scispacy", {}), parts.get("ncbi", {})
    if scispacy.get("vocabulary") == "NCBI" and "mentions_per_second" in ncbi:
        rates = ncbi["mentions_per_second"], scispacy["mentions_per_second"]
        yield _speed_row("the same", rates[0], "scispaCy 0.6.2 (approximate)", rates[1])
    if "over_published" in (part := parts.get("encode", {})):
        what = f"names encoded by MiniLM, {part['precision']}"
        theirs = part["published_texts_per_second"]
        yield _speed_row(what, part["texts_per_second"], "SapBERT's evaluation", theirs)
    for name in ("search", "search_large"):
        if (part := parts.get(name, {})).get("over_faiss_flat") is not None:
            what = f"exact search in {part['n_vectors']:,} vectors of {part['dim']}"
            theirs = part["faiss_queries_per_second"]
            yield _speed_row(what, part["queries_per_second"], "faiss IndexFlatIP", theirs)


def _speed_row(what: str, ours: float, other: str, theirs: float) -> str:
    return f"| {what} | {ours:,.0f} | {other} | {theirs:,.0f} | {ours / theirs:.1f} |"


def _million_names(parts: dict[str, Any]) -> str:
    """Say in a sentence what an index of millions of names takes."""
    part = parts.get("lexical_large")
    if part is None:
        return "An index of millions of names was not measured in this run."
    return (
        f"By letters, {part['n_names'] / 1e6:.1f} million names: {part['build_seconds']:.0f} s to "
        f"build, {part['index_bytes'] / 2**20:,.0f} MiB on disk, {part['peak_gib']:.1f} GiB of "
        f"memory at most, {part['mentions_per_second']:,.0f} mentions per second."
    )


def linking(result: dict[str, Any]) -> str:
    """Sum up how often the right concept is found: test parts where measured, else dev parts."""
    rows = _folds_as_one([row for row in result["rows"] if row["scorer"] == "lenient"])
    tested = {row["set"] for row in rows if row["split"] == "test"}
    shown = [row for row in rows if row["split"] == "test" or row["set"] not in tested]
    encoders = list(dict.fromkeys(e for row in shown if (e := row["config"].partition(":")[2])))
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in shown:
        found.setdefault((row["set"], row["split"]), {})[row["config"]] = row
    heads = ["set", "part", "mentions", "reachable", "letters", *encoders]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for (name, split), by_configuration in found.items():
        one = next(iter(by_configuration.values()))
        figures = [_letters(by_configuration.get("lexical"))]
        figures += [_alone_and_with_letters(by_configuration, encoder) for encoder in encoders]
        cells = [name, split, f"{one['n']:,}", f"{one['coverage']:.0f} %", *figures]
        lines.append(f"| {' | '.join(cells)} |")
    return f"""Percent of mentions whose first name found is right, by the published rule: by
letters (with the 95 % interval) and by the vectors of encoders; in a cell such as 7.9 / 46.2 the
first figure is by vectors alone, the second by vectors and letters
([result](benchmarks/results/linking.json), which also says how often one of the first five is
right; `python benchmarks/linking_accuracy.py`). "Reachable" are mentions with a right concept in
the dictionary that was at hand. `minilm` is as it comes, `minilm-sapbert-cpu` was aligned on names
alone; `letters` is a small encoder from scratch, before and after it was aligned on the names and
the training mentions (`python benchmarks/scratch_encoder.py`).

{chr(10).join(lines)}
"""


def _letters(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    low, high = row.get("intervals", {}).get("acc@1", (None, None))
    around = f" ({low:.1f}–{high:.1f})" if low is not None else ""
    return f"{row['acc@1']:.1f}{around}"


def _alone_and_with_letters(rows: dict[str, dict[str, Any]], encoder: str) -> str:
    """Give the figures of an encoder: alone, and behind a stroke with letters."""
    pair = [rows.get(f"{kind}:{encoder}") for kind in ("dense", "both")]
    shown = " / ".join(f"{row['acc@1']:.1f}" if row else "–" for row in pair)
    return shown if any(pair) else ""


def _folds_as_one(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the mean over the folds of a set (NAME-0, NAME-1, ...) in place of the folds."""
    united: list[dict[str, Any]] = []
    folds: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        name = without_fold(row["set"])
        if name == row["set"]:
            united.append(row)
            continue
        folds.setdefault((name, row["split"], row["config"]), []).append(row)
    for (name, split, configuration), of_set in folds.items():
        mean = {
            key: sum(row[key] for row in of_set) / len(of_set)
            for key in ("acc@1", "acc@5", "coverage")
        }
        label = f"{name}, mean of {len(of_set)} folds"
        n = sum(row["n"] for row in of_set)
        united.append({"set": label, "split": split, "config": configuration, "n": n, **mean})
    return united


def linking_supervised(result: dict[str, Any]) -> str:
    """Sum up what mentions with known concepts add, over the seeds that were run."""
    lines = []
    for name, seeds in _seeds_of_sets(result["rows"]).items():
        cells = [_mean_of_seeds([seed[each] for seed in seeds]) for each, _ in _TRAINED]
        lines.append(f"| {name} | {len(seeds)} | {' | '.join(cells)} |")
    return f"""Trained on the mentions of train and dev, from MiniLM, without a GPU; test parts,
percent right at the first, and within five, by the published rule; mean of the seeds, ± their
standard deviation ([result](benchmarks/results/linking_supervised.json),
`python benchmarks/linking_supervised.py`):

| set | seeds | {" | ".join(label for _, label in _TRAINED)} |
|{"---|" * (2 + len(_TRAINED))}
{chr(10).join(lines)}
"""


_TRAINED = (
    ("dense", "vectors, fine-tuned"),
    ("both", "with letters"),
    ("ranked", "with letters, ranked"),
)
_Figures = dict[str, dict[str, float]]
"""Of one seed: configuration -> figures."""


def _seeds_of_sets(rows: list[dict[str, Any]]) -> dict[str, list[_Figures]]:
    """Put rows together by set and seed; the folds of a set are one, once all have the seed."""
    found: dict[str, dict[int, dict[str, list[dict[str, Any]]]]] = {}
    for row in rows:
        of_seed = found.setdefault(without_fold(row["set"]), {}).setdefault(row["seed"], {})
        of_seed.setdefault(row["config"], []).append(row)
    united: dict[str, list[_Figures]] = {}
    for name, seeds in found.items():
        n_folds = max(len(of) for by_config in seeds.values() for of in by_config.values())
        label = f"{name}, mean of {n_folds} folds" if n_folds > 1 else name
        for by_config in seeds.values():
            if all(len(of) == n_folds for of in by_config.values()):
                means = {config: _means(of) for config, of in by_config.items()}
                united.setdefault(label, []).append(means)
    return united


def _means(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {key: sum(row[key] for row in rows) / len(rows) for key in ("acc@1", "acc@5")}


def _mean_of_seeds(figures: list[dict[str, float]]) -> str:
    first, five = ([each[key] for each in figures] for key in ("acc@1", "acc@5"))
    around = f" ± {statistics.stdev(first):.1f}" if len(first) > 1 else ""
    return f"{statistics.mean(first):.1f}{around} / {statistics.mean(five):.1f}"


def graph_embeddings(result: dict[str, Any]) -> str:
    """Compare embeddings of a graph with PyKEEN's at equal settings."""
    quality = result["quality"]
    settings = quality["settings"]
    rows = [
        f"| {name}, {label} | {quality[model]['seeds']} | {_spread(side)} "
        f"| {side['hits@10']:.1f} | {side['seconds']:.1f} |"
        for model, name in (("transe", "TransE"), ("transr", "TransR"))
        for key, label in (
            ("adam", "Adam"), ("pykeen", "PyKEEN, Adam"), ("adagrad", "sparse Adagrad")
        )
        if "mrr" in (side := quality[model].get(key, {}))
    ]  # fmt: skip
    return f"""UMLS-135, test part, means of seeds at equal settings (dim
{settings["dim"]}, {settings["epochs"]} epochs of batches of {settings["batch"]}, margin loss, one
false triple), and the seconds that training took side by side
([result](../benchmarks/results/graph_embeddings.json), `python benchmarks/graph_embeddings.py`):

| | seeds | MRR | hits@10 | seconds |
|---|---|---|---|---|
{chr(10).join(rows)}

{_million_triples(result["speed"])}

{_other_graphs(result)}
"""


def _spread(side: dict[str, Any]) -> str:
    around = f" ± {side['mrr_deviation']:.1f}" if "mrr_deviation" in side else ""
    return f"{side['mrr']:.1f}{around}"


def _million_triples(speed: dict[str, Any]) -> str:
    """Compare the seconds of an epoch."""
    settings = speed["settings"]
    rows = [
        f"| {name} | {part['adagrad']:.1f} | {part['row-adagrad']:.1f} | {part['adam']:.1f} "
        f"| {part['pykeen']:.0f} | {part['adagrad_over_pykeen']:.1f} "
        f"| {part['adam_over_pykeen']:.1f} |"
        for model, name in (("transe", "TransE"), ("transr", "TransR"))
        if "adagrad_over_pykeen" in (part := speed[model])
    ]
    timed = speed["transr"]["n_triples"]
    return f"""Seconds of an epoch over a million drawn triples of 100,000 entities, dim
{settings["dim"]}, batches of {settings["batch"]}, one false triple; TransR timed on {timed:,}. A
sparse optimiser moves only the rows that a batch speaks of; "like for like" is dense Adam on both
sides:

| | sparse Adagrad | one number a row | dense Adam | PyKEEN, dense Adam | ratio | like for like |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}"""


def _other_graphs(result: dict[str, Any]) -> str:
    """Say how well held-out triples of larger graphs are found."""
    rows = [
        f"| {name} | {part['n_train']:,} | {part['n']:,} | {part['mrr']:.1f} "
        f"| {part['hits@10']:.1f} | {part['mean_rank']:,.0f} |"
        for key, name in _OTHER_GRAPHS.items()
        if "mrr" in (part := result[key])
    ]
    return f"""The recipe `transe`, 30 epochs, nothing chosen on these graphs:

| | triples learned from | questions | MRR | hits@10 | mean rank |
|---|---|---|---|---|---|
{chr(10).join(rows)}"""


_OTHER_GRAPHS = {
    "chinese": "Chinese disease graph",
    "pharmkg": "PharmKG, learned from its valid part",
}


def annotation_speed(result: dict[str, Any]) -> str:
    """Say how fast text is annotated, beside bare automata and a peer, and what PubMed takes."""
    parts = list(result["names"].values())
    rows = [
        f"| {part['n_names']:,} | {part['matching_mb_per_second']:.1f} "
        f"| {part['whole_mb_per_second']:.1f} "
        f"| {_rate_or_dash(part['limits_mb_per_second']['ahocorasick_rs'])} "
        f"| {_rate_or_dash(part['limits_mb_per_second']['pyahocorasick'])} "
        f"| {part['open_seconds']:.0f} | {part['peak_gib_of_annotator']:.1f} |"
        for part in parts
    ]
    peers = [part for part in parts if isinstance(part["quickumls"], dict)]
    return f"""MB of abstracts a second on one core, synthetic names, four to a concept; the bare
automata know neither words nor case
([result](../benchmarks/results/annotation_speed.json), `python benchmarks/annotation_speed.py`):

| names | matching | all of it | ahocorasick_rs | pyahocorasick | seconds to open | GiB |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

{chr(10).join(map(_quickumls, peers))}

{_pubmed(parts)}
"""


def _rate_or_dash(rate: float | str) -> str:
    return f"{rate:.1f}" if isinstance(rate, float) else "–"


def _quickumls(part: dict[str, Any]) -> str:
    peer = part["quickumls"]
    ratio = part["whole_mb_per_second"] / peer["mb_per_second"]
    return f"""With {part["n_names"]:,} names QuickUMLS 1.4, as it comes, reads
{peer["mb_per_second"]:.3f} MB a second, without the time of its tagger; annotating is {ratio:.0f}
times as fast. QuickUMLS also finds names that are only alike."""


def _pubmed(parts: list[dict[str, Any]]) -> str:
    """Project one of the measured speeds to all abstracts."""
    part = next((part for part in parts if part["n_names"] == _PROJECTED), parts[-1])
    pubmed = part["pubmed"]
    hours = pubmed["hours_by_workers"]
    return f"""Projected: {pubmed["abstracts"] / 1e6:.0f} million abstracts of PubMed x
{pubmed["bytes_each"]:,} bytes = {pubmed["megabytes"] / 1e3:.0f} GB; at the speed with
{part["n_names"]:,} names {hours["1"]:.1f} hours on one core, {60 * hours["16"]:.0f} minutes on 16,
{60 * hours["64"]:.0f} on 64, besides opening the store on each machine."""


_PROJECTED = 1_000_000


def pepr(result: dict[str, Any]) -> str:
    """Say how fast and how right neighbours are ranked."""
    minutes = result["seconds"]["all"] / 60
    return f"""A scale-free graph of {result["n_entities"]:,} entities and {result["n_edges"]:,}
edges: {result["ms_per_source"]:.1f} ms an entity on two cores ({minutes:.0f} minutes for
all), {result["peak_gib"]:.1f} GiB at most; scipy's power iteration takes
{result["scipy_ms_per_source"]:.0f} ms for {result["scipy_rounds"]} rounds. Of {result["n_sample"]}
sampled entities {100 * result["top10_equal"]:.1f} % have the ten neighbours that exact scores give,
{100 * result["top10_in_order"]:.1f} % in the same order
([result](../benchmarks/results/pepr.json), `python benchmarks/pepr.py --json`).
"""


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "kb_build": kb_build,
    "linking_speed": linking_speed,
    "linking": linking,
    "linking_supervised": linking_supervised,
    "graph_embeddings": graph_embeddings,
    "pepr": pepr,
    "annotation_speed": annotation_speed,
    "pretrain_step": pretrain_step,
    "kebiolm_tasks": kebiolm_tasks,
    **{name: partial(ablations, name) for name in HELD_OUT},
    "kebiolm_probe": kebiolm_probe,
    "similar_names": similar_names,
    "attention_change": attention_change,
    "trie": trie,
    "genbioel_linking": genbioel_linking,
}


def render(text: str) -> str:
    """Fill every marked block of a document from its result file."""
    for name, table in TABLES.items():
        path = RESULTS / f"{name}.json"
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
        if begin in text and path.exists():
            before, _, rest = text.partition(begin)
            _, _, after = rest.partition(end)
            filled = table(json.loads(path.read_text(encoding="utf-8")))
            text = before + begin + filled + end + after
    return text


def main() -> None:
    """Rewrite or check the documents."""
    stale = []
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text(encoding="utf-8")
        if (rendered := render(text)) != text:
            stale.append(document)
            if "--check" not in sys.argv:
                path.write_text(rendered, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run python benchmarks/tables.py")


if __name__ == "__main__":
    main()
