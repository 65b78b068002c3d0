"""``biograft check``: no damage to a file goes unseen."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3

import pytest


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store, its index with vectors and an encoder, as the product writes them."""
    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.kb.sources import SourceConfig
    from biograft.linking import DEFAULT_ENCODER, build_index, load_encoder

    folder = tmp_path_factory.mktemp("written")
    names = folder / "names.csv"
    names.write_text("id,name\n1,heart attack\n1,infarct\n2,stroke\n", encoding="utf-8")
    config = BuildConfig(sources=(SourceConfig(path=names),))
    build_store(config, folder / "KB")
    build_index(KnowledgeBase.open(folder / "KB"), folder / "I", load_encoder(DEFAULT_ENCODER))
    return folder


def test_a_changed_bit_in_any_file_is_found(run_main, written, tmp_path):
    place = tmp_path / "copy"
    shutil.copytree(written, place)
    files = [path for path in place.rglob("*") if path.is_file() and path.stat().st_size]
    for path in files:
        if path.name == "names.csv":
            continue
        content = path.read_bytes()
        changed = bytearray(content)
        changed[len(changed) // 2] ^= 1
        path.write_bytes(changed)
        done = run_main("check", path.parent)
        assert (done.code, str(path) in done.out) == (1, True), path
        path.write_bytes(content)
    assert run_main("check", place).code == 0


def test_missing_truncated_and_exchanged_files_are_found(run_main, written, tmp_path):
    store = tmp_path / "KB"
    shutil.copytree(written / "KB", store)
    names = store / "names.arrow"
    content = names.read_bytes()
    names.write_bytes(content[:-1])
    assert f"{names}: expected {len(content)} bytes, found" in run_main("check", store).out
    names.unlink()
    assert f"{names}: expected {len(content)} bytes, found no file" in run_main("check", store).out
    shutil.copy(store / "definitions.arrow", names)
    assert run_main("check", store).code == 1


def test_damaged_reviews_are_found_in_folders(run_main, tmp_path):
    pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
    from biograft.mapping import ReviewStore, ReviewTerm

    place = tmp_path / "review.db"
    with ReviewStore.open(place, create=True) as store:
        store.add_terms([ReviewTerm("chill")], reviewer="ann")
    (tmp_path / "Thumbs.db").write_bytes(b"no database")
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE t (x)")
    done = run_main("check", tmp_path, "--json")
    (found,) = done.json
    assert (done.code, found["path"], found["format"]) == (0, str(place), "biograft-review")
    with contextlib.closing(sqlite3.connect(place)) as database, database:
        database.execute("UPDATE review_terms SET text = 'chills'")
    for path in (place, tmp_path):
        done = run_main("check", path)
        assert (done.code, "review_terms, row 1" in done.out) == (1, True)


def test_an_annotation_that_was_interrupted_is_no_finished_one(run_main, written, tmp_path):
    """Guards: its folder was said to be ok."""
    (tmp_path / "a.txt").write_text("heart attack\nstroke\n", encoding="utf-8")
    out = tmp_path / "C"
    words = ("corpus", "annotate", written / "KB", tmp_path / "a.txt", "-o", out, "--workers", "1")
    assert run_main(*words).code == 0
    assert run_main("check", out).code == 0
    (out / "manifest.json").unlink()
    done = run_main("check", out)
    assert done.code == 1
    assert "was not finished; continue it (--resume), or remove it" in done.out
