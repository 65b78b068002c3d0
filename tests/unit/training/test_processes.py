import pytest
from accelerate import DistributedType

from biograft.errors import ConfigError
from biograft.training.processes import refuse_lone_process, refuse_sharding


def test_a_lone_process_of_several_is_refused():
    launched = {"ACCELERATE_USE_CPU": "True", "MASTER_ADDR": "127.0.0.1"}
    with pytest.raises(ConfigError, match="torchrun --nproc-per-node"):
        refuse_lone_process(launched)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"ACCELERATE_USE_CPU": "True"},
        {"MASTER_ADDR": "127.0.0.1"},
        {"MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2", "ACCELERATE_USE_CPU": "True"},
    ],
)
def test_other_launches_are_accepted(environment):
    refuse_lone_process(environment)


@pytest.mark.parametrize("kind", ["FSDP", "DEEPSPEED"])
def test_sharded_models_are_refused(kind):
    """Guards: the optimiser would have updated parameters that the sharded model does not use."""
    with pytest.raises(ConfigError, match=f"configured for {kind}"):
        refuse_sharding(DistributedType[kind])
    refuse_sharding(DistributedType.MULTI_GPU)
