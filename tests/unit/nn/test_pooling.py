import pytest
import torch

from biograft.errors import NotFoundError
from biograft.nn import POOLINGS


@pytest.fixture
def states():
    return torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))


MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])


def test_the_mean_leaves_padding_out(states):
    pooled = POOLINGS.load("mean")(states, MASK)
    assert torch.allclose(pooled[0], sum(states[0]) / 4)
    assert torch.allclose(pooled[1], (states[1, 0] + states[1, 1]) / 2)
    assert pooled[2].tolist() == [0.0] * 5  # nothing to average


def test_cls_is_the_first_token(states):
    assert torch.equal(POOLINGS.load("cls")(states, MASK), states[:, 0])


@pytest.mark.parametrize("name", list(POOLINGS))
def test_vectors_have_32_bits_and_gradients(states, name):
    halves = states.bfloat16().requires_grad_()
    pooled = POOLINGS.load(name)(halves, MASK)
    assert (pooled.shape, pooled.dtype) == ((3, 5), torch.float32)
    pooled.sum().backward()
    assert halves.grad is not None


def test_an_unknown_pooling_is_refused():
    with pytest.raises(NotFoundError, match="no pooling is called 'max'; known: cls, mean"):
        POOLINGS.load("max")
