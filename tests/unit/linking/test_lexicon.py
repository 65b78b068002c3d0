"""Clinical lexicon: words for findings, short forms by place, what is no finding."""

import json

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker

DISEASES = {
    "Hypertension": ["高血压"],
    "Fever": ["发热"],
    "Diabetes Mellitus": ["糖尿病"],
    "Diabetic Retinopathy": [],
    "Dyspnea": ["呼吸困难"],
    "Jaundice": ["黄疸"],
    "Vomiting": [],
    "Wheezing": [],
    "Anemia": [],
    "Sepsis": [],
    "Confusion": [],
    "Pain": [],
    "Depression": [],
    "Stroke": ["脑卒中"],
    "COPD": [],
    "Hepatitis B": ["乙肝"],
    "Rubella": [],
    "Influenza": ["flu", "流感"],
    "Tetanus": [],
    "Neoplasms": ["肿瘤", "tumor"],
    "Common Cold": ["cold"],
    "Coma": [],
    "Emergencies": ["emergency"],
    "Hypersensitivity": ["allergies"],
    "Seizures": ["seizure"],
    "Liver Cancer": ["hepatocellular carcinoma", "HCC", "肝癌"],
    "Lung Cancer": ["肺癌"],
    "Breast Cancer": [],
    "Rib Fractures": ["rib fracture"],
    "Myocardial Infarction": ["MI"],
    "Mitral Regurgitation": [],
    "Chest Pain": ["胸痛"],
    "Cerebral Palsy": [],
    "Pulmonary Embolism": [],
    "Multiple Sclerosis": ["MS"],
    "Mitral Stenosis": [],
    "Pneumothorax": [],
    "Drug Overdose": ["overdose"],
    "Strains": ["strain"],
    "Rheumatoid Arthritis": [],
    "Hypotension": ["low blood pressure"],
    "Atrial Septal Defect": ["房间隔缺损"],
    "Right Bundle Branch Block": ["完全性右束支传导阻滞"],
}
OTHERS = {"Blood Pressure": ["血压"], "Room air": [], "Calcium": []}


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lexicon")
    rows = [
        {"id": name, "name": name, "names": _names(names), "type": kind}
        for kind, concepts in (("disease", DISEASES), ("other", OTHERS))
        for name, names in concepts.items()
    ]
    path = folder / "a.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    source = SourceConfig(path=path, format="jsonl")
    build_store(BuildConfig(sources=(source,)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


def _names(names):
    return {
        "en": [name for name in names if name.isascii()],
        "zh": [name for name in names if not name.isascii()],
    }


@pytest.fixture(scope="module")
def linker(kb):
    return Linker.open(kb, k=1)


def found(linker, text):
    return [mention.concept for mention in linker(text).mentions if mention.concept]


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("He is hypertensive and febrile.", ["Hypertension", "Fever"]),
        ("Anaemic, septic; jaundiced.", ["Anemia", "Sepsis", "Jaundice"]),
        ("Wheezy and short of breath, vomited twice.", ["Wheezing", "Dyspnea", "Vomiting"]),
        ("A diabetic woman on a diabetic diet.", ["Diabetes Mellitus"]),
        ("Diabetic retinopathy.", ["Diabetic Retinopathy"]),
        ("Septic workup sent; hypertensive meds.", []),
        ("Not to be confused with it.", []),
        ("R 4-6 rib fx, breast CA.", ["Rib Fractures", "Breast Cancer"]),
        ("Ca of the breast, cancer of the lung", ["Breast Cancer", "Lung Cancer"]),
        (
            "皮肤黄染，气促，房缺，完右。",
            ["Jaundice", "Dyspnea", "Atrial Septal Defect", "Right Bundle Branch Block"],
        ),
        ("右肺Ca，血Ca 2.3", ["Lung Cancer"]),
    ],
)
def test_words_stand_for_findings(linker, text, concepts):
    assert found(linker, text) == concepts


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("He is hypertesnive and febrlie.", ["Hypertension", "Fever"]),
        ("Wheezng and short of braeth.", ["Wheezing", "Dyspnea"]),
        ("Seen by Dr. Feder, FEBRI clinic, settling.", []),
    ],
)
def test_misspelt_words_stand_for_findings(kb, linker, text, concepts):
    assert found(linker, text) == concepts
    assert found(Linker.open(kb, k=1, misspelt=False), text) == []


def test_a_word_scores_below_a_name_and_says_so(kb):
    (mention,) = Linker.open(kb, k=1, explain=True)("Febrile today.").mentions
    assert (mention.form, mention.concept) == ("fever", "Fever")
    assert mention.score == pytest.approx(0.9)
    assert mention.explanation.form_from == "clinical word"


@pytest.mark.parametrize("text", ["Afebrile.", "Vitals: afebrile, stable", "He was apyrexial."])
def test_words_of_absence(linker, text):
    (mention,) = linker(text).mentions
    assert (mention.concept, mention.status, mention.negated) == ("Fever", "absent", True)
    assert [trigger.text.lower() for trigger in mention.assertion.triggers] == [
        mention.text.lower()
    ]


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("Flu vaccine given. Hepatitis B vaccine, flu shot.", []),
        ("Vaccinated against hepatitis B; rubella immune.", []),
        ("Tetanus given.", []),
        ("Immunizations: influenza, rubella. Influenza today.", ["Influenza"]),
        ("Hepatitis B surface antibody, anti-hepatitis B", []),
        ("Has hepatitis B, flu and tetanus.", ["Hepatitis B", "Influenza", "Tetanus"]),
        ("Hepatitis B antigen test pending.", []),
        ("Influenza swab positive.", ["Influenza"]),
        ("Stroke unit, COPD nurse, pain clinic, tumor board", []),
        ("EMERGENCY DEPARTMENT NOTE", []),
        ("Code stroke.", []),
        ("Hypertension (HCC), Depression [HCC]", ["Hypertension", "Depression"]),
        ("Hepatocellular carcinoma (HCC). HCC.", ["Liver Cancer"] * 3),
        ("Cold compress, cold hands; a cold.", ["Common Cold"]),
        ("MI: 0.2 and MI = 2", []),
        ("MI in 2015, MI: anterior", ["Myocardial Infarction"] * 2),
        ("Glasgow Coma Scale 15; in coma", ["Coma"]),
        ("ST depression in V4.", []),
        ("Well today. Allergies: vancomycin. Allergies are bad.", ["Hypersensitivity"]),
        ("Anti-seizure medication, depression scale", []),
        ("打流感疫苗，乙肝疫苗，乙肝五项。", []),
        ("肿瘤科、肿瘤医院、糖尿病门诊会诊。", []),
        ("因胸痛门诊就诊。", ["Chest Pain"]),
        ("接种史：乙肝、流感。现患流感。", ["Influenza"]),
        ("高血压，最高血压180/110mmHg。", ["Hypertension"]),
        ("肿瘤中心坏死。", ["Neoplasms"]),
        (
            "Hamstring strain. Mouse strains differ; a strain of mice, resistant strains.",
            ["Strains"],
        ),
    ],
)
def test_what_is_no_finding(linker, text, concepts):
    assert found(linker, text) == concepts


def test_what_is_dropped_has_a_reason(linker):
    dropped = {
        mention.text: reason for mention, reason in linker("Flu vaccine; stroke unit").dropped
    }
    assert dropped == {"Flu": "a vaccine", "stroke": "a clinic or unit"}


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("CC: CP x 2h", ["Chest Pain"]),
        ("Paediatric clinic. Spastic CP, wheelchair.", ["Cerebral Palsy"]),
        ("CT pulmonary angiogram. No PE.", ["Pulmonary Embolism"]),
        ("PE: lungs clear", []),
        ("Chest x-ray: small PTX.", ["Pneumothorax"]),
        ("Neurology clinic. MS on interferon.", ["Multiple Sclerosis"]),
        ("Echo: moderate MS, mild MR.", ["Mitral Stenosis", "Mitral Regurgitation"]),
        ("Intentional OD of pills.", ["Drug Overdose"]),
        ("Ophthalmology. VA OD 6/9.", []),
        ("Rheumatology: RA on methotrexate.", ["Rheumatoid Arthritis"]),
        ("SpO2 96% on RA.", []),
    ],
)
def test_short_forms_by_section_and_kind_of_document(linker, text, concepts):
    diseases = [each for each in found(linker, text) if each in DISEASES]
    assert diseases == concepts


def test_the_usual_meaning_scores_lower_than_one_by_place(linker):
    usual, placed = linker("PE.").mentions[0], linker("CTPA: PE.").mentions[0]
    assert (usual.concept, placed.concept) == ("Pulmonary Embolism",) * 2
    assert usual.score < placed.score < 1


def test_a_symbol_with_a_number_that_is_a_gene_is_no_finding(store_of):
    kb = store_of([{"id": "W", "name": "Wilms Tumor", "names": ["WT1", "WT"]}])
    linked = Linker.open(kb)(
        "Wilms tumor (WT); the WT1 gene is lost. WT1 regulates growth; WT gene."
    )
    assert [m.text for m in linked.mentions] == ["Wilms tumor", "WT", "WT"]
    assert [(m.text, reason) for m, reason in linked.dropped] == [("WT1", "a gene")] * 2
    assert [m.text for m in Linker.open(kb)("Wilms tumor, WT1.").mentions][-1] == "WT1"


def test_a_form_of_another_type_is_dropped(kb):
    """*BP 138/88* was hypotension where only diseases were asked for."""
    linked = Linker.open(kb, types=("disease",))("BP 138/88, blood pressure fine, fever")
    assert [mention.concept for mention in linked.mentions] == ["Fever"]
    assert ("BP", "a concept that is left out") in [(m.text, r) for m, r in linked.dropped]


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("No DVT, MI/PE ruled out", ["Myocardial Infarction", "Pulmonary Embolism"]),
        ("MASS EFFECT, ALL OF WHICH IS OLD. CANCER.", []),
    ],
)
def test_slashes_and_words_in_capitals(linker, text, concepts):
    """*SAH/SDH* was one unknown word; *ALL OF WHICH* leukaemia."""
    assert found(linker, text) == concepts
