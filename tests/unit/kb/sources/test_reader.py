"""Finding the reader of a source by its content, and the filters that hold for every format."""

import codecs
import gzip

import pytest
from snippets import SNIPPETS

from biograft.errors import EncodingError, FormatError, InputError, UnrecognisedError
from biograft.kb import BuildConfig, build_store
from biograft.kb.records import NameRecord, RelationRecord, TypeRecord
from biograft.kb.sources import FORMATS, STARTER, Probe, SourceConfig, read_source, resolve, sniff

STATED = ("umls", "snomed", "babelon", "owl", "rxnorm", "athena", "sssom", "claml")
"""Formats that state the languages of names, the types, or both."""
NAMED = ("words",)
"""Formats that no content shows."""
ALL = [(form, name) for form, files in SNIPPETS.items() if form not in NAMED for name in files]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(("form", "name"), ALL)
def test_a_snippet_is_recognised_by_content(write, form, name, packed):
    data = SNIPPETS[form][name].encode()
    assert sniff(write("file", gzip.compress(data) if packed else data)) == form


@pytest.mark.parametrize(
    ("form", "member"),
    [
        ("umls", "MRCONSO.RRF"),
        ("umls", "META/MRCONSO.RRF"),
        ("snomed", "sct2_Concept_Snapshot_INT_20240101.txt"),
        ("snomed", "Snapshot/Terminology/sct2_Concept_Snapshot_INT_20240101.txt"),
        ("jsonl", "a.jsonl"),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_folder_is_recognised_by_its_files(tmp_path, write, reading, form, member, packed):
    data = SNIPPETS[form][member.rpartition("/")[2]].encode()
    write(f"folder/{member}{'.gz' * packed}", gzip.compress(data) if packed else data)
    write("folder/readme.txt", "nothing")
    assert sniff(tmp_path / "folder") == form
    assert reading(tmp_path / "folder").concepts


@pytest.mark.parametrize(
    "content",
    [
        "prose about diseases\nof all kinds\n",
        "a,b\n1,2\n",
        "\n\n",
        "<html></html>",
        "{" * 5000,
        b"\x00\xff\xfe\xfd\x00\x01",
    ],
)
def test_unknown_content_is_refused_with_the_known_formats(write, content):
    with pytest.raises(UnrecognisedError, match=r"file:1: no reader knows this content .*name the"):
        sniff(write("file", content))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_or_reported(write, encoding):
    """Formerly such a file was only *unknown content*, shown as a row of NULs."""
    assert sniff(write("file", "\ufeffid,name\nD1,flu\n".encode(encoding))) == "table"
    with pytest.raises(UnrecognisedError, match=r"no reader knows .*prose of"):
        sniff(write("other", "\ufeffprose of all kinds\n".encode(encoding)))
    columns = "1|2|3".encode(encoding)
    with pytest.raises(EncodingError, match=r"MRSTY\.RRF:1: is UTF-16; convert it to UTF-8"):
        list(
            read_source(
                SourceConfig(path=write("MRSTY.RRF", codecs.BOM_UTF16 + columns), format="umls")
            )
        )


@pytest.mark.parametrize("data", [b"", gzip.compress(b"")], ids=["plain", "gz"])
def test_an_empty_file_is_called_empty(write, data):
    """Formerly an empty gzip was *unknown content (found: '')*."""
    with pytest.raises(InputError, match=r"file: is empty; check that the download is complete"):
        sniff(write("file", data))


def test_a_table_of_three_columns_is_no_list_of_triples(write, reading):
    """Formerly ``id, name, type`` in a small TSV was read as head, relation and tail."""
    result = reading(write("a.tsv", "id\tname\ttype\nD1\tflu\tdisease\n"))
    assert result.of(NameRecord) == [NameRecord("D1", "flu", "en", "preferred", line=2)]


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\x0b", "\x1c", "\r"])
def test_only_line_feeds_end_a_line_of_the_head(write, sign):
    """Formerly a line separator in a name cut the line in two, and nothing knew the file."""
    assert sniff(write("a", f"a{sign}b\tcauses\tc\n" * 3)) == "triples"


@pytest.mark.parametrize(("form", "name"), ALL)
def test_columns_leave_files_that_are_no_tables_as_they_are(write, form, name):
    """Formerly an OBO given beside a table with columns was read as a table."""
    path = write(name, SNIPPETS[form][name])
    tables = ("babelon", "medic", "zh-alias", "zh-codes", "biosyn", "triples", "table")
    found = resolve(SourceConfig(path=path, columns={"id": "#1"})).format
    assert found == ("table" if form in tables else form)


def test_a_small_table_of_three_columns_is_refused_with_both_ways_out(write):
    """Formerly codes, labels and synonyms were read as head, relation and tail."""
    with pytest.raises(UnrecognisedError, match=r"`--format triples`.* `--columns`") as error:
        sniff(write("a.tsv", "D1\tflu\tgrippe\nD2\tfever\tpyrexia\n"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("form", ["", "jsonl"])
def test_a_built_store_is_no_source(tmp_path, write, form):
    build_store(BuildConfig(sources=(SourceConfig(path=write("a", "D1||flu\n")),)), tmp_path / "KB")
    with pytest.raises(InputError, match=r"KB: is a built knowledge base, .*`biograft kb export`"):
        resolve(SourceConfig(path=tmp_path / "KB", format=form))


@pytest.mark.parametrize("manifest", ["{", "[]", '{"format": "other"}', '{"files": []}'])
def test_another_manifest_in_a_folder_changes_nothing(tmp_path, write, manifest):
    write("F/manifest.json", manifest)
    write("F/a.jsonl", SNIPPETS["jsonl"]["a.jsonl"])
    assert resolve(SourceConfig(path=tmp_path / "F")).format == "jsonl"
    assert resolve(SourceConfig(path=tmp_path / "F", format="jsonl")).format == "jsonl"


@pytest.mark.parametrize("name", ["gone", "x" * 300, "gone/starter"])
def test_a_missing_path_is_reported(tmp_path, name):
    """A name longer than the system allows formerly raised ``OSError``."""
    with pytest.raises(InputError, match="does not exist; check the path"):
        resolve(SourceConfig(path=tmp_path / name))
    with pytest.raises(InputError):
        list(read_source(SourceConfig(path=tmp_path / name, format="obo")))


def test_starter_is_built_in_unless_a_file_has_that_name(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    assert resolve(SourceConfig(path=STARTER)).path.name == "concepts"
    write(STARTER, "D1||flu\n")
    assert resolve(SourceConfig(path=STARTER)).format == "biosyn"


def test_languages_and_relations_are_filtered_and_counted(write, reading):
    line = (
        '{"id": "a", "names": {"en": ["x"], "zh": ["甲"]}, "definitions": {"zh": ["乙"]},'
        ' "relations": {"is-a": ["b"], "treats": ["b", "c"]}}\n'
    )
    result = reading(write("a", line), languages=("CHI",), relations=("is-a",))
    assert [(r.text, r.language) for r in result.of(NameRecord)] == [("甲", "zh")]
    assert [r.relation for r in result.of(RelationRecord)] == ["is-a"]
    assert result.counts["definitions"] == 1
    assert result.log.filtered == {"language": 1, "relation": 2}
    assert [set(ids) for ids in result.log.left_out] == [{"a"}]


def test_concepts_whose_definitions_alone_are_filtered_are_not_left_out(write, reading):
    line = '{"id": "a", "names": {"en": ["x"]}, "definitions": {"zh": ["乙"]}}\n'
    log = reading(write("a", line), languages=("en",)).log
    assert (log.filtered, log.left_out) == ({"language": 1}, [])


@pytest.mark.parametrize(("form", "name"), ALL)
def test_bytes_are_checked_by_every_format(write, reading, form, name):
    """Gzip, a byte order mark and CRLF change nothing; damage is reported."""
    data = SNIPPETS[form][name].encode()
    plain = reading(write(name, data))
    assert plain.records
    assert (plain.log.n_read >= 1, plain.log.rejected.counts) == (True, {})
    assert reading(write(f"{name}.gz", gzip.compress(data))).records == plain.records
    if form != "owl":  # Turtle and N-Triples have no byte order mark
        windows = codecs.BOM_UTF8 + data.replace(b"\n", b"\r\n")
        assert reading(write(name, windows)).records == plain.records
    with pytest.raises(InputError, match="damaged or cut short"):
        reading(write("cut.gz", gzip.compress(data)[:-9]), format=form)


@pytest.mark.parametrize(
    ("form", "name"), [(form, name) for form, name in ALL if "flu" in SNIPPETS[form][name]]
)
def test_an_encoding_is_checked_or_heeded(write, reading, form, name):
    path = write(name, SNIPPETS[form][name].replace("flu", "flü").encode("latin-1"))
    with pytest.raises((EncodingError, FormatError), match=rf"{name}:\d+: "):
        reading(path, format=form)
    if form not in ("mesh", "owl"):  # whose syntaxes state their encoding
        texts = [record.text for record in reading(path, encoding="latin-1").of(NameRecord)]
        assert "flü" in texts or form == "triples"


@pytest.mark.parametrize(
    ("form", "name"),
    [(form, name) for form, name in ALL if form not in STATED],
)
def test_language_and_type_are_the_configured_ones_where_none_is_stated(write, reading, form, name):
    path = write(name, SNIPPETS[form][name])
    result = reading(path, language="it", default_type="Thing")
    states_language = '"zh"' in SNIPPETS[form][name]
    assert {r.language for r in result.of(NameRecord)} == {"zh" if states_language else "it"}
    own = {record.concept for record in reading(path).of(TypeRecord)}
    assert {r.concept for r in result.of(TypeRecord) if r.type == "Thing"} == result.concepts - own


_RECORD = (
    SNIPPETS["mesh"]["desc.xml"]
    .strip()[len("<DescriptorRecordSet>") :]
    .removesuffix("</DescriptorRecordSet>")
)
_NODE = '{"id": "X:1", "lbl": "flu", "type": "CLASS"}'
TWICE = {
    "snomed": "".join(
        line * n
        for line, n in zip(
            SNIPPETS["snomed"]["sct2_Concept_Snapshot_INT_20240101.txt"].splitlines(True),
            (1, 2),
            strict=True,
        )
    ),
    "mesh": f"<DescriptorRecordSet>{_RECORD}\n{_RECORD}</DescriptorRecordSet>",
    "obo": SNIPPETS["obo"]["a.obo"] + "\n[Term]\nid: X:1\nname: flu\n",
    "obograph": f'{{"graphs": [{{"nodes": [{_NODE},\n{_NODE}]}}]}}',
    "medic": SNIPPETS["medic"]["old.txt"] * 2,
    "scispacy": SNIPPETS["scispacy"]["a.jsonl"] * 2,
    "jsonl": SNIPPETS["jsonl"]["a.jsonl"] * 2,
    "zh-alias": SNIPPETS["zh-alias"]["a.csv"] + "感冒,着凉,\n",
    "zh-disease": SNIPPETS["zh-disease"]["a.jsonl"] * 2,
}


@pytest.mark.parametrize("form", TWICE)
def test_an_id_defined_twice_is_doubtful_and_read(write, reading, form):
    result = reading(write("a", TWICE[form]), format=form)
    assert (result.log.rejected.counts, result.log.doubtful.counts) == ({}, {"id defined twice": 1})
    assert result.log.doubtful.examples["id defined twice"][0].line > 1
    preferred = [r.concept for r in result.of(NameRecord) if r.kind == "preferred"]
    assert len(preferred) == len(set(preferred)) + (form in ("mesh", "jsonl"))  # which state it


@pytest.mark.parametrize("inner", ['"name": "x"', '"names": [{"text": "y", "text": "z"}]'])
def test_keys_that_are_given_twice_are_counted(write, reading, inner):
    """Guards: of two values of a key the first was lost, and nothing said so."""
    twice = '{"id": "A", "name": "y", ' + inner + "}"
    result = reading(write("a.jsonl", f'{{"id": "B", "name": "b"}}\n{twice}\n'), format="jsonl")
    assert result.log.doubtful.counts == {"a key is given twice, and the last counts": 1}
    assert result.log.doubtful.examples["a key is given twice, and the last counts"][0].line == 2


_TERMS = "http://purl.org/dc/terms/license"
NOTED = {
    "obo": "data-version: v1\nremark: licensed under x\nimport: a.owl\n\n[Term]\nid: X:1\n",
    "obograph": '{"graphs": [{"meta": {"version": "v1", "basicPropertyValues": [{"pred": '
    f'"{_TERMS}", "val": "x"}}]}}, "nodes": [{{"id": "X:1", "lbl": "a", "type": "CLASS"}}]}}]}}',
    "owl": "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<http://e/o> a owl:Ontology ;"
    f' owl:versionInfo "v1" ; <{_TERMS}> <http://e/x> . <http://e/a> a owl:Class ; <e:p> 1 .',
}


@pytest.mark.parametrize("form", NOTED)
def test_version_licence_and_imports_are_noted(write, reading, form):
    version, licence, *rest = reading(write("a", NOTED[form]), format=form).log.notes
    assert version == "data version: v1"
    assert licence.startswith("licence: ")
    assert licence.endswith("x")
    assert rest == (["import not followed: a.owl"] if form == "obo" else [])


_CTD = "# DiseaseName\tDiseaseID\tSynonyms\n"
_CONSO = SNIPPETS["umls"]["MRCONSO.RRF"]
CLAIMED = [
    ("umls", _CONSO.replace("C0000001", "X0000001", 1), False),
    ("umls", _CONSO + "prose\n", False),
    ("snomed", "id effectiveTime active moduleId\n", False),
    ("mesh", "<!-- <DescriptorRecordSet> --><a/>", False),
    ("obo", "! comment\n\nontology: x\nremark: y\n[Term]\nid: X:1\n", True),
    ("obo", "[Typedef]\nid: part_of\n", True),
    ("obo", "D1||a\n[Term]\n", False),
    ("owl", "  # c\n\n@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<x:a> a owl:Class .", True),
    ("owl", "prefix of something owl# <", False),
    ("owl", '<DescriptorRecordSet xmlns="http://www.w3.org/2002/07/owl#">', False),
    ("obograph", '\n{ "@context": {}, "graphs" : [ {\n "id": "x", "meta": {}', True),
    ("obograph", '{"graphs": 3, "nodes": []}', False),
    ("medic", _CTD, True),
    ("medic", _CTD.replace("Synonyms", "PathwayName\tPathwayID"), False),
    ("medic", "".join(f"C{n}||name {n}\n" for n in range(1500)) + "613||a|b\n", True),
    ("medic", "D1||a\nD1||b|c\n", False),
    ("medic", "D1|613||a\nD1|613||b\nD2||c\n", False),
    ("biosyn", "D1|613||a\nD1|613||b\nD2||c\n", True),
    ("biosyn", "D1||flu|grippe\n", False),
    ("zh-alias", "name,alias,part\na,b,c\n", False),
    ("scispacy", '{"id": "C1", "name": "concept_id canonical_name"}', False),
    ("jsonl", '{"id": "a", "names": []}\n{"id": "b", "na', True),
    ("jsonl", '{"id": "a", "relations": {"r": ["%s"]}, "names": []}' % ("x" * 70_000), False),
    ("jsonl", '{"id": "a", "names": ["x"], "relations": {"r": ["%s"]}}' % ("x" * 70_000), True),
    ("jsonl", '{"id": "a", "names": []}\nprose\n', False),
    ("table", '"Name";"x";"ID"\na;b;c\n', True),
    ("table", "id,name\n", False),
    ("triples", "a\tb\tc\nd\tb\te\nf\th\tg\ni\th\tj\n", True),
    ("triples", "a\tb\tc\nd\tb\te\nf\th\tg\n", False),
    ("triples", '"id"\t"name"\t"type"\nD1\tflu\tx\nD2\tflu\tx\nD3\tflu\tx\n', False),
    ("triples", "".join(f"h{k}\tr{k % 5}\tt\n" for k in range(100)), True),
    ("triples", "".join(f"h{k}\tr{k}\tt\n" for k in range(100)), False),
]


@pytest.mark.parametrize(
    ("form", "text", "is_claimed"), CLAIMED, ids=[f"{n}-{row[0]}" for n, row in enumerate(CLAIMED)]
)
def test_contents_that_a_format_does_or_does_not_claim(tmp_path, form, text, is_claimed):
    recognise = FORMATS.load(form).recognise
    assert recognise(Probe(tmp_path / "x", text.encode()[: 1 << 16])) is is_claimed
    assert not recognise(Probe(tmp_path, b"", frozenset({"x"})))
