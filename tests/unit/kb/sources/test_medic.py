import pytest

from biograft.kb.records import DefinitionRecord, IdRecord, NameRecord, RelationRecord, TypeRecord

COLUMNS = [
    "DiseaseName",
    "DiseaseID",
    "AltDiseaseIDs",
    "Definition",
    "ParentIDs",
    "TreeNumbers",
    "ParentTreeNumbers",
    "Synonyms",
    "SlimMappings",
]
TOP = """\
# Comparative Toxicogenomics Database (CTD) - http://ctdbase.org/
# Copyright 2012 somebody.
#
# Use is subject to the terms set forth at http://ctdbase.org/about/legal.jsp
# Report created: Mon Jan 1 09:00:00 EST 2024
#
# Fields:
"""
NOTES = [
    "licence: Copyright 2012 somebody.",
    "licence: Use is subject to the terms set forth at http://ctdbase.org/about/legal.jsp",
    "data version: Report created: Mon Jan 1 09:00:00 EST 2024",
]
TSV_HEADER = TOP + "# " + "\t".join(COLUMNS) + "\n#\n"
CSV_HEADER = TOP + "# " + ",".join(COLUMNS) + "\n#\n"


@pytest.fixture
def read(reading, write):
    def of(text, **options):
        return reading(write("medic", text), format="medic", **options)

    return of


def row(*cells):
    return "\t".join([*cells, *[""] * (9 - len(cells))]) + "\n"


@pytest.mark.parametrize(
    ("ids", "primary", "others"),
    [
        ("613|C1|D2|44", "C1", ["613", "D2", "44"]),
        ("613|44", "613", ["44"]),
    ],
)
def test_the_mesh_id_stands_for_the_concept(read, ids, primary, others):
    result = read(f"{ids}||a")
    assert result.concepts == {primary}
    assert [record.id for record in result.of(IdRecord)] == others


def test_a_row_of_the_table(read):
    result = read(
        TSV_HEADER
        + row(
            "10p Deletion (Partial)",
            "MESH:C1",
            "OMIM:1|DO:DOID:2",
            'A "rare" thing.',
            "MESH:D1|MESH:D2",
            "C16.1/C1",
            "C16.1",
            "Chromosome 10, 10p-|10p deletion",
            "Congenital abnormality|Cancer",
        )
    )
    assert result.records == [
        NameRecord("MESH:C1", "10p Deletion (Partial)", "en", "preferred", line=10),
        NameRecord("MESH:C1", "Chromosome 10, 10p-", "en", "synonym", line=10),
        NameRecord("MESH:C1", "10p deletion", "en", "synonym", line=10),
        IdRecord("MESH:C1", "OMIM:1", "alternate", line=10),
        IdRecord("MESH:C1", "DO:DOID:2", "alternate", line=10),
        DefinitionRecord("MESH:C1", 'A "rare" thing.', line=10),
        RelationRecord("MESH:C1", "is-a", "MESH:D1", line=10),
        RelationRecord("MESH:C1", "is-a", "MESH:D2", line=10),
        TypeRecord("MESH:C1", "Congenital abnormality", line=10),
        TypeRecord("MESH:C1", "Cancer", line=10),
    ]
    assert (result.log.n_read, result.log.notes) == (1, NOTES)


def test_csv_cells_may_be_quoted_and_hold_line_ends(read):
    result = read(
        CSV_HEADER
        + 'Flu,MESH:D1,,"A ""bad""\ncold, with fever",,,,,\n'
        + '"Fever, Yellow",MESH:D2,,,MESH:D1,,,"Jack, Yellow|YF",\n'
    )
    assert result.records == [
        NameRecord("MESH:D1", "Flu", "en", "preferred", line=10),
        DefinitionRecord("MESH:D1", 'A "bad"\ncold, with fever', line=10),
        NameRecord("MESH:D2", "Fever, Yellow", "en", "preferred", line=12),
        NameRecord("MESH:D2", "Jack, Yellow", "en", "synonym", line=12),
        NameRecord("MESH:D2", "YF", "en", "synonym", line=12),
        RelationRecord("MESH:D2", "is-a", "MESH:D1", line=12),
    ]
    assert result.log.notes == NOTES


def test_a_long_cell_is_read_whatever_was_read_before(read):
    """The limit is the process's: formerly it depended on whether a table had been read."""
    result = read(CSV_HEADER + f"a,D1,,{'x' * 200_000},,,,,\n")
    assert len(result.of(DefinitionRecord)[0].text) == 200_000
