"""Faults of every format: a wrong line is rejected with its number, damage ends with its line."""

from __future__ import annotations

import pytest
from snippets import SNIPPETS

from biograft.errors import InputError
from biograft.kb.records import NameRecord
from biograft.kb.sources import FORMATS

_CTD = "# DiseaseName\tDiseaseID\tSynonyms\n"
_SNOMED = SNIPPETS["snomed"]
_CONSO = SNIPPETS["umls"]["MRCONSO.RRF"]
_RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
_OWL = "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
RIGHT = {
    "biosyn": "D1||flu\n",
    "jsonl": '{"id": "a", "name": "x"}\n',
    "medic": "D1||flu\n",
    "medic table": f"{_CTD}flu\tD1\t\n",
    "scispacy": SNIPPETS["scispacy"]["a.jsonl"],
    "snomed": _SNOMED["sct2_Concept_Snapshot_INT_20240101.txt"],
    "snomed names": _SNOMED["sct2_Description_Snapshot-en_INT_20240101.txt"],
    "table": "id,name,synonyms\nD1,flu,x\n",
    "triples": "a\tb\tc\n",
    "umls": _CONSO,
    "rxnorm": SNIPPETS["rxnorm"]["RXNCONSO.RRF"],
    "athena": SNIPPETS["athena"]["CONCEPT.csv"],
    "loinc": SNIPPETS["loinc"]["Loinc.csv"],
    "icd11": SNIPPETS["icd11"]["mms.txt"],
    "sssom": SNIPPETS["sssom"]["a.sssom.tsv"],
    "term-table": SNIPPETS["term-table"]["ssslm.tsv"],
    "zh-codes": "诊断代码,诊断名称\nA00.000,霍乱\n",
    "zh-alias": "name,alias,part\n感冒,,\n",
    "zh-disease": '{"gaishu_info": {"name": "感冒"}}\n',
}
"""What stands before the wrong line, and is read."""
_CONCEPT = "22298006\t20240101\t{}\t900000000000207008\t900000000000074008"
_NAME = "1\t20240101\t1\t900000000000207008\t22298006\ten\t{}\t900000000000448009"
WRONG = [
    ("biosyn", "D2", "not of the form id||name"),
    ("biosyn", "||flu", "not of the form id||name"),
    ("biosyn", "D2||", "not of the form id||name"),
    ("jsonl", "prose", "not JSON"),
    ("jsonl", "[" * 100_000, "not JSON"),
    ("jsonl", '{"id": "b", "name": "\\ud800"}', "holds half a surrogate pair"),
    ("jsonl", "[]", "not a JSON object"),
    ("jsonl", '{"id": 5, "name": "x"}', "no id"),
    ("jsonl", '{"id": "b", "nmae": "x"}', "unknown key 'nmae'"),
    ("jsonl", '{"id": "b", "name": ""}', "a text is empty or missing"),
    ("jsonl", '{"id": "b", "name": "x", "iri": 5}', "iri is no text"),
    ("jsonl", '{"id": "b", "names": "x"}', 'expected a list, found "x"'),
    ("jsonl", '{"id": "b", "names": [5]}', "expected text or an object with text, language,"),
    ("jsonl", '{"id": "b", "names": [{"text": "x", "kind": "odd"}]}', "unknown kind 'odd'"),
    ("jsonl", '{"id": "b", "type": null}', "expected text or an object with type, label, tree"),
    ("jsonl", '{"id": "b", "relations": [["r", "c"]]}', "expected text or an object with relation"),
    ("medic", "D2|a", "not of the form ids||names"),
    ("medic", "D2||a||b", "empty name"),
    ("medic table", "a\tb", "2 fields, expected 3"),
    ("medic table", "\tD2\t", "no name or no id"),
    ("scispacy", '{"canonical_name": "x"}', "no concept_id"),
    ("scispacy", "null", "not a JSON object"),
    ("scispacy", '{"concept_id": "\\ud800"}', "holds half a surrogate pair"),
    ("scispacy", '{"concept_id": "C3"}', "no canonical_name"),
    ("snomed", "a\tb", "2 fields, expected 5"),
    ("snomed", _CONCEPT.format("x"), "active is neither 0 nor 1"),
    ("snomed", f"12{_CONCEPT.format(1)[8:]}", "id is no id of SNOMED CT"),
    ("snomed names", _NAME.format("100000\tx"), "unknown typeId of a description"),
    ("snomed names", _NAME.format("900000000000013009\t "), "term is empty"),
    ("table", ",x,y", "id is empty"),
    ("table", "D2,,y", "name is empty"),
    ("table", "D2,x", "2 columns, expected 3"),
    ("triples", "a\t\tc", "not head, relation and tail separated by tabs"),
    ("triples", "a b c", "not head, relation and tail separated by tabs"),
    ("umls", _CONSO[8:-1], "CUI is empty"),
    ("umls", _CONSO[:-5], "17 fields, expected 18"),
    ("umls", _CONSO[:-2], "does not end in |"),
    ("umls", _CONSO[:-1].replace("flu", "f|lu"), "19 fields, expected 18"),
    ("rxnorm", SNIPPETS["rxnorm"]["RXNCONSO.RRF"][3:-1], "RXCUI is empty"),
    ("rxnorm", "161|ENG|x|", "3 fields, expected 18"),
    ("athena", "x\ta\t\t\t\t\t\t\t\t", "concept_id is no number"),
    ("athena", "1\ta", "2 fields, expected 10"),
    ("athena", "1\t \tCondition\tSNOMED\tDisorder\tS\t1\t19700101\t20991231\t", "no name"),
    ("loinc", '"1"', "1 cells, expected 14"),
    ("loinc", '"x","a"' + ',""' * 12, "not a code of LOINC"),
    ("icd11", "\t\t1A01\t\t- \tcategory\t1\t01", "no code or no title"),
    ("sssom", "X:2\tskos:exactMatch", "2 cells, expected 4"),
    ("sssom", "\tskos:exactMatch\tMESH:D1\t", "no subject or no object"),
    ("term-table", "flu\t\tflu\trdfs:label", "no id or no text"),
    ("zh-codes", "A01.000,", "no name"),
    ("zh-codes", "伤寒,A01.000", "not a code of ICD"),
    ("zh-codes", "A01.000,伤寒,x", "3 cells, expected 2"),
    ("zh-alias", ",,", "no name"),
    ("zh-alias", "类风湿...,,", "cut short in the source"),
    ("zh-alias", "a,b", "2 cells, expected 3"),
    ("zh-alias", "甲,类风湿...,", "cut short in the source"),
    ("zh-alias", '甲,"b"c,', "quotes that are not those of CSV"),
    ("zh-alias", '甲,"乙', "quotes that are not those of CSV"),
    ("zh-disease", "[" * 100_000, "not JSON"),
    (
        "zh-disease",
        '{"gaishu_info": {"name": "甲", "common_drug": "药"}}',
        "gaishu_info.common_drug is",
    ),
    ("zh-disease", "[1]", "not a JSON object"),
    ("zh-disease", '{"gaishu_info": {"name": "  "}}', "no name in gaishu_info"),
    ("zh-disease", '{"gaishu_info": {"name": "类风湿..."}}', "cut short in the source"),
    ("zh-disease", '{"gaishu_info": {"name": "\\ud800"}}', "holds half a surrogate pair"),
]


@pytest.mark.parametrize(("form", "line", "reason"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_line_is_rejected_with_its_number_and_the_others_are_read(
    write, reading, form, line, reason
):
    before, kind = RIGHT[form], form.partition(" ")[0]
    after = before.splitlines(keepends=True)[-1]
    name = {"umls": "MRCONSO.RRF", "rxnorm": "RXNCONSO.RRF"}.get(kind, "a")
    plain = reading(write(name, before), format=kind).concepts
    result = reading(write(name, f"{before}{line}\n{after}"), format=kind)
    ((why, n),) = result.log.rejected.counts.items()
    assert (why.startswith(reason), n) == (True, 1), why
    assert result.log.rejected.examples[why][0].line == before.count("\n") + 1
    assert result.concepts >= plain
    preferred = [r.concept for r in result.of(NameRecord) if r.kind == "preferred"]
    assert len(preferred) == len(set(preferred)) + (
        kind in ("jsonl", "umls", "rxnorm", "athena")  # which state it
    )


_GRAPH = '{\n"graphs": [\n{"nodes": [{}]}'
DAMAGED = [
    ("babelon", "subject_id\tpredicate_id\nHP:1\tx\n", "column '.*' is missing"),
    ("medic", "prose\n", r"a:1: expected CTD's column names, or ids\|\|names \(found: 'prose'\)"),
    ("medic", _CTD, "a:1: holds no rows"),
    ("medic", "# about\na\tD1\t\n", "a:2: no line names the columns"),
    (
        "medic",
        '# DiseaseName,DiseaseID,Synonyms\na,D1,\nb,D2,"cut',
        r"a:3: is not valid CSV \(unexpected end",
    ),
    ("mesh", "<DescriptorRecordSet>\n<a></b>", r"a:2: the XML is damaged .* \(mismatched tag"),
    ("mesh", SNIPPETS["mesh"]["desc.xml"][:-30], "a:1: the XML is damaged or cut short"),
    ("mesh", "<DescriptorRecordSet/>", "holds no element DescriptorRecord or"),
    ("mesh", "<a><b/></a>", "the root element is a, expected DescriptorRecordSet or"),
    ("mesh", '<?xml version="1.0" encoding="gb18030"?><a/>', "a:1: the XML declares an encoding"),
    ("icd10cm", "<ICD10CM.tabular><a></b>", "a:1: the XML is damaged"),
    ("claml", "<ClaML><Title/></ClaML>", "a: holds no Class"),
    ("fhir", '{"resourceType": "CodeSystem", "concept": [', "a:1: .*JSON and complete"),
    ("rxnorm", "a|b|", "is none of RXNCONSO, RXNSTY"),
    ("athena", "a\tb\n", "is none of VOCABULARY.csv, CONCEPT.csv"),
    ("loinc", "a,b\n", "is no file of LOINC"),
    ("sssom", "subject_id\tobject_id\nX:1\tY:1\n", "column 'predicate_id' is missing"),
    ("term-table", "text\tcurie\nflu\tX:1\n", "those of neither SSSLM nor Gilda"),
    ("synonyms", '{"flu": ["x"', "a:1: .*JSON and complete"),
    ("words", "\0", "a:1: holds a NUL byte"),
    ("zh-codes", "a,b\nc,d\n", "no row names a column of codes"),
    ("obo", "some prose\n", r"a: holds no stanza, expected .*\[Term\]"),
    ("obograph", _GRAPH[:-2], r"a:3: is not valid JSON|a:3: expected , or"),
    ("obograph", _GRAPH, r"a:3: expected , or \] \(found: 'the end of the file'"),
    ("obograph", '{"graphs": []} x', r"a:1: there is text after the end of the document"),
    ("obograph", '{"graph": [[1], {}], "x": 1}', 'a:1: holds no "graphs"'),
    ("obograph", '{"x": ' + "[" * 200_000, "nested too deeply"),
    ("obograph", '{"x": ' + "9" * 5000 + "}", "is not valid JSON"),
    ("owl", f"{_RDF}\n", "the RDF/XML is damaged or cut short"),
    ("owl", "plain", "a:1: is neither RDF/XML nor Turtle nor N-Triples; convert"),
    ("owl", f"{_RDF}\n<a", "the RDF/XML is damaged or cut short"),
    ("owl", f"{_RDF}<a:b></c:d></rdf:RDF>", "a:1: the RDF/XML is damaged"),
    ("owl", f"{_OWL}<http://e/a> a owl:Class", "a:2: the Turtle is damaged or cut short"),
    ("owl", "<http://a> <http://b> <http://c> .\n<http://a> <b", "a:2: the N-Triples is damaged"),
    ("owl", _OWL, "describes no owl:Class and no skos:Concept"),
    ("scispacy", '[\n{"concept_id": "C1", "can', "a:2: .*JSON and complete"),
    ("scispacy", "[" * 100_000, "a:1: .*JSON and complete"),
    ("table", 'id,name\nD1,a\nD2,"b"c\n', "a:3: is not valid CSV"),
    ("table", "id,name\nD1,a\rb\n", "a:2: is not valid CSV"),
    ("table", "# only comments\n\n", "holds no rows; check the file"),
    ("zh-alias", "甲,乙,丙\n", "a:1: expected columns name and alias"),
]


@pytest.mark.parametrize(("form", "content", "message"), DAMAGED, ids=range(len(DAMAGED)))
def test_damage_is_reported_with_its_line(write, reading, form, content, message):
    with pytest.raises(InputError, match=message):
        reading(write("a", content), format=form)


def test_all_formats_have_a_fault():
    named = {form.partition(" ")[0] for form, _, _ in [*WRONG, *DAMAGED]}
    assert named == set(FORMATS)
