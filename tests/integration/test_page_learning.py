"""From the page of notes to the next note: corrected by keys, exported, learned, found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_page import browser, expect, exported, page, pytestmark, served
from typer.testing import CliRunner

from biograft.cli import app as command
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, build_index

__all__ = ["address", "browser", "page", "pytestmark"]

N_NOTES = 6
CONCEPTS = [
    {"id": "D1", "name": "Atrial Fibrillation", "names": {"zh": ["心房颤动"]}},
    {"id": "D2", "name": "Cold Temperature", "names": {"en": ["cold"], "zh": ["受凉"]}},
    {"id": "D3", "name": "Common Cold", "names": {"zh": ["普通感冒"]}},
    {"id": "D4", "name": "Latex Allergy", "names": {"en": ["latex"], "zh": ["乳胶过敏"]}},
    {"id": "D5", "name": "Stone", "names": {"zh": ["结石"]}},
]
NOTES = {
    "en": ("Note {n}. She has odd beat and a cold. Tolerates latex on day {n}. Seen by Stone, MD."),
    "zh": "第{n}次就诊。诉乱跳，受凉{n}天。暂缺乳胶过敏。家住结石街{n}号。",
}
MISSED = {"en": "odd beat", "zh": "乱跳"}
NEXT = {
    "en": ("Odd beat since May, a cold. Mr. Roe tolerates latex. Stone, MD.", "Odd beat", "cold"),
    "zh": ("入院时乱跳，受凉。暂缺乳胶过敏。送至结石街。", "乱跳", "受凉"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learning")
    source = folder / "concepts.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in CONCEPTS), encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder / "KB")
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    from biograft.serve import create_app  # needs the extra

    with served(create_app(folder / "KB")) as place:
        yield place


def mark(page: Any, words: str) -> None:
    """Select words of the note, and mark them."""
    page.evaluate(
        """words => {
          const start = state.text.indexOf(words);
          state.span = {start, end: start + words.length, number: null};
          showSpan();
        }""",
        words,
    )
    page.keyboard.press("Enter")
    expect(page.locator("#detail-title")).to_have_text(words)


def choose_concept(page: Any, name: str) -> None:
    page.keyboard.press("o")
    page.keyboard.type(name)
    expect(page.locator("#hits li").first).to_contain_text(name)
    page.keyboard.press("Enter")
    expect(page.locator("#message")).not_to_contain_text("...")
    page.wait_for_function("name => nameOf(state.mentions[state.at]) === name", arg=name)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_corrected_is_found_in_the_next_note(page, folder, tmp_path, language):
    """A missed finding, another concept, another status, and what is no finding."""
    paths = []
    for n in range(1, N_NOTES + 1):
        paths.append(tmp_path / f"{n}.txt")
        paths[-1].write_text(NOTES[language].format(n=n), encoding="utf-8")
    page.set_input_files("#file", paths)
    for _ in range(N_NOTES):
        expect(page.locator("#marked .finding")).to_have_count(3)
        choose_concept(page, "Common Cold")
        for key in "j1jw":  # negated; no finding
            page.keyboard.press(key)
        mark(page, MISSED[language])
        choose_concept(page, "Atrial Fibrillation")
        page.keyboard.press("n")
    path = exported(page, "jsonl", tmp_path)
    kb, index = KnowledgeBase.open(folder / "KB"), tmp_path / "INDEX"
    build_index(kb, index)
    text, missed, cold = NEXT[language]
    before = [(m.text, m.concept, m.status) for m in Linker.open(kb, index)(text).mentions]
    assert (cold, "D2", "present") in before
    assert missed not in [each[0] for each in before]
    run = CliRunner().invoke(
        command, ["learn", str(path), "--kb", str(kb.folder), "--index", str(index), "--json"]
    )
    report = json.loads(run.stdout)
    assert (report["is_applied"], report["statuses"]["is_applied"]) == (True, True)
    after = [(m.text, m.concept, m.status) for m in Linker.open(kb, index)(text).mentions]
    assert after[0] == (missed, "D1", "present")
    assert after[1] == (cold, "D3", "present")
    assert [(concept, status) for _, concept, status in after[2:]] == [("D4", "absent")]
