"""The encoder from scratch learns from names and training mentions, and goes on where it was."""

from __future__ import annotations

import json
import sys

from biograft.nn import TextEncoder


def test_both_states_are_written(script, tmp_path, monkeypatch, capsys):
    place = tmp_path / "data/zh/term_normalisation"
    place.mkdir(parents=True)
    (place / "procedure_codes.tsv").write_text("1\t胃镜检查\n2\t阑尾切除术\n3\t剖宫产\n", "utf-8")
    gold = "raw\tstandard\n看胃镜\t胃镜检查\n切阑尾\t阑尾切除术\n"
    (place / "procedures_train.tsv").write_text(gold, "utf-8")
    out = tmp_path / "out"
    places = ["--data", str(tmp_path / "data"), "--out", str(out), "--set", "zh-procedures"]
    arguments = ["scratch_encoder.py", *places, "--steps", "3", "--width", "16"]
    monkeypatch.setattr(sys, "argv", arguments)
    script("scratch_encoder").main()
    told = json.loads(capsys.readouterr().out)
    assert (told["set"], told["step"]) == ("zh-procedures", 3)
    before, after = (TextEncoder.from_pretrained(out / name).encode(["看胃镜"])
                     for name in ("untrained", "run/encoder"))  # fmt: skip
    assert (before != after).any()
    script("scratch_encoder").main()  # what is done is not done again
    assert json.loads(capsys.readouterr().out)["step"] == 3
