"""Files of Usagi and source_to_concept_map as mapping sets, and back without loss."""

import csv
import json

import pytest
from hypothesis import given, settings, strategies as st

from biograft.errors import ConfigError, FormatError
from biograft.linking import Linker
from biograft.mapping import (
    EarlierDecisions,
    MappingRow,
    MappingSet,
    SourceTerm,
    map_terms,
    merge_sets,
    read_decisions,
    read_earlier,
)
from biograft.mapping.omop_tables import USAGI_COLUMNS

SAVED = """\
sourceCode,sourceName,sourceFrequency,sourceAutoAssignedConceptIds,ADD_INFO:dutch,matchScore,\
mappingStatus,equivalence,statusSetBy,statusSetOn,conceptId,conceptName,domainId,mappingType,\
comment,createdBy,createdOn,assignedReviewer
1,type 2 diabetes,100,,suiker,0.83,APPROVED,EQUAL,ann,1714557600123,201826,Type 2 diabetes \
mellitus,Condition,MAPS_TO,"as agreed, see mail",<auto>,1714557000000,bob
2,eye,0,201826;443767,"oog, x",1.00,APPROVED,WIDER,ann,1714557600000,201826,Type 2 diabetes \
mellitus,Condition,MAPS_TO,,ann,1714557600000,
2,eye,0,201826;443767,"oog, x",1.00,APPROVED,WIDER,ann,1714557600000,443767,Disorder of eye due \
to diabetes,Condition,MAPS_TO,,ann,1714557600000,
3,fam hx,3,,,0.55,FLAGGED,INEXACT,bob,1714557600000,4167217,Family history of disorder,\
Observation,MAPS_TO,?,<auto>,1,
3,fam hx,3,,,0.55,FLAGGED,INEXACT,bob,1714557600000,4112853,Malignant tumor of breast,\
Condition,MAPS_TO_VALUE,?,bob,1,
4,n/a,7,,,0.00,APPROVED,UNMATCHED,ann,1714557600000,0,Unmapped,,MAPS_TO,,,0,
5,cough,7,,hoesten,0.41,UNCHECKED,UNREVIEWED,,0,254761,Cough,Condition,MAPS_TO,,<auto>,8,
6,old,1,,,1.00,AUTO_MAPPED_TO_1,UNREVIEWED,,0,1567956,Diabetes,Condition,MAPS_TO,,<auto>,5,
7,icd,1,,,1.00,APPROVED,NARROWER,ann,1714557600000,1567956,Diabetes,Condition,MAPS_TO,,ann,5,
8,gone,1,,,1.00,APPROVED,UNREVIEWED,ann,1714557600000,4000001,Adult,Condition,MAPS_TO,,ann,5,
"""
MAP = """\
source_code,source_concept_id,source_vocabulary_id,source_code_description,target_concept_id,\
target_vocabulary_id,valid_start_date,valid_end_date,invalid_reason
1,2000000001,LOCAL,sugar disease,201826,SNOMED,2020-01-01,2099-12-31,
2,0,LOCAL,eye,201826,SNOMED,1970-01-01,2099-12-31,
2,0,LOCAL,eye,443767,SNOMED,1970-01-01,2099-12-31,
3,0,LOCAL,n/a,0,None,1970-01-01,2099-12-31,
"""


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.csv"
    path.write_text(SAVED, "utf-8")
    return path


def rows_of(path):
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def test_a_file_of_usagi_is_written_again_as_it_was(saved, tmp_path):
    MappingSet.read(saved).write(tmp_path / "m.sssom.tsv")
    MappingSet.read(tmp_path / "m.sssom.tsv").write_usagi(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text("utf-8") == SAVED


def test_what_usagi_says_is_a_decision_or_a_proposal(saved):
    found = [
        (each.code, each.verdict, each.concept, each.relation, each.author)
        for each in read_decisions(saved)
    ]
    assert found == [
        ("1", "approved", "OMOP:201826", "exact", "ann"),
        ("2", "approved", "OMOP:201826", "broad", "ann"),
        ("2", "approved", "OMOP:443767", "broad", "ann"),
        ("3", "proposed", "OMOP:4167217", "related", "bob"),
        ("3", "proposed", "OMOP:4112853", "related", "bob"),
        ("4", "nil", "", "exact", "ann"),
        ("5", "proposed", "OMOP:254761", "related", ""),
        ("6", "proposed", "OMOP:1567956", "related", ""),
        ("7", "approved", "OMOP:1567956", "narrow", "ann"),
        ("8", "approved", "OMOP:4000001", "exact", "ann"),
    ]
    first = read_decisions(saved)[0]
    assert (first.time, first.frequency) == ("2024-05-01T10:00:00.123Z", 100)
    assert first.comment == "as agreed, see mail"


def test_what_is_decided_later_is_written_to_usagi(saved, tmp_path):
    """What Usagi said of a mapping is kept only while it still holds."""
    from dataclasses import replace

    given = MappingSet.read(saved)
    flagged = next(row for row in given.rows if row.subject_id == "code:3")
    decided = replace(
        flagged,
        mapping_justification="semapv:ManualMappingCuration",
        predicate_id="skos:broadMatch",
        author_label="eve",
    )
    replace(given, rows=[decided]).write_usagi(tmp_path / "u.csv")
    (row,) = rows_of(tmp_path / "u.csv")
    assert (row["mappingStatus"], row["equivalence"]) == ("APPROVED", "WIDER")
    assert (row["statusSetBy"], row["domainId"]) == ("eve", "Observation")


def test_rejections_and_other_vocabularies_are_listed(tmp_path):
    rows = [
        MappingRow(subject_label="flu", subject_id="term:flu", object_id="MESH:D007251"),
        MappingRow(subject_id="term:a", object_id="OMOP:1", predicate_modifier="Not"),
        MappingRow(subject_id="term:b", subject_label="b", object_id="OMOP:2"),
    ]
    left_out = []
    n = MappingSet(rows=rows).write_usagi(tmp_path / "u.csv", left_out=left_out)
    assert (n, [what for what, _ in left_out]) == (1, ["'flu'", "'term:a'"])
    assert [row["sourceCode"] for row in rows_of(tmp_path / "u.csv")] == ["b"]
    with pytest.raises(ConfigError, match=r"MESH:D007251 is no concept of OMOP"):
        MappingSet(rows=rows).write_usagi(tmp_path / "v.csv")
    assert not (tmp_path / "v.csv").exists()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (",254761,", ",x1,", r"saved.csv:8: conceptId: expected the number .* found 'x1'"),
        ("AUTO_MAPPED_TO_1", "AUTO", r"saved.csv:9: mappingStatus: 'AUTO' is unknown"),
        ("NARROWER", "SMALLER", r"saved.csv:10: equivalence: 'SMALLER' is unknown"),
        ("1714557600123", "9" * 15, r"saved.csv:2: statusSetOn: expected milliseconds"),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(saved, old, new, problem):
    saved.write_text(SAVED.replace(old, new), "utf-8")
    with pytest.raises(FormatError, match=problem):
        MappingSet.read(saved)


def test_source_to_concept_map_is_decisions(tmp_path, run_main, athena):
    path = tmp_path / "map.csv"
    path.write_text(MAP, "utf-8")
    found = [(each.code, each.verdict, each.concept) for each in read_earlier(path)]
    assert found == [
        ("1", "approved", "OMOP:201826"),
        ("2", "approved", "OMOP:201826"),
        ("2", "approved", "OMOP:443767"),
        ("3", "nil", ""),
    ]
    assert MappingSet.read(path).source == "LOCAL"
    path.write_text(MAP.replace("2099-12-31,\n", "2099-12-31,D\n", 1), "utf-8")
    assert read_decisions(path)[0].verdict == "proposed"  # a row that is not valid any more


def test_codes_with_several_targets_are_applied_whole(saved, athena):
    earlier = EarlierDecisions(read_earlier(saved), athena)
    terms = [SourceTerm("eye", "2"), SourceTerm("type 2 diabetes", "1"), SourceTerm("n/a", "4")]
    rows = list(map_terms(Linker.open(athena), terms, earlier))
    assert [(row.term.text, row.flag, row.concept) for row in rows] == [
        ("eye", "seen", "OMOP:201826"),
        ("eye", "seen", "OMOP:443767"),
        ("type 2 diabetes", "seen", "OMOP:201826"),
        ("n/a", "seen", None),
    ]


def test_a_value_stays_a_value_through_review(athena, tmp_path, run_main):
    """A value was written as if it were a diagnosis."""
    (tmp_path / "t.csv").write_text("code,term\n1,family history of breast cancer\n")
    mapped, decided = tmp_path / "m.csv", tmp_path / "d.sssom.tsv"
    command = ("map", str(tmp_path / "t.csv"), "--column", "term", "--code-column", "code", "-q")
    options = ("--kb", str(athena.folder), "--standard")
    assert run_main(*command, *options, "-o", str(mapped)).code == 0
    review = ("--review", str(tmp_path / "r.db"), "--reviewer", "ann")
    assert run_main("review", "import", str(mapped), *review).code == 0
    assert run_main("review", "approve", "1", "2", "--yes", *review).code == 0
    assert run_main("review", "export", *review[:2], "-o", str(decided)).code == 0
    parts = [each.part for each in read_decisions(decided)]
    assert parts == ["", "value: Malignant tumor of breast"]
    done, said = convert(
        run_main, decided, "--to", "omop", "--kb", athena.folder, "-o", tmp_path / "o.csv"
    )
    assert (done.code, said["n_written"], said["n_values"]) == (0, 1, 1)
    convert(run_main, decided, "--to", "usagi", "-o", tmp_path / "u.csv")
    types = [row["mappingType"] for row in rows_of(tmp_path / "u.csv")]
    assert types == ["MAPS_TO", "MAPS_TO_VALUE"]
    again = tmp_path / "again.csv"
    assert run_main(*command, *options, "--apply", str(decided), "-o", str(again)).code == 0
    assert [row["flag"] for row in rows_of(again)] == ["seen", "seen"]


def convert(run_main, *arguments):
    done = run_main("mapping", "convert", *map(str, arguments), "--json")
    return done, json.loads(done.out) if done.code < 2 else {}


def test_source_to_concept_map_is_written_again_as_it_was(tmp_path, run_main, athena):
    (tmp_path / "map.csv").write_text(MAP, "utf-8")
    middle, again = tmp_path / "m.sssom.tsv", tmp_path / "again.csv"
    assert convert(run_main, tmp_path / "map.csv", "--to", "sssom", "-o", middle)[0].code == 0
    done, said = convert(run_main, middle, "--to", "omop", "--kb", athena.folder, "-o", again)
    assert (done.code, said["n_written"]) == (0, 4)
    assert again.read_text("utf-8") == MAP


def test_only_approved_standard_targets_are_written(saved, tmp_path, run_main, athena):
    out = tmp_path / "o.csv"
    done, said = convert(
        run_main, saved, "--to", "omop", "--kb", athena.folder, "-o", out, *VOCABULARY
    )
    assert done.code == 1
    counts = {"n_rows": 10, "n_written": 5, "n_not_decided": 4, "n_left_out": 1, "n_values": 1}
    assert said == {**counts, "n_followed": 1, "out": str(out)}
    assert "OMOP:4000001 is retired: replaced by OMOP:201826" in done.err
    targets = [(row["source_code"], row["target_concept_id"]) for row in rows_of(out)]
    standard = [("1", "201826"), ("2", "201826"), ("2", "443767"), ("4", "0"), ("7", "201826")]
    assert targets == standard
    more = tmp_path / "p.csv"
    done, said = convert(
        run_main, saved, "--to", "omop", "--kb", athena.folder, "-o", more, "--proposals"
    )
    assert (said["n_written"], said["n_left_out"], said["n_not_decided"]) == (8, 1, 0)
    assert "4112853" not in more.read_text("utf-8")  # only a value: a history is no diagnosis


VOCABULARY = ("--source-vocabulary", "LOCAL")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--to", "omop"), "--to omop: name the knowledge base of the targets (--kb)"),
        (("--to", "excel"), "--to: expected one of sssom, usagi, omop, fhir, found 'excel'"),
    ],
)
def test_wrong_options_of_convert_are_one_line(saved, tmp_path, run_main, options, problem):
    done, _ = convert(run_main, saved, *options, "-o", tmp_path / "o.csv")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert problem in done.err


def test_sets_of_all_kinds_are_merged(saved, tmp_path):
    (tmp_path / "map.csv").write_text(MAP, "utf-8")
    both = merge_sets([MappingSet.read(saved), MappingSet.read(tmp_path / "map.csv")]).result
    both.write(tmp_path / "m.sssom.tsv")
    assert len(MappingSet.read(tmp_path / "m.sssom.tsv").rows) == len(both.rows) == 14


def test_proposals_are_opened_by_usagi(athena, tmp_path, run_main):
    (tmp_path / "t.csv").write_text("code,term\n1,metformin\n2,family history of breast cancer\n")
    command = ("map", str(tmp_path / "t.csv"), "--column", "term", "--code-column", "code")
    out = tmp_path / "u.csv"
    options = ("--kb", str(athena.folder), "--standard", "--to", "usagi", "-o", str(out), "-q")
    assert run_main(*command, *options).code == 0
    rows = rows_of(out)
    assert list(rows[0]) == list(USAGI_COLUMNS)
    assert [(row["sourceCode"], row["conceptId"], row["mappingType"]) for row in rows] == [
        ("1", "1503297", "MAPS_TO"),
        ("2", "4167217", "MAPS_TO"),
        ("2", "4112853", "MAPS_TO_VALUE"),
    ]
    assert {(row["mappingStatus"], row["equivalence"]) for row in rows} == {
        ("UNCHECKED", "UNREVIEWED")
    }
    assert rows[0]["matchScore"] == "1.00"


@pytest.fixture(scope="module")
def usagi_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("usagi")


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "sourceCode": st.text("A1 :+=", min_size=1).map(str.strip).filter(bool),
                "sourceName": st.text("ab é,\"'=", min_size=1).map(str.strip).filter(bool),
                "sourceFrequency": st.integers(0, 10**6).map(str),
                "matchScore": st.sampled_from(["0.00", "0.41", "1.00"]),
                "mappingStatus": st.sampled_from(["APPROVED", "UNCHECKED", "FLAGGED", "IGNORED"]),
                "equivalence": st.sampled_from(["EQUAL", "WIDER", "UNREVIEWED", "UNMATCHED"]),
                "statusSetBy": st.sampled_from(["", "ann", "O'Hara, B"]),
                "statusSetOn": st.sampled_from(["0", "1714557600123"]),
                "conceptId": st.sampled_from(["0", "201826"]),
                "conceptName": st.sampled_from(["Unmapped", "Diabetes, type 2", ""]),
                "mappingType": st.sampled_from(["MAPS_TO", "MAPS_TO_VALUE", "EVENT", ""]),
                "comment": st.text("ab ,").map(str.strip),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_file_of_usagi_survives(usagi_folder, rows):
    folder = usagi_folder
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, USAGI_COLUMNS)
        writer.writeheader()
        writer.writerows([dict.fromkeys(USAGI_COLUMNS, "") | row for row in rows])
    MappingSet.read(folder / "a.csv").write(folder / "a.sssom.tsv", overwrite=True)
    MappingSet.read(folder / "a.sssom.tsv").write_usagi(folder / "b.csv", overwrite=True)
    assert rows_of(folder / "b.csv") == rows_of(folder / "a.csv")
