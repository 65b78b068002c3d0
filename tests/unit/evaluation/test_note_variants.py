"""Robustness: variants keep what they must, and every change of a finding is counted."""

from __future__ import annotations

import json
import re

import pytest

from biograft.errors import ConfigError
from biograft.evaluation import RobustnessConfig, evaluate_robustness, save_cases
from biograft.evaluation.robustness import KINDS
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.text.documents import Document

ENGLISH = (
    "HISTORY: Denies fever, chills, cough or nausea. Her mother had asthma and is at risk of "
    "stroke; she has headache since Monday, and vomiting, which was noted by her brother.\n\n"
    "Family History:\nNo diabetes.\n"
)
CHINESE = (
    "患者3天前出现头痛，无发热、咳嗽、恶心。既往有高血压（2级），长期服药，"
    "血压控制尚可，未规律监测：见上。\n否认糖尿病、哮喘、脑卒中。"
)


@pytest.fixture(scope="module")
def linker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb") / "kb"
    sources = tuple(SourceConfig(path=name) for name in ("starter", "clinical-findings"))
    build_store(BuildConfig(sources=sources), folder)
    return Linker.open(KnowledgeBase.open(folder), k=1)


class Recorder:
    """A step that keeps the documents, and may spoil the findings of some."""

    name = "recorder"

    def __init__(self, spoil=lambda text: False):
        self.documents, self.spoil = [], spoil

    def __call__(self, batch):
        self.documents += [state.document for state in batch]
        for state in batch:
            if self.spoil(state.document.text):
                state.mentions = state.mentions[1:]


def run(linker, text, *, spoil=lambda text: False, **settings):
    recorder, other = Recorder(spoil), linker.with_settings()
    other.add_step(recorder, after="assert")
    config = RobustnessConfig(**settings)
    result = evaluate_robustness(other, [Document("n1", text)], config)
    return result, [each for each in recorder.documents if each.text != text or each.mentions]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_variants_differ_from_the_note_and_are_counted(linker, kind, text):
    result, documents = run(linker, text, kinds=(kind,), variants=4)
    texts = [(each.text, each.mentions) for each in documents]
    assert len(set(texts)) == len(texts) == result.variants[kind] <= 4
    without = "headings typos blanks tabs hard-blanks" if text is CHINESE else "widths"
    assert bool(texts) is (kind not in without.split())


def test_same_seed_same_variants(linker):
    runs = [run(linker, ENGLISH, variants=2, seed=seed)[1] for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


def test_layout_keeps_every_letter(linker):
    kinds = ("blanks", "tabs", "trailing", "hard-blanks", "crlf", "wraps")
    for text in (ENGLISH, CHINESE):
        _, documents = run(linker, text, kinds=kinds, variants=6)
        assert {"".join(each.text.split()) for each in documents} == {"".join(text.split())}


def test_only_items_of_a_list_change_places(linker):
    _, documents = run(linker, ENGLISH, kinds=("order",), variants=9)
    assert documents
    for each in documents:
        before, _, after = each.text.partition(". Her mother")
        assert ENGLISH.endswith(after)
        assert sorted(before.replace(",", "").split()) == sorted(
            "HISTORY: Denies fever chills cough or nausea".split()
        )


def test_unknown_item_is_in_a_list_of_absent_findings(linker):
    _, documents = run(linker, CHINESE, kinds=("unknown",), variants=9)
    assert documents
    for each in documents:
        assert each.text.startswith("患者3天前出现头痛，无")
        assert "（2级），长期服药，" in each.text


def test_changes_are_found_and_written(linker, tmp_path):
    spoil = {"kinds": ("trailing",), "variants": 30, "spoil": lambda text: "  \n" in text}
    result, _ = run(linker, CHINESE, **spoil)
    n = result.changed["trailing"]
    assert 0 < n == result.n_changed < result.variants["trailing"]
    case = result.cases[0]
    assert case.lost[0][0] == "头痛"
    assert not case.gained
    assert "头痛" in case.before
    assert "头痛" in case.after
    save_cases(result, tmp_path / "cases.jsonl")
    lines = (tmp_path / "cases.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == n
    assert json.loads(lines[0])["document"] == "n1"
    unchanged = result.to_json()["kinds"]["trailing"]["unchanged"]
    assert unchanged == pytest.approx(100 - 100 * n / result.variants["trailing"], abs=1e-3)


def test_typos_are_counted_apart(linker):
    result, _ = run(linker, ENGLISH, spoil=lambda text: text != ENGLISH, kinds=("typos",))
    assert result.changed["typos"] == result.variants["typos"] > 0
    assert result.n_changed == 0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_layout_changes_no_finding_of_notes(linker, shared_data, language):
    """Notes that the rules were not written with; typos may change few."""
    notes = shared_data(f"clinical/notes_{language}_dev.txt").read_text("utf-8")
    plain = re.sub(r"\[\[(.*?)(?:\|.*?)?\]\]", r"\1", notes)
    texts = re.split(r"^(?:@@ |#\d).*\n", plain, flags=re.MULTILINE)[1:]
    documents = [Document(str(number), text.strip()) for number, text in enumerate(texts)]
    result = evaluate_robustness(linker, documents, RobustnessConfig(variants=6))
    # a misspelt Chinese name at a line break may be found there only: 糖尿并⏎和
    assert result.n_changed <= (0 if language == "en" else 1)
    assert result.variants.total() > 300
    assert result.changed["typos"] <= 0.03 * result.variants["typos"]


def test_refusals(linker):
    with pytest.raises(ConfigError, match="kinds"):
        RobustnessConfig(kinds=("nonsense",))
    with pytest.raises(ConfigError, match="variants"):
        RobustnessConfig(variants=0)
    with pytest.raises(ConfigError, match="assertions"):
        evaluate_robustness(linker.with_settings(assertions=False), [])
