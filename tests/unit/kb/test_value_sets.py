"""Value sets: expressions, FHIR files, and their members in two releases."""

from __future__ import annotations

import json

import pytest

from biograft.errors import ConfigError, FormatError, InputError
from biograft.kb import (
    CodeSystems,
    Expression,
    KnowledgeBase,
    diff_value_sets,
    make_value_set,
    read_value_set,
    write_value_set,
)

HP = "http://human-phenotype-ontology.org"


def concept(identifier: str, *parents: str, name: str = "", **more):
    relations = [{"relation": "is-a", "tail": each} for each in parents]
    relations += [{"relation": "located in", "tail": each} for each in more.pop("located_in", ())]
    return {"id": identifier, "name": name or identifier, "relations": relations, **more}


PHENOTYPES = [
    concept("HP:1", name="root"),
    concept("HP:2", "HP:1", name="nerves", located_in=["UBERON:1"]),
    concept("HP:3", "HP:2", name="seizure", ids=[{"id": "HP:30", "kind": "replaced"}]),
    concept("HP:4", "HP:2", "HP:5", name="ataxia", located_in=["UBERON:2"]),
    concept("HP:5", "HP:1", name="limbs"),
    concept("01.0100x001", "HP:5", name="a limb, in China"),
    concept("UBERON:1", name="brain"),
    concept("UBERON:2", "UBERON:1", name="cerebellum"),
]


@pytest.fixture
def kb(build) -> KnowledgeBase:
    return build(PHENOTYPES).base


@pytest.mark.parametrize(
    ("expression", "members"),
    [
        ("HP:3", "HP:3"),
        ("<< HP:2 |nerves|", "HP:2 HP:3 HP:4"),
        ("<HP:2", "HP:3 HP:4"),
        ("<!HP:1", "HP:2 HP:5"),
        ("<<!HP:1", "HP:1 HP:2 HP:5"),
        (">HP:4", "HP:1 HP:2 HP:5"),
        (">>HP:3", "HP:1 HP:2 HP:3"),
        (">!HP:4", "HP:2 HP:5"),
        ("<< HP:1 MINUS << HP:2", "01.0100x001 HP:1 HP:5"),
        ("<< HP:2 and <<HP:5", "HP:4"),
        ("HP:3 OR 01.0100x001 OR <<UBERON:1", "01.0100x001 HP:3 UBERON:1 UBERON:2"),
        ("< (HP:2 OR HP:5)", "01.0100x001 HP:3 HP:4"),
        ("(<HP:1 MINUS <HP:2) MINUS 01.0100x001", "HP:2 HP:5"),
        ("* : located-in = UBERON:1", "HP:2"),
        ('<< HP:1: "located in" = << UBERON:1, is-a = HP:5', "HP:4"),
        ("*:R located_in=HP:2", "UBERON:1"),
        ("* MINUS <<HP:1", "UBERON:1 UBERON:2"),
    ],
)
def test_an_expression_and_its_file_choose_the_same_concepts(kb, tmp_path, expression, members):
    wanted = sorted(members.split())
    assert sorted(read_value_set(kb, expression).ids) == wanted
    resource = make_value_set(kb, expression, name="Some", expand=True)
    listed = resource["expansion"]["contains"]
    assert sorted(each["code"] for each in listed) == wanted
    write_value_set(resource, tmp_path / "some.json")
    assert sorted(read_value_set(kb, tmp_path / "some.json").ids) == wanted
    outer = tmp_path / "outer.json"  # a value set in a value set
    write_value_set(make_value_set(kb, f"^ {tmp_path}/some.json OR UBERON:1"), outer)
    (tmp_path / "some.json").unlink()
    assert set(read_value_set(kb, outer).ids) == {*wanted, "UBERON:1"}


def test_simple_expressions_become_filters_that_every_server_knows(kb):
    parts = make_value_set(kb, "(<HP:1 AND <<HP:2) MINUS HP:3")["compose"]
    below = {"property": "concept", "op": "descendent-of", "value": "HP:1"}
    both = [below, {"property": "concept", "op": "is-a", "value": "HP:2"}]
    assert parts == {
        "include": [{"system": HP, "filter": both}],
        "exclude": [{"system": HP, "concept": [{"code": "HP:3", "display": "seizure"}]}],
    }
    (included,) = make_value_set(kb, ">HP:3")["compose"]["include"]
    assert included["filter"] == [{"property": "constraint", "op": "=", "value": ">HP:3"}]


def test_walks_equal_those_of_the_hierarchy(build, random_concepts):
    kb = build(random_concepts(60, seed=7)).base
    for each in kb.ids_at(range(len(kb))):
        for expression, ids in (
            (f"<{each}", kb.descendants(each)),
            (f"<<{each}", [each, *kb.descendants(each)]),
            (f">{each}", kb.ancestors(each)),
            (f"<!{each}", set(kb.children(each)) - {each}),
            (f"*: R treats = {each}", kb.neighbours(each, relation="treats", direction="out")),
        ):
            flags = Expression(expression).select(kb)
            assert sorted(kb.ids_at(flags.nonzero()[0].tolist())) == sorted(set(ids)), expression


@pytest.mark.parametrize(
    ("expression", "column", "problem"),
    [
        ("", 1, "it ends, expected the id of a concept"),
        ("HP:1 HP:2", 6, "found 'HP:2', expected AND, OR, MINUS or the end"),
        ("<< HP:1 AND HP:2 OR HP:3", 18, "parentheses"),
        ("(HP:1 OR HP:2", 14, "a closing parenthesis"),
        ("<< HP:1 |root", 9, "is not understood"),
        ("(" * 80, 51, "at most 50"),
        ("<< HP:9", 4, "no concept of .* look it up with `biograft kb search`"),
        ("HP:2 OR << seizure", 12, "did you mean HP:3 .seizure."),
        ("<< HP:30", 4, "HP:30 is retired: replaced by HP:3"),
        ("<< HP:2 |limbs|", 4, "HP:2 is 'nerves', 'limbs' is a name of HP:5"),
        ("*: locates = HP:1", 4, "no relation is called 'locates'; did you mean 'located in'"),
    ],
)
def test_what_is_wrong_in_an_expression_is_said_with_its_column(kb, expression, column, problem):
    with pytest.raises(ConfigError, match=f"column {column}: .*{problem}"):
        read_value_set(kb, expression)


def test_no_value_set_is_empty_in_silence(kb, tmp_path):
    with pytest.raises(ConfigError, match="is in this value set"):
        read_value_set(kb, "<HP:3")
    listed = {"system": HP, "concept": [{"code": c} for c in ("HP:30", "HP:99", "HP:3")]}
    file = tmp_path / "v.json"
    write_value_set({"resourceType": "ValueSet", "compose": {"include": [listed]}}, file)
    members = read_value_set(kb, file)
    assert (members.ids, members.unknown) == (["HP:3"], ("HP:30", "HP:99"))
    assert members.note.startswith("2 ids")
    assert members.note.endswith("HP:30 is retired: replaced by HP:3; HP:99")


def test_codes_of_any_shape_are_of_the_system_of_their_vocabulary(build):
    """Ids are numbered by their shapes, as whole arrays."""
    kb = build(
        [
            concept("C0000001", ids=["SNOMEDCT:73211009", "MSH:D000001", "LOCAL:1:2"]),
            concept("ICD10CM:E11.9"),
            concept("甲:1"),
            concept("a" * 60 + "1"),
            concept("D000007"),
        ]
    ).base
    found = {
        codes.identifier(entry): codes.system(entry).name
        for codes in [CodeSystems(kb)]
        for entry in (*range(len(kb)), *codes.entries_at(kb.row("C0000001")))
        if codes.system(entry)
    }
    assert found == {
        "C0000001": "UMLS",
        "SNOMEDCT:73211009": "SNOMEDCT",
        "MSH:D000001": "MESH",
        "ICD10CM:E11.9": "ICD10CM",
        "D000007": "MESH",
        "甲:1": "",
        "a" * 60 + "1": "",
    }


def test_files_that_are_no_value_sets_are_refused(kb, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_value_set(kb, tmp_path / "v.json")
    for content, problem in (
        ("{", "is no JSON"),
        ('{"resourceType": "Patient"}', "ValueSet"),
        ('{"items": [{"concept": 7}]}', "no concept set of ATLAS"),
    ):
        (tmp_path / "v.json").write_text(content)
        with pytest.raises(FormatError, match=problem):
            read_value_set(kb, tmp_path / "v.json")
    unknown = {"include": [{"system": "http://example.org/x"}]}
    (tmp_path / "v.json").write_text(json.dumps({"resourceType": "ValueSet", "compose": unknown}))
    with pytest.raises(ConfigError, match=r"1 ids or code systems .* http://example.org/x"):
        read_value_set(kb, tmp_path / "v.json")


def test_lists_of_ids_and_concept_sets_of_atlas_are_value_sets(kb, build, tmp_path):
    (tmp_path / "ids.txt").write_text("HP:3\n01.0100x001\n")
    (tmp_path / "ids.csv").write_text("id,label\nHP:3,seizure\nHP:2,seizure\n")
    assert sorted(read_value_set(kb, tmp_path / "ids.txt").ids) == ["01.0100x001", "HP:3"]
    with pytest.raises(ConfigError, match=r"ids.csv: .*HP:2 is 'nerves', 'seizure' is a name"):
        read_value_set(kb, tmp_path / "ids.csv")
    omop = build([concept("OMOP:1"), concept("OMOP:2", "OMOP:1"), concept("OMOP:3", "OMOP:1")]).base
    items = [
        {"concept": {"CONCEPT_ID": 1}, "includeDescendants": True},
        {"concept": {"CONCEPT_ID": 3}, "isExcluded": True},
    ]
    (tmp_path / "atlas.json").write_text(json.dumps({"expression": {"items": items}}))
    assert read_value_set(omop, tmp_path / "atlas.json").ids == ["OMOP:1", "OMOP:2"]
    within = make_value_set(omop, f"^ {tmp_path / 'atlas.json'}")
    write_value_set(within, tmp_path / "fhir.json")
    assert read_value_set(omop, tmp_path / "fhir.json").ids == ["OMOP:1", "OMOP:2"]


def test_a_file_imports_others_of_its_folder_by_their_urls(kb, tmp_path):
    write_value_set(make_value_set(kb, "<<HP:2", url="http://x.org/nerves"), tmp_path / "n.json")
    (tmp_path / "broken.json").write_bytes(b"\xff{")
    included = {"valueSet": ["http://x.org/nerves"]}
    outer = {"resourceType": "ValueSet", "compose": {"include": [included]}}
    write_value_set(outer, tmp_path / "outer.json")
    assert read_value_set(kb, tmp_path / "outer.json").ids == ["HP:2", "HP:3", "HP:4"]
    (tmp_path / "n.json").unlink()
    with pytest.raises(ConfigError, match=r"value Set 'http://x.org/nerves' could not be found"):
        read_value_set(kb, tmp_path / "outer.json")


def test_an_expansion_is_read_where_there_is_no_compose(kb, tmp_path):
    contains = [
        {"system": HP, "code": c, "contains": [{"system": HP, "code": "HP:3"}]} for c in ["HP:4"]
    ]
    resource = {"resourceType": "ValueSet", "expansion": {"contains": contains}}
    write_value_set(resource, tmp_path / "v.json")
    assert read_value_set(kb, tmp_path / "v.json").ids == ["HP:3", "HP:4"]


def test_members_of_two_releases_are_compared(kb, build):
    later = build(
        [
            concept("HP:1", name="root", ids=["HP:5"]),
            concept("HP:3", "HP:1", name="seizures", ids=[{"id": "HP:4", "kind": "replaced"}]),
            concept("HP:6", "HP:1", name="new"),
            concept("HP:2", name="nerves"),
        ]
    ).base
    old, new = (read_value_set(base, "<<HP:1") for base in (kb, later))
    before = [(each, old.kb.name_at(row)) for row, each in old]
    assert [(c.change, c.id, c.new) for c in diff_value_sets(before, new)] == [
        ("renamed", "HP:3", ("seizures",)),
        ("added", "HP:6", ()),
        ("removed", "HP:2", ()),
        ("replaced", "HP:4", ("HP:3",)),
        ("merged", "HP:5", ("HP:1",)),
        ("retired", "01.0100x001", ()),
    ]


def test_the_phenotypes_outside_the_nervous_system(shared_data, tmp_path):
    """On the published ontology, against sets of ids."""
    from biograft.kb import build_store
    from biograft.kb.config import BuildConfig
    from biograft.kb.sources import SourceConfig

    source = SourceConfig(path=shared_data("ontologies/obo/hp_2025-01-16.obo.gz"))
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    kb = KnowledgeBase.open(tmp_path / "kb")
    below = [{each, *kb.descendants(each)} for each in ("HP:0000118", "HP:0000707")]
    members = read_value_set(kb, "<< HP:0000118 MINUS << HP:0000707")
    assert set(members.ids) == below[0] - below[1]
    assert len(members) == 15_622
