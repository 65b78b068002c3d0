"""BioSyn dictionaries: ``id||name`` a line, several ids in one, faults with their lines."""

from functools import partial

import pytest

from biograft.kb.records import IdRecord, NameRecord, TypeRecord


@pytest.fixture
def read(reading, write):
    def of(text, **options):
        return partial(reading, format="biosyn")(write("a.txt", text), **options)

    return of


def test_every_line_is_a_name_and_further_ids_come_once(read):
    result = read("D1||flu\nD2|613|C3||fever\n\nD2|613|C3||pyrexia\r\n D2 || hot \n")
    assert result.records == [
        NameRecord("D1", "flu", line=1),
        NameRecord("D2|613|C3", "fever", line=2),
        IdRecord("D2|613|C3", "D2", line=2),
        IdRecord("D2|613|C3", "613", line=2),
        IdRecord("D2|613|C3", "C3", line=2),
        NameRecord("D2|613|C3", "pyrexia", line=4),
        NameRecord("D2", "hot", line=5),
    ]
    assert (result.log.n_read, result.log.rejected.counts, result.log.filtered) == (4, {}, {})


@pytest.mark.parametrize("word", ["CUI-less", "cui-less"])
def test_names_without_an_id_are_filtered(read, word):
    result = read(f"{word}||something\nD1||flu\n")
    assert (result.concepts, result.log.filtered) == ({"D1"}, {"CUI-less": 1})


def test_an_empty_part_is_no_id(read):
    """Formerly ``|D1||flu`` made a concept whose id is empty."""
    assert read("|D1||flu\nD2||| fever\nD3| ||cold\n").records == [
        NameRecord("D1", "flu", line=1),
        NameRecord("D2", "| fever", line=2),
        NameRecord("D3", "cold", line=3),
    ]


def test_the_type_is_the_configured_one_yielded_once(read):
    """Formerly ``--type`` was ignored for this format."""
    result = read("D1||flu\nD1||grippe\nD2||fever\n", default_type="Disease")
    assert result.of(TypeRecord) == [
        TypeRecord("D1", "Disease", line=1),
        TypeRecord("D2", "Disease", line=3),
    ]
