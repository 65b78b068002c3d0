"""The table of the terminal, and JSON lines."""

from __future__ import annotations

import json

import pytest

from biograft.linking import Linker, candidates_table, link_chunks, table
from biograft.text.documents import Document, Mention


def test_a_text_cannot_command_the_terminal(kb):
    document = Document("1", "a\x1b[31m\nb", (Mention(0, 8, "a\x1b[31m\nb"),))
    lines = table(Linker.open(kb)(document))
    assert len(lines) == 2
    assert "\x1b" not in lines[1]


def test_the_table_says_what_is_not_present(kb):
    lines = table(Linker.open(kb)("No heart attack. Breast cancer was found."))
    assert "heart attack [absent]" in lines[1]
    assert "[" not in lines[2]
    lines = table(Linker.open(kb)("Heart attack, resolved. Breast cancer is unlikely."))
    assert lines[1].startswith("0-12")
    assert "Heart attack [resolved]" in lines[1]
    assert "Breast cancer [possible, unlikely]" in lines[2]


def test_json_has_names_types_and_no_similar_names_beside_an_equal_one(kb):
    linked = Linker.open(kb)("Breast cancer, type 2 diabetes.")
    line = "".join(link_chunks([linked], "jsonl", kb))
    first, _ = json.loads(line)["mentions"]
    assert (first["concept"], first["name"], first["types"]) == (
        "D2",
        "Breast Neoplasms",
        ["disease"],
    )
    assert [each["concept"] for each in first["candidates"]] == ["D2"]
    line = "".join(link_chunks([linked], "jsonl", kb, all_candidates=True))
    assert len(json.loads(line)["mentions"][0]["candidates"]) == len(linked.mentions[0].candidates)
    assert len(linked.mentions[0].candidates) > 1


def test_concepts_that_share_the_name_stay_beside_an_equal_one(kb):
    line = "".join(link_chunks([Linker.open(kb)("cold")], "jsonl", kb))
    (mention,) = json.loads(line)["mentions"]
    assert [each["concept"] for each in mention["candidates"]] == ["D6", "D7"]


def test_candidates_of_a_misspelt_mention_stay(kb):
    document = Document("1", "brest cancer", (Mention(0, 12, "brest cancer"),))
    line = "".join(link_chunks([Linker.open(kb)(document)], "jsonl", kb))
    assert len(json.loads(line)["mentions"][0]["candidates"]) > 1


@pytest.mark.parametrize("n", [0, 1, 501])
def test_a_table_of_many_mentions_has_one_head(kb, n):
    linked = Linker.open(kb)(Document("x", "cold", (Mention(0, 4, "cold"),)))
    lines = list(candidates_table([linked] * n, 1))
    assert len(lines) == (n + 1 if n else 1)
    assert sum(line.startswith("position") for line in lines) == (n > 0)


@pytest.mark.parametrize(
    "to", ["table", "csv", "tsv", "jsonl", "html", "fhir", "omop", "pubtator", "bioc"]
)
def test_a_document_is_given_before_the_next_is_linked(kb, to):
    linker, pulled = Linker.open(kb), []

    def documents():
        for number in range(3):
            pulled.append(number)
            yield linker(Document(f"note-{number}", "cold"))

    text = ""
    for chunk in link_chunks(documents(), to, kb, include_text=True):
        text += chunk
        for number in range(3):
            if f"note-{number}" in chunk:
                assert pulled[-1] == number
    assert pulled == [0, 1, 2]
    assert "note-2" in text


def test_a_line_is_the_json_of_its_document(kb):
    """It is put together mention by mention: all as plain values took 6 KB a mention."""
    linker = Linker.open(kb)
    for text in ("", "cold", 'No "heart attack", but cold ]}\nand cold'):
        linked = linker(Document("a]}", text))
        line = "".join(link_chunks([linked], "jsonl", kb, all_candidates=True))
        assert line == json.dumps(linked.to_json(), ensure_ascii=False) + "\n"
