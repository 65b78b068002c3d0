"""A batch becomes tensors that mean the same."""

from __future__ import annotations

import numpy as np
import torch

from biograft.objectives.base import TensorBatch
from biograft.objectives.examples import TextExample, collate


def test_every_field_becomes_a_tensor_of_the_same_numbers():
    example = TextExample(
        tokens=np.array([2, 5, 3]),
        segments=np.array([0, 0, 1]),
        words=np.array([-1, 0, -1]),
        mentions=np.array([[1, 1, 4]]),
        token_labels={"a": np.array([0, 1, 2])},
        mention_labels={"b": np.array([8])},
        labels={"c": 1},
    )
    batch = collate([example, example], 0)
    tensors = TensorBatch.of(batch)
    assert len(tensors) == 2
    for name in ("tokens", "mask", "segments", "mentions", "entities"):
        assert torch.equal(getattr(tensors, name), torch.from_numpy(getattr(batch, name)))
    for name, key in (("token_labels", "a"), ("mention_labels", "b"), ("labels", "c")):
        assert getattr(tensors, name)[key].tolist() == getattr(batch, name)[key].tolist()
