"""Linking in several processes: the same results in the same order, errors in one line."""

from __future__ import annotations

import sys

import pytest

from biograft.errors import BiograftError, ConfigError, MissingExtraError
from biograft.linking import Linker, build_index
from biograft.linking.batches import _Failed, _Job, _link_batch, link_in_processes, make_batches
from biograft.text.documents import Document

TEXTS = ["No breast cancer.", "cold", "", "heart attack (HA); HA", "metformin", "nothing"]


def test_several_processes_link_as_one_does(kb, tmp_path):
    build_index(kb, tmp_path / "I", None)
    linker = Linker.open(kb, tmp_path / "I", k=2)
    documents = [Document(str(n), TEXTS[n % len(TEXTS)]) for n in range(20)]
    linked = list(linker.pipe(documents, batch_size=3, n_process=2))
    assert linked == list(linker.pipe(documents))
    with pytest.raises(ConfigError, match="row 5: expected a text or Document, found 5"):
        list(linker.pipe([*TEXTS[:5], 5], batch_size=1, n_process=2))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_actors_of_ray_link_as_one_process_does(kb, tmp_path, ray):
    build_index(kb, tmp_path / "I", None)
    linker = Linker.open(kb, tmp_path / "I", k=2)
    documents = [Document(str(n), TEXTS[n % len(TEXTS)]) for n in range(20)]
    linked = list(linker.pipe(documents, batch_size=3, n_process=2, engine="ray"))
    assert linked == list(linker.pipe(documents))
    with pytest.raises(ConfigError, match="row 5: expected a text or Document, found 5"):
        list(linker.pipe([*TEXTS[:5], 5], batch_size=1, engine="ray"))
    assert ray.is_initialized()  # the cluster was there before


def test_a_missing_ray_names_the_extra(kb, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"biograft\[ray\]"):
        list(Linker.open(kb).pipe(["cold"], engine="ray"))
    with pytest.raises(ConfigError, match="engine: expected one of local, ray"):
        list(Linker.open(kb).pipe(["cold"], engine="spark"))


class Broken:
    def __init__(self, error):
        self.error = error

    def pipe(self, documents, batch_size):
        raise self.error


def test_an_error_in_a_process_comes_back_as_one_line():
    job = _Job(32, [Document("", "a"), Document("", "b")])
    assert _link_batch(Broken(ConfigError("k: wrong")), job) == _Failed("k: wrong")
    failed = _link_batch(Broken(ValueError("x" * 500)), job)
    assert failed.message.startswith("documents: rows 32 to 33: a worker failed (ValueError: xxx")
    assert len(failed.message) < 250


def test_a_linker_of_parts_cannot_be_opened_again(kb):
    opened = Linker.open(kb)
    linker = Linker(kb, opened.search)
    with pytest.raises(ConfigError, match=r"make it by Linker\.open"):
        list(linker.pipe(["cold"], n_process=2))
    with pytest.raises(ConfigError, match="n_process: expected at least 1, found 0"):
        list(linker.pipe(["cold"], n_process=0))


def test_a_failed_batch_is_raised(monkeypatch):
    failed = [[Document("", "a")]]
    monkeypatch.setattr(
        "biograft.linking.batches.run_in_order", lambda *_: iter([_Failed("not so")])
    )
    with pytest.raises(BiograftError, match="not so"):
        list(link_in_processes(object, failed, 2))


def test_batches_end_by_number_or_by_length():
    sizes = [len(batch) for batch in make_batches(["a", "b", "c", "dddddd", "e"], 2, 5)]
    assert sizes == [2, 2, 1]
