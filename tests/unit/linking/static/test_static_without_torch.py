from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import sys
for name in ("torch", "transformers", "accelerate", "safetensors", "tokenizers"):
    sys.modules[name] = None
from biograft.cli import main
sys.argv = ["biograft", *{arguments!r}]
main()
"""


def run(*arguments):
    """Run a command where torch and transformers cannot be imported."""
    script = SCRIPT.format(arguments=list(map(str, arguments)))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_an_index_is_made_updated_and_searched_without_torch(kb, random_encoder, tmp_path):
    random_encoder().save_pretrained(tmp_path / "E")
    index = ("index", kb.folder, "-o", tmp_path / "I", "--json", "-q")
    code, out, err = run(*index, "--encoder", tmp_path / "E", "--storage", "bfloat16")
    assert code == 0, err
    described = json.loads(out)
    assert described["parts"] == ["lexical", "dense"]
    assert described["encoder"]["settings"] == {
        "pooling": "attention",
        "max_length": 16,
        "lower": True,
    }
    code, out, err = run(*index, "--update")
    assert code == 0, err
    mentions = tmp_path / "mentions.txt"
    mentions.write_text("heart attack\n2型糖尿病\n", encoding="utf-8")
    options = ("--kb", kb.folder, "--index", tmp_path / "I", "--terms", "--json", "-k", "1")
    code, out, err = run("link", mentions, *options)
    assert code == 0, err
    assert [concept in line for concept, line in zip(("D4", "D1"), out.splitlines(), strict=True)]


def test_a_transformers_encoder_names_what_to_install(kb, tiny_encoder, tmp_path):
    folder = tiny_encoder(["heart attack"])
    code, _, err = run("index", kb.folder, "-o", tmp_path / "I", "--encoder", folder)
    assert code == 2
    assert "biograft[models]" in err
