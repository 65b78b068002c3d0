"""Texts and what was found in them: for their owner only, named when written, in no log."""

from __future__ import annotations

import logging
import os
import stat

import pytest

from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

SECRET = "Mrs Zyxwvut"
NOTE = f"{SECRET} had a heart attack.\n"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb")
    (folder / "names.csv").write_text("id,name\n1,heart attack\n", encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=folder / "names.csv"),)), folder / "KB")
    return folder / "KB"


def modes(folder):
    """Return the modes of a folder, and of all in it."""
    return {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


@pytest.mark.parametrize(
    "words",
    [
        ["link", "{note}", "--kb", "{kb}", "-o", "{new}/out.jsonl"],
        ["link", "{note}", "--kb", "{kb}", "-o", "{new}/out.csv"],
        ["link", "{note}", "--kb", "{kb}", "-o", "{new}/out.html"],
        ["link", "{note}", "--kb", "{kb}", "--to", "brat", "-o", "{new}/out"],
        ["corpus", "convert", "{corpus}", "--to", "jsonl", "-o", "{new}/out.jsonl"],
        ["review", "import", "{mapped}", "--review", "{new}/review.db", "--reviewer", "ann"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-1:]),
)
def test_what_has_words_of_texts_belongs_to_its_owner(run_main, kb, tmp_path, caplog, words):
    note, mapped, new = tmp_path / "note.txt", tmp_path / "mapped.csv", tmp_path / "new"
    note.write_text(NOTE, encoding="utf-8")
    mapped.write_text(f"source_term,concept\n{SECRET},1\n", encoding="utf-8")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(f"1|t|{NOTE}1|a|Nothing.\n1\t15\t27\theart attack\tDisease\t1\n\n")
    files = {"note": note, "mapped": mapped, "corpus": corpus, "new": new, "kb": kb}
    mask = os.umask(0o022)
    try:
        with caplog.at_level(logging.DEBUG):
            done = run_main(*(word.format(**files) for word in words))
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(mask)
    assert done.code == 0, done.err
    assert modes(new) <= {0o700, 0o600}
    assert stat.S_IMODE(new.stat().st_mode) == 0o700
    assert SECRET not in done.err + caplog.text
    named = done.out + done.err
    assert str(new / "out") in named or str(new / "review.db") in named or words[0] == "review"


def test_a_knowledge_base_can_be_shared(run_main, tmp_path):
    (tmp_path / "names.csv").write_text("id,name\n1,heart attack\n", encoding="utf-8")
    mask = os.umask(0o022)
    try:
        assert run_main("kb", "build", tmp_path / "names.csv", "-o", tmp_path / "KB").code == 0
    finally:
        os.umask(mask)
    assert modes(tmp_path / "KB") <= {0o755, 0o644}
