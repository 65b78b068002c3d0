"""Nearest rows, exact and in clusters, against sorting everything; clusters saved and resumed."""

from __future__ import annotations

import json
from itertools import chain, pairwise

import pytest
import torch
from hypothesis import given, settings, strategies as st
from safetensors.torch import load_file
from tiny_masked_lm import tiny_masked_lm_folder
from torch.nn.functional import normalize
from transformers import AutoModel, AutoModelForMaskedLM

from biograft.errors import ConfigError, StoreError
from biograft.nn import (
    Clusters,
    KnowledgeBertForMaskedLM,
    TextEncoder,
    load_masked_lm,
    nearest_rows,
    quiet_transformers,
)
from biograft.nn.knowledge import nearest
from biograft.pretraining import PretrainingRecipe
from biograft.pretraining.knowledge_model import graft, load_start
from biograft.training import (
    Cursor,
    TrainingConfig,
    TrainingState,
    load_checkpoint,
    make_optimiser,
    save_checkpoint,
)


@pytest.mark.parametrize("n_rows", [3, 50, 1000, 3333, 6400])
@pytest.mark.parametrize("at_once", [1 << 25, 7000])
def test_they_are_the_first_of_all_sorted(n_rows, at_once, monkeypatch):
    monkeypatch.setattr(nearest, "_BLOCK_SCORES", at_once)
    rng = torch.Generator().manual_seed(n_rows)
    queries = torch.randn(11, 4, generator=rng)
    table = torch.randn(n_rows, 4, generator=rng)
    rows = nearest_rows(queries, table, 10)
    for query, found in zip(queries, rows.tolist(), strict=True):
        scores = [float(score) for score in table @ query]
        assert found == sorted(range(n_rows), key=lambda row: -scores[row])[:10]


def test_no_query_gives_no_row():
    assert nearest_rows(torch.zeros(0, 4), torch.zeros(9, 4), 3).shape == (0, 3)


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


def grouped(n_rows=4000, n_groups=40, dim=16):
    """Rows around centres, and queries near rows."""
    centres = random_rows(n_groups, dim, seed=1)
    table = centres.repeat(n_rows // n_groups, 1) + random_rows(n_rows, dim, seed=2) / 4
    queries = table[:50] + random_rows(50, dim, seed=3) / 4
    return normalize(table, dim=1), normalize(queries, dim=1)


def recall(found, exact):
    return sum(len({*f} & {*e}) for f, e in zip(found.tolist(), exact.tolist(), strict=True)) / (
        exact.numel()
    )


@pytest.mark.parametrize("n_rows", [1, 3, 50, 1000, 3333])
@pytest.mark.parametrize("at_once", [1 << 25, 7000])
def test_looking_into_all_clusters_is_the_exact_search(n_rows, at_once, monkeypatch):
    monkeypatch.setattr(nearest, "_BLOCK_SCORES", at_once)
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


def test_rows_are_in_the_cluster_of_least_distance():
    """The last assignment is to the centres kept, whatever the norms of the rows."""
    table = random_rows(500, 3) * random_rows(500, 1, seed=4).exp()
    some = made(table, 1)
    near = torch.cdist(table, some.centres).argmin(dim=1)
    starts = some.starts.tolist()
    for cluster in range(len(some.centres)):
        rows = some.rows[starts[cluster] : starts[cluster + 1]]
        assert (near[rows] == cluster).all()
        assert rows.tolist() == sorted(rows.tolist())


def test_of_equal_rows_the_lower_is_first():
    table = torch.ones(400, 3, dtype=torch.double)
    table[100:] = -1
    table[390] = 2
    found = made(table, 1).search(torch.ones(2, 3, dtype=torch.double), table, 5)
    assert found.tolist() == [[390, 0, 1, 2, 3]] * 2


def test_few_clusters_find_nearly_all_in_grouped_rows():
    table, queries = grouped()
    exact = nearest_rows(queries, table, 20)
    few, more = (recall(made(table, n).search(queries, table, 20), exact) for n in (4, 16))
    assert few > 0.8
    assert more > 0.99


def test_products_are_those_with_the_table_as_it_is_now():
    table, queries = grouped()
    some = made(table, 64)
    moved = table + random_rows(*table.shape, seed=9) / 2
    assert torch.equal(some.search(queries, moved, 20), nearest_rows(queries, moved, 20))


def test_making_them_twice_gives_the_same():
    table = random_rows(700, 6)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        one = made(table, 2).state_dict()
    two = made(table, 2).state_dict()
    assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize("learned", [True, False])
def test_in_training_they_follow_a_table_that_is_learned(monkeypatch, learned):
    monkeypatch.setattr(nearest, "REBUILT_AFTER", 3)
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


def test_in_inference_nothing_changes_and_none_made_is_exact():
    table, queries = random_rows(90, 4).requires_grad_(), random_rows(7, 4, seed=1)
    some = Clusters(90, 4, 1).double().eval()
    assert torch.equal(some.search(queries, table, 9), nearest_rows(queries, table, 9))
    some.build(table)
    before = {key: value.clone() for key, value in some.state_dict().items()}
    some.search(queries, table, 9)
    assert all(torch.equal(value, before[key]) for key, value in some.state_dict().items())


def test_no_query_gives_no_row_of_clusters():
    table = random_rows(90, 4)
    assert made(table, 2).search(table[:0], table, 3).shape == (0, 3)
    empty = Clusters(0, 4, 2).double().train()
    assert empty.search(random_rows(2, 4), random_rows(0, 4), 3).shape == (2, 0)


def test_autocast_does_not_change_the_search():
    table, queries = (part.float() for part in grouped(n_rows=400))
    some = made(table.double(), 20).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = some.search(queries, table, 20)
    assert torch.equal(found, nearest_rows(queries, table, 20))


def clustered(small_model, **memory):
    """A layer over 300 entities that searches in 2 of 17 clusters."""
    model = small_model({"n_probed": 2, **memory}, n_entities=300)
    layer = model.model.knowledge.entity_memory
    if layer.clusters is not None:
        layer.clusters.build(model.model.entity_table.weight)
    return model


def test_with_all_clusters_the_layer_gives_what_it_gives_exactly(small_model):
    ids = some_ids(60)
    exact, every, few = (
        clustered(small_model, n_probed=n, n_nearest=60)(ids, mentions=MENTIONS) for n in (0, 17, 2)
    )
    assert torch.equal(exact.candidates, every.candidates)
    assert torch.equal(exact.logits, every.logits)
    assert not torch.equal(exact.logits, few.logits)


def test_gradients_still_reach_the_table(small_model):
    model = clustered(small_model).train()
    output = model(some_ids(60), mentions=MENTIONS)
    output.logits.square().sum().backward()
    gradient = model.model.entity_table.weight.grad
    touched = (gradient.abs().sum(dim=1) > 0).nonzero().flatten().tolist()
    assert touched == output.candidates.unique().tolist()
    assert int(model.model.knowledge.entity_memory.clusters.n_searches) == 1


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_query_does_not_depend_on_the_others(data):
    table = random_rows(150, 4, seed=1)
    some = made(table, data.draw(st.integers(1, 12)))
    n, k = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40))
    queries = random_rows(n, 4, seed=data.draw(st.integers(0, 10_000)))
    together = some.search(queries, table, k)
    for row in range(n):
        assert torch.equal(some.search(queries[row : row + 1], table, k)[0], together[row])


def test_padding_and_other_sequences_change_no_output(small_model):
    model = clustered(small_model)
    ids = some_ids(60)
    lengths = (8, 5, 8)
    mask = (torch.arange(8) < torch.tensor(lengths)[:, None]).long()
    together = model(ids, mask).logits
    for row, length in enumerate(lengths):
        alone = model(ids[row : row + 1, :length]).logits[0]
        torch.testing.assert_close(together[row, :length], alone, rtol=1e-9, atol=1e-9)


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


def test_an_exact_search_saves_no_clusters(bert, tmp_path):
    folder = write(build(bert, n_probed=0), tmp_path / "exact", bert)
    assert not [key for key in load_file(folder / "model.safetensors") if "clusters" in key]


def test_the_number_of_probed_clusters_changes_the_fingerprint(bert, tmp_path):
    model = build(bert)
    model.model.knowledge.entity_memory.clusters.build(model.model.entity_table.weight)
    folder = write(model, tmp_path / "some", bert)
    before = TextEncoder.from_pretrained(folder).fingerprint()
    config = json.loads((folder / "config.json").read_text())
    config["knowledge_layers"]["entity_memory"]["n_probed"] = 3
    (folder / "config.json").write_text(json.dumps(config))
    assert TextEncoder.from_pretrained(folder).fingerprint() != before


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


def test_wrong_settings_are_refused(bert):
    with pytest.raises(ConfigError, match="n_probed: expected at least 0, found -1"):
        build(bert, n_probed=-1)
    with pytest.raises(ConfigError, match="n_probed: expected 0 with compat"):
        build(bert, compat=True)


@pytest.mark.parametrize("n_probed", [0, 2])
def test_a_recipe_says_how_many(bert, n_probed):
    values = {
        "encoder": {"name": str(bert)},
        "knowledge": {"layers": {"entity_memory": {"after": 1, "n_probed": n_probed}}},
        "stream": {"kind": "annotated_text", "shards": "none", "max_length": 32},
        "objective": {"entity_linking": {}},
    }
    recipe = PretrainingRecipe.from_values("tiny", values)
    lm = graft(load_start(recipe), recipe, ["C1", "C2"], None).lm
    assert lm.config.knowledge_layers["entity_memory"]["n_probed"] == n_probed
    assert (lm.model.knowledge.entity_memory.clusters is None) == (n_probed == 0)
    assert recipe.to_json()["knowledge"]["layers"]["entity_memory"]["n_probed"] == n_probed


def train(model, optimiser, steps):
    for step in steps:
        ids = torch.randint(5, 12, (3, 8), generator=torch.Generator().manual_seed(step))
        optimiser.zero_grad(set_to_none=True)
        torch.manual_seed(step)
        model(ids, mentions=MENTIONS).logits.square().mean().backward()
        optimiser.step()


def test_ten_steps_are_five_and_five_resumed(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(nearest, "REBUILT_AFTER", 3)

    def start():
        model = build(bert).train()
        return model, make_optimiser(model, TrainingConfig(learning_rate=1e-2))

    whole, optimiser = start()
    train(whole, optimiser, range(10))
    part, optimiser = start()
    train(part, optimiser, range(5))
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    saved = save_checkpoint(
        tmp_path / "run", Cursor(5), TrainingState(part, optimiser, scaler), keep=0
    )
    rest, optimiser = start()
    assert load_checkpoint(saved, TrainingState(rest, optimiser, scaler)).step == 5
    train(rest, optimiser, range(5, 10))
    assert int(rest.model.knowledge.entity_memory.clusters.n_searches) == 1
    for key, value in whole.state_dict().items():
        assert torch.equal(value, rest.state_dict()[key]), key
