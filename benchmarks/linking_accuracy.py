"""How often the right concept is found, on the field's sets with their official splits.

Each set is asked with each configuration; a result is written as soon as it is there, and what
is there is not done again, so that an interrupted run goes on where it was.

    python benchmarks/linking_accuracy.py --config lexical
    python benchmarks/linking_accuracy.py --encoder sapbert=DIR --encoder ours=DIR --split test
    python benchmarks/linking_accuracy.py --sets ncbi-disease,zh-procedures --config dense,both

``lexical`` finds names by their letters, ``dense`` by the vectors of an encoder, ``both`` by
both; scores are those of the published rule (``--scorer lenient``) or of the strict one. The
dictionaries are told in linking_sets.py. Stores and indexes are kept in the work folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from command_line import RESULTS, ROOT, add_data, run_with, some_of, start_parser
from linking_sets import SETS, LinkingSet
from machine import describe_command, describe_commit
from result_rows import Results

from biograft.evaluation import EvaluationConfig, LinkingResult, evaluate_linking
from biograft.kb import KnowledgeBase
from biograft.linking import Generator, Linker, build_index
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import DENSE, LEXICAL
from biograft.linking.lexical import LexicalIndex
from biograft.progress import Progress

KINDS = ("lexical", "dense", "both")
KEPT = ("acc@1", "acc@5", "recall@30", "mrr")


class Configuration(NamedTuple):
    """What finds the names."""

    kind: str
    encoder: str = ""
    """The name it goes by in the results."""
    folder: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.encoder}" if self.encoder else self.kind


def run(options: argparse.Namespace) -> None:
    """Ask every set with every configuration that has no result yet."""
    results = Results(options.out)
    for name in options.sets:
        asked = SETS[name]
        if reason := _missing(asked, options):
            print(f"{name}: left out, {reason}", file=sys.stderr)
            continue
        for configuration in _configurations(options):
            key = {
                "set": name,
                "split": options.split,
                "config": str(configuration),
                "scorer": options.scorer,
            }
            if options.again or not results.has(key):
                results.add(key, _measure(asked, configuration, options))
                row = results.rows[-1]
                print(json.dumps({k: row[k] for k in (*key, "n", *KEPT)}), flush=True)


def _missing(asked: LinkingSet, options: argparse.Namespace) -> str:
    if options.split not in asked.gold:
        return f"it has no {options.split} part"
    if not asked.is_there(options.data, options.split):
        return f"{asked.gold[options.split]} is not in {options.data}"
    return ""


def _configurations(options: argparse.Namespace) -> Iterator[Configuration]:
    if "lexical" in options.config:
        yield Configuration("lexical")
    for name, folder in options.encoder:
        yield from (Configuration(k, name, folder) for k in options.config if k != "lexical")


def _measure(
    asked: LinkingSet, configuration: Configuration, options: argparse.Namespace
) -> dict[str, Any]:
    """Build what is not there yet, ask, and give a row of figures."""
    progress = Progress()
    started = time.perf_counter()
    base = asked.open_store(options.data, options.split, options.work)
    place = asked.folder(options.work, options.split)
    generators, about = _open_generators(base, place, configuration, progress)
    ready = time.perf_counter()
    gold = asked.read_gold(options.data, options.split)
    linker = Linker(base, FusedSearch(generators))
    config = EvaluationConfig(seed=options.seed)
    result = evaluate_linking(linker, base, gold.queries, options.scorer, config, progress)
    return {
        **figures_of(result),
        "n_names": base.n_names,
        "n_concepts": len(base),
        "left_out": {**gold.log.rejected.counts, **gold.log.filtered},
        **about,
        "seconds_to_open": ready - started,
        "seconds": time.perf_counter() - ready,
        "seeds": {"bootstrap": options.seed},
        "note": asked.note,
        "command": describe_command("linking_accuracy.py", sys.argv[1:]),
        "commit": describe_commit(),
    }


def _open_generators(
    base: KnowledgeBase, place: Path, configuration: Configuration, progress: Progress
) -> tuple[list[Generator], dict[str, Any]]:
    """Open the parts of the index that a configuration searches; make the index if need be."""
    if configuration.kind == "lexical":
        folder = place / "lexical"
        if not folder.exists():
            build_index(base, folder, progress=progress)
        return [LexicalIndex.open(folder / LEXICAL, base)], {}
    from biograft.linking.dense import DenseIndex
    from biograft.nn import TextEncoder

    encoder = TextEncoder.from_pretrained(configuration.folder)
    folder = place / f"dense-{configuration.encoder}"
    if not folder.exists():
        build_index(base, folder, encoder, progress=progress)
    generators: list[Generator] = [DenseIndex.open(folder / DENSE, base, encoder)]
    if configuration.kind == "both":
        generators.insert(0, LexicalIndex.open(folder / LEXICAL, base))
    about = {
        "encoder": {
            "fingerprint": encoder.fingerprint(),
            "pooling": encoder.pooling,
            "max_length": encoder.max_length,
        }
    }
    return generators, about


def figures_of(result: LinkingResult) -> dict[str, Any]:
    """Give the figures of a row, in percent."""
    told = result.to_json()
    return {
        "n": result.n,
        **{name: told[name] for name in KEPT},
        "intervals": {name: told["intervals"][name] for name in KEPT},
        "coverage": round(100 * (1 - told["n_unreachable"] / result.n), 4),
        "n_documents": told["n_documents"],
        "n_unknown_gold": told["n_unknown_gold"],
    }


def _encoder(text: str) -> tuple[str, str]:
    name, _, folder = text.partition("=")
    if not folder or not name or not name.replace("-", "").replace("_", "").isalnum():
        raise argparse.ArgumentTypeError(f"expected NAME=DIR, found {text!r}")
    return name, folder


def _parse() -> argparse.Namespace:
    parser = start_parser(__doc__)
    add = parser.add_argument
    add("--sets", type=some_of(SETS), default=list(SETS), help=f"some of {','.join(SETS)}")
    add("--config", type=some_of(KINDS), help=f"some of {','.join(KINDS)}")
    add("--encoder", type=_encoder, action="append", default=[], metavar="NAME=DIR")
    add("--split", choices=("dev", "test"), default="dev")
    add("--scorer", choices=("lenient", "strict"), default="lenient")
    add("--seed", type=int, default=0, help="of the intervals")
    add("--again", action="store_true", help="measure also what has a result")
    add_data(parser)
    add("--work", type=Path, default=ROOT / "build" / "linking", help="for stores and indexes")
    add("--out", type=Path, default=RESULTS / "linking.json")
    options = parser.parse_args()
    options.config = options.config or (list(KINDS) if options.encoder else ["lexical"])
    if not options.encoder and set(options.config) != {"lexical"}:
        parser.error("dense and both need an --encoder NAME=DIR")
    return options


def main() -> None:
    """Parse the command line and run."""
    run_with(run, _parse())


if __name__ == "__main__":
    main()
