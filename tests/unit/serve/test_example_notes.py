"""The example notes of the page, of which its pictures are made: each finding is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from biograft.kb import KnowledgeBase
from biograft.linking import Linker

WORDS = Path(__file__).parents[3] / "src/biograft/serve/page/words.js"
FINDINGS = {
    "en": (
        "cough present, fever present, type 2 diabetes present, hypertension present, "
        "cough present, fever present, dyspnea present, chest pain absent, hemoptysis absent, "
        "pneumonia possible, amoxicillin present, fever present resolved, appendicitis historical, "
        "metformin present, lisinopril present, breast cancer family, stroke family, "
        "colonoscopy hypothetical planned, rash hypothetical, vomitting hypothetical"
    ),
    "zh": (
        "咳嗽 present, 发热 present, 咳嗽 present, 发热 present, 呼吸困难 present, 胸痛 absent, "
        "咯血 absent, 肺炎 possible, 阿莫西林 present, 发热 present resolved, 2型糖尿病 present, "
        "高血压 present, 二甲双胍 present, 阑尾炎 historical, 乳腺癌 family, 脑卒中 family, "
        "结肠镜检查 hypothetical planned, 皮疹 hypothetical, 呕吐 hypothetical"
    ),
}
CONCEPTS = {
    "Vomiting": "vomitting",
    "Exanthema": "皮疹",
    "Stroke": "脑卒中",
    "Colonoscopy": "结肠镜检查",
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_findings_of_the_example_are_right(kb: KnowledgeBase, language: str) -> None:
    samples = re.findall(
        r'sample: ((?:"[^"\n]*"(?: \+\n\s+)?)+)', WORDS.read_text(encoding="utf-8")
    )
    written = "".join(re.findall(r'"([^"]*)"', samples[language == "zh"]))
    mentions = Linker.open(kb, assertions=True)(written.replace("\\n", "\n")).mentions
    said = [
        " ".join(filter(None, (m.text, m.status, (m.axes or {})["course"], (m.axes or {})["plan"])))
        for m in mentions
    ]
    assert ", ".join(said) == FINDINGS[language]
    names = {m.text: m.name for m in mentions}
    assert None not in names.values()
    for name, text in CONCEPTS.items():
        assert names.get(text, name) == name
