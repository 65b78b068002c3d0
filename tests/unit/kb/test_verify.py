"""Verification of ids and labels in files: what is found, where, and what is corrected."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import InputError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.kb.verify import FileVerifier, Status, Verifier, VerifyConfig
from biograft.testing import check_ids

OBO = """format-version: 1.2

[Term]
id: HP:0000118
name: Phenotypic abnormality

[Term]
id: HP:0001250
name: Seizure
synonym: "Epileptic seizure" EXACT []
alt_id: HP:0002279
is_a: HP:0000118

[Term]
id: HP:0001945
name: Fever
is_a: HP:0000118

[Term]
id: HP:0011463
name: Childhood onset

[Term]
id: HP:0000057
name: Old seizure
is_obsolete: true
replaced_by: HP:0001250

[Term]
id: HP:0000058
name: Vague
is_obsolete: true
consider: HP:0001250
consider: HP:0001945

[Term]
id: HP:0002664
name: Enlarged vertebral pedicles
"""
ZH = "id\tname\tlanguage\nHP:0001250\t癫痫发作\tzh\nHP:0001945\t发热性疾病\tzh\n"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    (folder / "hp.obo").write_text(OBO, "utf-8")
    (folder / "zh.tsv").write_text(ZH, "utf-8")
    sources = tuple(SourceConfig(path=folder / name) for name in ("hp.obo", "zh.tsv"))
    build_store(BuildConfig(sources=sources), folder / "KB")
    return KnowledgeBase.open(folder / "KB")


@pytest.fixture
def found(kb, tmp_path):
    def verify(name, text, *, fix=False, **settings):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return list(FileVerifier(kb, VerifyConfig(**settings)).verify(path, fix=fix))

    return verify


def places(findings):
    return [(each.line, each.column, each.id, str(each.status)) for each in findings]


@pytest.mark.parametrize(
    ("identifier", "label", "status"),
    [
        ("HP:0001250", "Seizure", Status.PREFERRED),
        ("HP:0001250", "seizure ", Status.PREFERRED),
        ("http://purl.obolibrary.org/obo/HP_0001250", "Epileptic seizure", Status.SYNONYM),
        ("HP:0001250", "癫痫发作", Status.SYNONYM),
        ("HP:0001250", "", Status.NO_LABEL),
        ("HP:0001250", "Siezure", Status.MISSPELT_LABEL),
        ("HP:0001250", "Epileptic seisure", Status.MISSPELT_LABEL),
        ("HP:0001250", "癫痫发做", Status.MISSPELT_LABEL),
        ("HP:0001250", "Fit", Status.UNKNOWN_LABEL),
        ("HP:0001250", "Seizures", Status.UNKNOWN_LABEL),
        ("HP:0002664", "Enlarged vertebral pedicle", Status.UNKNOWN_LABEL),
        ("HP:0002664", "Enlarged vetebral pedicles", Status.MISSPELT_LABEL),
        ("HP:0001250", "Fever", Status.LABEL_OF_ANOTHER),
        ("HP:0001251", "Seizure", Status.UNKNOWN_ID),
        ("HP:9999999", "Something else", Status.UNKNOWN_ID),
        ("HP:0011470", "Something else", Status.NEWER_ID),
        ("HP:0000057", "Old seizure", Status.RETIRED),
        ("HP:0002279", "Seizure", Status.RETIRED),
        ("MONDO:0005148", "Seizure", Status.OTHER_VOCABULARY),
    ],
)
def test_status_of_an_id_with_a_label(kb, identifier, label, status):
    assert Verifier(kb).judge(identifier, label).status == status


def test_vocabularies_and_branches_that_were_asked_for(kb):
    limited = Verifier(kb, vocabularies=("HPO",), below=("HP:0000118",))
    assert limited.judge("MONDO:0005148").status == Status.WRONG_VOCABULARY
    assert limited.judge("HP:0011463", "Childhood onset").status == Status.WRONG_BRANCH
    assert limited.judge("HP:0001250", "Seizure").level == ""
    assert limited.judge("HP:0001250", "Fever").status == Status.LABEL_OF_ANOTHER


def test_a_value_set_that_was_asked_for(kb, tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text("id\tlabel\nHP:0001250\tSeizure\nHP:0011463\tChildhood onset\n")
    verifier = FileVerifier(kb, VerifyConfig(value_set="<< HP:0000118"))
    (found,) = verifier.verify(file)
    assert (found.id, found.status) == ("HP:0011463", Status.NOT_IN_VALUE_SET)
    assert "is not in << HP:0000118" in found.message


RIGHT_AND_WRONG = {
    "a.tsv": (
        "# a comment\nsubject_id\tsubject_label\n"
        "HP:0001250\tSeizure\nHP:0001250\tSiezure\nHP:0001945|HP:0001250\tFever|Fever\n"
        "\n HP:0001250 | HP:0001250\tSeizure|Fever",
        [
            (4, 1, "HP:0001250", "misspelt_label"),
            (5, 12, "HP:0001250", "label_of_another"),
            (7, 15, "HP:0001250", "label_of_another"),
        ],
    ),
    "a.csv": (
        'name,"the id"\n"Seizure, Siezure",HP:0001250\nFever,"HP:0001250"\n',
        [(2, 20, "HP:0001250", "unknown_label"), (3, 8, "HP:0001250", "label_of_another")],
    ),
    "a.json": (
        '{"features": [\n {"type": {"id": "HP:0001250", "label": "Seizure"}},\n'
        ' {"type": {"label": "F\\u0065ver", "id": "HP:0001250"}}],\n "onset": "HP:0099999"}\n',
        [(3, 42, "HP:0001250", "label_of_another"), (4, 12, "HP:0099999", "unknown_id")],
    ),
    "fhir.json": (
        '{"coding": [{"system": "http://human-phenotype-ontology.org", "code": "HP:0001250",'
        ' "display": "Fever"}]}',
        [(1, 72, "HP:0001250", "label_of_another")],
    ),
    "a.jsonl": (
        '{"hpo_id": "HP:0001250", "hpo_name": "Seizure"}\n'
        '{"hpo_id": "HP:0001250", "hpo_name": "Siezure"}\n',
        [(2, 13, "HP:0001250", "misspelt_label")],
    ),
    "a.yaml": (
        "features:\n  - id: HP:0001250\n    label: Fever\nids: [HP:0001250, HP:0000057]\n",
        [(2, 9, "HP:0001250", "label_of_another"), (4, 19, "HP:0000057", "retired")],
    ),
    "a.obo": (
        '[Term]\nid: HP:0001250\nname: Siezure\nis_a: HP:0000118 ! Fever {source="x"}\n'
        "xref: HP:0001945 ! Fever\n",
        [(2, 5, "HP:0001250", "misspelt_label"), (4, 7, "HP:0000118", "label_of_another")],
    ),
    "a.ttl": (
        "@prefix obo: <http://purl.obolibrary.org/obo/> .\n"
        '# "not" a label\nobo:HP_0001250 rdfs:label "Siezure"@en ;\n'
        "  rdfs:subClassOf <http://purl.obolibrary.org/obo/HP_0000057> .\n",
        [(3, 1, "HP:0001250", "misspelt_label"), (4, 20, "HP:0000057", "retired")],
    ),
    "a.md": (
        "The child had a fever and a seizure (HP:0001250), no fits (HP:0001250).\n"
        "- Siezure (HP:0001250)\n[Fever](HP:0001250) [Seizure](HP:0001250)\n"
        "| HP:0001250 | Fever |\n| Fever | HP:0001250 |\n`HP:0000057`: HP:0001250 ! Fever\n",
        [
            (2, 12, "HP:0001250", "misspelt_label"),
            (3, 9, "HP:0001250", "label_of_another"),
            (4, 3, "HP:0001250", "label_of_another"),
            (5, 11, "HP:0001250", "label_of_another"),
            (6, 2, "HP:0000057", "retired"),
            (6, 15, "HP:0001250", "label_of_another"),
        ],
    ),
}


@pytest.mark.parametrize("name", RIGHT_AND_WRONG)
def test_findings_of_a_file_with_line_and_column(found, name):
    text, expected = RIGHT_AND_WRONG[name]
    assert places(found(name, text)) == expected


@pytest.mark.parametrize("name", RIGHT_AND_WRONG)
def test_every_place_is_where_the_id_stands(found, name):
    text, _ = RIGHT_AND_WRONG[name]
    lines = text.split("\n")
    for finding in found(name, text):
        written = lines[finding.line - 1][finding.column - 1 :]
        assert written.startswith((finding.id, finding.id.replace("HP:", "obo:HP_"), "http://"))


def test_columns_without_telling_names_are_found_by_their_cells(found):
    text = "a\tb\tc\n" + "x\tHP:0001250\tSeizure\n" * 3 + "x\tHP:0001250\tFever\n"
    assert places(found("a.tsv", text)) == [(5, 3, "HP:0001250", "label_of_another")]


def test_columns_can_be_named(found):
    text = "code,term,other\nHP:0001250,Seizure,Fever\n"
    (wrong,) = found("a.csv", text, columns={"id": "code", "label": "other"})
    assert wrong.status == Status.LABEL_OF_ANOTHER
    assert found("a.csv", text, columns={"id": "code", "label": "term"}) == []
    nested = (
        '{"a": {"id": "HP:0001250", "label": "Fever"}, "b": {"id": "HP:0001945", "label": "x"}}'
    )
    wrong = found("a.json", nested, columns={"id": "a.id", "label": "a.label"})
    assert [each.id for each in wrong] == ["HP:0001250"]
    with pytest.raises(InputError, match="column 'no' is missing"):
        found("a.csv", text, columns={"id": "no"})


def test_a_workbook_is_verified_sheet_by_sheet(kb, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["id", "label"])
    book.active.append(["HP:0001250", "Seizure"])
    other = book.create_sheet("More")
    for row in (["label", "id"], ["Fever", "HP:0001250"]):
        other.append(row)
    book.save(tmp_path / "a.xlsx")
    (wrong,) = FileVerifier(kb).verify(tmp_path / "a.xlsx")
    assert (wrong.cell, wrong.status) == ("More!B2", Status.LABEL_OF_ANOTHER)


def test_what_is_certain_is_corrected_in_place_and_nothing_else(found, tmp_path):
    for name, (text, _) in RIGHT_AND_WRONG.items():
        before = found(name, text, fix=True)
        after = found(name, (tmp_path / name).read_text("utf-8"))
        certain = [each for each in before if each.fixed]
        assert len(after) == len(before) - len(certain), name
        assert all(each.status in (Status.MISSPELT_LABEL, Status.RETIRED) for each in certain), name
    assert (tmp_path / "a.jsonl").read_text() != '"hpo_name": "Seizure"}\n' * 2
    assert (tmp_path / "a.jsonl").read_text().endswith('"HP:0001250", "hpo_name": "Seizure"}\n')
    assert "obo/HP_0001250> ." in (tmp_path / "a.ttl").read_text()


def test_a_retired_id_with_two_possible_successors_is_left_to_a_person(found, tmp_path):
    (wrong,) = found("a.tsv", "id\tlabel\nHP:0000058\tVague\n", fix=True)
    assert (wrong.fixed, wrong.suggestions) == (False, ("HP:0001250", "HP:0001945"))
    assert (tmp_path / "a.tsv").read_text() == "id\tlabel\nHP:0000058\tVague\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"id": "HP:0001250"', "the JSON is cut short"),
        ("a.json", '{"id": ["HP:0001250"}', "a.json:1: is not JSON"),
        ("a.yaml", "a: [b", "a.yaml:.* is not YAML"),
    ],
)
def test_damage_is_one_line(found, name, text, message):
    with pytest.raises(InputError, match=message) as error:
        found(name, text)
    assert "\n" not in str(error.value)


def test_command_with_reports_and_exit_status(kb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_text("id\tlabel\nHP:0001250\tFever\nHP:0001250\tFit\n")

    def run(*arguments):
        return CliRunner().invoke(app, list(arguments))

    store = ("--kb", str(kb.folder))
    plain = run("verify", "in", *store)
    assert plain.exit_code == 1
    assert "in/a.tsv:2:1: error: HP:0001250" in plain.stdout
    assert "2 ids in 1 files: 1 errors, 1 warnings" in plain.stderr
    line = json.loads(run("verify", "in", *store, "--json").stdout.splitlines()[0])
    assert (line["line"], line["status"], line["suggestions"]) == (
        2,
        "label_of_another",
        ["HP:0001945"],
    )
    sarif = json.loads(run("verify", "in", *store, "--to", "sarif").stdout)
    (result, warning) = sarif["runs"][0]["results"]
    assert (result["ruleId"], warning["level"]) == ("label_of_another", "warning")
    assert run("verify", "in", *store, "--to", "junit", "-o", "r.xml").exit_code == 1
    from xml.etree import ElementTree

    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert root.get("failures") == "1"
    (tmp_path / "in" / "a.tsv").write_text("id\tlabel\nHP:0001250\tFit\n")
    assert run("verify", "in", *store).exit_code == 0
    assert run("verify", "in", *store, "--strict").exit_code == 1
    (tmp_path / "in" / "a.tsv").write_text("id\tlabel\nMONDO:1\tFit\n")
    assert "no id of HP was found" in run("verify", "in", *store).stderr


def test_check_ids_fails_with_what_is_wrong(kb, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("id\tlabel\nHP:0001250\tSeizure\n")
    check_ids([path], kb.folder)
    path.write_text("id\tlabel\nHP:0001250\tFever\n")
    with pytest.raises(AssertionError, match=r"a\.tsv:2:1: error: HP:0001250 \"Fever\""):
        check_ids([path], kb.folder)


def test_old_labels_of_hpo_are_rarely_accused(shared_data, tmp_path):
    """Of 10,223 labels of 2013, 31 are misspelt by the HPO of 2025, 10 are of another concept."""
    for name, file in (("new", "hp_2025-01-16.obo.gz"), ("old", "hp.obo.gz")):
        source = SourceConfig(path=shared_data(f"ontologies/obo/{file}"))
        build_store(BuildConfig(sources=(source,)), tmp_path / name)
    judge = Verifier(KnowledgeBase.open(tmp_path / "new")).judge
    statuses = [judge(c.id, c.name).status for c in KnowledgeBase.open(tmp_path / "old")]
    assert len(statuses) > 10_000
    assert statuses.count(Status.MISSPELT_LABEL) <= 32
    assert statuses.count(Status.LABEL_OF_ANOTHER) <= 10
    assert statuses.count(Status.UNKNOWN_ID) == 0
