"""Training of graph embeddings: exact resume, separate splits, folders, errors on bad input."""

import contextlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from array_damage import retell
from manifests import reseal
from one_writer import elsewhere

from biograft.errors import BiograftError, ConfigError, InputError, OutputError, StoreError
from biograft.graph import (
    EmbeddingExecution,
    Embeddings,
    GraphRecipe,
    ModelConfig,
    embed_graph,
    predict_links,
    read_triples,
    start_tables,
)
from biograft.graph.embedding import training
from biograft.graph.embedding.embeddings import read_tensors, write_tensors
from biograft.graph.embedding.loops import (
    Tables,
    TripleBatch,
    batch_gradients,
    make_buffers,
    make_loss_rules,
)
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.recipe import shipped_recipes


def recipe_of(name="transe", **changes):
    small = {"model.dim": 8, "training.epochs": 6, "training.batch": 16, "training.save_every": 2}
    values = {**small, **changes}
    return GraphRecipe.load(name, [f"{key}={json.dumps(v)}" for key, v in values.items()])


def save_state(folder, run, recipe, base, start=None):
    made_from = {
        "recipe": recipe.to_json(),
        "graph": training.graph_fingerprint(base),
        "start": Embeddings.open(start).fingerprint if start else "",
    }
    training._save_state(folder, run, made_from)


def tables_of(folder):
    return [np.array(table) for table in Embeddings.open(folder).tables]


def assert_equal(one, other):
    for a, b in zip(tables_of(one), tables_of(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", list(shipped_recipes("graph")))
def test_every_shipped_recipe_learns(name, small_base, tmp_path):
    changes = {"training.epochs": 30, "model.dim": 8}
    if name == "transr-smedbert":
        changes["model.relation_dim"] = 8
    result = embed_graph(small_base, recipe_of(name, **changes), tmp_path / "out")
    losses = result.run.losses
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("optimiser", ["adam", "lazy-adam", "adagrad", "row-adagrad"])
@pytest.mark.parametrize("name", ["transe", "transr"])
def test_a_resumed_run_equals_an_uninterrupted_one(
    name, optimiser, small_base, tmp_path, monkeypatch
):
    recipe = recipe_of(
        name,
        **{"optimiser.kind": optimiser, "training.evaluate_every": 1, "training.patience": 9},
    )
    embed_graph(small_base, recipe, tmp_path / "whole")
    look = training._evaluate

    def stop_at_five(run, *rest):
        if run.epoch == 5:
            raise KeyboardInterrupt
        return look(run, *rest)

    monkeypatch.setattr(training, "_evaluate", stop_at_five)
    with pytest.raises(KeyboardInterrupt):
        embed_graph(small_base, recipe, tmp_path / "stopped")
    monkeypatch.undo()
    with pytest.raises(OutputError, match="--resume goes on"):
        embed_graph(small_base, recipe, tmp_path / "stopped")
    result = embed_graph(small_base, recipe, tmp_path / "stopped", resume=True)
    assert_equal(tmp_path / "whole", tmp_path / "stopped")
    metadata = Embeddings.open(tmp_path / "whole").manifest["training"]
    assert (metadata["losses"], metadata["epochs"]) == (result.run.losses, 6)
    assert not (tmp_path / "stopped" / "state").exists()


def test_held_out_splits_do_not_affect_training(small_base, tmp_path):
    """The same train split with other valid and test splits gives the same vectors."""
    folder = tmp_path / "graph"
    for split in ("valid", "test"):  # known entities, so that rows stay the same
        with (folder / f"{split}.txt").open("a") as file:
            file.writelines(f"e{k}\tby\te{j}\n" for k in (21, 22, 24) for j in (25, 26, 27))
    build_store(BuildConfig(sources=(SourceConfig(path=folder),)), tmp_path / "other")
    other = KnowledgeBase.open(tmp_path / "other")
    ids = [[base.id_at(row) for row in range(30)] for base in (small_base, other)]
    assert ids[0] == ids[1]
    assert small_base.relation_names == other.relation_names
    sizes = [len(read_triples(base).of_split("test")) for base in (small_base, other)]
    assert sizes == [9, 9 + 9 - 2]  # two are duplicates
    for name, base in (("a", small_base), ("b", other)):
        embed_graph(base, recipe_of(), tmp_path / name)
    assert_equal(tmp_path / "a", tmp_path / "b")


def test_early_stopping_keeps_the_best_epoch(small_base, tmp_path):
    changes = {"training.evaluate_every": 1, "training.patience": 3, "training.epochs": 200}
    result = embed_graph(small_base, recipe_of(**changes), tmp_path / "out")
    valid_mrr = dict(result.run.valid_mrr)
    assert result.run.epoch == result.run.best_epoch + 3 < 200
    assert valid_mrr[result.run.best_epoch] == max(valid_mrr.values())
    triples = read_triples(small_base)
    saved = Embeddings.open(tmp_path / "out")
    result = predict_links(saved.tables, saved.model, triples, "valid")
    assert result.n_candidates == 30


def test_inverse_relations_are_learned_and_named(small_base, tmp_path):
    embed_graph(small_base, recipe_of(**{"model.inverse": True}), tmp_path / "out")
    saved = Embeddings.open(tmp_path / "out")
    assert saved.tables.relation.shape == (6, 8)
    assert saved.relation_names[3:] == [f"{name} (inverse)" for name in saved.relation_names[:3]]


def test_rows_and_text_are_by_id(small_base, tmp_path):
    embed_graph(small_base, recipe_of(), tmp_path / "out")
    saved = Embeddings.open(tmp_path / "out")
    saved.write_text(tmp_path / "out.txt")
    head, *lines = (tmp_path / "out.txt").read_text().splitlines()
    assert head == "30 8"
    for row, line in enumerate(lines):
        identifier, *numbers = line.split(" ")
        assert identifier == small_base.id_at(row) == saved.entity_ids[row]
        np.testing.assert_allclose([float(n) for n in numbers], saved.tables.entity[row], rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.dim=0", "model.dim: expected at least 1, found 0"),
        ("model.dims=5", "model: unknown key 'dims'; did you mean 'dim'"),
        ("model.relation_dim=5", "TransE needs that of the entities"),
        ("optimiser.learning_rate=nan", "optimiser.learning_rate: expected a number above 0"),
    ],
)
def test_wrong_settings_are_named(change, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(").replace("*", r"\*")):
        GraphRecipe.load("transe", [change])


def test_a_store_without_relations_is_refused(tmp_path, write):
    path = write("a.tsv", "id\tname\nC1\tflu\n")
    config = SourceConfig(path=path, columns={"id": "id", "name": "name"})
    build_store(BuildConfig(sources=(config,)), tmp_path / "kb")
    with pytest.raises(InputError, match="holds no relations to learn from"):
        embed_graph(KnowledgeBase.open(tmp_path / "kb"), recipe_of(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_evaluation_without_a_valid_split_is_refused(tmp_path, write):
    path = write("a.tsv", "head\trelation\ttail\na\tr\tb\n")
    build_store(BuildConfig(sources=(SourceConfig(path=path),)), tmp_path / "kb")
    with pytest.raises(InputError, match="holds no valid triples to choose by"):
        embed_graph(
            KnowledgeBase.open(tmp_path / "kb"),
            recipe_of(**{"training.evaluate_every": 2}),
            tmp_path / "out",
        )


@pytest.mark.parametrize("optimiser", ["lazy-adam"])
@pytest.mark.parametrize("name", ["transe", "transr"])
def test_an_estimate_follows_the_first_steps_and_changes_nothing(
    name, optimiser, small_base, tmp_path
):
    recipe, heard = recipe_of(name, **{"optimiser.kind": optimiser}), []
    embed_graph(small_base, recipe, tmp_path / "silent")
    execution = EmbeddingExecution(announce=heard.append)
    result = embed_graph(small_base, recipe, tmp_path / "announced", execution=execution)
    assert_equal(tmp_path / "silent", tmp_path / "announced")
    (estimate,) = heard
    assert (estimate.n_epochs, estimate.optimiser, estimate.device) == (6, optimiser, "cpu")
    assert estimate.seconds > 0
    assert estimate.n_bytes > result.run.n_bytes()
    assert f"for 6 epochs and 0.00 GiB ({optimiser} on cpu)" in str(estimate)


def test_auto_is_a_gpu_only_for_many_entities(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    def chosen(device, name, n):
        return training.choose_device(device, recipe_of(name), n)

    assert [chosen("auto", "transe", n) for n in (200_000, 200_001)] == ["cpu", "cuda"]
    assert chosen("auto", "transr", 10**6) == chosen("cpu", "transe", 10**6) == "cpu"
    assert chosen("cuda", "transe", 10) == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert chosen("auto", "transe", 10**6) == "cpu"
    with pytest.raises(ConfigError, match="torch finds no GPU here"):
        chosen("cuda", "transe", 10)


@pytest.mark.parametrize(
    ("device", "name", "message"),
    [("cuda", "transr", "leave --device out"), ("gpu", "transe", "device: expected one of")],
)
def test_a_device_that_cannot_be_is_refused(device, name, message, small_base, tmp_path):
    def embed():
        execution = EmbeddingExecution(device=device)
        embed_graph(small_base, recipe_of(name), tmp_path / "out", execution=execution)

    with pytest.raises(ConfigError, match=message):
        embed()


def test_foreign_and_finished_folders_are_refused(small_base, tmp_path):
    with pytest.raises(OutputError, match="holds no embeddings"):
        embed_graph(small_base, recipe_of(), small_base.folder, overwrite=True)
    embed_graph(small_base, recipe_of(), tmp_path / "out")
    with pytest.raises(OutputError, match="is finished there; --overwrite trains anew"):
        embed_graph(small_base, recipe_of(), tmp_path / "out")
    with pytest.raises(OutputError, match="is finished; --overwrite trains anew"):
        embed_graph(small_base, recipe_of(), tmp_path / "out", resume=True)
    embed_graph(small_base, recipe_of(), tmp_path / "out", overwrite=True)


@pytest.mark.parametrize("damage", ["cut", "gone", "foreign"])
def test_damaged_folders_are_refused(damage, small_base, tmp_path):
    embed_graph(small_base, recipe_of(), tmp_path / "out")
    path = tmp_path / "out" / "embeddings.safetensors"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-4])
    elif damage == "gone":
        path.unlink()
    else:
        shutil.copy(small_base.folder / "manifest.json", tmp_path / "out" / "manifest.json")
    with pytest.raises(BiograftError, match="biograft graph embed"):
        Embeddings.open(tmp_path / "out")


def test_a_kill_while_writing_the_first_state_does_no_harm(small_base, tmp_path):
    """The folder then held an unfinished state only, and was refused as foreign."""
    out = tmp_path / "out"
    (out / ".state.elsewhere.123-0a.building").mkdir(parents=True)
    embed_graph(small_base, recipe_of(), out, resume=True)
    assert [path.name for path in out.glob(".*")] == []
    (tmp_path / "mine" / ".git").mkdir(parents=True)
    with pytest.raises(OutputError, match="holds no embeddings"):
        embed_graph(small_base, recipe_of(), tmp_path / "mine", overwrite=True)


@pytest.mark.parametrize("header", [b"[]", b'{"entity": 5}'])
def test_a_damaged_state_is_refused(header, small_base, tmp_path):
    recipe, state = recipe_of(), tmp_path / "out" / "state"
    run = training.new_run(read_triples(small_base), recipe)
    save_state(state, run, recipe, small_base)
    path = state / "state.safetensors"
    size = path.stat().st_size
    path.write_bytes((len(header).to_bytes(8, "little") + header).ljust(size, b"\0"))
    with pytest.raises(StoreError, match="damaged"):
        embed_graph(small_base, recipe, tmp_path / "out", resume=True)


def rewrite(path, change):
    """Change one array of a file, and let its manifest tell the new size."""
    arrays = {name: np.array(array) for name, array in read_tensors(path).items()}
    change(arrays)
    write_tensors(path, arrays)
    for manifest in path.parent.glob("*.json"):
        if "files" in json.loads(manifest.read_text()):
            reseal(manifest)


CHANGES = {
    "fewer rows": lambda array: array[:-1],
    "more rows": lambda array: np.concatenate([array, array[:1]]),
    "narrower": lambda array: np.ascontiguousarray(array[..., :-1]),
    "integers": lambda array: array.astype(np.int32),
    "one axis": lambda array: array.reshape(-1),
}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", ["entity", "relation", "projection"])
def test_tables_that_are_not_of_the_model_are_refused(name, how, small_base, tmp_path):
    """Guards: compiled loops read beyond vectors that are shorter than the model says."""
    recipe = recipe_of("transr", **{"training.epochs": 1})
    embed_graph(small_base, recipe, tmp_path / "out")

    def change(arrays):
        arrays[name] = CHANGES[how](arrays[name])

    rewrite(tmp_path / "out" / "embeddings.safetensors", change)
    with pytest.raises(StoreError, match=f"damaged .*{name}") as caught:
        Embeddings.open(tmp_path / "out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", ["entity", "relation", "entity.second", "best.entity"])
def test_a_state_that_is_not_of_the_recipe_is_refused(name, how, small_base, tmp_path):
    """Guards: compiled loops wrote beyond vectors and moments that are too few."""
    recipe, state = recipe_of(), tmp_path / "out" / "state"
    run = training.new_run(read_triples(small_base), recipe)
    run.best = run.tables
    save_state(state, run, recipe, small_base)

    def change(arrays):
        arrays[name] = CHANGES[how](arrays[name])

    rewrite(state / "state.safetensors", change)
    with pytest.raises(StoreError, match=f"damaged .*{name}") as caught:
        embed_graph(small_base, recipe, tmp_path / "out", resume=True)
    assert "\n" not in str(caught.value)


def test_ids_that_are_not_as_many_as_vectors_are_refused(small_base, tmp_path):
    embed_graph(small_base, recipe_of(), tmp_path / "out")
    path = tmp_path / "out" / "ids.json"
    ids = json.loads(path.read_text())
    del ids["entities"][0]
    path.write_text(json.dumps(ids, ensure_ascii=False).ljust(path.stat().st_size))
    opened = Embeddings.open(tmp_path / "out")
    with pytest.raises(StoreError, match="damaged"):
        _ = opened.entity_ids


@pytest.mark.parametrize("column", ["head", "relation", "tail", "source"])
def test_relations_out_of_range_are_refused(column, small_base, tmp_path):
    """Guards: training wrote beyond the vectors of the entities that there are (SIGSEGV)."""
    path = small_base.folder / "relations.arrow"
    table = pa.ipc.open_file(path).read_all().combine_chunks()
    numbers = table.column(column).to_numpy().copy()
    numbers[3] = np.iinfo(numbers.dtype).max
    position = table.schema.get_field_index(column)
    table = table.set_column(position, table.field(column), pa.array(numbers))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    retell(small_base.folder)
    with pytest.raises(StoreError, match=rf"relations\.arrow: damaged \({column}: ") as caught:
        embed_graph(KnowledgeBase.open(small_base.folder), recipe_of(), tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_vectors_that_are_not_finite_are_not_kept(small_base, tmp_path, monkeypatch):
    """The last step of an epoch may make them NaN after its loss was computed."""
    step = training.CompiledSteps.step

    def spoiling(self, batch):
        loss = step(self, batch)
        self.run.tables.entity[3, 0] = np.nan if self.run.step == 10 else 0.5
        return loss

    monkeypatch.setattr(training.CompiledSteps, "step", spoiling)
    recipe = recipe_of(**{"training.evaluate_every": 1})
    with pytest.raises(InputError, match="epoch 2"):
        embed_graph(small_base, recipe, tmp_path / "out")


def test_a_second_run_does_not_replace_the_first(small_base, tmp_path, monkeypatch):
    """A run started during the first one replaced its result, without --overwrite."""
    errors, look = [], training._evaluate

    def meanwhile(run, recipe, triples):
        again = lambda: embed_graph(small_base, recipe_of(), tmp_path / "out")  # noqa: E731
        errors.append(elsewhere(again))
        return look(run, recipe, triples)

    monkeypatch.setattr(training, "_evaluate", meanwhile)
    embed_graph(small_base, recipe_of(), tmp_path / "out")
    assert len(errors) == 6
    assert all(isinstance(error, OutputError) for error in errors)
    assert not list(tmp_path.glob(".out*"))


BALL = {"model.entity_bound": "ball", "model.relation_bound": "ball"}


@pytest.fixture
def transe(small_base, tmp_path):
    embed_graph(small_base, recipe_of(**BALL, **{"training.epochs": 60}), tmp_path / "transe")
    return tmp_path / "transe"


def test_transr_starts_with_the_loss_of_transe(small_base, transe):
    """TransR started from random vectors, where its authors start it from TransE's."""
    train = read_triples(small_base).of_split("train")
    rows = np.random.default_rng(0).permutation(len(train))[:50]
    rng = np.random.default_rng(1)
    false = rng.integers(0, 30, (50, 3)).astype(np.int32), rng.integers(0, 2, (50, 3), np.uint8)
    columns = (train.heads[rows], train.relations[rows], train.tails[rows])
    rows_by_relation = np.argsort(columns[1], kind="stable")
    batch = TripleBatch(*(column[rows_by_relation] for column in (*columns, *false)))
    losses = {}
    for name in ("transe", "transr"):
        recipe = recipe_of(name, **{**BALL, "loss.kind": "margin", "loss.margin": 1.0})
        start = start_tables(
            Embeddings.open(transe), recipe.model, training.graph_fingerprint(small_base)
        )
        tables = training.new_run(train, recipe, start=start).tables
        rules = make_loss_rules(recipe.model, recipe.loss)
        losses[name] = batch_gradients(tables, batch, rules, make_buffers(tables, 50, 3))
    assert losses["transr"] == pytest.approx(losses["transe"], rel=1e-6)
    assert losses["transr"] > 0.1


def test_training_starts_with_the_vectors_of_a_folder(small_base, transe, tmp_path):
    recipe = recipe_of("transr", **{"optimiser.learning_rate": 1e-9})
    embed_graph(small_base, recipe, tmp_path / "out", start_from=transe)
    started, found = (Embeddings.open(folder) for folder in (transe, tmp_path / "out"))
    for name in ("entity", "relation"):
        one, two = (getattr(each.tables, name) for each in (started, found))
        np.testing.assert_allclose(one, two, atol=1e-6)
    identity = np.broadcast_to(np.eye(8), found.tables.projection.shape)
    np.testing.assert_allclose(found.tables.projection, identity, atol=1e-6)
    assert found.manifest["start_from"]["sha256"] == started.fingerprint
    embed_graph(small_base, recipe, tmp_path / "again", start_from=tmp_path / "out")


def test_a_run_is_resumed_with_the_same_start(small_base, transe, tmp_path):
    recipe, folder = recipe_of("transr"), tmp_path / "run"
    start = start_tables(
        Embeddings.open(transe), recipe.model, training.graph_fingerprint(small_base)
    )
    run = training.new_run(read_triples(small_base), recipe, start=start)
    save_state(folder / "state", run, recipe, small_base, transe)
    with pytest.raises(StoreError, match="saved with another --start-from"):
        embed_graph(small_base, recipe, folder, resume=True)
    embed_graph(small_base, recipe, folder, start_from=transe, resume=True)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("transr", {"model.dim": 9}, "has model.dim = 8, the recipe 9"),
        ("transr", {"model.projection": "xavier"}, "expected identity with --start-from"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(name, changes, message, small_base, transe, tmp_path):
    with pytest.raises(ConfigError, match=message):
        embed_graph(small_base, recipe_of(name, **changes), tmp_path / "out", start_from=transe)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_transe_does_not_start_from_transr_nor_from_another_graph(small_base, tmp_path):
    embed_graph(small_base, recipe_of("transr"), tmp_path / "transr")
    with pytest.raises(ConfigError, match="is of TransR; start TransE from TransE"):
        embed_graph(small_base, recipe_of(), tmp_path / "out", start_from=tmp_path / "transr")
    with (tmp_path / "graph" / "train.txt").open("a") as file:
        file.write("e1\tnext\te9\n")
    sources = (SourceConfig(path=tmp_path / "graph"),)
    build_store(BuildConfig(sources=sources), tmp_path / "other-kb")
    other = KnowledgeBase.open(tmp_path / "other-kb")
    with pytest.raises(ConfigError, match="made from another knowledge base"):
        embed_graph(other, recipe_of("transr"), tmp_path / "o", start_from=tmp_path / "transr")


@pytest.mark.parametrize(
    ("bound", "norm", "fits"),
    [
        ("ball", 0.5, True),
        ("ball", 1.0, True),
        ("ball", 1.1, False),
        ("unit", 0.5, False),
        ("unit", 1.0, True),
        ("none", 9.0, True),
    ],
)
def test_vectors_that_training_starts_from_fit_the_bound(bound, norm, fits, tmp_path):
    tables = Tables(np.full((3, 4), norm / 2), np.full((2, 4), norm / 2), np.zeros((0, 4, 4)))
    manifest = {"graph": "g", "recipe": {"model": {"dim": 4}}}
    model = ModelConfig(dim=4, entity_bound=bound, relation_bound=bound)
    refused = contextlib.nullcontext() if fits else pytest.raises(ConfigError, match="of norm")
    with refused:
        start_tables(Embeddings(tables, manifest, tmp_path), model, "g")
