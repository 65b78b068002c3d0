"""Saved states: whole, round, and refused where they are not what they were."""

from __future__ import annotations

import pytest
import torch
from manifests import reseal
from torch import nn

from biograft.errors import StoreError
from biograft.training import (
    Cursor,
    TrainingState,
    find_checkpoints,
    load_checkpoint,
    save_checkpoint,
)


def trained(width=4, n_updates=3):
    torch.manual_seed(0)
    model = nn.Linear(width, 2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(n_updates):
        optimiser.zero_grad()
        model(torch.randn(5, width)).square().sum().backward()
        optimiser.step()
    return state_of(model, optimiser)


def state_of(model, optimiser, accumulate=1, fp16=False):
    scaler = torch.amp.GradScaler("cpu", enabled=fp16)
    return TrainingState(model, optimiser, scaler, accumulate)


def test_a_checkpoint_restores_model_and_optimiser(tmp_path):
    state, other = trained(), trained(n_updates=0)
    folder = save_checkpoint(tmp_path, Cursor(3, 1, 2), state, keep=2)
    assert load_checkpoint(folder, other) == Cursor(3, 1, 2)
    assert not (folder.parent / "frozen").exists()
    for parameter, twin in zip(state.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(parameter, twin)
        for key, value in state.optimiser.state[parameter].items():
            assert torch.equal(value, other.optimiser.state[twin][key])


class Table(nn.Module):
    """A layer over a frozen table and constant rows."""

    constant_buffers = ("rows",)

    def __init__(self, n_rows=1000):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_rows, 64), requires_grad=False)
        self.linear = nn.Linear(64, 2)
        self.register_buffer("rows", torch.randint(n_rows, (n_rows,)))
        self.register_buffer("n_calls", torch.zeros((), dtype=torch.long))


def test_a_frozen_table_is_saved_once(tmp_path):
    model = Table()
    state = state_of(model, torch.optim.AdamW(model.linear.parameters()))
    for step in (1, 2, 3):
        model.n_calls += 1
        folder = save_checkpoint(tmp_path, Cursor(step), state, keep=2)
    frozen = folder.parent / "frozen" / "model.safetensors"
    assert frozen.stat().st_size > 1000 * 64 * 4
    assert all((f / "model.safetensors").stat().st_size < 2000 for f in find_checkpoints(tmp_path))
    written = frozen.stat().st_mtime_ns
    save_checkpoint(tmp_path, Cursor(4), state, keep=2)
    assert frozen.stat().st_mtime_ns == written
    other = Table()
    load_checkpoint(folder, state_of(other, torch.optim.AdamW(other.linear.parameters())))
    assert int(other.n_calls) == 3
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])


def test_a_missing_frozen_table_is_refused(tmp_path):
    model = Table()
    state = state_of(model, torch.optim.AdamW(model.linear.parameters()))
    folder = save_checkpoint(tmp_path, Cursor(1), state, keep=2)
    (folder.parent / "frozen" / "model.safetensors").unlink()
    with pytest.raises(StoreError, match=r"frozen: is missing or damaged; start a new run"):
        load_checkpoint(folder, state)


@pytest.mark.parametrize(("then", "now", "position"), [(1, 4, 24), (4, 1, 1), (2, 2, 6)])
def test_another_number_of_passes_reads_on_at_the_same_example(tmp_path, then, now, position):
    model = nn.Linear(2, 2)
    optimiser = torch.optim.AdamW(model.parameters())
    saved = state_of(model, optimiser, accumulate=then)
    folder = save_checkpoint(tmp_path, Cursor(9, 1, 6), saved, keep=1)
    assert load_checkpoint(folder, state_of(model, optimiser, now)) == Cursor(9, 1, position)


@pytest.mark.parametrize(("keep", "kept"), [(0, [1, 2, 3]), (1, [3]), (2, [2, 3])])
def test_older_checkpoints_are_removed(tmp_path, keep, kept):
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, Cursor(step), trained(), keep=keep)
    assert [int(path.name[-8:]) for path in find_checkpoints(tmp_path)] == kept


@pytest.mark.parametrize("name", ["model.safetensors", "optimiser.safetensors", "state.json"])
def test_truncated_and_missing_files_are_refused(tmp_path, name):
    folder = save_checkpoint(tmp_path, Cursor(1), trained(), keep=1)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError, match=r"damaged.*remove it to resume"):
        load_checkpoint(folder, trained())
    (folder / name).unlink()
    with pytest.raises(StoreError, match=f"{name}.*remove it to resume"):
        load_checkpoint(folder, trained())


def test_damage_inside_a_file_is_refused(tmp_path):
    folder = save_checkpoint(tmp_path, Cursor(1), trained(), keep=1)
    path = folder / "optimiser.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StoreError, match=r"optimiser.safetensors: damaged \(its content"):
        load_checkpoint(folder, trained())
    path.write_bytes(b"\xff" * len(content))
    reseal(folder / "state.json")
    with pytest.raises(StoreError, match="does not fit this model or is damaged"):
        load_checkpoint(folder, trained())


def test_another_model_is_refused(tmp_path):
    folder = save_checkpoint(tmp_path, Cursor(1), trained(), keep=1)
    with pytest.raises(StoreError, match="does not fit this model"):
        load_checkpoint(folder, trained(width=5))
