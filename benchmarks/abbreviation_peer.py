"""Definitions of abbreviations: ours beside Ab3P, on the abstracts that Ab3P's authors annotated.

Precision, recall and F1 of pairs of a short and a long form in 1,250 abstracts of MEDLINE, without
counting blanks and case. Pairs that the annotators name as synonyms count neither way. Ab3P's
answers are those that its repository has beside the gold. Rules were chosen on the abstracts with
even numbers, and the others are the check. The files are not included: MED1250_labeled and
identify_abbr-out of ncbi-nlp/Ab3P.

    python benchmarks/abbreviation_peer.py MED1250_labeled identify_abbr-out --out
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from machine import describe_commit
from script_options import run_with, start_parser

from biograft.text import find_abbreviations

RESULT = Path(__file__).parent / "results" / "abbreviation_peer.json"
Pairs = dict[str, set[tuple[str, str]]]


def pair(short: str, long: str) -> tuple[str, str]:
    """Return a definition as it is compared."""
    return re.sub(r"\s+", "", short), re.sub(r"\s+", " ", long).strip().lower()


def read_lines(file: Path) -> dict[str, list[str]]:
    """Return the lines of each abstract, which follow its number."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in file.read_text("latin-1").splitlines():
        if re.fullmatch(r"\d{4,9}\s*", line):
            lines = found.setdefault(line.strip(), [])
        elif line.strip():
            lines.append(line)
    return found


def read_pairs(lines: dict[str, list[str]], mark: str) -> Pairs:
    """Return the definitions of each abstract: the lines that begin with a mark."""
    pattern = re.compile(mark + r"([^|]+)\|([^|]+)")
    return {
        number: {pair(*match.groups()) for line in text if (match := pattern.match(line))}
        for number, text in lines.items()
    }


def score(found: Pairs, gold: Pairs, ignored: Pairs, odd: int) -> list[float]:
    """Return precision, recall and F1 in percent over the abstracts with odd or even numbers."""
    numbers = [number for number in gold if int(number) % 2 == odd]
    answers = {n: found.get(n, set()) - (ignored[n] - gold[n]) for n in numbers}
    n_right = sum(len(answers[n] & gold[n]) for n in numbers)
    precision = n_right / sum(map(len, answers.values()))
    recall = n_right / sum(len(gold[n]) for n in numbers)
    f1 = 2 * precision * recall / (precision + recall)
    return [round(100 * value, 1) for value in (precision, recall, f1)]


def benchmark(options: argparse.Namespace) -> None:
    """Score both on the even and the odd abstracts."""
    lines = read_lines(options.gold)
    gold, ignored = read_pairs(lines, "  "), read_pairs(lines, r"//\S*\s+")
    texts = {
        number: [line for line in text if not line.startswith(("  ", "//"))]
        for number, text in lines.items()
    }
    ours = {
        number: {pair(each.short, each.long) for line in text for each in find_abbreviations(line)}
        for number, text in texts.items()
    }
    systems = {"biograft": ours, "Ab3P": read_pairs(read_lines(options.peer), "  ")}
    result = {
        "commit": describe_commit(),
        "n_abstracts": len(gold),
        "n_definitions": sum(map(len, gold.values())),
        **{
            part: {name: score(found, gold, ignored, odd) for name, found in systems.items()}
            for odd, part in enumerate(("even", "odd"))
        },
    }
    print(json.dumps(result))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Read the options and compare."""
    parser = start_parser(__doc__)
    parser.add_argument("gold", type=Path, help="MED1250_labeled")
    parser.add_argument("peer", type=Path, help="identify_abbr-out")
    parser.add_argument("--out", type=Path, nargs="?", const=RESULT, help="result file to write")
    parser.add_argument("--json", action="store_true", help="as without it: one JSON object")
    run_with(benchmark, parser.parse_args())


if __name__ == "__main__":
    main()
