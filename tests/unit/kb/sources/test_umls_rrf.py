"""UMLS RRF: names, types, definitions and relations, with every filter and direction."""

import gzip
from functools import partial

import polars as pl
import pytest

from biograft.errors import UnrecognisedError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.records import DefinitionRecord, IdRecord, NameRecord, RelationRecord, TypeRecord
from biograft.kb.sources import SourceConfig, sniff

A, B, C = "C0000001", "C0000002", "C0000003"


@pytest.fixture
def umls(reading):
    return partial(reading, format="umls")


def conso(cui, text, *, lat="ENG", flags="P PF Y", sab="MSH", tty="MH", suppress="N"):
    ts, stt, ispref = flags.split()
    return f"{cui}|{lat}|{ts}|L1|{stt}|S1|{ispref}|A1||M1|D1|{sab}|{tty}|D1|{text}|0|{suppress}||\n"


def sty(cui, tui="T047", stn="B2.2.1.2.1", label="Disease or Syndrome"):
    return f"{cui}|{tui}|{stn}|{label}|AT1|256|\n"


def definition(cui, text, sab="MSH", suppress="N"):
    return f"{cui}|A1|AT1||{sab}|{text}|{suppress}||\n"


def rel(first, relation, second, rela="", sab="MSH", suppress="N"):
    return f"{first}|A1|AUI|{relation}|{second}|A2|AUI|{rela}|R1||{sab}|{sab}|||{suppress}||\n"


META = {
    "MRCONSO.RRF": conso(A, "Flu")
    + conso(A, "Influenza", flags="S PF Y", tty="ET")
    + conso(B, "Infection"),
    "MRSTY.RRF": sty(A) + sty(A, "T046", "B2.2.1.2", "Pathologic Function"),
    "MRDEF.RRF": definition(A, "A viral infection."),
    "MRREL.RRF": rel(A, "PAR", B, "inverse_isa"),
    "MRCUI.RRF": f"{C}|2020AA|SY|||{A}|Y|\n",
}
FACTS = [
    NameRecord(A, "Flu", "en", "preferred", "MSH", 1),
    NameRecord(A, "Influenza", "en", "synonym", "MSH", 2),
    NameRecord(B, "Infection", "en", "preferred", "MSH", 3),
    TypeRecord(A, "T047", "Disease or Syndrome", "B2.2.1.2.1", 1),
    TypeRecord(A, "T046", "Pathologic Function", "B2.2.1.2", 2),
    DefinitionRecord(A, "A viral infection.", "en", "MSH", 1),
    RelationRecord(A, "is-a", B, "MSH", 1),
    IdRecord(A, C, "replaced", 1),
]


@pytest.fixture
def meta(write, tmp_path):
    def make(files=META, folder="META", packed=False):
        for name, text in files.items():
            data = gzip.compress(text.encode()) if packed else text
            write(f"{folder}/{name}{'.gz' * packed}", data)
        return tmp_path / folder.split("/")[0]

    return make


@pytest.mark.parametrize("folder", ["META", "2026AA/META"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_folder_gives_all_facts_in_the_order_of_the_files(meta, umls, folder, packed):
    path = meta(folder=folder, packed=packed)
    result = umls(path)
    assert result.records == FACTS
    assert (result.log.n_read, result.log.rejected.counts, result.log.filtered) == (8, {}, {})
    names = [p.name.split(".")[0] for p in result.log.files]
    assert names == [name.removesuffix(".RRF") for name in META]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("kind", [name.removesuffix(".RRF") for name in META])
def test_a_single_file_is_recognised_by_content(write, umls, kind, packed):
    text = META[f"{kind}.RRF"]
    path = write("part.txt", gzip.compress(text.encode()) if packed else text)
    assert sniff(path) == "umls"
    own = {"MRCONSO": NameRecord, "MRSTY": TypeRecord, "MRDEF": DefinitionRecord}
    own["MRCUI"] = IdRecord
    kept = own.get(kind, RelationRecord)
    assert umls(path).records == [fact for fact in FACTS if isinstance(fact, kept)]


def test_a_file_with_unusual_content_is_recognised_by_name(write, umls):
    """A cut of MRREL may begin with rows that look like none of the four."""
    result = umls(write("MRREL_part.RRF", "odd\n" * 5 + rel(A, "RO", B, "treats")))
    assert [r.relation for r in result.records] == ["treats"]
    assert result.log.rejected.counts == {"does not end in |": 5}


def test_other_files_are_refused(write, umls, tmp_path):
    with pytest.raises(
        UnrecognisedError, match=r"a\.txt:1: is none of MRCONSO, MRSTY, MRDEF, MRREL"
    ):
        umls(write("a.txt", "C0000001|x|\n"))
    with pytest.raises(UnrecognisedError, match=r"holds no MRCONSO.RRF; name the META folder"):
        umls(tmp_path)


def test_the_three_flags_together_make_the_preferred_name(write, umls):
    flags = ["P PF Y", "S PF Y", "P VO Y", "P PF N"]
    path = write("c", "".join(conso(A, f"n{k}", flags=f) for k, f in enumerate(flags)))
    kinds = [record.kind for record in umls(path).records]
    assert kinds == ["preferred", "synonym", "synonym", "synonym"]


@pytest.mark.parametrize(
    ("options", "texts", "filtered"),
    [
        ({}, ["a", "b", "c", "d"], {"suppressed": 3}),
        ({"keep_suppressed": True}, ["a", "b", "c", "d", "O", "E", "Y"], {}),
        ({"vocabularies": ("MSH", "MDR")}, ["a", "c", "d"], {"suppressed": 3, "vocabulary": 1}),
        ({"term_types": ("PT",)}, ["b", "c"], {"suppressed": 3, "term type": 2}),
        ({"languages": ("zh",)}, ["d"], {"suppressed": 3, "language": 3}),
        (
            {"vocabularies": ("MSH",), "term_types": ("MH",), "languages": ("en",)},
            ["a"],
            {"suppressed": 3, "vocabulary": 1, "term type": 1, "language": 1},
        ),
    ],
)
def test_every_filter_on_names(write, umls, options, texts, filtered):
    rows = [
        conso(A, "a"),
        conso(A, "b", sab="SNOMEDCT_US", tty="PT"),
        conso(A, "c", tty="PT"),
        conso(A, "d", lat="CHI"),
        *(conso(A, flag, suppress=flag) for flag in "OEY"),
    ]
    result = umls(write("c", "".join(rows)), **options)
    assert [record.text for record in result.records] == texts
    assert (result.log.filtered, result.log.rejected.counts) == (filtered, {})


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, {C}),
        ({"keep_suppressed": True}, set()),
        ({"vocabularies": ("MSH",)}, {B, C}),
        ({"term_types": ("PT",)}, {A, C}),
        ({"languages": ("zh",)}, {A, B, C}),
    ],
)
def test_concepts_without_a_name_left_by_a_filter_are_reported(write, umls, options, left):
    rows = [conso(A, "a"), conso(A, "old", suppress="O"), conso(B, "b", sab="NCI", tty="PT")]
    result = umls(write("c", "".join([*rows, conso(C, "c", suppress="Y")])), **options)
    assert {identifier for ids in result.log.left_out for identifier in ids} == left
    assert all(isinstance(ids, pl.Series) for ids in result.log.left_out)


@pytest.mark.parametrize("empty", [b"", gzip.compress(b"")], ids=["plain", "gz"])
@pytest.mark.parametrize("kind", ["MRSTY", "MRDEF", "MRREL", "MRCUI"])
def test_an_empty_file_beside_the_names_is_noted(meta, write, umls, kind, empty):
    """MetamorphoSys writes empty files where a subset leaves nothing; it was an error."""
    path = meta({name: text for name, text in META.items() if name != f"{kind}.RRF"})
    n_left = len(umls(path).records)
    write(f"META/{kind}.RRF{'.gz' * bool(empty)}", empty)
    result = umls(path)
    assert (result.log.notes, len(result.records)) == ([f"{kind}.RRF is empty"], n_left)


def test_filters_on_definitions_and_relations(meta, umls):
    files = META | {
        "MRDEF.RRF": definition(A, "kept")
        + definition(A, "other", "NCI")
        + definition(A, "old", suppress="O"),
        "MRREL.RRF": rel(A, "RO", B, "treats")
        + rel(A, "RO", B, "causes", "NCI")
        + rel(A, "RO", B, "old", suppress="Y"),
    }
    result = umls(meta(files), vocabularies=("MSH",))
    assert [record.text for record in result.of(DefinitionRecord)] == ["kept"]
    assert [record.relation for record in result.of(RelationRecord)] == ["treats"]
    assert result.log.filtered == {"suppressed": 2, "vocabulary": 2}
    kept = umls(meta(files), keep_suppressed=True)
    assert (len(kept.of(DefinitionRecord)), len(kept.of(RelationRecord))) == (3, 3)


@pytest.mark.parametrize(
    ("relation", "rela", "triple"),
    [
        ("PAR", "inverse_isa", (A, "is-a", B)),
        ("CHD", "isa", (B, "is-a", A)),
        ("CHD", "", (B, "is-a", A)),
        ("RN", "isa", (B, "is-a", A)),
        ("PAR", "has_part", (B, "has_part", A)),
        ("RO", "may_treat", (B, "may_treat", A)),
        ("RB", "", (B, "RB", A)),
    ],
)
def test_the_second_concept_is_the_head_and_the_hierarchy_points_up(
    write, umls, relation, rela, triple
):
    (record,) = umls(write("r", rel(A, relation, B, rela))).records
    assert (record.head, record.relation, record.tail) == triple


def test_both_sides_of_the_hierarchy_are_one_relation_in_the_store(meta, tmp_path):
    files = META | {
        "MRREL.RRF": rel(A, "PAR", B, "inverse_isa")
        + rel(B, "CHD", A, "isa")
        + rel(A, "PAR", B)
        + rel(A, "RO", B, "caused_by")
        + rel(A, "RO", A, "of_itself")
        + rel(A, "RO", C, "of_nothing")
    }
    config = BuildConfig(sources=(SourceConfig(path=meta(files)),))
    report = build_store(config, tmp_path / "KB")
    kb = KnowledgeBase.open(tmp_path / "KB")
    assert [(r.head, r.relation, r.tail) for r in kb.relations(A)] == [
        (A, "is-a", B),
        (B, "caused_by", A),
    ]
    (source,) = report.sources
    assert (report.merged["relations"], source.n_rejected) == (2, 1)
    assert source.filtered == {"relation of a concept to itself": 1}
    assert source.rejected["relations: head is no concept"]["examples"][0]["line"] == 6


@pytest.mark.parametrize(
    ("sab", "options", "language"),
    [
        ("MSH", {}, "en"),
        ("MSHSPA", {}, "es"),
        ("MEDLINEPLUS_SPA", {}, "es"),
        ("MSHXYZ", {}, "en"),
        ("MSH", {"language": "de"}, "de"),
        ("MSHSPA", {"language": "de"}, "es"),
    ],
)
def test_the_language_of_a_definition_is_that_of_its_vocabulary(
    write, umls, sab, options, language
):
    (record,) = umls(write("d", definition(A, "x", sab)), **options).records
    assert (record.language, record.source) == (language, sab)


def test_codes_of_source_vocabularies_are_kept_on_request(write, reading):
    rows = [
        "C0000001|ENG|P|L1|PF|S1|Y|A1||||MSH|MH|D000001|name|0|N||",
        "C0000001|ENG|S|L1|PF|S1|Y|A2||||MSH|ET|D000001|other|0|N||",
        "C0000001|ENG|S|L1|PF|S1|Y|A3||||GO|PT|GO:0000001|third|0|N||",
        "C0000001|ENG|S|L1|PF|S1|Y|A4||||MTH|PN|NOCODE|fourth|0|N||",
    ]
    path = write("MRCONSO.RRF", "\n".join([*rows, ""]))
    assert reading(path).of(IdRecord) == []
    assert [
        (r.concept, r.id, r.kind, r.line) for r in reading(path, keep_codes=True).of(IdRecord)
    ] == [
        ("C0000001", "MSH:D000001", "xref", 1),
        ("C0000001", "GO:0000001", "xref", 3),
    ]


def test_a_concept_of_a_vocabulary_keeps_the_names_of_all(write, umls):
    rows = [
        conso(A, "a by MDR", sab="MDR"),
        conso(A, "a by MSH"),
        conso(B, "b by MDR", sab="MDR"),
        conso(B, "b by MSH", suppress="O"),
        conso(B, "b 在 MSH", lat="CHI"),
        conso(C, "c by HPO", sab="HPO"),
    ]
    path = write("c", "".join(rows))
    kept = umls(path, keep_concepts_of=("MSH", "HPO"))
    texts = [record.text for record in kept.records]
    assert texts == ["a by MDR", "a by MSH", "b by MDR", "b 在 MSH", "c by HPO"]
    assert (kept.log.n_read, kept.log.filtered) == (6, {"suppressed": 1})
    # an atom that the other filters drop keeps no concept
    english = umls(path, keep_concepts_of=("MSH",), languages=("en",))
    assert [record.text for record in english.records] == ["a by MDR", "a by MSH"]
    assert english.log.filtered == {"suppressed": 1, "concept of other vocabularies": 3}
    both = umls(path, keep_concepts_of=("MSH",), vocabularies=("MDR",))
    assert [record.text for record in both.records] == ["a by MDR", "b by MDR"]


def test_retired_concepts_name_what_takes_their_place(write, umls):
    rows = "".join(
        f"C000000{k}|2020AA|{relation}||||Y|\n".replace("||||", f"|||{successor}|")
        for k, (relation, successor) in enumerate(
            [("SY", A), ("RO", B), ("RN", B), ("DEL", ""), ("SY", "")], 4
        )
    )
    result = umls(write("MRCUI.RRF", rows))
    assert result.records == [
        IdRecord(A, "C0000004", "replaced", 1),
        IdRecord(B, "C0000005", "consider", 2),
        IdRecord(B, "C0000006", "consider", 3),
    ]
    assert result.log.filtered == {"retired concept without a successor": 2}
