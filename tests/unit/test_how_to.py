"""The tutorial and the how-to pages: all their commands run, in order, on a few lines of data."""

from __future__ import annotations

import ast
import csv
import re
import shlex
import sqlite3
from pathlib import Path

import pytest
from athena_bundle import write_athena
from command_runs import runner_of
from snippets import SNIPPETS
from tiny_masked_lm import tiny_masked_lm_folder

from biograft.cli import app
from biograft.mapping import MappingSet

DOCS = Path(__file__).parents[2] / "docs"
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
PAGES = [DOCS / "tutorial.md", DOCS / "zh" / "tutorial.md", *HOW_TO]
CONCEPT = Path("ATHENA/CONCEPT.csv")
SENTENCES = ("Aspirin reduces fever.", "The weather is fine.", "She has asthma .")
TABLES = {
    "csv.md": "concepts.csv",
    "omop.md": "codes.csv",
    "column.md": "terms.csv",
    "verify.md": "findings.csv",
    "tutorial.md": "notes.csv",
}
"""The file whose content a page shows."""
SHORT = {
    "pretrain": ("training.steps=2", "training.batch_size=4", "training.save_every=2"),
    "finetune": ("encoder.max_length=48", "config.overlap=8", "config.training.epochs=1"),
}


def blocks(page, language):
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def write_data(folder, page):
    """Write the files that the commands of the page read."""
    for name, text in SNIPPETS["umls"].items():
        (folder / "META").mkdir(exist_ok=True)
        (folder / "META" / name).write_text(text, encoding="utf-8")
    if page.name == "omop.md":
        write_athena(folder / "ATHENA")
    (folder / "texts.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    if page.name in TABLES:
        (folder / TABLES[page.name]).write_text(blocks(page, "csv")[0], encoding="utf-8")
    for block in blocks(page, "json"):
        (folder / "gold.jsonl").write_text(block, encoding="utf-8")
    if page.name == "ner.md":
        for split in ("train", "dev", "test"):
            rows = blocks(page, "text")[0].replace("asthma", "fever")
            (folder / f"{split}.tsv").write_text(f"{blocks(page, 'text')[0]}\n{rows}\n", "utf-8")


def arguments(line):
    """Return the words of a command; training is short, and no names are encoded."""
    words = shlex.split(line, comments=True)
    assert words[0] == "biograft"
    if words[1] == "index" and "--encoder" not in words:
        words += ["--encoder", "none"]
    sets = [word for each in SHORT.get(words[1], ()) for word in ("--set", each)]
    return [*words[1:], *sets]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path, page)
    if "tutorial" in page.name:
        runner_of(app)("kb", "build", "starter", "-o", "KB", "-q")
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert lines
    if any("ENCODER" in line for line in lines):
        tiny_masked_lm_folder(tmp_path / "ENCODER", SENTENCES, positions=64)
    for line in lines:
        runner_of(app)(*arguments(line))
    for block in blocks(page, "python"):
        exec(compile(ast.parse(block), page.name, "exec"), {})
    if page.name == "omop.md":
        check_omop(page)


def check_omop(page):
    """The table that the page shows is what it maps, and its query runs on what it exports."""
    columns, *rows = (
        tuple(cell.strip() for cell in line.strip("| \n").split(" |"))
        for line in page.read_text("utf-8").splitlines()
        if line.startswith("| ") and "---" not in line
    )
    mapped = list(csv.DictReader(Path("mapped.csv").read_text("utf-8").splitlines()))
    shown = [tuple(row[name] for name in columns) for row in mapped]
    assert [(*row, *[""] * (len(columns) - len(row))) for row in rows] == shown
    base = sqlite3.connect(":memory:")
    for file, delimiter in ((Path("source_to_concept_map.csv"), ","), (CONCEPT, "\t")):
        header, *lines = csv.reader(file.read_text("utf-8").splitlines(), delimiter=delimiter)
        base.execute(f"CREATE TABLE {file.stem} ({', '.join(header)})")
        base.executemany(f"INSERT INTO {file.stem} VALUES ({','.join('?' * len(header))})", lines)
    base.execute("CREATE TABLE source_diagnosis (person_id, code)")
    base.executemany(
        "INSERT INTO source_diagnosis VALUES (?, ?)", [(n, f"K{n}") for n in range(1, 7)]
    )
    (query,) = blocks(page, "sql")
    found = base.execute(query).fetchall()
    base.close()
    assert [(person, int(target)) for person, _, target in found] == [
        *((1, 201826), (2, 320128), (3, 317009), (4, 201826), (4, 443767))
    ]
    seen = list(csv.DictReader(Path("next.csv").read_text("utf-8").splitlines()))
    assert {row["flag"] for row in seen} == {"seen"}
    assert len(seen) == len(mapped)
    sets = [MappingSet.read(name) for name in ("decided.sssom.tsv", "from-usagi.sssom.tsv")]
    decided, again = ([(r.subject_id, r.object_id) for r in each.rows] for each in sets)
    assert decided == again


def test_the_csv_of_the_page_is_a_hierarchy(tmp_path, monkeypatch):
    from biograft import KnowledgeBase

    page = DOCS / "how-to" / "csv.md"
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path, page)
    runner_of(app)(*arguments(blocks(page, "sh")[0].splitlines()[0]))
    kb = KnowledgeBase.open("KB")
    assert kb.is_a("L2", "L1")
    assert kb.find("pneumonitis")[0].concept == "L2"
