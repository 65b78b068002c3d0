"""Run the command line in this process."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any, NamedTuple

import pytest

from biograft.cli import main


class Completed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run_main(capsys, monkeypatch):
    """Return a function that runs the whole program: ``run_main("kb", "info", store)``."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*arguments: object) -> Completed:
        monkeypatch.setattr(sys, "argv", ["biograft", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return Completed(int(str(code or 0)), out, err)

    yield run
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def word_detector(tmp_path):
    """A model of named entity recognition to which every word is a mention."""
    import torch
    from tiny_models import tiny_encoder_folder

    from biograft.nn import TextEncoder
    from biograft.tasks.configs import NerConfig
    from biograft.tasks.folder import write_model
    from biograft.tasks.ner import NerModel

    folder = tiny_encoder_folder(tmp_path / "tiny", ["a b"], hidden=16, layers=1)
    model = NerModel(TextEncoder.from_pretrained(folder), NerConfig(overlap=4), ("Disease",))
    model.head.linear.weight.data.zero_()
    model.head.linear.bias.data.copy_(torch.tensor([0.0, 1.0, 0.0]))  # O, B, I
    write_model(tmp_path / "DETECTOR", model, {})
    return tmp_path / "DETECTOR"
