"""Axes of an assertion: course, plan, certainty, experiencer, with their evidence; added rules."""

from __future__ import annotations

import pytest

from biograft.clinical import AXES, AssertionRules, RuleAssertions, assert_status
from biograft.errors import ConfigError


def asserted(text, finding, **options):
    start = text.index(finding)
    return assert_status(text, [(start, start + len(finding))], **{"language": None, **options})[0]


@pytest.mark.parametrize(
    ("text", "finding", "course", "status"),
    [
        ("He had AKI, which resolved.", "AKI", "resolved", "present"),
        ("Her nausea has resolved.", "nausea", "resolved", "present"),
        ("Rash, now resolved, was treated.", "Rash", "resolved", "present"),
        ("He was weak, but this has since resolved.", "weak", "resolved", "present"),
        ("CT shows resolution of pneumonia.", "pneumonia", "resolved", "present"),
        ("1. Resolved AKI\n2. Gout", "AKI", "resolved", "present"),
        ("1. Resolved AKI\n2. Gout", "Gout", "", "present"),
        ("Problems: AKI - resolved, gout", "AKI", "resolved", "present"),
        ("|AKI |Resolved |2009|", "AKI", "resolved", "present"),
        ("No fever, cough resolved.", "cough", "resolved", "present"),
        ("No fever and the rash healed.", "fever", "", "absent"),
        ("PMH: pneumonia, resolved", "pneumonia", "resolved", "historical"),
        ("Resolved Problems:\n- gout\n- UTI", "UTI", "resolved", "historical"),
        ("Pneumonia s/p treatment, resolved.", "Pneumonia", "resolved", "present"),
        ("肺结核治愈后复发。", "肺结核", "recurrent", "present"),
        ("She recovered from pneumonia.", "pneumonia", "resolved", "historical"),
        ("The pain has not resolved.", "pain", "", "present"),
        ("The pain hasn't resolved.", "pain", "", "present"),
        ("Fever improved but not resolved.", "Fever", "", "present"),
        ("Partially resolved pneumonia.", "pneumonia", "", "present"),
        ("Hold until fever has resolved.", "fever", "", "present"),
        ("She has recurrent UTI.", "UTI", "recurrent", "present"),
        ("Relapse of AML.", "AML", "recurrent", "present"),
        ("The stroke recurred.", "stroke", "recurrent", "present"),
        ("No recurrence of melena.", "melena", "", "absent"),
        ("Active tuberculosis.", "tuberculosis", "active", "present"),
        ("No active bleeding.", "bleeding", "", "absent"),
        ("PMH: gout (active), asthma", "gout", "active", "present"),
        ("|Gout |Active |2009|", "Gout", "active", "present"),
        ("Active range of motion, gout.", "gout", "", "present"),
        ("肺炎已治愈。", "肺炎", "resolved", "historical"),
        ("肺炎未治愈。", "肺炎", "", "present"),
        ("胸痛未缓解。", "胸痛", "", "present"),
        ("胸痛已缓解。", "胸痛", "resolved", "present"),
        ("恶心、呕吐消失。", "恶心", "resolved", "present"),
        ("无发热，咳嗽消失。", "咳嗽", "resolved", "present"),
        ("肺癌术后复发。", "肺癌", "recurrent", "present"),
        ("肺癌未复发，头痛。", "头痛", "", "present"),
        ("反复咳嗽3年。", "咳嗽", "recurrent", "present"),
        ("术后未再发胸痛。", "胸痛", "", "absent"),
        ("活动性肺结核。", "肺结核", "active", "present"),
        ("未见活动性出血。", "出血", "", "absent"),
        ("非活动性肺结核。", "肺结核", "", "present"),
    ],
)
def test_course(text, finding, course, status):
    found = asserted(text, finding)
    assert (found.course, found.status) == (course, status)
    assert not (found.resolved and found.negated)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("Planned cholecystectomy.", "cholecystectomy"),
        ("She is scheduled for colonoscopy.", "colonoscopy"),
        ("Awaiting hip replacement.", "hip replacement"),
        ("Colonoscopy scheduled for Monday.", "Colonoscopy"),
        ("A biopsy is planned.", "biopsy"),
        ("Admitted for elective hernia repair.", "hernia repair"),
        ("拟行胆囊切除术。", "胆囊切除术"),
        ("择期行胆囊切除术。", "胆囊切除术"),
        ("MRI pending.", "MRI"),
        ("Scheduled for colonoscopy and EGD next week.", "EGD"),
        ("Plan for MRI, EEG and lumbar puncture.", "EEG"),
        ("Plan for MRI, EEG and lumbar puncture.", "lumbar puncture"),
        ("Pending: MRI, EEG", "EEG"),
        ("拟行胃镜、肠镜检查。", "肠镜检查"),
    ],
)
def test_plans(text, finding):
    found = asserted(text, finding)
    assert (found.plan, found.time, found.condition) == ("planned", "future", "")
    assert found.status == "hypothetical"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("Await biopsy results.", "biopsy"),
        ("No planned surgery.", "surgery"),
        ("She underwent planned hysterectomy.", "hysterectomy"),
        ("Scheduled for follow-up of diabetes.", "diabetes"),
        ("No surgery for the aneurysm is planned.", "aneurysm"),
        ("已行择期胆囊切除术。", "胆囊切除术"),
        ("Admitted for planned CABG, hypertension, gout.", "hypertension"),
        ("Will undergo colonoscopy for anemia and weight loss.", "weight loss"),
        ("Planned hysterectomy, diabetes well controlled.", "diabetes"),
        ("Echo pending, CHF stable.", "CHF"),
        ("H. pylori biopsies are pending.", "H. pylori biopsies"),
        ("Anemia, colonoscopy pending.", "Anemia"),
        ("Pending discharge, pneumonia is better.", "pneumonia"),
        ("拟行胃镜，患者腹痛明显。", "腹痛"),
    ],
)
def test_what_is_no_plan(text, finding):
    assert asserted(text, finding).plan == ""


@pytest.mark.parametrize(
    "text", ["排除肺结核后考虑肺炎。", "除外肺结核后，考虑肺炎。", "已排除心梗及肺栓塞后考虑肺炎。"]
)
def test_what_is_considered_after_something_was_ruled_out_is_possible(text):
    found = asserted(text, "肺炎")
    assert (found.status, found.negated) == ("possible", False)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("PE is unlikely.", "PE"),
        ("Unlikely PE.", "PE"),
        ("Low suspicion for PE.", "PE"),
        ("肺炎可能性不大。", "肺炎"),
        ("不太可能是肺炎。", "肺炎"),
    ],
)
def test_what_is_unlikely_is_possible(text, finding):
    found = asserted(text, finding)
    assert (found.certainty, found.status, found.negated) == ("unlikely", "possible", False)
    assert asserted("Possible PE; unlikely UTI.", "PE").certainty == "possible"


def test_persons():
    texts = (
        ("Mother had asthma.", "asthma", "family"),
        ("Roommate has influenza.", "influenza", "contact"),
        ("The donor had hepatitis C.", "hepatitis C", "donor"),
        ("Liver from an HCV-positive donor.", "HCV", "donor"),
        ("供者患乙肝。", "乙肝", "donor"),
        ("同事有流感。", "流感", "contact"),
        ("He has gout.", "gout", "patient"),
    )
    for text, finding, experiencer in texts:
        assert asserted(text, finding).experiencer == experiencer
    assert asserted("The donor had gout.", "gout").status == "other_person"


def test_each_axis_names_its_evidence():
    text = "PMH: pneumonia, resolved. Surgery is planned. Fever on exertion."
    found = asserted(text, "pneumonia")
    assert found.axes == {
        "polarity": "affirmed",
        "certainty": "confirmed",
        "time": "past",
        "course": "resolved",
        "experiencer": "patient",
        "plan": "",
        "condition": "",
    }
    assert [each.text for each in found.evidence("course")] == ["resolved"]
    assert found.evidence("time") == ()
    assert found.section == "past medical history"
    (planned,) = asserted(text, "Surgery").evidence("plan")
    assert text[planned.start : planned.end] == "is planned"
    assert asserted(text, "Surgery").evidence("condition") == ()
    assert asserted(text, "Fever").condition == "conditional"
    assert asserted("Return if fever.", "fever").condition == "hypothetical"


def test_axes_are_plain_values_beside_the_flags():
    said = asserted("UTI has resolved.", "UTI").to_json()
    assert said["resolved"] is True
    assert said["axes"]["course"] == "resolved"
    assert list(said["axes"]) == list(AXES)
    assert asserted("Gout.", "Gout").label == ""
    assert asserted("Known asthma, now active.", "asthma").label == "active"
    assert asserted("肺炎已治愈。", "肺炎").label == "historical, resolved"


def test_rules_are_added_to_the_shipped_ones(rule_file):
    path = rule_file(
        'extends = "en"\nabbreviations = ["xyz"]\n[lists]\nkin = ["ward mate"]\n'
        '[[rule]]\nname = "gone by now"\nkind = "trigger"\nflags = ["resolved"]\n'
        'direction = "backward"\nphrases = ["is history", "unlikely"]\n'
        '[[section]]\nname = "plan"\nheadings = ["to do", "pmh"]\nflags = ["planned"]\n'
    )
    assert asserted("The cough is history.", "cough", rules=path).course == "resolved"
    assert asserted("No cough.", "cough", rules=path).negated
    assert asserted("Cough is unlikely.", "Cough", rules=path).status == "present"
    assert asserted("Ward mate had flu.", "flu", rules=path).experiencer == "family"
    for heading in ("To do", "PMH"):
        found = asserted(f"{heading}: colectomy", "colectomy", rules=path)
        assert (found.plan, found.status, found.section) == ("planned", "hypothetical", "plan")
    assert asserted("无发热。", "发热", rules=path).negated  # shipped rules for other languages
    rules = AssertionRules.load(path)
    assert RuleAssertions("en", rules).assert_status("No flu", [(3, 6)])[0].negated
    with pytest.raises(ConfigError, match="is 'zh', but extends 'en'"):
        AssertionRules.load(rule_file('language = "zh"\nextends = "en"\n'))
