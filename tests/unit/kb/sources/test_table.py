"""Any CSV or TSV by a column mapping: every role, quoting, and faults with their lines."""

from functools import partial

import pytest

from biograft.errors import ConfigError, FormatError
from biograft.kb.records import DefinitionRecord, IdRecord, NameRecord, RelationRecord, TypeRecord


@pytest.fixture
def read(reading, write):
    def of(text, **columns):
        options = columns.pop("options", {})
        read_table = partial(reading, format="table", columns=columns)
        return read_table(write("t", text), **options)

    return of


def names(result):
    return [(r.concept, r.text, r.kind) for r in result.of(NameRecord)]


def test_every_role_of_a_concept(read):
    result = read(
        "code\tlabel\taka\ttext\tkind\tlang\tup\told\trefs\tdrugs\n"
        "D1\tflu\tgrippe| influenza||\tAn infection.\tT1|T2\tENG\tD2|D3\tX1\tY1|Y2\taspirin\n",
        id="code",
        name="label",
        synonyms="aka",
        definition="text",
        type="kind",
        language="lang",
        parents="up",
        alternates="old",
        xrefs="refs",
        **{"relation.treated by": "drugs"},
    )
    assert result.records == [
        NameRecord("D1", "flu", "en", "preferred", line=2),
        NameRecord("D1", "grippe", line=2),
        NameRecord("D1", "influenza", line=2),
        DefinitionRecord("D1", "An infection.", line=2),
        TypeRecord("D1", "T1", line=2),
        TypeRecord("D1", "T2", line=2),
        IdRecord("D1", "X1", "alternate", 2),
        IdRecord("D1", "Y1", "xref", 2),
        IdRecord("D1", "Y2", "xref", 2),
        RelationRecord("D1", "is-a", "D2", line=2),
        RelationRecord("D1", "is-a", "D3", line=2),
        RelationRecord("D1", "treated by", "aspirin", line=2),
    ]
    assert (result.log.n_read, result.log.rejected.counts) == (1, {})


def test_a_table_of_edges(read):
    result = read("to,how,from\nb,r,a\nb,,a\n", head="from", relation="how", tail="to")
    assert result.records == [RelationRecord("a", "r", "b", line=2)]
    (example,) = result.log.rejected.examples["head, relation or tail is empty"]
    assert (example.line, result.log.n_read) == (3, 2)


def test_without_a_mapping_columns_have_the_role_they_are_called(read):
    """Formerly the header was read as a concept called *name* too."""
    result = read(" ID ,x,Name,synonyms\nD1,no,flu,grippe\n")
    assert names(result) == [("D1", "flu", "preferred"), ("D1", "grippe", "synonym")]
    assert result.log.n_read == 1


@pytest.mark.parametrize("line", ["D1\tflu\tgrippe", '"D1"\t"flu"'])
def test_columns_may_be_numbers_where_there_is_no_header(read, line):
    result = read(f"{line}\n{line}\n", id="#1", name="#2")
    assert {(r.concept, r.text) for r in result.of(NameRecord)} == {("D1", "flu")}
    assert (result.log.n_read, result.of(NameRecord)[0].line) == (2, 1)


def test_quoted_cells_may_hold_delimiters_quotes_and_line_ends(read):
    result = read('id,name,definition\r\nD1,"a, ""b""","one\r\ntwo"\r\nD2,c,d\r\n')
    assert names(result) == [("D1", 'a, "b"', "preferred"), ("D2", "c", "preferred")]
    assert [(r.text, r.line) for r in result.of(DefinitionRecord)] == [("one\ntwo", 2), ("d", 4)]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('5" plaque', '5" plaque'),
        ('"flu, ""swine"""', 'flu, "swine"'),
        ('"a" or "b"', '"a" or "b"'),
        ('"open', '"open'),
        ('"""', '"""'),
    ],
)
def test_a_tsv_cell_is_unquoted_only_if_wholly_quoted(read, cell, text):
    """Excel and pandas quote cells of a TSV that hold a quote mark or a comma."""
    assert names(read(f"id\tname\nD1\t{cell}\n")) == [("D1", text, "preferred")]


@pytest.mark.parametrize(
    ("columns", "notes"),
    [
        ({}, ["columns not used: label, x"]),
        ({"id": "id", "name": "label"}, ["columns not used: name, x"]),
        ({"id": "id", "name": "label", "synonyms": "name", "type": "x"}, []),
        ({"id": "#1", "name": "#2"}, []),
    ],
)
def test_columns_without_a_role_are_noted(read, columns, notes):
    assert read("id,name, label ,x,\nD1,a,b,c,\n", **columns).log.notes == notes


@pytest.mark.parametrize("columns", [{}, {"id": "id", "name": "name"}])
def test_a_mapped_column_that_occurs_twice_is_refused(read, columns):
    """Formerly the first was read and the second passed over without a word."""
    with pytest.raises(FormatError, match=r"t:1: column 'name' occurs 2 times .*; give each"):
        read("id,name,name\nD1,a,b\n", **columns)
    assert names(read("id,name,x,x\nD1,a,b,c\n", **columns)) == [("D1", "a", "preferred")]


def test_cells_under_no_column_are_a_fault(read):
    """Formerly an unquoted comma cut a name short without a word."""
    result = read("id,name\nD1,Diabetes, type 2\nD2,flu,,\n")
    assert names(result) == [("D2", "flu", "preferred")]
    assert result.log.rejected.counts == {"3 columns, expected 2": 1}
    assert result.log.rejected.examples["3 columns, expected 2"][0].line == 2


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"id": "code"}, FormatError, r"t:2: column 'code' is missing .*did you mean 'cod'"),
        ({"id": "cod", "nmae": "x"}, ConfigError, "no column role is called 'nmae'; did you mean"),
        ({"head": "cod", "tail": "x"}, ConfigError, "column of .relation. is missing"),
        ({"id": "#0"}, ConfigError, "'#0' is not a column number such as '#1'"),
    ],
)
def test_a_wrong_mapping_is_refused(read, columns, error, message):
    with pytest.raises(error, match=message):
        read("# comment\ncod,label,x\nD1,flu,y\n", **columns)


def test_the_first_name_in_each_language_is_preferred(write, reading):
    """Guards a bug: only the first row of a concept gave a preferred name, so that
    ``--lang zh,en`` named it in English."""
    path = write("a.csv", "id,name,language\nX,Heart attack,en\nX,心肌梗死,zh\nX,MI,en\n")
    found = [(name.text, name.kind) for name in reading(path).of(NameRecord)]
    assert found == [("Heart attack", "preferred"), ("心肌梗死", "preferred"), ("MI", "synonym")]


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_a_table_that_a_spreadsheet_saved(tmp_path, reading, encoding):
    path = tmp_path / "t.csv"
    text = "id;name\r\nL1;肺炎, 左侧\r\n1.2E+17;哮喘\r\n;;\r\n"
    path.write_bytes(text.encode(encoding))
    result = reading(path)
    assert [(concept, name) for concept, name, _ in names(result)] == [("L1", "肺炎, 左侧")]
    (reason,) = result.log.rejected.counts
    assert "a spreadsheet has lost digits" in reason
