"""Chinese terms with a wrong character, and right terms that no name has: what lexical search says.

In names of a Chinese store (``procedures``: the codes of the term set; ``diseases``: diseases of
the public graph with their aliases) a random character becomes one of the same sound, or of similar
shape, by the table of biograft. Right terms (the symptoms of the graph, against its diseases; the
raw terms of procedures dev) show what is changed without need: an answer that the search without
other spellings does not give, above the threshold of NIL.

    python benchmarks/misspelt_terms.py
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from script_options import add_data, start_parser

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.similar_characters import similar_characters
from biograft.kb.sources import SourceConfig
from biograft.linking import LexicalIndex, Linker
from biograft.linking.nil import CHINESE_NIL

KINDS = ("sound", "shape")


def main() -> None:
    """Measure both stores, and print one JSON object."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--names", type=int, default=1500, help="names of each store and kind")
    options = parser.parse_args()
    folder = options.data / "zh"
    names = {
        "procedures": {name: [name] for _, name in _rows(folder, "procedure_codes")},
        "diseases": _diseases(folder / "medical_kg/triples_derived.tsv.gz"),
    }
    right = {
        "procedures": [term for term, _ in _rows(folder, "procedures_dev")[1:]],
        "diseases": (folder / "medical_kg/dict/symptom.txt").read_text("utf-8").split(),
    }
    with tempfile.TemporaryDirectory() as work:
        result = {
            name: _measure(_store(Path(work) / name, rows), right[name], options)
            for name, rows in names.items()
        }
    print(json.dumps(result, ensure_ascii=False))


def _rows(folder: Path, name: str) -> list[list[str]]:
    lines = (folder / f"term_normalisation/{name}.tsv").read_text("utf-8").splitlines()
    return [line.split("\t")[:2] for line in lines]


def _diseases(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for head, relation, tail in (line.rstrip("\n").split("\t")[:3] for line in lines):
            if relation in ("alias", "has_symptom"):
                found.setdefault(head, [head]).extend([tail] if relation == "alias" else [])
    return found


def _store(folder: Path, concepts: dict[str, list[str]]) -> KnowledgeBase:
    path = folder.with_suffix(".jsonl")
    with path.open("w", encoding="utf-8") as out:
        for name, names in concepts.items():
            others = [{"text": each} for each in dict.fromkeys(names) if each != name]
            out.write(json.dumps({"id": name, "name": name, "names": others}) + "\n")
    source = SourceConfig(path=path, language="zh")
    build_store(BuildConfig(sources=(source,)), folder)
    return KnowledgeBase.open(folder)


def _measure(kb: KnowledgeBase, right: Sequence[str], options: argparse.Namespace) -> Any:
    rng = random.Random(5)
    texts = list(kb.texts("names", "text"))
    result: dict[str, Any] = {"names": len(texts)}
    for kind in KINDS:
        chosen = rng.sample(texts, min(options.names, len(texts)))
        errors = [pair for name in chosen for pair in _damage(name, kind, rng)]
        wrong = [error for _, error in errors if not kb.rows_by_name(error)]
        meant = {error: name for name, error in errors}
        for how in ("with", "without"):
            answers = _link(kb, wrong, how)
            hits = sum(
                first[0] in kb and kb.row(first[0]) in kb.rows_by_name(meant[error])
                for error, first in zip(wrong, answers, strict=True)
            )
            result[f"{kind}, {how}"] = [len(wrong), round(100 * hits / len(wrong), 1)]
    started = time.process_time()
    plain = _link(kb, right, "without")
    between = time.process_time()
    spelt = _link(kb, right, "with")
    seconds = (between - started, time.process_time() - between)
    changed = sum(
        new[0] != old[0] and new[1] >= CHINESE_NIL for new, old in zip(spelt, plain, strict=True)
    )
    result["right terms, changed"] = [len(right), changed]
    result["microseconds, without and with"] = [round(1e6 * s / len(right)) for s in seconds]
    return result


def _damage(name: str, kind: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    near = [similar_characters().get(char, ("", ""))[KINDS.index(kind)] for char in name]
    places = [at for at, others in enumerate(near) if others]
    if len(name) > 2 and places:
        at = rng.choice(places)
        yield name, name[:at] + rng.choice(near[at]) + name[at + 1 :]


def _link(kb: KnowledgeBase, terms: Sequence[str], how: str) -> list[tuple[str, float]]:
    """Return the first concept of each term with its score."""
    index = LexicalIndex.build(kb)
    if how == "without":
        index._find_respelt = lambda forms: iter(())  # type: ignore[method-assign]
    found = Linker(kb, index).link_mentions(terms, 5)
    return [(first[0].concept, first[0].score) if first else ("", 0.0) for first in found]


if __name__ == "__main__":
    main()
