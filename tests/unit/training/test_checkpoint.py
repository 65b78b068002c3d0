"""Saved states: whole, round, and refused where they are not what they were."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from biograft.errors import StoreError
from biograft.training.checkpoint import Cursor, find_checkpoints, load_checkpoint, save_checkpoint


def trained(width=4, n_updates=3):
    torch.manual_seed(0)
    model = nn.Linear(width, 2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(n_updates):
        optimiser.zero_grad()
        model(torch.randn(5, width)).square().sum().backward()
        optimiser.step()
    return model, optimiser


def test_a_checkpoint_restores_model_and_optimiser(tmp_path):
    model, optimiser = trained()
    folder = save_checkpoint(tmp_path, Cursor(3, 1, 2), model, optimiser, keep=2)
    other, fresh = trained(n_updates=0)
    assert load_checkpoint(folder, other, fresh) == Cursor(3, 1, 2)
    for parameter, twin in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(parameter, twin)
        for key, value in optimiser.state[parameter].items():
            assert torch.equal(value, fresh.state[twin][key])


def test_shared_weights_stay_shared(tmp_path):
    model = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])
    model[1].weight = model[0].weight
    optimiser = torch.optim.AdamW(model.parameters())
    folder = save_checkpoint(tmp_path, Cursor(1), model, optimiser, keep=0)
    expected = model[0].weight.clone()
    with torch.no_grad():
        model[0].weight.zero_()
    load_checkpoint(folder, model, optimiser)
    assert torch.equal(model[1].weight, expected)


@pytest.mark.parametrize(("keep", "kept"), [(0, [1, 2, 3]), (1, [3]), (2, [2, 3])])
def test_older_checkpoints_are_removed(tmp_path, keep, kept):
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, Cursor(step), *trained(), keep=keep)
    assert [int(path.name[-8:]) for path in find_checkpoints(tmp_path)] == kept


@pytest.mark.parametrize("name", ["model.safetensors", "optimiser.safetensors", "state.json"])
def test_truncated_and_missing_files_are_refused(tmp_path, name):
    folder = save_checkpoint(tmp_path, Cursor(1), *trained(), keep=1)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError, match=r"damaged.*remove it to resume"):
        load_checkpoint(folder, *trained())
    (folder / name).unlink()
    with pytest.raises(StoreError, match=f"{name}.*remove it to resume"):
        load_checkpoint(folder, *trained())


def test_damage_inside_a_file_is_refused(tmp_path):
    folder = save_checkpoint(tmp_path, Cursor(1), *trained(), keep=1)
    path = folder / "optimiser.safetensors"
    path.write_bytes(b"\xff" * path.stat().st_size)
    with pytest.raises(StoreError, match="does not fit this model or is damaged"):
        load_checkpoint(folder, *trained())


def test_another_model_is_refused(tmp_path):
    folder = save_checkpoint(tmp_path, Cursor(1), *trained(), keep=1)
    with pytest.raises(StoreError, match="does not fit this model"):
        load_checkpoint(folder, *trained(width=5))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"version": 99}, "checkpoint of version 99"), ({"format": "x"}, "no checkpoint but 'x'")],
)
def test_other_formats_are_refused(tmp_path, change, message):
    folder = save_checkpoint(tmp_path, Cursor(1), *trained(), keep=1)
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, **change}))
    with pytest.raises(StoreError, match=message):
        load_checkpoint(folder, *trained())
