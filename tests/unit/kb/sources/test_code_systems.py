"""Vocabularies of codes in their published layouts: OMOP, LOINC, RxNorm, ICD, FHIR, Chinese."""

from __future__ import annotations

import io
import itertools
import json
import tarfile

import pytest
from snippets import SNIPPETS

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.records import IdRecord, NameRecord, RelationRecord, TypeRecord
from biograft.kb.sources import SourceConfig


def built(path, tmp_path, **options):
    build_store(BuildConfig(sources=(SourceConfig(path=path, **options),)), tmp_path / "KB")
    return KnowledgeBase.open(tmp_path / "KB")


def names(result):
    return {(r.concept, r.text, r.language, r.kind) for r in result.of(NameRecord)}


def relations(result):
    return {(r.head, r.relation, r.tail) for r in result.of(RelationRecord)}


def ids(result):
    return {(r.concept, r.id, r.kind) for r in result.of(IdRecord)}


# ---- ICD


def test_every_code_of_the_published_list_is_built_and_no_other(shared_data, tmp_path):
    kb = built(shared_data("ontologies/icd10cm/icd10cm-tabular-April-1-2026.xml.gz"), tmp_path)
    published = shared_data("ontologies/icd10cm/code-list-April-2026.txt").read_text().split()
    rows = [kb.find_row(code) for code in published]
    assert None not in rows
    assert set(rows) == set(range(len(kb)))
    fracture = kb["S82101A"]
    assert (fracture.id, fracture.name) == (
        "ICD10CM:S82.101A",
        "Unspecified fracture of upper end of right tibia, initial encounter for closed fracture",
    )
    assert list(kb.parents(fracture.id)) == ["ICD10CM:S82.101"]


_TABULAR = """<ICD10CM.tabular><chapter><name>19</name><desc>Injury (S00-T88)</desc>
<section id="T36-T50"><desc>Poisoning (T36-T50)</desc><diag><name>T36</name>
<desc>Poisoning by antibiotics</desc>
<sevenChrDef><extension char="A">initial encounter</extension>
<extension char="S">sequela</extension></sevenChrDef>
<notes><note>7th characters S do not apply to codes in T36 with 6th character 2</note></notes>
<diag><name>T36.0</name><desc>Penicillins</desc>
<inclusionTerm><note>Ampicillin</note></inclusionTerm></diag>
<diag><name>T36.0X2</name><desc>Self-harm</desc></diag>
</diag></section></chapter></ICD10CM.tabular>"""


def test_seventh_characters_are_filled_up_and_left_out_where_a_note_says_so(write, reading):
    result = reading(write("a.xml", _TABULAR))
    codes = {concept.removeprefix("ICD10CM:") for concept in result.concepts}
    assert codes == {
        *("S00-T88", "T36-T50", "T36", "T36.0", "T36.0XXA", "T36.0XXS", "T36.0X2", "T36.0X2A")
    }
    assert ("ICD10CM:T36.0XXA", "Penicillins, initial encounter", "en", "preferred") in names(
        result
    )
    assert ("ICD10CM:T36.0", "Ampicillin", "en", "synonym") in names(result)
    assert ("ICD10CM:T36.0XXA", "T360XXA", "alternate") in ids(result)
    assert ("ICD10CM:T36.0XXA", "is-a", "ICD10CM:T36.0") in relations(result)


_CLAML = """<ClaML version="2.0.0"><Title name="ICD-10-GM" version="2026"/>
<Modifier code="M4"><SubClass code=".0"/><SubClass code=".1"/></Modifier>
<ModifierClass modifier="M4" code=".0"><SuperClass code="M4"/>
<Rubric kind="preferred"><Label xml:lang="de">Mit Koma</Label></Rubric></ModifierClass>
<ModifierClass modifier="M4" code=".1"><SuperClass code="M4"/>
<Rubric kind="preferred"><Label xml:lang="de">Mit Ketoazidose</Label></Rubric></ModifierClass>
<Class code="IV" kind="chapter"><Rubric kind="preferred"><Label xml:lang="de">Stoffwechsel</Label>
</Rubric></Class>
<Class code="E10" kind="category"><SuperClass code="IV"/><ModifiedBy code="M4"/>
<Rubric kind="preferred"><Label xml:lang="de">Diabetes mellitus, Typ 1
<Reference>(O24.-)</Reference></Label></Rubric>
<Rubric kind="inclusion"><Label xml:lang="de">Juveniler Diabetes</Label></Rubric></Class></ClaML>"""


def test_modifiers_of_claml_make_codes(write, reading):
    result = reading(write("a.xml", _CLAML))
    assert {text for concept, text, *_ in names(result) if concept == "ICD10GM:E10"} == {
        "Diabetes mellitus, Typ 1",
        "Juveniler Diabetes",
    }
    made = ("ICD10GM:E10.1", "Diabetes mellitus, Typ 1: Mit Ketoazidose", "de", "preferred")
    assert made in names(result)
    assert ("ICD10GM:E10.0", "is-a", "ICD10GM:E10") in relations(result)
    assert {r.type for r in result.of(TypeRecord)} == {"IV"}


def test_dashes_of_icd_11_are_the_hierarchy(write, reading):
    header = SNIPPETS["icd11"]["mms.txt"].partition("\n")[0]
    rows = [
        "http://id.who.int/icd/entity/1\t\t\t\tInfections\tchapter\t1\t01",
        "http://id.who.int/icd/entity/2\t\t\tBlockL1-1A0\t- Gastroenteritis\tblock\t1\t01",
        "http://id.who.int/icd/entity/3\t\t1A00\t\t- - Cholera\tcategory\t1\t01",
        "http://id.who.int/icd/entity/4\t\t1A01\t\t- - Other\tcategory\t1\t01",
        "http://id.who.int/icd/entity/5\t\t\tBlockL1-1A1\t- 性传播疾病\tblock\t1\t01",
    ]
    result = reading(write("a.txt", "\n".join([header, *rows, ""])))
    assert relations(result) == {
        ("ICD11:BlockL1-1A0", "is-a", "ICD11:01"),
        ("ICD11:1A00", "is-a", "ICD11:BlockL1-1A0"),
        ("ICD11:1A01", "is-a", "ICD11:BlockL1-1A0"),
        ("ICD11:BlockL1-1A1", "is-a", "ICD11:01"),
    }
    assert ("ICD11:1A00", "http://id.who.int/icd/entity/3", "xref") in ids(result)
    assert ("ICD11:BlockL1-1A1", "性传播疾病", "zh", "preferred") in names(result)


# ---- OMOP


def athena(write, *concepts, relationships=(), **files):
    header, row = SNIPPETS["athena"]["CONCEPT.csv"].splitlines()
    write("B/CONCEPT.csv", "\n".join([header, row, *concepts, ""]))
    header, row = SNIPPETS["athena"]["CONCEPT_RELATIONSHIP.csv"].splitlines()
    write("B/CONCEPT_RELATIONSHIP.csv", "\n".join([header, *relationships, ""]))
    path = write("B/CONCEPT_SYNONYM.csv", SNIPPETS["athena"]["CONCEPT_SYNONYM.csv"])
    for name, content in files.items():
        write(f"B/{name}.csv", content)
    return path.parent


VALID = "19700101\t20991231\t"


def test_an_athena_bundle_is_built_with_codes_domains_and_languages(write, tmp_path):
    folder = athena(
        write,
        f"1567956\tType 2 diabetes\tCondition\tICD10CM\t3-char\t\tE11\t{VALID}",
        "4\tOld diabetes\tCondition\tSNOMED\tDisorder\t\t1\t19700101\t20100101\tU",
        relationships=[
            f"1567956\t201826\tMaps to\t{VALID}",
            f"201826\t1567956\tMapped from\t{VALID}",
            f"4\t201826\tConcept replaced by\t{VALID}",
            f"4\t201826\tMaps to\t{VALID}",
        ],
    )
    kb = built(folder, tmp_path)
    assert [concept.id for concept in kb] == ["OMOP:201826", "OMOP:1567956"]
    assert kb["SNOMED:44054006"].id == kb["SNOMEDCT:44054006"].id == "OMOP:201826"
    diabetes = kb["OMOP:201826"]
    assert {kind.code for kind in diabetes.types} == {"Condition", "Standard"}
    assert {(n.text, n.language) for n in diabetes.names} >= {("2型糖尿病", "zh")}
    assert kb.replacement("OMOP:4").replaced_by == ("OMOP:201826",)
    assert {
        (r.head, r.relation, r.tail) for c in kb for r in kb.relations(c.id, direction="out")
    } == {("OMOP:1567956", "Maps to", "OMOP:201826")}
    only = built(folder, tmp_path / "other", vocabularies=("ICD10CM",))
    assert [concept.id for concept in only] == ["OMOP:1567956"]


def test_one_direction_of_a_relationship_is_kept_and_direct_ancestors_are_parents(write, reading):
    folder = athena(
        write,
        f"201820\tDiabetes\tCondition\tSNOMED\tDisorder\tS\t73211009\t{VALID}",
        relationships=[
            f"201826\t201820\tHas finding site\t{VALID}",
            f"201820\t201826\tFinding site of\t{VALID}",
            f"201820\t201826\tSubsumes\t{VALID}",
        ],
        RELATIONSHIP="relationship_id\trelationship_name\tis_hierarchical\tdefines_ancestry\t"
        "reverse_relationship_id\trelationship_concept_id\n"
        "Finding site of\tx\t0\t0\tHas finding site\t1\n"
        "Has finding site\tx\t0\t0\tFinding site of\t2\n",
        CONCEPT_ANCESTOR="ancestor_concept_id\tdescendant_concept_id\t"
        "min_levels_of_separation\tmax_levels_of_separation\n"
        "201820\t201826\t1\t1\n201826\t201826\t0\t0\n",
    )
    assert relations(reading(folder)) == {
        ("OMOP:201826", "Has finding site", "OMOP:201820"),
        ("OMOP:201826", "is-a", "OMOP:201820"),
    }


# ---- LOINC and RxNorm


def test_a_release_of_loinc_with_parts_variants_and_successors(write, tmp_path):
    table = SNIPPETS["loinc"]["Loinc.csv"]
    old = table.splitlines()[1].replace("4548-4", "1-8").replace("ACTIVE", "DEPRECATED")
    write("L/LoincTable/Loinc.csv", f"{table}{old}\n")
    write("L/LoincTable/MapTo.csv", '"LOINC","MAP_TO","COMMENT"\n"1-8","4548-4",""\n')
    write(
        "L/AccessoryFiles/PartFile/Part.csv",
        '"PartNumber","PartTypeName","PartName","PartDisplayName","Status"\n'
        '"LP16413-4","COMPONENT","Hemoglobin A1c","Hemoglobin A1c","ACTIVE"\n',
    )
    write(
        "L/AccessoryFiles/PartFile/LoincPartLink_Primary.csv",
        '"LoincNumber","PartNumber","PartTypeName","LinkTypeName"\n'
        '"4548-4","LP16413-4","COMPONENT","Primary"\n',
    )
    write(
        "L/AccessoryFiles/LinguisticVariants/zhCN5LinguisticVariant.csv",
        '"LOINC_NUM","COMPONENT","PROPERTY","TIME_ASPCT","SYSTEM","SCALE_TYP","METHOD_TYP",'
        '"LONG_COMMON_NAME","RELATEDNAMES2"\n'
        '"4548-4","血红蛋白 A1c","质量分数","时间点","全血","定量型","","",'
        '"糖化血红蛋白; 糖基化血红蛋白"\n',
    )
    kb = built(tmp_path / "L", tmp_path)
    term = kb["4548-4"]
    assert (term.id, term.name) == ("LOINC:4548-4", "Hemoglobin A1c/Hemoglobin.total in Blood")
    assert {n.text for n in term.names if n.language == "zh"} == {
        *("血红蛋白 A1c:质量分数:时间点:全血:定量型", "糖化血红蛋白", "糖基化血红蛋白")
    }
    assert "LOINC:1-8" not in kb
    assert kb.replacement("LOINC:1-8").replaced_by == ("LOINC:4548-4",)
    assert [(r.relation, r.tail) for r in kb.relations(term.id)] == [
        ("has component", "LOINC:LP16413-4")
    ]


def test_rxnorm_has_term_types_ingredients_and_merged_ids(write, tmp_path):
    drug = "313782|ENG||||||4||||RXNORM|SCD|313782|Acetaminophen 325 MG Oral Tablet||N||\n"
    for name, content in SNIPPETS["rxnorm"].items():
        write(f"rrf/{name}", content + drug * (name == "RXNCONSO.RRF"))
    kb = built(tmp_path / "rrf", tmp_path)
    assert {kind.code for kind in kb["RXNORM:161"].types} == {"IN", "T109"}
    assert [(r.relation, r.tail) for r in kb.relations("RXNORM:313782")] == [
        ("has_ingredient", "RXNORM:161")
    ]
    assert kb.replacement("RXNORM:999").replaced_by == ("RXNORM:161",)


# ---- FHIR


def system(name="lab", url="http://lab.org/codes", **more):
    concepts = [
        {
            "code": "1",
            "display": "Infection",
            "designation": [{"language": "zh", "value": "感染"}],
            "concept": [
                {
                    "code": "2",
                    "display": "Flu",
                    "definition": "A viral infection.",
                    "property": [
                        {"code": "site", "valueCode": "1"},
                        {"code": "x", "valueCode": "y"},
                    ],
                },
                {
                    "code": "3",
                    "display": "Grippe",
                    "property": [{"code": "status", "valueCode": "retired"}],
                    "concept": [{"code": "4", "display": "Bird flu"}],
                },
            ],
        }
    ]
    return {"resourceType": "CodeSystem", "id": name, "url": url, "concept": concepts, **more}


def test_a_code_system_of_fhir_with_hierarchy_designations_and_properties(write, reading):
    result = reading(write("a.json", json.dumps(system())))
    assert names(result) == {
        ("lab:1", "Infection", "en", "preferred"),
        ("lab:1", "感染", "zh", "preferred"),
        ("lab:2", "Flu", "en", "preferred"),
        ("lab:4", "Bird flu", "en", "preferred"),
    }
    assert relations(result) == {
        ("lab:2", "is-a", "lab:1"),
        ("lab:2", "site", "lab:1"),
        ("lab:4", "is-a", "lab:1"),
    }
    assert result.log.filtered == {"retired": 1, "property that is no relation": 1}


def test_members_in_any_order_and_a_bundle_give_the_same(write, reading):
    plain = reading(write("a.json", json.dumps(system())))
    other = {"concept": system()["concept"], **system()}
    assert names(reading(write("b.json", json.dumps(other)))) == names(plain)
    bundle = {"resourceType": "Bundle", "entry": [{"resource": system()}]}
    assert names(reading(write("c.json", json.dumps(bundle)))) == names(plain)


def test_two_systems_with_one_name_are_kept_apart_in_a_package(tmp_path, reading):
    path = tmp_path / "package.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name, url in (("a", "http://lab.org/codes"), ("b", "http://other.org/codes")):
            data = json.dumps(system(url=url)).encode()
            entry = tarfile.TarInfo(f"package/CodeSystem-{name}.json")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    result = reading(path)
    assert {"lab:1", "http://other.org/codes#1"} <= result.concepts
    (doubt,) = result.log.doubtful.counts
    assert doubt.startswith("the prefix lab is of http://lab.org/codes")


def test_known_systems_have_their_prefixes(write, reading):
    loinc = system(name="v", url="http://loinc.org")
    assert "LOINC:1" in reading(write("a.json", json.dumps(loinc))).concepts


# ---- Chinese tables and workbooks

_YB = (
    "章,章代码范围,章的名称,节代码范围,节名称,类目代码,类目名称,亚目代码,亚目名称,诊断代码,诊断名称"
)
_ROW = (
    "1,A00-B99,传染病,A00-A09,肠道传染病,A00,霍乱,A00.0,霍乱弧菌,A00.000,古典生物型霍乱[真性霍乱]"
)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_levels_of_a_chinese_table_are_its_hierarchy(write, reading, encoding):
    result = reading(write("医保版.csv", f"{_YB}\n{_ROW}\n".encode(encoding)))
    chain = ["A00.000", "A00.0", "A00", "A00-A09", "A00-B99"]
    assert relations(result) == {
        (f"ICD10YB:{code}", "is-a", f"ICD10YB:{parent}")
        for code, parent in itertools.pairwise(chain)
    }
    assert {text for concept, text, *_ in names(result) if concept == "ICD10YB:A00.000"} == {
        *("古典生物型霍乱[真性霍乱]", "古典生物型霍乱", "真性霍乱")
    }


def test_two_editions_side_by_side_refer_to_each_other(write, reading):
    result = reading(write("a.csv", SNIPPETS["zh-codes"]["map.csv"]))
    assert names(result) == {
        ("ICD10YB:J00.x00", "感冒", "zh", "preferred"),
        ("ICD10LC:J00.x00", "急性鼻咽炎", "zh", "preferred"),
    }
    assert ("ICD10LC:J00.x00", "ICD10YB:J00.x00", "xref") in ids(result)
    assert relations(result) == set()


def test_a_workbook_is_read_from_the_first_sheet_with_a_table(tmp_path, reading):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["使用说明"])
    sheet = book.create_sheet("疾病")
    for row in (
        ["疾病分类与代码国家临床版2.0"],
        ["主要编码", "附加编码", "疾病名称"],
        ["A17.000+", "G01*", "结核性脑膜炎"],
        ["G01", None, "脑膜炎"],
        ["A17", None, "神经系统的结核病"],
    ):
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    result = reading(tmp_path / "a.xlsx")
    assert result.concepts == {"ICD10LC:A17.000", "ICD10LC:G01", "ICD10LC:A17"}
    assert relations(result) == {
        ("ICD10LC:A17.000", "additional-code", "ICD10LC:G01"),
        ("ICD10LC:A17.000", "is-a", "ICD10LC:A17"),
    }


def test_latin_text_is_not_taken_for_chinese(write, reading):
    from biograft.errors import EncodingError

    with pytest.raises(EncodingError, match="encoding latin-1"):
        reading(write("a.csv", "id,name\n1,M\xe9ni\xe8re\n2,\xd6dem\n".encode("latin-1")))
