"""Speed of assertion status: sentences per second of one core, against negspacy where it is given.

The sentences are those of the synthetic notes of the package, with their mentions. A sentence
is one call of assert_status; "notes" are whole notes in one call each. Times are CPU time of one
process, the median of several runs. The negation F1 is measured on sentences, without the note
around them, since negspacy knows no sections.

    python benchmarks/assertion_speed.py --quick --json
    python benchmarks/assertion_speed.py --negspacy-python OTHER/bin/python --json
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from machine import describe_command, describe_commit, peak_gib
from script_options import run_with, start_parser

from biograft.clinical import Assertion, RuleAssertions
from biograft.compute import describe_machine
from biograft.evaluation import AssertionDocument, read_assertions
from biograft.metrics.precision_recall import Counts
from biograft.text.sentences import split_sentences

LANGUAGES = ("en", "zh")


class Marked(NamedTuple):
    """A sentence with its mentions, and which of them are negated."""

    text: str
    spans: list[tuple[int, int]]
    negated: list[bool]


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
                negated = ["negated" in m.flags for m in inside]
                marked.append(Marked(note.text[start:end], spans, negated))
    return marked


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure both languages, and the peer if there is one."""
    runs = 3 if options.quick else 15
    repeats = 2 if options.quick else 10
    languages = {language: _measure_language(language, runs, repeats) for language in LANGUAGES}
    result: dict[str, Any] = {
        "sentences_per_second": languages["en"]["sentences_per_second"],
        "languages": languages,
    }
    if options.negspacy_python:
        result["negspacy"] = _run_negspacy(options.negspacy_python, runs)
        result["over_negspacy"] = (
            result["sentences_per_second"] / result["negspacy"]["sentences_per_second"]
        )
    return {
        **result,
        "peak_gib": peak_gib(),
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("assertion_speed.py", sys.argv[1:]),
    }


def _measure_language(language: str, runs: int, repeats: int) -> dict[str, Any]:
    notes, model = read_notes(language), RuleAssertions(language)
    sentences = sentences_of(notes)
    answers = [model.assert_status(each.text, each.spans) for each in sentences]  # loads the rules
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
        "negation": _negation(sentences, answers),
    }


def _cpu_seconds(call: Callable[[], None], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def _negation(
    sentences: Sequence[Marked], answers: Sequence[Sequence[Assertion | bool]]
) -> dict[str, float]:
    counts = Counts()
    for sentence, found in zip(sentences, answers, strict=True):
        for gold, answer in zip(sentence.negated, found, strict=True):
            negated = answer if isinstance(answer, bool) else answer.negated
            counts += Counts(gold and negated, negated and not gold, gold and not negated)
    return {name: round(100 * getattr(counts, name), 2) for name in ("precision", "recall", "f1")}


def _run_negspacy(python: str, runs: int) -> dict[str, Any]:
    """Run the peer in its own environment, on the English sentences."""
    sentences = sentences_of(read_notes("en"))
    command = [python, str(Path(__file__).with_name("negspacy_sentences.py")), str(runs)]
    given = json.dumps([[each.text, each.spans] for each in sentences])
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"negspacy failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    answers = result.pop("negated")
    return {**result, "negation": _negation(sentences, answers)}


def _print(options: argparse.Namespace) -> None:
    result = measure(options)
    if not options.json:
        for language, values in result["languages"].items():
            print(
                f"{language}: {values['sentences_per_second']:,.0f} sentences/s "
                f"({values['mean_characters']:.0f} characters), "
                f"{values['notes_per_second']:,.0f} notes/s, negation F1 "
                f"{values['negation']['f1']:.2f}"
            )
    print(json.dumps(result))


def main() -> None:
    """Parse the command line, run, print."""
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--negspacy-python", default="", help="a Python that has negspacy")
    run_with(_print, parser.parse_args())


if __name__ == "__main__":
    main()
