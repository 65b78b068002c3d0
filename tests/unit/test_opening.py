"""The first lines that anybody types: link a text, open a folder."""

from __future__ import annotations

import subprocess
import sys

import pytest

import biograft
from biograft.errors import ConfigError, InputError
from biograft.kb import build_starter
from biograft.linking.index import build_index


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opening") / "kb"
    build_starter(folder)
    return folder


def answers(linked):
    return [(each.text, each.concept, each.name, each.status) for each in linked.mentions]


EXPECTED = [
    ("fever", "D005334", "Fever", "absent"),
    ("AF", "D001281", "Atrial Fibrillation", "present"),
]


@pytest.mark.parametrize("cache", [True, False])
def test_a_text_is_linked_by_the_starter_if_nothing_is_named(cache, monkeypatch, tmp_path):
    from biograft import opening

    opening._starter_linker.cache_clear()
    monkeypatch.setattr(opening, "cache_folder", lambda: tmp_path if cache else None)
    assert answers(biograft.link("No fever, known AF.")) == EXPECTED
    assert list(tmp_path.glob("starter-*")) != [] if cache else list(tmp_path.iterdir()) == []
    opening._starter_linker.cache_clear()  # the next call opens what was built
    assert answers(biograft.link("患者女，2型糖尿病10年。"))[0][1] == "D003924"


def test_a_damaged_starter_is_built_again(monkeypatch, tmp_path):
    from biograft import opening

    monkeypatch.setattr(opening, "cache_folder", lambda: tmp_path)
    base = opening.open_starter()
    next(each for each in base.folder.iterdir() if each.suffix != ".json").unlink()
    assert len(opening.open_starter()) == 896


def test_options_of_the_linker_are_taken(store):
    text = "No fever, known AF."
    for kb in (store, str(store), biograft.KnowledgeBase.open(store), None):
        assert answers(biograft.link(text, kb, assertions=False))[0][3] is None
    linker = biograft.Linker.open(store)
    assert answers(biograft.link(text, linker)) == EXPECTED
    assert biograft.link(text, linker, types=("drug",)).mentions == ()


def test_a_folder_is_opened_by_its_kind(store, tmp_path):
    kb = biograft.load(store)
    assert isinstance(kb, biograft.KnowledgeBase)
    build_index(kb, tmp_path / "index")
    with pytest.raises(ConfigError, match="give one"):
        biograft.load(tmp_path / "index")
    linker = biograft.load(tmp_path / "index", kb=store, k=3)
    assert answers(linker("No fever, known AF.")) == EXPECTED


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_of_something_else_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=name):
        biograft.load(tmp_path / name)


def test_the_names_are_there_before_anything_heavy_is_loaded():
    code = "import sys, biograft; assert {'link', 'load'} <= set(dir(biograft)); "
    code += "assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_commands_take_the_starter_by_name(run_main, tmp_path, monkeypatch):
    """From a clone to a mapped column in two commands: install, map."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.csv").write_text("term\nheart attack\n", encoding="utf-8")
    code, _, error = run_main(
        *("map", "terms.csv", "--column", "term", "--kb", "starter", "-o", "out.csv", "-k", "1")
    )
    assert (code, error.count("Error")) == (0, 0)
    assert "D009203" in (tmp_path / "out.csv").read_text(encoding="utf-8")
