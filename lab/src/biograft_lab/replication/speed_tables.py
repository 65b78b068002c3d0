"""Tables of the benchmarks of speed and memory, from the result files in ``benchmarks/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from biograft_lab.replication.tables import markdown

Result = Mapping[str, Any]


def kb_build(result: Result) -> str:
    """Return the build of a UMLS-sized store beside one in plain Python."""
    ours, python = result["biograft"], result["python"]
    queries = f"{result['id_us']:.0f} µs / {result['name_us']:.0f} µs"
    rows = [
        ["million rows", _million_rows(result), _million_rows(result)],
        ["build, rows per second", _rate(result, ours), _rate(result, python)],
        ["ratio of times", "1", f"{result['speedup_over_python']:.1f}"],
        ["peak memory, GiB", f"{ours['peak_gib']:.1f}", f"{python['peak_gib']:.1f}"],
        ["open the knowledge base", f"{result['open_ms']:.0f} ms", ""],
        ["look-up by id / by name", queries, ""],
    ]
    return markdown(["", "biograft", "plain Python"], rows)


def kb_build_15m(result: Result) -> str:
    """Return the build of a store of UMLS's own size."""
    values = [f"{result[key] / 1e6:.0f} million" for key in ("n_name_rows", "n_relation_rows")]
    values += [f"{result['biograft']['seconds']:.0f} s", f"{result['peak_gib']:.1f} GiB"]
    head = ["rows of names", "relations", "build", "peak memory", "open"]
    return markdown(head, [[*values, f"{result['open_ms']:.0f} ms"]])


def verify_peer(result: Result) -> str:
    """Return the seconds of biograft and of each adapter of the peer, and the faults found."""
    rows = [_verified("biograft", result["biograft"], result["biograft_inside"])]
    rows += [
        _verified(f"linkml-term-validator, {mode}", part, result.get(f"{mode}_inside"))
        for mode, part in result["peer_modes"].items()
        if part
    ]
    head = ["", "process, wall", "processor", "without imports, wall", "processor"]
    return markdown([*head, f"found of {result['faults']}", "false"], rows)


def _verified(name: str, part: Result, inside: Result | None) -> list[str]:
    seconds = [part["wall_s"], part["processor_s"]]
    seconds += [inside["wall_s"], inside["processor_s"]] if inside else []
    shown = [f"{each:.2f} s" for each in seconds] + [""] * (4 - len(seconds))
    return [name, *shown, str(part["found"]), str(part["false"])]


def _million_rows(result: Result) -> str:
    return f"{(result['n_name_rows'] + result['n_relation_rows']) / 1e6:.0f}"


def _rate(result: Result, step: Result) -> str:
    rows = result["n_name_rows"] + result["n_relation_rows"]
    return f"{rows / step['seconds'] / 1e3:,.0f} thousand"


def linking_speed(result: Result) -> str:
    """Return a row for every comparison that was made."""
    head = ["", "biograft, per second", "against", "per second", "ratio"]
    rows = [
        [what, f"{ours:,.0f}", peer, f"{theirs:,.0f}", f"{ours / theirs:.1f}"]
        for what, ours, peer, theirs in _comparisons(result["parts"])
    ]
    return markdown(head, rows)


def _comparisons(parts: Result) -> Iterator[tuple[str, float, str, float]]:
    for name, label in (("lexical", "synthetic"), ("ncbi", "NCBI disease")):
        if "over_sklearn" in (part := parts.get(name, {})):
            what = f"mentions, {part['n_names']:,} {label} names, lexical"
            ours = part["mentions_per_second"]
            yield what, ours, "scikit-learn tf-idf", part["sklearn_mentions_per_second"]
        if "sklearn_sparse_mentions_per_second" in part:
            theirs = part["sklearn_sparse_mentions_per_second"]
            yield "the same", part["mentions_per_second"], "scikit-learn, sparse product", theirs
    scispacy, ncbi = parts.get("scispacy", {}), parts.get("ncbi", {})
    if scispacy.get("vocabulary") == "NCBI" and "mentions_per_second" in ncbi:
        rates = ncbi["mentions_per_second"], scispacy["mentions_per_second"]
        yield "the same", rates[0], "scispaCy 0.6.2 (approximate)", rates[1]
    if "over_published" in (part := parts.get("encode", {})):
        what = f"names encoded by MiniLM, {part['precision']}"
        theirs = part["published_texts_per_second"]
        yield what, part["texts_per_second"], "SapBERT's evaluation", theirs
    for name in ("search", "search_large"):
        if (part := parts.get(name, {})).get("over_faiss_flat") is not None:
            what = f"exact search in {part['n_vectors']:,} vectors of {part['dim']}"
            theirs = part["faiss_queries_per_second"]
            yield what, part["queries_per_second"], "faiss IndexFlatIP", theirs


def linking_speed_large(result: Result) -> str:
    """Return what a lexical index of millions of names takes."""
    names = ("lexical_73k", "lexical_1m", "lexical_large", "lexical_15m")
    parts = [part for name in names if "n_names" in (part := result["parts"].get(name, {}))]
    if not parts:
        return "Not measured in this run."
    rows = [
        [
            f"{part['n_names']:,}",
            f"{part['build_seconds']:.0f} s",
            f"{part['index_bytes'] / 2**20:,.0f} MiB",
            f"{part.get('build_peak_gib', part.get('peak_gib', 0)):.1f} GiB",
            f"{part['mentions_per_second']:,.0f}",
            _or_none(part.get("linked_mentions_per_second"), ",.0f", ""),
            _or_none(part.get("cold_start_seconds"), ".2f", " s"),
            _or_none(part.get("unique_mib"), ".0f", " MiB"),
            _or_none(part.get("unique_mib_of_eight"), ".0f", " MiB"),
            _or_none(part.get("annotated_mb_per_second"), ".1f", " MB/s"),
            _or_none(part.get("id_microseconds"), ".0f", " µs"),
            _or_none(part.get("name_microseconds"), ".0f", " µs"),
        ]
        for part in parts
    ]
    head = ["names", "build", "on disk", "peak memory", "searched per second"]
    head += ["linked per second", "cold start"]
    head += ["unique memory", "of eight, each", "annotated, a core", "by id", "by name"]
    return markdown(head, rows)


def _or_none(value: float | None, form: str, unit: str) -> str:
    return "–" if value is None else f"{value:{form}}{unit}"


_MODELS = {"transe": "TransE", "transr": "TransR"}


def graph_embeddings(result: Result) -> str:
    """Compare embeddings of UMLS-135 with PyKEEN's at equal settings."""
    quality = result["quality"]
    optimisers = {"adam": "Adam", "pykeen": "PyKEEN, Adam", "adagrad": "sparse Adagrad"}
    rows = [
        (
            *(f"{name}, {label}", str(quality[model]["seeds"]), _spread(side)),
            *(f"{side['hits@10']:.1f}", f"{side['seconds']:.1f}"),
        )
        for model, name in _MODELS.items()
        for key, label in optimisers.items()
        if "mrr" in (side := quality[model].get(key, {}))
    ]
    return markdown(["", "seeds", "MRR", "hits@10", "seconds"], rows)


def _spread(side: Result) -> str:
    spread = f" ± {side['mrr_deviation']:.1f}" if "mrr_deviation" in side else ""
    return f"{side['mrr']:.1f}{spread}"


def graph_embeddings_speed(result: Result) -> str:
    """Compare the seconds of an epoch over a million triples."""
    rows = [
        (
            *(name, f"{part['n_triples']:,}" if "n_triples" in part else ""),
            *(f"{part[key]:.1f}" for key in ("adagrad", "row-adagrad", "adam")),
            f"{part['pykeen']:.0f}",
            *(f"{part[key]:.1f}" for key in ("adagrad_over_pykeen", "adam_over_pykeen")),
        )
        for model, name in _MODELS.items()
        if "adagrad_over_pykeen" in (part := result["speed"][model])
    ]
    head = ["", "triples timed", "sparse Adagrad", "row-wise Adagrad", "dense Adam"]
    head += ["PyKEEN, dense Adam", "ratio", "ratio, both dense Adam"]
    return markdown(head, rows)


_GRAPHS = {
    "chinese": "Chinese disease graph",
    "pharmkg": "PharmKG, trained on its valid split",
}


def graph_embeddings_graphs(result: Result) -> str:
    """Return how well held-out triples of larger graphs are ranked."""
    rows = [
        (
            *(name, f"{part['n_train']:,}", f"{part['n']:,}", f"{part['mrr']:.1f}"),
            *(f"{part['hits@10']:.1f}", f"{part['mean_rank']:,.0f}"),
        )
        for key, name in _GRAPHS.items()
        if "mrr" in (part := result[key])
    ]
    return markdown(["", "training triples", "queries", "MRR", "hits@10", "mean rank"], rows)


def annotation_speed(result: Result) -> str:
    """Return how fast text is annotated, beside bare automata and QuickUMLS."""
    rows = []
    for part in result["names"].values():
        peer = part["quickumls"]
        automata = part["limits_mb_per_second"]
        measured = [part["matching_mb_per_second"], part["whole_mb_per_second"]]
        cells = [f"{part['n_names']:,}", *(f"{rate:.1f}" for rate in measured)]
        cells += [_rate_or_dash(automata[key]) for key in ("ahocorasick_rs", "pyahocorasick")]
        cells.append(f"{peer['mb_per_second']:.3f}" if isinstance(peer, dict) else "–")
        index = part["names_index"]
        cells += [f"{index['build_seconds']:.1f}", f"{index['open_milliseconds']:.0f}"]
        rows.append(cells)
    head = ["names", "matching", "annotation", "ahocorasick_rs", "pyahocorasick"]
    return markdown([*head, "QuickUMLS 1.4", "names index, s", "opened, ms"], rows)


def _rate_or_dash(rate: float | str) -> str:
    return f"{rate:.1f}" if isinstance(rate, float) else "–"


_PROJECTED = 1_000_000


def annotation_speed_pubmed(result: Result) -> str:
    """Project a measured speed to all abstracts of PubMed."""
    parts = list(result["names"].values())
    part = next((part for part in parts if part["n_names"] == _PROJECTED), parts[-1])
    pubmed = part["pubmed"]
    hours = pubmed["hours_by_workers"]
    values = [f"{pubmed['abstracts'] / 1e6:.0f} million", f"{pubmed['megabytes'] / 1e3:.0f} GB"]
    values += [f"{part['n_names']:,}", f"{hours['1']:.1f} hours"]
    values += [f"{60 * hours[n]:.0f} minutes" for n in ("16", "64")]
    return markdown(["abstracts", "text", "names", "1 core", "16 cores", "64 cores"], [values])


def pepr(result: Result) -> str:
    """Return how fast and how accurately neighbours are ranked."""
    rows = [
        ["entities / edges", f"{result['n_entities']:,} / {result['n_edges']:,}"],
        ["time per entity", f"{result['ms_per_source']:.1f} ms"],
        ["all entities", f"{result['seconds']['all'] / 60:.0f} minutes"],
        ["peak memory", f"{result['peak_gib']:.1f} GiB"],
        [
            f"scipy's power iteration, {result['scipy_rounds']} rounds, per entity",
            f"{result['scipy_ms_per_source']:.0f} ms",
        ],
        ["entities compared with exact scores", f"{result['n_sample']}"],
        ["the same ten neighbours", f"{100 * result['top10_equal']:.1f} %"],
        ["in the same order", f"{100 * result['top10_in_order']:.1f} %"],
    ]
    return markdown(["", ""], rows)


def pretrain_step(result: Result) -> str:
    """Return the time of a step of each recipe, relative to plain masked language modelling."""
    sizes = [str(result["length"]), f"{result['mentions_of_a_batch'] / result['batch']:.0f}"]
    rows = [["MLM", *sizes, "1", f"{result['mlm_tokens_per_second']:,.0f}"]]
    for label in ("KeBioLM", "EMBERT"):
        name = label.lower()
        rate = f"{result[f'{name}_tokens_per_second']:,.0f}"
        rows.append([label, *sizes, f"{result[f'{name}_over_mlm']:.2f}", rate])
    if "smedbert" in result:
        own = result["smedbert"]
        length, mentions = str(own["length"]), str(own["mentions"])
        rows.append(["SMedBERT", length, mentions, f"{result['smedbert_over_mlm']:.2f}", ""])
    head = ["recipe", "tokens a sequence", "mentions a sequence", "time over MLM"]
    return markdown([*head, "tokens per second"], rows)


def pretrain_step_search(result: Result) -> str:
    """Return the time of the search for the nearest entities, exactly and in clusters."""
    exact, near = result["nearest_over_mlm"], result["approximate_over_mlm"]
    size, probed = f"{near['n_entities']:,}", near["n_probed"]
    rows = [["exact", f"{int(n):,}", f"{ratio:.1%}", "100%"] for n, ratio in exact.items()]
    for key, label in (("grouped", "vectors in groups"), ("random", "random vectors")):
        part = near[key]
        cells = [f"{probed} clusters, {label}", size, f"{part['over_mlm']:.0%}"]
        rows.append([*cells, f"{part['recall_at_100']:.0%}"])
    return markdown(["search", "entities", "time over a plain step", "recall@100"], rows)


def pretrain_step_scores(result: Result) -> str:
    """Return the time of SMedBERT's equation 18 relative to projecting every entity."""
    part = result["eq18_over_slow"]
    cells = [f"{part['n_edges']:,}", str(part["n_negatives"]), str(part["dim"])]
    cells += [f"{part['forward']:.2f}", f"{part['with_backward']:.2f}"]
    head = ["neighbours", "negatives", "dim", "forward", "with backward"]
    return markdown(head, [cells])


_TRIE_ROWS = (
    ("memory, MiB: flat / nested dictionaries", "{mib:.0f} / {dict_mib:,.0f}"),
    ("bytes a name: flat / nested / a 768-dim fp16 vector", "{bytes_a_name}"),
    ("build, seconds: flat / nested", "{build_seconds:.1f} / {dict_build_seconds:.1f}"),
    ("look-ups of a step, ratio", "{mask_ratio:.0f}"),
    ("constraint of a step, ratio to callback and mask", "{step_ratio:.0f}"),
    ("time of constrained over unconstrained generation", "{constrained_over_unconstrained}"),
    ("mentions per second, ratio to the published way", "{over_published:.1f}"),
)


def trie(result: Result) -> str:
    """Return what constraining generation by a trie costs, beside the published way."""
    sizes = {int(n): _with_bytes(int(n), found) for n, found in result["sizes"].items()}
    rows = [
        [label, *(cell.format(**found) for found in sizes.values())] for label, cell in _TRIE_ROWS
    ]
    return markdown(["", *(f"{n:,} names" for n in sizes)], rows)


def _with_bytes(n: int, found: Result) -> dict[str, Any]:
    each = [found[key] * 2**20 / n for key in ("mib", "dict_mib")]
    return {**found, "bytes_a_name": f"{each[0]:.0f} / {each[1]:,.0f} / {768 * 2:,}"}
