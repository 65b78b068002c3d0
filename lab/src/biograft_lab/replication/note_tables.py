"""Tables of statuses and findings in text of others: the sentences of NegEx, unseen notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from biograft_lab.replication.tables import markdown

_TOOLS = {"biograft": "biograft", "negspacy": "negspacy", "medspacy": "medspaCy"}
_NEGEX_HEADS = {
    "en": (
        "NegEx sentences, F1 (precision / recall)",
        "negation",
        "historical",
        "times that biograft is quicker",
    ),
    "zh": ("NegEx 句子，F1（精确率 / 召回率）", "否定", "既往", "biograft 快几倍"),
}
_NOTE_HEADS = {
    "en": (
        "notes of others",
        "findings",
        "concept",
        "concept and status",
        "the same before any was read",
        "status right, of those found",
        "F1",
        "answers outside",
    ),
    "zh": (
        "他人的病历",
        "发现",
        "概念",
        "概念和状态",
        "读这些病历之前",
        "找到者中状态正确",
        "F1",
        "标注之外的回答",
    ),
}
_STORES = {
    "en": {
        "medic": "English, diseases of MEDIC",
        "mesh": "English, all of MeSH",
        "chinese": "Chinese, built-in knowledge base",
    },
    "zh": {"medic": "英文，MEDIC 的疾病", "mesh": "英文，整个 MeSH", "chinese": "中文，自带知识库"},
}


def assertion_speed(result: Mapping[str, Any], language: str = "en") -> str:
    """Return F1 and speed on the sentences of NegEx, beside the peers of the same run."""
    rows = []
    for name, title in _TOOLS.items():
        of = result["negex"].get(name)
        if of is not None:
            times = f"{of['ratio']:.1f}" if "ratio" in of else ""
            rows.append([title, _f1(of.get("negated")), _f1(of.get("historical")), times])
    return markdown(_NEGEX_HEADS[language], rows)


def phenotype_speed(result: Mapping[str, Any]) -> str:
    """Return processor seconds of whole processes and of the search, for both sets of texts."""
    head = ["processor seconds, 2,000 abstracts: process (search)", *result["sets"]]
    tools = [name for name, of in next(iter(result["sets"].values())).items() if _is_tool(of)]
    sets = result["sets"].values()
    return markdown(head, ([tool, *(_seconds(of[tool]) for of in sets)] for tool in tools))


def _is_tool(value: object) -> bool:
    return isinstance(value, Mapping)


def _seconds(of: Mapping[str, float]) -> str:
    return f"{of['process']:.1f} ({of['search']:.1f})"


def _f1(values: Mapping[str, float] | None) -> str:
    if values is None:
        return "–"
    return f"{values['f1']:.1f} ({values['precision']:.1f} / {values['recall']:.1f})"


def unseen_notes(result: Mapping[str, Any], language: str = "en") -> str:
    """Return what is found in notes of others, by knowledge base."""
    rows = []
    for name, title in _STORES[language].items():
        of = result[name]
        low, high = of["interval"]
        status = f"{of['status']:.1f} ({low:.1f}–{high:.1f})"
        before = of["before"]["status"]
        cells = [of["n"], of["concept"], status, before, of["right"], of["f1"], of["outside"]]
        rows.append([title, *map(str, cells)])
    return markdown(_NOTE_HEADS[language], rows)
