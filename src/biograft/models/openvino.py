"""Encoding by OpenVINO, an inference engine for processors: the vectors of torch, computed faster.

The model is converted in memory when the first text is encoded; nothing is written.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from biograft.errors import ConfigError, MissingExtraError
from biograft.models.precision import choose_precision
from biograft.models.pretrained import quiet_transformers

ENGINES = {"torch": "PyTorch, on any device", "openvino": "OpenVINO, on processors"}
MIN_COSINE = {"fp32": 0.999999, "bf16": 0.999}
"""The lowest cosine of a vector with that of torch in 32 bits, by precision; tests hold to it."""
_HINTS = {"fp32": "f32", "bf16": "bf16"}


class OpenVinoModel:
    """A transformers encoder as OpenVINO runs it: from batches to the states of their tokens.

    It keeps a copy of the weights as they are when the first batch is computed.

    Args:
        model: Encoder of transformers, on a processor.
        name: Name in errors.
    """

    def __init__(self, model: nn.Module, name: str) -> None:
        try:
            import openvino
        except ModuleNotFoundError as error:
            raise MissingExtraError("openvino", "encoding with openvino") from error
        self._openvino: Any = openvino
        device = next(model.parameters()).device
        if device.type != "cpu":
            raise ConfigError(
                f"engine: openvino runs on processors, and {name} is on {device}; leave it out"
            )
        self._model, self._core = model, self._openvino.Core()
        self._converted: Any = None
        self._compiled: dict[str, Any] = {}

    def states(self, batch: dict[str, torch.Tensor], precision: str) -> torch.Tensor:
        """Compute the states of a batch: (batch, tokens, dim).

        Args:
            batch: Token ids and mask.
            precision: One of ``models.precision.PRECISIONS``.
        """
        chosen = choose_precision(precision, torch.device("cpu"))
        if chosen not in _HINTS:
            raise ConfigError(
                f"precision: openvino computes in {' or '.join(_HINTS)}, found {precision!r}"
            )
        if chosen not in self._compiled:
            self._compiled[chosen] = self._compile(batch, _HINTS[chosen])
        inputs = [batch[key].numpy() for key in ("input_ids", "attention_mask")]
        return torch.from_numpy(self._compiled[chosen](inputs)[0])

    def _compile(self, batch: dict[str, torch.Tensor], hint: str) -> Any:
        if self._converted is None:
            self._converted = self._convert(batch)
        options = {
            "INFERENCE_PRECISION_HINT": hint,
            "PERFORMANCE_HINT": "LATENCY",  # all cores on one batch, as ours fit the caches
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        return self._core.compile_model(self._converted, "CPU", options)

    def _convert(self, batch: dict[str, torch.Tensor]) -> Any:
        example = {key: batch[key][:2] for key in ("input_ids", "attention_mask")}
        with warnings.catch_warnings(), quiet_transformers():
            warnings.simplefilter("ignore")  # of tracing: branches on shapes
            return self._openvino.convert_model(_States(self._model), example_input=example)


class _States(nn.Module):
    """The states of an encoder as the only output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        output = self.model(input_ids=input_ids, attention_mask=attention_mask)
        states: torch.Tensor = output.last_hidden_state
        return states
