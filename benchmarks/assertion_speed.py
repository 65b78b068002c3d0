"""Speed and accuracy of assertion status on sentences.

The English sentences are those of NegEx, of which each has one marked finding, where the folder of
real data has them (its half to develop on); and in both languages those of the synthetic notes of
the package. A sentence is one call of assert_status; "notes" are whole notes in one call each.
Times are CPU time of one process, the median of several runs; compare_peers.py has those of others.
F1 of notes is that of sentences without the note around them.
"Negated" is as NegEx has it: what has resolved counts, which is present to biograft.

    python benchmarks/assertion_speed.py --quick --json
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from machine import describe_command, describe_commit, peak_gib
from script_options import add_data, run_with, start_parser

from biograft.clinical import RuleAssertions
from biograft.compute import describe_machine
from biograft.evaluation import AssertionDocument, read_assertions
from biograft.metrics.precision_recall import Counts
from biograft.text.sentences import split_sentences

NEGEX = Path("clinical") / "negex_dev.tsv"
LANGUAGES = ("en", "zh")


class Marked(NamedTuple):
    """A sentence with its mentions, and the flags of each."""

    text: str
    spans: list[tuple[int, int]]
    flags: list[frozenset[str]]


def read_notes(language: str) -> list[AssertionDocument]:
    """Read the notes of a language, both halves."""
    return [
        note for half in ("dev", "test") for note in read_assertions(f"notes-{language}-{half}")
    ]


def sentences_of(notes: Sequence[AssertionDocument]) -> list[Marked]:
    """Split notes into sentences, and keep those that have mentions."""
    marked = []
    for note in notes:
        for start, end in split_sentences(note.text):
            inside = [m for m in note.mentions if start <= m.start and m.end <= end]
            if inside:
                spans = [(m.start - start, m.end - start) for m in inside]
                marked.append(Marked(note.text[start:end], spans, [m.flags for m in inside]))
    return marked


def read_negex(path: Path) -> Iterator[Marked]:
    """Yield the sentences of NegEx, whose findings are in capitals."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            start = row["sentence"].find(row["finding"].upper())
            if start >= 0:
                said = {
                    "negated": row["negation"] == "Negated",
                    "historical": row["temporality"] == "Historical",
                }
                flags = frozenset(flag for flag, is_set in said.items() if is_set)
                yield Marked(row["sentence"], [(start, start + len(row["finding"]))], [flags])


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the sentences of NegEx and both languages."""
    runs = 3 if options.quick else 15
    repeats = 2 if options.quick else 10
    languages = {language: _measure_language(language, runs, repeats) for language in LANGUAGES}
    result: dict[str, Any] = {
        "sentences_per_second": languages["en"]["sentences_per_second"],
        "languages": languages,
    }
    if (options.data / NEGEX).exists():
        sentences = list(read_negex(options.data / NEGEX))
        result["negex"] = _measure_sentences(sentences, ("negated", "historical"), runs)
    return {
        **result,
        "peak_gib": peak_gib(),
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("assertion_speed.py", sys.argv[1:]),
    }


def _measure_sentences(
    sentences: Sequence[Marked], flags: Sequence[str], runs: int
) -> dict[str, Any]:
    """Measure English sentences."""
    model, found = RuleAssertions("en"), list[list[list[str]]]()

    def assert_sentences() -> None:
        found[:] = [
            [list(each.flags) for each in model.assert_status(sentence.text, sentence.spans)]
            for sentence in sentences
        ]

    assert_sentences()  # loads the rules
    speed = len(sentences) / _cpu_seconds(assert_sentences, runs)
    own = {"sentences_per_second": speed, **f1_of_flags(sentences, found, flags)}
    return {"n_sentences": len(sentences), "biograft": own}


def _measure_language(language: str, runs: int, repeats: int) -> dict[str, Any]:
    notes, model = read_notes(language), RuleAssertions(language)
    sentences = sentences_of(notes)
    answers = [
        [each.flags for each in model.assert_status(sentence.text, sentence.spans)]
        for sentence in sentences
    ]
    whole = [(note.text, [(m.start, m.end) for m in note.mentions]) for note in notes]

    def assert_sentences() -> None:
        for _ in range(repeats):
            for sentence in sentences:
                model.assert_status(sentence.text, sentence.spans)

    def assert_notes() -> None:
        for _ in range(repeats):
            for text, spans in whole:
                model.assert_status(text, spans)

    seconds = _cpu_seconds(assert_sentences, runs) / repeats
    note_seconds = _cpu_seconds(assert_notes, runs) / repeats
    return {
        "n_sentences": len(sentences),
        "mean_characters": sum(len(s.text) for s in sentences) / len(sentences),
        "sentences_per_second": len(sentences) / seconds,
        "notes_per_second": len(notes) / note_seconds,
        "megabytes_per_second": sum(len(text.encode()) for text, _ in whole) / note_seconds / 1e6,
        **f1_of_flags(sentences, answers, ("negated",)),
    }


def _cpu_seconds(call: Callable[[], None], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def f1_of_flags(
    sentences: Sequence[Marked],
    answers: Sequence[Sequence[Sequence[str]]],
    flags: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 of each flag; to NegEx, what is resolved is negated."""
    metrics = {}
    for flag in flags:
        wanted = {flag, "resolved"} if flag == "negated" else {flag}
        counts = Counts()
        for sentence, found in zip(sentences, answers, strict=True):
            for gold, answer in zip(sentence.flags, found, strict=True):
                is_gold, is_said = not wanted.isdisjoint(gold), not wanted.isdisjoint(answer)
                counts += Counts(is_gold and is_said, is_said and not is_gold, is_gold > is_said)
        names = ("precision", "recall", "f1")
        metrics[flag] = {name: round(100 * getattr(counts, name), 2) for name in names}
    return metrics


def _print(options: argparse.Namespace) -> None:
    result = measure(options)
    if not options.json:
        for language, values in result["languages"].items():
            print(
                f"{language}: {values['sentences_per_second']:,.0f} sentences/s "
                f"({values['mean_characters']:.0f} characters), "
                f"{values['notes_per_second']:,.0f} notes/s, negation F1 "
                f"{values['negated']['f1']:.2f}"
            )
    print(json.dumps(result))


def main() -> None:
    """Parse the command line, run, print."""
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    add_data(parser)
    run_with(_print, parser.parse_args())


if __name__ == "__main__":
    main()
