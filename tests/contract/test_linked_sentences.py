"""Findings in 2,000 real sentences, English and Chinese: offsets, concepts, statuses, scores."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from biograft import BuildConfig, Linker, SourceConfig, build_store
from biograft.linking import LinkedMention

NOTES = Path(__file__).parents[1] / "data" / "notes"
GSC, NEGEX = "phenotypes/gsc_plus/GSCplus_test_gold.tsv", "clinical/negex_dev.tsv"
CMEEE, QUESTIONS = "zh/cmeee_v2/CMeEE-V2_dev.json.gz", "zh/chineseblue/cMedQANER/dev.json"
DIALOGUES = "zh/cmdd/dev.jsonl.gz"
MESSY = "mapping/messy_terms_en_dev.tsv"
NAMES = {
    GSC: "abstracts",
    NEGEX: "reports",
    CMEEE: "textbooks",
    QUESTIONS: "questions",
    DIALOGUES: "dialogues",
}
_MARK = re.compile(r"\[\[([^\[\]|]+)\|[^\[\]]*\]\]")


def read_text(path: Path) -> str:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return file.read()


def read_abstracts(path: Path) -> Iterator[str]:
    """Yield the sentences of GSC+ in the order of the file."""
    for block in read_text(path).split("\n\n"):
        yield from re.split(r"(?<=[.!?])\s+", "".join(block.split("\n")[1:2]))


def read_findings(path: Path) -> Iterator[str]:
    """Yield the sentences of NegEx, whose findings stand in upper case."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield row["sentence"]


def read_dialogues(path: Path) -> Iterator[str]:
    for line in read_text(path).splitlines():
        for turn in json.loads(line)["dialogue-content"]:
            if len(turn["sentence"]) > 12:
                yield turn["sentence"]


READERS = {
    GSC: (read_abstracts, 800),
    NEGEX: (read_findings, 350),
    CMEEE: (lambda path: (each["text"] for each in json.loads(read_text(path))), 450),
    QUESTIONS: (
        lambda path: (json.loads(each)["text"] for each in read_text(path).splitlines()),
        150,
    ),
    DIALOGUES: (read_dialogues, 200),
}
"""How each file is read, and how many of its sentences are linked: evenly spaced ones."""


def take(sentences: Iterable[str], n: int) -> list[str]:
    some = [each for each in sentences if each.strip()]
    assert len(some) >= n
    return [some[row * len(some) // n] for row in range(n)]


def mention_row(mention: LinkedMention) -> list[Any]:
    return [mention.start, mention.end, mention.concept, mention.status, mention.score]


def read_notes(half: str) -> dict[str, str]:
    """Read notes without their marks."""
    parts = (NOTES / f"{half}.txt").read_text(encoding="utf-8").split("\n=== ")[1:]
    notes = (part.partition("\n") for part in parts)
    return {name.strip(): _MARK.sub(r"\1", text).strip("\n") for name, _, text in notes}


@pytest.fixture(scope="module")
def phenotypes(tmp_path_factory: pytest.TempPathFactory, shared_data: Any) -> Linker:
    """A lexical linker of the Human Phenotype Ontology with its Chinese names."""
    sources = (
        "ontologies/obo/hp_2025-01-16.obo.gz",
        "ontologies/translations/hp-zh.babelon.tsv.gz",
    )
    folder = tmp_path_factory.mktemp("phenotypes") / "KB"
    build_store(
        BuildConfig(sources=tuple(SourceConfig(path=shared_data(each)) for each in sources)),
        folder,
    )
    return Linker.open(folder)


@pytest.mark.parametrize("file", READERS)
def test_sentences_are_linked_by_lexical_search(file, phenotypes, shared_data, golden):
    read, n = READERS[file]
    sentences = take(read(shared_data(file)), n)
    name = NAMES[file]
    for row, linked in enumerate(phenotypes.pipe(sentences)):
        for mention in linked.mentions:
            assert sentences[row][mention.start : mention.end] == mention.text
        found = [mention_row(mention) for mention in linked.mentions]
        golden("linked_sentences", f"{name} {row}", found)


AXES = (
    "negated",
    "uncertain",
    "historical",
    "hypothetical",
    "family",
    "other_person",
    "conditional",
)


@pytest.mark.parametrize("half", ["en-dev", "en-test", "zh-dev", "zh-test"])
def test_notes_are_linked_with_their_sections(half, kb, golden):
    """All that a note says of a finding: the axes of its status, its section, its values."""
    notes = read_notes(half)
    linker = Linker.open(kb)
    for name, linked in zip(notes, linker.pipe(list(notes.values())), strict=True):
        found = [
            [
                *mention_row(each),
                each.section,
                [axis for axis in AXES if getattr(each, axis)],
                [list(measured) for measured in each.measurements],
            ]
            for each in linked.mentions
        ]
        golden("linked_notes", name, found)


def read_terms(messy: Path, gsc: Path) -> list[str]:
    with messy.open(encoding="utf-8", newline="") as file:
        terms = [row["term"] for row in csv.DictReader(file, delimiter="\t")]
    lines = (line.split("\t") for line in read_text(gsc).splitlines())
    named = dict.fromkeys(cells[2] for cells in lines if len(cells) == 4)
    return list(dict.fromkeys([*terms, *list(named)[:340]]))


@pytest.mark.parametrize("search", ["lexical", "dense", "lexical+dense"])
def test_terms_are_linked_with_their_candidates(search, kb, index, shared_data, golden):
    """Terms searched by letters, by the static encoder, and by both: three candidates each."""
    terms = read_terms(shared_data(MESSY), shared_data(GSC))
    linker = Linker.open(kb, index, search=search, k=3)
    for term, candidates in zip(terms, linker.link_mentions(terms), strict=True):
        found = [[each.concept, each.score] for each in candidates]
        golden(f"linked_terms_{search}", term, found)


def test_sentences_are_linked_by_the_static_encoder_too(kb, index, shared_data, golden):
    linker = Linker.open(kb, index, search="lexical+dense")
    sentences = take(read_findings(shared_data(NEGEX)), 350)
    for row, linked in enumerate(linker.pipe(sentences)):
        found = [mention_row(mention) for mention in linked.mentions]
        golden("linked_sentences", f"reports static {row}", found)
