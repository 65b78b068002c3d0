import pytest

from biograft.errors import ConfigError
from biograft.training.processes import refuse_lone_process


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
