"""Which names of a store may be generated, and how they are written."""

from __future__ import annotations

import numpy as np
import pytest
from generative_store import store_in

from biograft.corpus.mention_text import clean_name
from biograft.errors import ConfigError
from biograft.linking.generative import NamesConfig, select_names


def names_of(kb, selected):
    """Say by (id, name as the store has it) what text each kept row is."""
    concepts = kb.table("names").column("concept").to_pylist()
    return {
        (kb.id_at(concepts[row]), kb.name(row).text): selected.texts[number]
        for row, number in enumerate(selected.numbers.tolist())
        if number >= 0
    }


def test_every_name_is_written_plainly_and_equal_ones_once(named):
    selected = select_names(named, NamesConfig())
    found = names_of(named, selected)
    assert len(found) == named.n_names
    assert all(text == clean_name(name) for (_, name), text in found.items())
    assert len(set(selected.texts)) == len(selected.texts)
    assert found["D2", "breast cancer"] == found["D2", "Breast-Cancer"] == "breast cancer"
    assert found["D5", "二甲双胍"] == "二甲双胍"
    assert selected.lengths.tolist() == [len(text) for text in selected.texts]


def test_case_may_be_kept(named):
    assert "T2DM" in select_names(named, NamesConfig(lower=False)).texts


def test_a_shared_name_is_left_to_the_concept_with_the_fewest(named):
    found = names_of(named, select_names(named, NamesConfig(shared="fewest")))
    owners = {
        text: {i for (i, _), t in found.items() if t == text} for text in ("mi", "cold", "t2dm")
    }
    # D4 has three names and D8 two; D6 three and D7 two
    assert owners == {"mi": {"D8"}, "cold": {"D7"}, "t2dm": {"D1"}}
    assert {i for i, _ in found} == {f"D{n}" for n in range(1, 9)}


def test_one_name_a_concept(named):
    shortest = names_of(named, select_names(named, NamesConfig(per_concept="shortest")))
    assert {i: text for (i, _), text in shortest.items()} == {
        "D1": "t2dm", "D2": "breast cancer", "D3": "ovarian cancer", "D4": "mi",
        "D5": "二甲双胍", "D6": "cold", "D7": "cold", "D8": "mi",
    }  # fmt: skip
    drawn = [select_names(named, NamesConfig(per_concept="random", seed=s)) for s in (1, 1, 2, 3)]
    assert drawn[0].texts == drawn[1].texts
    assert len({selected.texts for selected in drawn}) > 1
    for selected in drawn:
        assert sorted(i for i, _ in names_of(named, selected)) == [f"D{n}" for n in range(1, 9)]


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({"types": ("drug",)}, {"D5"}),
        ({"types": ("drug", "finding")}, {"D5", "D7", "D8"}),
        ({"languages": ("zh",)}, {"D1", "D5"}),
        ({"types": ("disease",), "languages": ("zh",)}, {"D1"}),
        ({"sources": ("kb.jsonl",)}, {f"D{n}" for n in range(1, 9)}),
    ],
)
def test_names_of_some_types_languages_and_sources(named, asked, ids):
    found = names_of(named, select_names(named, NamesConfig(**asked)))
    assert {i for i, _ in found} == ids


def test_types_by_label_and_with_those_below(tmp_path):
    kb = store_in(tmp_path, [{"id": "A", "name": "a", "type": "t"}, {"id": "B", "name": "b"}])
    kinds = kb.types
    kb.types = [type(kinds[0])("T1", "Finding", "A1.2")]
    assert names_of(kb, select_names(kb, NamesConfig(types=("Finding",)))) == {("A", "a"): "a"}
    kb.types = [type(kinds[0])("T1", "", "A1.2"), type(kinds[0])("T0", "", "A1")]
    assert names_of(kb, select_names(kb, NamesConfig(types=("T0",)))) == {("A", "a"): "a"}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"types": ("drugs",)}, "types: no name of the store is of 'drugs'; did you mean 'drug'"),
        ({"languages": ("de",)}, "languages: no name of the store is of 'de'"),
        ({"sources": ("MSH",)}, "sources: no name of the store is of 'MSH'"),
        ({"types": ("finding",), "languages": ("zh",)}, r"none of the 2\d names of .* is left"),
    ],
)
def test_what_is_not_there_is_said(named, asked, problem):
    with pytest.raises(ConfigError, match=problem):
        select_names(named, NamesConfig(**asked))


def test_numbers_stand_for_texts_in_the_order_of_the_store(named):
    selected = select_names(named, NamesConfig(languages=("en",)))
    kept = selected.numbers[selected.numbers >= 0]
    _, first = np.unique(kept, return_index=True)
    assert (np.diff(first) > 0).all()
