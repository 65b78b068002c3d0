import pytest
from accelerate import DistributedType
from two_processes import run_on_two

from biograft.errors import ConfigError
from biograft.training.processes import refuse_lone_process, refuse_several, refuse_sharding


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


SEVERAL = """
from biograft.errors import ConfigError
from biograft.training.processes import refuse_several

try:
    refuse_several("recipe linker-ranker")
except ConfigError as error:
    assert str(error).startswith("recipe linker-ranker: trains in one process, found 2"), error
else:
    raise AssertionError("not refused")
"""


@pytest.mark.slow
def test_two_processes_do_not_write_one_ranker(tmp_path):
    """Guards: each process trained the whole ranker and wrote it to the same folder."""
    refuse_several("recipe linker-ranker")
    run_on_two(SEVERAL, log=tmp_path / "log")
