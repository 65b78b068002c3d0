"""Notes of tests/data/notes: text with marks, and the JSON lines that the package ships.

``[[hart attack|ht|Myocardial Infarction]]`` is a misspelt finding of the past. Run this file to
write the JSON lines after an edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marked_sentences import LETTERS

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "data" / "notes"
SHIPPED = ROOT / "src" / "biograft" / "starter"
HALVES = ("en-dev", "en-test", "en-demo", "zh-dev", "zh-test", "zh-demo")
_MARK = re.compile(r"\[\[([^\[\]|]+)\|([a-z]*)\|([^\[\]|]+)\]\]")


def concept_ids() -> dict[str, str]:
    """Return the id of each concept of the starter and of the findings, by its name."""
    ids: dict[str, str] = {}
    for path in sorted(SHIPPED.glob("*/*.jsonl")):
        if path.parent.name in ("concepts", "findings"):
            for line in path.read_text(encoding="utf-8").splitlines():
                concept = json.loads(line)
                ids.setdefault(concept["name"], concept["id"])
    return ids


def read_marked(half: str, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the notes of a file as they are shipped."""
    source = (SOURCES / f"{half}.txt").read_text(encoding="utf-8")
    for part in source.split("\n=== ")[1:]:
        name, _, marked = part.partition("\n")
        marked, text, done, mentions = marked.strip("\n"), "", 0, []
        for match in _MARK.finditer(marked):
            text += marked[done : match.start()]
            done = match.end()
            mention = {"start": len(text), "end": len(text) + len(match[1]), "text": match[1]}
            status = [flag for letter, flag in LETTERS.items() if letter in match[2]]
            mention |= {"concept": ids[match[3]], "name": match[3], "status": status}
            mentions.append(mention | ({"typo": True} if "t" in match[2] else {}))
            text += match[1]
        yield {
            "id": name.strip(),
            "language": half[:2],
            "text": text + marked[done:],
            "mentions": mentions,
        }


def shipped_lines(half: str) -> str:
    """Return the JSON lines of a file."""
    ids = concept_ids()
    return "".join(json.dumps(note, ensure_ascii=False) + "\n" for note in read_marked(half, ids))


if __name__ == "__main__":
    for half in HALVES:
        (SHIPPED / "notes" / f"{half}.jsonl").write_text(shipped_lines(half), encoding="utf-8")
