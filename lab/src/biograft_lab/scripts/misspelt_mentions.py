"""Names with spelling errors in running text: how many are found again, and at what precision.

One error is made in each gold mention that is a name of the dictionary and is found (its span): a
letter inserted, deleted, replaced or exchanged with the next in a word of five letters or more, or
a blank deleted or inserted. In Chinese a character is replaced or deleted in names of four or more.
Precision, recall and F1 are those of spans, of the clean dev texts and of those with errors.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.misspelt_mentions --sets ncbi-disease --json
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine
from biograft.kb.names import HAN
from biograft.linking.detection import DictionaryDetector, MentionDetector, MisspeltDetector
from biograft.text import NamesIndex
from biograft.text.documents import Document, Mention
from biograft.text.formats import read_documents
from biograft.text.spelling.corrections import ordinary_pairs
from biograft_lab.replication.linking_dictionaries import PUBLISHED
from biograft_lab.replication.protocols import LinkingTask, read_texts

ENGLISH = ("ncbi-disease", "bc5cdr-disease", "bc5cdr-chemical")
CHINESE = ("cmeee",)
_WORD = re.compile(r"[^\W\d_]{5,}")
_HAN_NAME = re.compile(f"[{HAN}]{{4,}}")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure each set."""
    return {
        "sets": {name: _measure_set(name, options) for name in options.sets},
        "seed": options.seed,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("-m biograft_lab.scripts.misspelt_mentions", sys.argv[1:]),
    }


def _measure_set(name: str, options: argparse.Namespace) -> dict[str, Any]:
    documents, names = _open(name, options)
    index = NamesIndex.build(names)
    plain = DictionaryDetector(index)
    misspelt = MisspeltDetector(index, names.__getitem__)
    detectors: dict[str, MentionDetector] = {"names": plain, "misspelt": misspelt}
    damaged, changed = _damage_all(documents, plain, random.Random(options.seed))
    result: dict[str, Any] = {"documents": len(documents), "names": len(names)}
    for kind, detector in detectors.items():
        found_clean, seconds = _detect(detector, documents)
        found, _ = _detect(detector, damaged)
        wanted = [
            (set(changed_here), {(m.start, m.end) for m in mentions})
            for changed_here, mentions in zip(changed, found, strict=True)
        ]
        n = sum(len(spans) for spans, _ in wanted)
        result[kind] = {
            "clean": _score(documents, found_clean),
            "with_errors": _score(damaged, found),
            "errors": n,
            "found_again": round(100 * sum(len(a & b) for a, b in wanted) / max(n, 1), 2),
            "seconds_clean": round(seconds, 4),
        }
        if kind == "misspelt":
            kinds = Counter(kind for each in changed for kind in each.values())
            right = Counter(
                kind
                for each, (_, spans) in zip(changed, wanted, strict=True)
                for span, kind in each.items()
                if span in spans
            )
            result["by_kind"] = {k: [right[k], n] for k, n in sorted(kinds.items())}
    if options.show:
        _show(documents, detectors["misspelt"], options.show)
    return result


def _open(name: str, options: argparse.Namespace) -> tuple[list[Document], list[str]]:
    """Return the dev documents of a set, and the names of its dictionary."""
    if name in CHINESE:
        path = options.data / "zh/cmeee_v2/CMeEE-V2_dev.json.gz"
        documents = list(read_documents(path, "cmeee"))
        half = len(documents) // 2  # a half is the dictionary, and the other is searched
        kept = {m.text for each in documents[:half] for m in each.mentions}
        return documents[half:], sorted(kept | set(_chinese_names(options.data)))
    with tempfile.TemporaryDirectory() as work:
        task = LinkingTask(set=name, protocol="text", split="dev", dictionary=PUBLISHED)
        kb = task.open_store(options.data, Path(work))
        names = kb.table("names").column("text").to_pylist()
    texts = task.chosen
    types = texts.config.types
    documents = [
        replace(each, mentions=tuple(m for m in each.mentions if not types or m.type in types))
        for each in read_texts(texts, "dev", options.data)
    ]
    return documents, names


def _chinese_names(data: Path) -> list[str]:
    """Return the names of the diseases and symptoms of the medical knowledge graph."""
    import gzip

    names: set[str] = set()
    with gzip.open(data / "zh/medical_kg/triples_derived.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            head, _, tail = line.rstrip("\n").split("\t")[:3]
            names.update((head, tail))
    return [name for name in names if _HAN_NAME.fullmatch(name) and len(name) <= 12]


def _damage_all(
    documents: Sequence[Document], plain: MentionDetector, rng: random.Random
) -> tuple[list[Document], list[dict[tuple[int, int], str]]]:
    """Make an error in each gold mention that is found; return its new spans with the kind."""
    damaged, changed = [], []
    for document, found in zip(documents, plain.detect(documents), strict=True):
        spans = {(m.start, m.end) for m in found}
        text, at, shift = "", 0, 0
        mentions: list[Mention] = []
        here: dict[tuple[int, int], str] = {}
        for mention in sorted(document.mentions, key=lambda m: (m.start, -m.end)):
            if mention.start < at:
                continue
            span, error = (mention.start, mention.end), None
            if span in spans and not mention.fragments:
                error = _damage(mention.text, rng)
            text += document.text[at : mention.start]
            new, kind = error or (document.text[mention.start : mention.end], "")
            start = mention.start + shift
            if kind:
                here[start, start + len(new)] = kind
            mentions.append(replace(mention, start=start, end=start + len(new), text=new))
            text, at = text + new, mention.end
            shift = len(text) - at
        text += document.text[at:]
        damaged.append(Document(document.id, text, tuple(mentions)))
        changed.append(here)
    return damaged, changed


def _damage(name: str, rng: random.Random) -> tuple[str, str] | None:
    """Make one error in a name; None where no word is long enough."""
    if match := _HAN_NAME.search(name):
        at = rng.randrange(match.start(), match.end())
        kind = rng.choice(("replaced", "deleted"))
        new = "" if kind == "deleted" else rng.choice(_han_characters())
        return name[:at] + new + name[at + 1 :], kind
    words = [match for match in _WORD.finditer(name) if match[0].isascii()]
    if not words:
        return None
    word = rng.choice(words)
    kinds = ["inserted", "deleted", "replaced", "exchanged", "blank"]
    kind = rng.choice(kinds)
    at = rng.randrange(word.start(), word.end())
    letter = rng.choice(string.ascii_lowercase)
    if kind == "blank":
        blanks = [k for k, char in enumerate(name) if char == " "]
        if blanks:
            k = rng.choice(blanks)
            return name[:k] + name[k + 1 :], "blank missing"
        k = rng.randrange(word.start() + 2, word.end() - 2)
        return f"{name[:k]} {name[k:]}", "blank inserted"
    if kind == "inserted":
        return name[:at] + letter + name[at:], kind
    if kind == "deleted":
        return name[:at] + name[at + 1 :], kind
    if kind == "exchanged":
        at = min(at, word.end() - 2)
        if name[at] != name[at + 1]:
            return name[:at] + name[at + 1] + name[at] + name[at + 2 :], kind
    others = [each for each in string.ascii_lowercase if each != name[at].lower()]
    return name[:at] + rng.choice(others) + name[at + 1 :], "replaced"


@cache
def _han_characters() -> list[str]:
    """Return the characters of ordinary text."""
    return sorted({chr(int(pair) & 0xFFFFFFFF) for pair in ordinary_pairs()})


def _detect(
    detector: MentionDetector, documents: Sequence[Document]
) -> tuple[list[list[Mention]], float]:
    detector.detect(documents[:2])
    start = time.perf_counter()
    found = detector.detect(documents)
    return found, time.perf_counter() - start


def _score(documents: Sequence[Document], found: Sequence[Sequence[Mention]]) -> dict[str, float]:
    right = n_found = n_gold = 0
    for document, mentions in zip(documents, found, strict=True):
        gold = {(m.start, m.end) for m in document.mentions}
        spans = {(m.start, m.end) for m in mentions}
        right, n_found, n_gold = right + len(gold & spans), n_found + len(spans), n_gold + len(gold)
    precision, recall = right / max(n_found, 1), right / max(n_gold, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return {
        name: round(100 * value, 2)
        for name, value in {"precision": precision, "recall": recall, "f1": f1}.items()
    }


def _show(documents: Sequence[Document], detector: MentionDetector, n: int) -> None:
    """Show corrections of clean text, and whether they are gold mentions."""
    from biograft.linking.detection import MisspeltMention

    lines = [
        f"{'+' if (m.start, m.end) in gold else '-'} {m.text!r} -> {m.name!r}"
        for document, mentions in zip(documents, detector.detect(documents), strict=True)
        for gold in [{(each.start, each.end) for each in document.mentions}]
        for m in mentions
        if isinstance(m, MisspeltMention)
    ]
    sys.stderr.write("\n".join([f"{len(lines)} corrections", *lines[:n]]) + "\n")


def main() -> None:
    """Measure, and print one JSON object."""
    parser = start_parser(__doc__)
    add_data(parser)
    known = (*ENGLISH, *CHINESE)
    parser.add_argument("--sets", type=some_of(known), default=list(known))
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--show", type=int, default=0, help="corrections of clean text to show")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    run_with(lambda given: print(json.dumps(measure(given), ensure_ascii=False)), options)


if __name__ == "__main__":
    main()
