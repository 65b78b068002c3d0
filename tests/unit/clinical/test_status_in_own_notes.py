"""Assertion status in notes as people write them: who brought the patient, grades, headings."""

from __future__ import annotations

import pytest

from biograft.clinical import assert_status


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        # a grade of risk beside a diagnosis
        ("zh", "高血压病2级 极高危", {"高血压病": "present"}),
        ("zh", "冠心病，高血压病3级（极高危）", {"冠心病": "present", "高血压病": "present"}),
        ("zh", "跌倒高危", {"跌倒": "hypothetical"}),
        ("zh", "糖尿病（母亲），哮喘", {"糖尿病": "family", "哮喘": "present"}),
        ("zh", "鉴别诊断：肺癌", {"肺癌": "possible"}),
        # who came along
        (
            "en",
            "boy brought by mom with fever x 3 days, cough",
            {"fever": "present", "cough": "present"},
        ),
        ("en", "Brought in by husband with chest pain", {"chest pain": "present"}),
        ("en", "Brought in by his wife who has dementia", {"dementia": "family"}),
        ("en", "Older brother dx'd w/ chickenpox", {"chickenpox": "family"}),
        ("en", "Lives w wife who has dementia", {"dementia": "family"}),
        ("en", "Uncle committed suicide", {"suicide": "family"}),
        # what a finding is on
        (
            "en",
            "AKI on CKD (Cr 2.4 from 1.6) resolved with holding lisinopril",
            {"AKI": "present", "CKD": "present", "Cr": "present", "lisinopril": "present"},
        ),
        ("en", "Pulmonary embolism (PE) was ruled out", {"Pulmonary": "absent", "PE": "absent"}),
        ("en", "PMHx: hx of DM on metformin", {"DM": "historical", "metformin": "present"}),
        ("en", "history of acute on chronic pancreatitis", {"chronic pancreatitis": "historical"}),
        # headings
        (
            "en",
            "Allergies: PCN (hives)\nD/C meds: furosemide 40, metoprolol",
            {"hives": "conditional", "furosemide": "present", "metoprolol": "present"},
        ),
        (
            "en",
            "Allergies:\nLatex: rash\nBP regimen: lisinopril",
            {"rash": "conditional", "lisinopril": "present"},
        ),
        (
            "en",
            "FHx:\nMother: diabetes\nSiblings: asthma",
            {"diabetes": "family", "asthma": "family"},
        ),
        ("en", "FHx: MI\nAllergies: sulfa", {"MI": "family", "Allergies": "present"}),
        (
            "en",
            "Ddx: PE, ACS, no sepsis",
            {"PE": "possible", "ACS": "possible", "sepsis": "absent"},
        ),
        # possible
        ("en", "She probably has RA", {"RA": "possible"}),
        ("en", "RLQ pain, ? appendicitis", {"RLQ pain": "present", "appendicitis": "possible"}),
        ("en", "cough\n? early pneumonia", {"cough": "present", "pneumonia": "possible"}),
        ("en", "Any chest pain? fever", {"fever": "present"}),
        (
            "en",
            "Please could you investigate for colorectal carcinoma or coeliac disease",
            {"colorectal carcinoma": "possible", "coeliac disease": "possible"},
        ),
        ("en", "Ex-smoker, cough", {"smoker": "historical", "cough": "present"}),
    ],
)
def test_status(language, text, expected):
    spans = [(text.index(word), text.index(word) + len(word)) for word in expected]
    found = assert_status(text, spans, language)
    assert {word: each.status for word, each in zip(expected, found, strict=True)} == expected
