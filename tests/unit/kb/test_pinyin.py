"""Search of Chinese names by pinyin, and by its initials."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("pypinyin", reason="the extra `zh` is not installed")
from hypothesis import given, strategies as st
from pypinyin import Style, lazy_pinyin, pinyin

from biograft.kb import BuildConfig, KnowledgeBase, NameSuggestions, build_store, search_names
from biograft.kb.pinyin import PinyinNames
from biograft.kb.sources import SourceConfig

NAMES = (
    "高血压 原发性高血压 2型糖尿病 人参皂苷 长QT综合征 女性不育 便秘 重症肌无力 心脏骤停".split()
)
FOUND = {
    "gxy": ["高血压", "原发性高血压"],
    "gaoxueya": ["高血压", "原发性高血压"],
    "Gao xue-ya": ["高血压", "原发性高血压"],
    "tnb": ["2型糖尿病"],
    "renshen": ["人参皂苷"],  # the third reading of the character
    "changqt": ["长QT综合征"],
    "cqt": ["长QT综合征"],
    "nvxing": ["女性不育"],
    "zz": ["重症肌无力", "心脏骤停"],
    "aoxue": [],  # within a syllable
    "g": [],
    "高": [],
    "hyper": [],
}


@pytest.mark.parametrize("query", FOUND)
def test_names_are_found_where_a_syllable_begins(query):
    names = PinyinNames(enumerate(NAMES))
    assert [NAMES[n] for n in names.find(query)] == FOUND[query]


@given(
    st.lists(st.sampled_from("高血压糖尿病肺炎心脏骤停胃溃疡重症便秘结核"), min_size=2, max_size=6)
)
def test_each_name_is_found_by_its_usual_pinyin_and_initials(characters):
    """Compared with the package itself, which is told nothing of words."""
    name = "".join(characters)
    names = PinyinNames([(7, name), (8, "阿")])
    for style in (Style.NORMAL, Style.FIRST_LETTER):
        spelt = "".join(each[0] for c in name for each in pinyin(c, style=style))
        assert names.find(spelt) == [7]
    assert re.fullmatch("[a-z]+", "".join(lazy_pinyin(name)))


def test_both_searches_of_a_store_have_them_after_other_names(tmp_path):
    rows = ["id,name,name_zh", "C1,Hypertension,高血压", "C2,GXY syndrome,", "C3,Pneumonia,肺炎"]
    source = tmp_path / "names.jsonl"
    del rows[0]
    lines = []
    for row in rows:
        id_, english, chinese = row.split(",")
        names = [{"text": english, "language": "en"}]
        names += [{"text": chinese, "language": "zh"}] if chinese else []
        lines.append({"id": id_, "names": names})
    source.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), tmp_path / "KB")
    kb = KnowledgeBase.open(tmp_path / "KB")
    for find in (NameSuggestions(kb).find, lambda text, **given: search_names(kb, text, **given)):
        assert [(m.concept, m.how) for m in find("gxy")] == [("C2", "prefix"), ("C1", "pinyin")]
        assert [m.name for m in find("feiyan")] == ["肺炎"]
        assert find("feiyan", language="en") == []
        assert [m.concept for m in find("gxy", limit=1)] == ["C2"]
