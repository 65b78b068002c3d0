"""Nearest rows, exact and in clusters, against sorting everything; clusters saved and resumed."""

from __future__ import annotations

import json
from itertools import chain, pairwise

import pytest
import torch
from tiny_masked_lm import tiny_masked_lm_folder
from transformers import AutoModel, AutoModelForMaskedLM

from biograft.errors import StoreError
from biograft.models import (
    Clusters,
    KnowledgeBertForMaskedLM,
    TextEncoder,
    load_masked_lm,
    nearest_rows,
    quiet_transformers,
)


@pytest.mark.parametrize("n_rows", [3, 50, 3333])
@pytest.mark.parametrize("at_once", [1 << 25, 7000])
def test_they_are_the_first_of_all_sorted(n_rows, at_once, monkeypatch):
    monkeypatch.setattr("biograft.models.knowledge.nearest._BLOCK_SCORES", at_once)
    rng = torch.Generator().manual_seed(n_rows)
    queries = torch.randn(11, 4, generator=rng)
    table = torch.randn(n_rows, 4, generator=rng)
    rows = nearest_rows(queries, table, 10)
    for query, found in zip(queries, rows.tolist(), strict=True):
        scores = [float(score) for score in table @ query]
        assert found == sorted(range(n_rows), key=lambda row: -scores[row])[:10]


MENTIONS = torch.tensor([[0, 1, 3], [0, 4, 4], [2, 2, 7]])


def random_rows(*sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator, dtype=torch.double)


def some_ids(n_tokens):
    return torch.randint(5, n_tokens, (3, 8), generator=torch.Generator().manual_seed(0))


def made(table, n_probed):
    found = Clusters(*table.shape, n_probed).double().eval()
    found.build(table)
    return found


@pytest.mark.parametrize("n_rows", [1, 50, 3333])
@pytest.mark.parametrize("at_once", [1 << 25, 7000])
def test_looking_into_all_clusters_is_the_exact_search(n_rows, at_once, monkeypatch):
    monkeypatch.setattr("biograft.models.knowledge.nearest._BLOCK_SCORES", at_once)
    table, queries = random_rows(n_rows, 4), random_rows(11, 4, seed=1)
    found = made(table, n_probed=1000).search(queries, table, 10)
    for query, rows in zip(queries, found.tolist(), strict=True):
        scores = (table @ query).tolist()
        assert rows == sorted(range(n_rows), key=lambda row: (-scores[row], row))[:10]


@pytest.mark.parametrize("n_probed", [1, 3])
def test_it_is_the_best_of_the_clusters_looked_into(n_probed):
    """Equal to loops over the clusters, one query at a time, with more where rows are too few."""
    table, queries = random_rows(200, 5), random_rows(9, 5, seed=1)
    some = made(table, n_probed)
    found = some.search(queries, table, 30)
    starts = some.starts.tolist()
    members = [some.rows[a:b].tolist() for a, b in pairwise(starts)]
    assert sorted(chain(*members)) == list(range(200))
    for query, rows in zip(queries, found.tolist(), strict=True):
        order = sorted(range(len(members)), key=lambda c: -float(some.centres[c] @ query))
        seen = []
        for rank, cluster in enumerate(order):
            if rank < n_probed or len(seen) < 30:
                seen += members[cluster]
        assert len(seen) < 200
        assert rows == sorted(seen, key=lambda row: -float(table[row] @ query))[:30]


@pytest.mark.parametrize("learned", [True, False])
def test_in_training_they_follow_a_table_that_is_learned(monkeypatch, learned):
    monkeypatch.setattr("biograft.models.knowledge.nearest.REBUILT_AFTER", 3)
    table = random_rows(90, 4).requires_grad_(learned)
    some = Clusters(90, 4, 2).double().train()
    made_at, before = [], some.centres.clone()
    for n in range(8):
        some.search(random_rows(2, 4, seed=n), table, 3)
        with torch.no_grad():
            table += random_rows(90, 4, seed=20 + n)
        if not torch.equal(before, some.centres):
            made_at.append(n)
        before = some.centres.clone()
    assert made_at == ([0, 3, 6] if learned else [0])


def write(model, folder, tokens):
    with quiet_transformers():
        model.save_pretrained(folder)
        load_masked_lm(tokens).tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def bert(tmp_path):
    return tiny_masked_lm_folder(tmp_path / "bert", ["heart attack is bad for you"])


def build(bert, **memory):
    table = random_rows(200, 5).float()
    return KnowledgeBertForMaskedLM.from_bert(
        bert,
        table,
        knowledge_layers={"entity_memory": {"after": 1, "n_nearest": 7, "n_probed": 2, **memory}},
    )


def test_a_saved_model_finds_the_same(bert, tmp_path):
    model = build(bert).train()
    ids = some_ids(12)
    model(ids, mentions=MENTIONS)
    folder = write(model.eval(), tmp_path / "saved", bert)
    for kind, own in ((AutoModelForMaskedLM, model), (AutoModel, model.model)):
        loaded = kind.from_pretrained(folder).eval()
        state = loaded.state_dict()
        assert own.state_dict().keys() == state.keys()
        assert all(torch.equal(value, state[key]) for key, value in own.state_dict().items())
        one, two = (each(ids, mentions=MENTIONS) for each in (own, loaded))
        assert torch.equal(one.candidates, two.candidates)
        assert torch.equal(one.last_hidden_state, two.last_hidden_state)
    knowledge = model.model.knowledge.entity_memory
    queries = random_rows(30, 5).float()
    table = model.model.entity_table.weight
    exact = nearest_rows(queries, table, 7)
    assert not torch.equal(knowledge.recall(queries, table)[0], exact)


def test_a_folder_without_clusters_is_searched_exactly_by_transformers(bert, tmp_path):
    """Guard against buffers left as the memory was where the file has none."""
    folder = write(build(bert, n_probed=0), tmp_path / "exact", bert)
    layers = json.loads((folder / "config.json").read_text())["knowledge_layers"]
    layers["entity_memory"]["n_probed"] = 2
    with quiet_transformers():
        loaded = AutoModel.from_pretrained(folder, knowledge_layers=layers).eval()
    for value in loaded.knowledge.entity_memory.clusters.buffers():
        assert not value.any()
    exact = AutoModel.from_pretrained(folder).eval()
    ids = some_ids(12)
    one, two = (each(ids, mentions=MENTIONS).candidates for each in (loaded, exact))
    assert torch.equal(one, two)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"knowledge_layers": layers}))
    with pytest.raises(StoreError, match=r"lack 4 of the model's tensors"):
        TextEncoder.from_pretrained(folder)
