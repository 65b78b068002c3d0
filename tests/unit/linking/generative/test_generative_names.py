"""The trie of names: exactly the store's names, each of which leads back to its rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from array_damage import DAMAGES, damage as damage_array, put
from generative_store import store_in
from hypothesis import HealthCheck, given, settings, strategies as st
from manifests import reseal
from tiny_seq2seq import tiny_seq2seq

from biograft.errors import ConfigError, StoreError
from biograft.linking import NamesConfig, NameTrie, select_names
from biograft.text import clean_name


def paths_of(trie, root=0):
    """Walk a trie from a node: the tokens to each end, and the sequence that ends there."""
    found, open_nodes = {}, [(root, ())]
    while open_nodes:
        node, path = open_nodes.pop()
        first, last = (int(n[0]) for n in trie.children(np.array([node])))
        for child in range(first, last):
            longer = (*path, int(trie.tokens[child]))
            sequence = int(trie.sequence_of(np.array([child]))[0])
            if sequence >= 0:
                found[longer] = sequence
            open_nodes.append((child, longer))
    return found


def rows_by_tokens(kb, seq2seq, config):
    """Group the rows of the names that are kept by their tokens, by plain loops."""
    selected = select_names(kb, config)
    grouped = {}
    for row, number in enumerate(selected.numbers.tolist()):
        if number >= 0:
            tokens = seq2seq.tokens([clean_name(kb.name(row).text, lower=config.lower)])[0]
            grouped.setdefault((*tokens, seq2seq.end), []).append(row)
    return grouped


CONFIGS = [
    NamesConfig(),
    NamesConfig(lower=False),
    NamesConfig(shared="fewest"),
    NamesConfig(per_concept="shortest"),
    NamesConfig(types=("disease",), languages=("en",)),
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_the_trie_holds_the_names_and_leads_back_to_them(named, seq2seq, config):
    names = NameTrie.build(named, seq2seq, config)
    expected = rows_by_tokens(named, seq2seq, config)
    found = {path: names.rows_of(s).tolist() for path, s in paths_of(names.trie).items()}
    assert found == expected
    assert names.trie.n_sequences == len(expected)
    assert names.n_cut == 0
    for path, sequence in paths_of(names.trie).items():
        assert [int(names.numbers[row]) for row in expected[path]] == [sequence] * len(
            expected[path]
        )
        assert names.tokens_of(expected[path]) == [list(path[:-1])] * len(expected[path])


texts = st.lists(
    st.lists(
        st.text(st.sampled_from("aAbB -,2型 "), min_size=1, max_size=7).filter(str.strip),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts, st.sampled_from(["all", "fewest"]))
def test_any_names_come_out_as_they_went_in(seq2seq, tmp_path_factory, concepts, shared):
    content = [{"id": f"C{n}", "names": own} for n, own in enumerate(concepts)]
    kb, config = store_in(tmp_path_factory.mktemp("any"), content), NamesConfig(shared=shared)
    names = NameTrie.build(kb, seq2seq, config)
    found = {path: names.rows_of(s).tolist() for path, s in paths_of(names.trie).items()}
    assert found == rows_by_tokens(kb, seq2seq, config)


@pytest.mark.parametrize(
    "selection",
    [
        {"types": ("disease",)},
        {"types": ("drug", "finding")},
        {"languages": ("zh",)},
        {"sources": ("kb.jsonl",)},
        {"types": ("disease",), "languages": ("en",)},
    ],
)
@pytest.mark.parametrize("shared", ["all", "fewest"])
def test_a_restricted_trie_is_that_of_the_names_left(named, seq2seq, selection, shared):
    whole = NameTrie.build(named, seq2seq, NamesConfig(shared=shared))
    names = whole.restricted(**selection)
    concepts = named.table("names").column("concept").to_pylist()
    expected = {}
    for path, rows in rows_by_tokens(named, seq2seq, NamesConfig(shared=shared)).items():
        kept = [row for row in rows if _wanted(named, row, concepts[row], selection)]
        if kept:
            expected[path] = kept
    assert {path: names.rows_of(s).tolist() for path, s in paths_of(names.trie).items()} == expected
    assert len(expected) < whole.trie.n_sequences or selection == {"sources": ("kb.jsonl",)}


def _wanted(kb, row, concept, selection):
    name = kb.name(row)
    kinds = {kind.code for kind in kb.concept_at(concept).types}
    return (
        (not selection.get("types") or bool(kinds & set(selection["types"])))
        and name.language in selection.get("languages", (name.language,))
        and name.source in selection.get("sources", (name.source,))
    )


def test_a_forest_has_the_names_of_each_list_and_no_others(named, seq2seq):
    names = NameTrie.build(named, seq2seq)
    rows = rows_by_tokens(named, seq2seq, NamesConfig())
    lists = [[3, 0, 3, -1], [], list(range(named.n_names)), [5]]
    forest = names.for_candidates(lists)
    assert len(forest.roots) == len(lists)
    for root, own in zip(forest.roots.tolist(), lists, strict=True):
        expected = {path for path, stand in rows.items() if set(stand) & set(own)}
        found = paths_of(forest.trie, root)
        assert set(found) == expected
        for path, number in found.items():
            assert names.rows_of(int(forest.numbers[number])).tolist() == rows[path]


def test_a_forest_leaves_out_what_may_not_be_generated(named, seq2seq):
    names = NameTrie.build(named, seq2seq, NamesConfig(types=("drug",)))
    kept = np.flatnonzero(names.numbers >= 0)
    forest = names.for_candidates([list(range(named.n_names))])
    assert len(paths_of(forest.trie, int(forest.roots[0]))) == len(kept)


def test_names_too_long_for_the_model_are_cut_and_counted(named):
    short = tiny_seq2seq(["a"], max_length=16)  # every byte a token
    names = NameTrie.build(named, short)
    longest = short.longest_name
    assert longest == 7
    assert max(map(len, paths_of(names.trie))) == longest + 1
    assert names.n_cut > 0
    assert sorted(row for s in range(names.trie.n_sequences) for row in names.rows_of(s)) == list(
        range(named.n_names)
    )


@pytest.fixture
def saved(named, seq2seq, tmp_path):
    names = NameTrie.build(named, seq2seq)
    names.save(tmp_path / "trie")
    return names, tmp_path / "trie"


def test_what_was_written_is_read(named, seq2seq, saved):
    names, folder = saved
    opened = NameTrie.open(folder, named, seq2seq, NamesConfig())
    assert isinstance(opened.rows.base, np.memmap)
    assert paths_of(opened.trie) == paths_of(names.trie)
    for name in ("numbers", "rows", "starts"):
        assert np.array_equal(getattr(opened, name), getattr(names, name))
    assert opened.nbytes == names.nbytes > 0
    assert opened.n_cut == 0


def test_another_store_tokenizer_or_choice_gives_another_trie(named, other, seq2seq, saved):
    _, folder = saved
    assert NameTrie.open(folder, other, seq2seq, NamesConfig()).trie.n_sequences == 5
    drugs = NamesConfig(types=("drug",))
    opened = NameTrie.open(folder, named, seq2seq, drugs)
    assert paths_of(opened.trie) == paths_of(NameTrie.build(named, seq2seq, drugs).trie)
    bytewise = tiny_seq2seq(["a"], max_length=64)
    opened = NameTrie.open(folder, named, bytewise, NamesConfig())
    assert set(paths_of(opened.trie)) == set(rows_by_tokens(named, bytewise, NamesConfig()))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda f: (f / "rows.npy").write_bytes(b"x"), "damaged .expected .* bytes, found 1"),
        (lambda f: (f / "tokens.npy").unlink(), "damaged .expected .* bytes, found no file"),
        (lambda f: (f / "manifest.json").write_text("{"), "damaged"),
        (lambda f: _retell(f, format="other"), "no trie of names but 'other'"),
        (lambda f: _retell(f, version=9), "trie of names of version 9"),
        (lambda f: _retell(f, n_cut=None), "n_cut is missing"),
        (lambda f: _swap(f, "starts.npy", np.zeros(3, np.int64)), "starts: expected .* numbers"),
    ],
)
def test_damage_is_said_in_one_line(named, seq2seq, saved, damage, problem):
    damage(saved[1])
    with pytest.raises(StoreError, match=problem) as caught:
        NameTrie.open(saved[1], named, seq2seq, NamesConfig())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["numbers", "rows", "starts", "children", "ends"])
def test_damaged_arrays_are_refused(named, seq2seq, saved, name, how):
    """Guards: numbers out of range were found out in the middle of linking, or not at all."""
    if name == "numbers" and how == "below":
        pytest.skip("-1 stands for no sequence")
    damage_array(saved[1], name, how)
    with pytest.raises(StoreError, match="damaged"):
        NameTrie.open(saved[1], named, seq2seq, NamesConfig())


def test_tokens_that_the_model_does_not_have_are_refused(named, seq2seq, saved):
    """Guards: a token beyond the vocabulary took the score of another name's token."""
    tokens = saved[0].trie.tokens.copy()
    tokens[-1] = seq2seq.model.config.vocab_size
    put(saved[1], "tokens", tokens)
    with pytest.raises(StoreError, match="damaged"):
        NameTrie.open(saved[1], named, seq2seq, NamesConfig())


def test_names_longer_than_the_model_writes_are_refused(named, seq2seq, saved):
    """Guards: the decoder was given positions that it does not have."""
    folder, n = saved[1], 100
    put(folder, "tokens", np.full(n, 5, np.uint16))
    put(folder, "children", np.arange(1, n + 2).clip(max=n).astype(np.uint16))
    put(folder, "ends", np.arange(n - saved[0].trie.n_sequences, n).astype(np.uint16))
    with pytest.raises(StoreError, match="damaged"):
        NameTrie.open(folder, named, seq2seq, NamesConfig())


def _retell(folder, **values):
    path = folder / "manifest.json"
    content = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    reseal(path)


def _swap(folder, name, array):
    np.save(folder / name, array)
    reseal(folder / "manifest.json")


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
        "D1": "t2dm",
        "D2": "breast cancer",
        "D3": "ovarian cancer",
        "D4": "mi",
        "D5": "二甲双胍",
        "D6": "cold",
        "D7": "cold",
        "D8": "mi",
    }
    sampled = [select_names(named, NamesConfig(per_concept="random", seed=s)) for s in (1, 1, 2, 3)]
    assert sampled[0].texts == sampled[1].texts
    assert len({selected.texts for selected in sampled}) > 1
    for selected in sampled:
        assert sorted(i for i, _ in names_of(named, selected)) == [f"D{n}" for n in range(1, 9)]


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({"types": ("drug",)}, {"D5"}),
        ({"types": ("drug", "finding")}, {"D5", "D7", "D8"}),
        ({"languages": ("zh",)}, {"D1", "D5"}),
        ({"types": ("disease",), "languages": ("zh",)}, {"D1"}),
        ({"sources": ("kb.jsonl",)}, {f"D{n}" for n in range(1, 9)}),
    ],
)
def test_names_of_some_types_languages_and_sources(named, selection, ids):
    found = names_of(named, select_names(named, NamesConfig(**selection)))
    assert {i for i, _ in found} == ids


def test_types_by_label_and_with_those_below(tmp_path):
    kb = store_in(tmp_path, [{"id": "A", "name": "a", "type": "t"}, {"id": "B", "name": "b"}])
    kinds = kb.types
    kb.types = [type(kinds[0])("T1", "Finding", "A1.2")]
    assert names_of(kb, select_names(kb, NamesConfig(types=("Finding",)))) == {("A", "a"): "a"}
    kb.types = [type(kinds[0])("T1", "", "A1.2"), type(kinds[0])("T0", "", "A1")]
    assert names_of(kb, select_names(kb, NamesConfig(types=("T0",)))) == {("A", "a"): "a"}


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        ({"types": ("drugs",)}, "types: no name of the store is of 'drugs'; did you mean 'drug'"),
        ({"languages": ("de",)}, "languages: no name of the store is of 'de'"),
        ({"sources": ("MSH",)}, "sources: no name of the store is of 'MSH'"),
        ({"types": ("finding",), "languages": ("zh",)}, r"none of the 2\d names of .* is left"),
    ],
)
def test_unknown_selections_are_refused(named, selection, problem):
    with pytest.raises(ConfigError, match=problem):
        select_names(named, NamesConfig(**selection))


def test_numbers_stand_for_texts_in_the_order_of_the_store(named):
    selected = select_names(named, NamesConfig(languages=("en",)))
    kept = selected.numbers[selected.numbers >= 0]
    _, first = np.unique(kept, return_index=True)
    assert (np.diff(first) > 0).all()
