"""Accuracy on clinical notes: findings end to end, assertion status, negation of sentences.

The notes ship with biograft, the sentences are tests/data/assertions; half of each is held out
(test). Findings are those of the built-in store, linked by names alone. The tables of
docs/clinical.md are printed by --markdown, from a result file or a new run.

    python benchmarks/notes_accuracy.py --json
    python benchmarks/notes_accuracy.py --markdown benchmarks/results/notes_accuracy.json
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import run_with, start_parser

from biograft.clinical import FLAGS, RuleAssertions
from biograft.compute import describe_machine
from biograft.evaluation import evaluate_assertions, evaluate_findings, read_assertions
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit"))
marked = importlib.import_module("marked_sentences")  # of the tests, which own the notation

HALVES = ("en-dev", "en-test", "zh-dev", "zh-test")
TITLES = ("English, dev", "English, held out", "Chinese, dev", "Chinese, held out")
TYPES = ("disease", "symptom", "finding")
NEGATED = "negated"


def measure() -> dict[str, Any]:
    """Measure findings, assertions and sentences of all four halves."""
    with tempfile.TemporaryDirectory() as folder:
        sources = tuple(SourceConfig(path=Path(s)) for s in ("starter", "clinical-findings"))
        build_store(BuildConfig(sources=sources), Path(folder) / "kb")
        linker = Linker.open(KnowledgeBase.open(Path(folder) / "kb"), k=1)
        findings = {
            half: evaluate_findings(linker, read_assertions(f"notes-{half}"), TYPES).to_json()
            for half in HALVES
        }
    assertions = {
        half: evaluate_assertions(read_assertions(f"notes-{half}")).to_json() for half in HALVES
    }
    sentences = {half: measure_sentences(half) for half in HALVES}
    return {"findings": findings, "assertions": assertions, "sentences": sentences}


def measure_sentences(half: str) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 of each flag on sentences."""
    model = RuleAssertions(half[:2])
    right: Counter[str] = Counter()
    n_found: Counter[str] = Counter()
    n_gold: Counter[str] = Counter()
    for line in marked.marked_lines(half):
        text, spans, flags = marked.parse(line)
        for gold, answer in zip(flags, model.assert_status(text, spans), strict=True):
            right.update(gold & set(answer.flags))
            n_found.update(answer.flags)
            n_gold.update(gold)
    result = {}
    for flag in FLAGS:
        precision = right[flag] / n_found[flag] if n_found[flag] else 0.0
        recall = right[flag] / n_gold[flag] if n_gold[flag] else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        metrics = {"precision": precision, "recall": recall, "f1": f1}
        rounded = {name: round(100 * value, 4) for name, value in metrics.items()}
        result[flag] = {**rounded, "n": n_gold[flag]}
    return result


def markdown(result: dict[str, Any]) -> str:
    """Return the tables of docs/clinical.md."""
    return "\n\n".join("\n".join(table) for table in (_findings(result), _assertions(result)))


def _row(first: str, cells: list[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"


def _cell(values: dict[str, float], n: float | None = None) -> str:
    precision, recall, f1 = (values[name] for name in ("precision", "recall", "f1"))
    size = "" if n is None else f", n={n:.0f}"
    return f"{f1:.1f} ({precision:.1f} / {recall:.1f}{size})"


def _findings(result: dict[str, Any]) -> Iterator[str]:
    halves = [result["findings"][half] for half in HALVES]
    yield _row("findings", list(TITLES))
    yield "|---" * 5 + "|"
    yield _row("notes", [f"{of['n_documents']}" for of in halves])
    yield _row("findings", [f"{of['n_findings']}" for of in halves])
    for level in halves[0]["levels"]:
        yield _row(f"`{level}`", [_cell(of["levels"][level]) for of in halves])
    typos = [of["typos"] for of in halves]
    yield _row("misspelt, right / all", [f"{of['findings']} / {of['mentions']}" for of in typos])


def _assertions(result: dict[str, Any]) -> Iterator[str]:
    halves = [result["assertions"][half] for half in HALVES]
    yield _row("flag, on marked mentions", list(TITLES))
    yield "|---" * 5 + "|"
    for flag in FLAGS:
        of_flag = [of["flags"].get(flag) for of in halves]
        if any(of_flag):  # some flags count only where they are marked
            cells = [_cell(of, of["right"] + of["missed"]) if of else "-" for of in of_flag]
            yield _row(f"`{flag}`", cells)
    exact = [f"{of['accuracy']:.1f} % of {of['n_mentions']}" for of in halves]
    yield _row("all flags right", exact)
    sentences = [result["sentences"][half][NEGATED] for half in HALVES]
    yield _row("`negated`, sentences", [_cell(of, of["n"]) for of in sentences])


def _print(options: argparse.Namespace) -> None:
    if options.markdown is not None:
        print(markdown(json.loads(options.markdown.read_text(encoding="utf-8"))))
        return
    result = measure()
    if not options.json:
        print(markdown(result))
    command = describe_command("notes_accuracy.py", sys.argv[1:])
    about = {"machine": describe_machine(), "commit": describe_commit(), "command": command}
    print(json.dumps({**result, **about}))


def main() -> None:
    """Parse the command line, run, print."""
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="print the tables of a result"
    )
    run_with(_print, parser.parse_args())


if __name__ == "__main__":
    main()
