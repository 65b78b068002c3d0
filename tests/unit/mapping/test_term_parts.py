"""Parts of local terms: what stands beside a name, several concepts, what tells terms apart."""

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.mapping import map_terms
from biograft.mapping.term_parts import difference, is_plain, no_diagnosis, read_term

NAMES = {
    "asthma": "A",
    "hypertension": "B",
    "type 2 diabetes": "C",
    "kidney stone": "D",
    "pneumonia": "E",
    "acute hepatitis b": "F",
    "breast carcinoma": "G",
    "left ventricular hypertrophy": "H",
    "fever": "I",
    "allergies": "J",
    "高血压": "K",
    "肾结石": "L",
    "肺炎": "M",
    "2型糖尿病": "N",
    "急性非ST段抬高型心肌梗死": "O",
    "腮腺肿物切除术": "P",
}


def is_name(text):
    return text.lower() in NAMES


@pytest.mark.parametrize(
    ("term", "forms"),
    [
        ("J45.909 asthma", ["asthma"]),
        ("I10 - hypertension", ["hypertension"]),
        ("SNOMED CT: 195967001 asthma", ["asthma"]),
        ("(E11.9) type 2 diabetes", ["type 2 diabetes"]),
        ("493.90 asthma", ["asthma"]),
        ("Feuerstein Mims syndrome 2", ["Feuerstein Mims syndrome 2"]),
        ("READ: H33 asthma", ["asthma"]),
        ("kidney stone 5 mm", ["kidney stone"]),
        ("fever 39.5 C", ["fever"]),
        ("BP 180/110 mmHg hypertension", ["hypertension"]),
        ("asthma x 3 days", ["asthma"]),
        ("left breast carcinoma", ["breast carcinoma"]),
        ("pneumonia (R)", ["pneumonia"]),
        ("left asthma w/o exacerbation, gangrene", ["asthma"]),
        ("hypertension without heart failure", ["hypertension"]),
        ("left ventricular hypertrophy", ["left ventricular hypertrophy"]),
        ("breast carcinoma stage IIb", ["breast carcinoma"]),
        ("severe persistent asthma", ["asthma"]),
        ("asthma NOS", ["asthma"]),
        ("asthma + hypertension", ["asthma", "hypertension"]),
        ("asthma; hypertension", ["asthma", "hypertension"]),
        ("asthma with pneumonia", ["asthma", "pneumonia"]),
        ("asthma/pneumonia", ["asthma", "pneumonia"]),
        ("高血压3级（很高危）", ["高血压"]),
        ("左肾结石", ["肾结石"]),
        ("右下肺炎", ["肺炎"]),
        ("糖尿病（2型）", ["2型糖尿病"]),
        ("高血压合并2型糖尿病", ["高血压", "2型糖尿病"]),
        ("高血压##肺炎", ["高血压", "肺炎"]),
        # numbers and letters that belong to a name
        ("vitamin B12 deficiency", ["vitamin B12 deficiency"]),
        ("T12 fracture", ["T12 fracture"]),
        ("Rh +", ["Rh +"]),
    ],
)
def test_what_is_looked_up_for_a_term(term, forms):
    assert list(read_term(term, is_name).forms) == forms


@pytest.mark.parametrize(
    "term",
    [
        *("see note", "N/A", "none", "follow-up", "annual physical", "flu shot", "vaccination"),
        *(
            "Normal delivery",
            "No known allergies",
            "NKDA",
            "xxxx",
            "-",
            "2012",
            "体检",
            "取药",
            "无",
        ),
    ],
)
def test_terms_without_a_diagnosis(term):
    assert no_diagnosis(term)
    assert read_term(term, is_name).no_diagnosis
    assert not read_term(term, lambda _: True).no_diagnosis  # a name of the store always counts


def test_what_leaves_a_concept_as_it_is():
    assert all(map(is_plain, ["severe, left", "(ICD-10 J45.9)", "5 mm", "术后", " NOS", ""]))
    assert not any(map(is_plain, ["in pregnancy", "acute", "without fever", "妊娠期"]))


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("acute hepatitis B", "Hepatitis B, Chronic"),
        ("hepatitis B", "Hepatitis C"),
        ("type 1 diabetes", "Diabetes type 2"),
        ("normal delivery", "Abnormal delivery"),
        ("hyperkalaemia", "Hypokalemia"),
        ("left renal cyst", "Right renal cyst"),
        ("renal cyst", "Hepatic cyst"),
        ("Hodgkin lymphoma", "Non-Hodgkin lymphoma"),
        ("cataract without glaucoma", "Cataract with glaucoma"),
        ("hip replacement", "Hip dislocation"),
        ("急性ST段抬高型心肌梗死", "急性非ST段抬高型心肌梗死"),
        ("乳腺肿物切除术", "腮腺肿物切除术"),
        ("Rh +", "Rh -"),
        ("HBsAg (-)", "HBsAg positive"),
        ("低钾血症", "高钾血症"),
        ("上肢骨折", "下肢骨折"),
    ],
)
def test_names_that_mean_something_else(term, name):
    assert difference(term, name)
    assert not difference(term, term)
    assert not difference(term, term, [name, term])  # another name of the concept agrees


def test_names_that_mean_the_same():
    same = [("kidney stones", "Renal calculi"), ("tumour of brain", "Brain neoplasm")]
    same += [("type II diabetes without complications", "Diabetes mellitus type 2")]
    assert [difference(*each) for each in same] == ["", "", ""]


def test_a_name_with_one_word_changed_means_something_else():
    names = ["Polycystic Kidney Disease, Type 1", "Polycystic Kidney and Hepatic Disease"]
    assert difference("polycystic liver disease, type 1", names[0], names)
    assert not difference("polycystic hepatic and kidney disease, type 1", names[0], names)


@pytest.fixture(scope="module")
def opened(store_of):
    return Linker.open(store_of([{"id": f"X:{k}", "name": n} for n, k in NAMES.items()]))


def test_a_term_of_several_concepts_has_a_mapping_each(opened):
    found = list(map_terms(opened, ["J45 asthma + hypertension", "asthma"]))
    assert [(m.term.text, m.concept, m.flag, m.part) for m in found] == [
        ("J45 asthma + hypertension", "X:A", "part", "asthma"),
        ("J45 asthma + hypertension", "X:B", "part", "hypertension"),
        ("asthma", "X:A", "exact", ""),
    ]


@pytest.mark.parametrize(
    ("term", "concept"),
    [
        ("乳腺肿物切除术", "X:P"),
        ("急性ST段抬高型心肌梗死", "X:O"),
        ("chronic hepatitis b", "X:F"),
        ("hypotension", "X:B"),
    ],
)
def test_what_differs_is_no_answer(opened, term, concept):
    (mapping,) = map_terms(opened, [term])
    assert mapping.concept is None
    assert all(c.score < 0.5 for c in mapping.others if c.concept == concept)


def test_what_a_term_denies_is_no_answer(opened):
    for term in ("no allergies found", "denies fever"):
        (mapping,) = map_terms(opened, [term])
        assert (mapping.concept, mapping.flag) == (None, "nil")
        assert "absent" in mapping.reason


def test_what_a_term_says_is_absent_is_in_no_name_of_its_concept(store_of):
    names = ["Retinal Dysplasia", "Retinal Dysplasia with Hearing Loss", "视网膜发育不良伴听力下降"]
    other = {"id": "X:2", "names": ["Inguinal hernia", "腹股沟疝"]}
    linker = Linker.open(store_of([{"id": "X:1", "names": names}, other]))
    for term in ("retinal dysplasia without hearing loss", "视网膜发育不良不伴听力下降"):
        (mapping,) = map_terms(linker, [term])
        assert (mapping.concept, mapping.flag) == (None, "nil")
        assert "hearing loss" in mapping.reason or "听力" in mapping.reason
        assert (mapping.score or 0) <= 0.5
    for term in ("inguinal hernia without obstruction", "腹股沟疝不伴梗阻"):
        (mapping,) = map_terms(linker, [term])
        assert mapping.concept == "X:2"


def test_a_name_that_only_a_translation_gives_is_not_exact(tmp_path):
    (tmp_path / "kb.jsonl").write_text(
        '{"id": "HP:1", "name": "Fever"}\n'
        '{"id": "HP:2", "name": "Cough", "names": [{"text": "咳嗽", "language": "zh"}]}\n'
        '{"id": "HP:3", "names": [{"text": "前列腺切除术", "language": "zh"}]}\n',
        "utf-8",
    )
    columns = "source_language\ttranslation_language\tsubject_id\tpredicate_id\tsource_value"
    rows = ("HP:1\trdfs:label\tFever\t发热", "HP:2\trdfs:label\tCough\t干咳")
    (tmp_path / "zh.babelon.tsv").write_text(
        f"{columns}\ttranslation_value\ttranslation_status\n"
        + "".join(f"en\tzh\t{row}\tOFFICIAL\n" for row in rows),
        "utf-8",
    )
    sources = [SourceConfig(path=tmp_path / name) for name in ("kb.jsonl", "zh.babelon.tsv")]
    build_store(BuildConfig(sources=tuple(sources)), tmp_path / "KB")
    linker = Linker.open(KnowledgeBase.open(tmp_path / "KB"))
    terms = ["发热", "右侧发热", "Fever", "咳嗽", "干咳", "前列腺切除术"]
    found = {each.term.text: (each.concept, each.flag) for each in map_terms(linker, terms)}
    assert found["发热"] == found["右侧发热"] == ("HP:1", "translated")
    assert {flag for term, (_, flag) in found.items() if "发热" not in term} == {"exact"}


def test_a_name_in_another_spelling_is_exact_and_a_listed_wording_is_flagged(store_of):
    names = {"Leukemia": "L", "Down Syndrome": "D", "Conjunctivitis": "C", "Rh -": "R"}
    names["Chronic Obstructive Pulmonary Disease"] = "P"
    linker = Linker.open(store_of([{"id": f"X:{k}", "name": n} for n, k in names.items()]))
    terms = ["leukaemia", "Leukemias", "Down's syndrome", "pink eye", "leukemla", "Rh +"]
    terms += ["obstructive chronic pulmonary disease"]
    found = {each.term.text: (each.concept, each.flag) for each in map_terms(linker, terms)}
    assert found["leukaemia"] == found["Leukemias"] == ("X:L", "exact")
    assert found["Down's syndrome"] == ("X:D", "exact")
    assert found["pink eye"] == ("X:C", "wording")
    assert found["leukemla"] == ("X:L", "")
    assert found[terms[-1]] == ("X:P", "")  # however alike
    assert found["Rh +"] == (None, "nil")
