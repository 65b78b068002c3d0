"""Launches by accelerate that would train something else than what was asked for."""

import pytest
from accelerate import Accelerator, DistributedType
from accelerate.state import AcceleratorState

from biograft.errors import ConfigError
from biograft.training import TrainingConfig, train
from biograft.training.pretraining import PretrainingRecipe, pretrain


def test_a_lone_process_of_several_is_refused(tmp_path, monkeypatch):
    """``accelerate launch --cpu --num_processes 2`` starts one, which waits for nobody."""
    monkeypatch.setenv("ACCELERATE_USE_CPU", "True")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(ConfigError, match="torchrun --nproc-per-node"):
        pretrain(PretrainingRecipe.load("sapbert-cpu"), None, tmp_path / "run")


@pytest.mark.parametrize("kind", ["FSDP", "DEEPSPEED"])
def test_sharded_models_are_refused(make_task, tmp_path, monkeypatch, kind):
    """Guards: the optimiser would have updated parameters that the sharded model does not use."""
    monkeypatch.setattr("accelerate.Accelerator.distributed_type", DistributedType[kind])
    with pytest.raises(ConfigError, match=f"configured for {kind}"):
        train(make_task(), TrainingConfig(steps=1), tmp_path / "run")


def test_the_precision_of_a_trainer_before_changes_nothing(make_task, tmp_path):
    """Guards: after ``Trainer`` with bf16, in a notebook, a training ended in a ValueError."""
    losses = [train(make_task(), TrainingConfig(steps=3), tmp_path / "first").loss]
    AcceleratorState._reset_state()
    try:
        accelerator = Accelerator(mixed_precision="bf16", cpu=True)
        losses.append(train(make_task(), TrainingConfig(steps=3), tmp_path / "second").loss)
        assert accelerator.mixed_precision == "bf16"  # and it goes on as it was
    finally:
        AcceleratorState._reset_state()
    assert losses[0] == losses[1]
