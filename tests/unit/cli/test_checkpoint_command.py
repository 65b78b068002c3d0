"""``biograft checkpoint``: import and export."""

import json

import pytest
from generative_store import store_in
from kebiolm_files import published_folder
from tiny_seq2seq import tiny_seq2seq
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import BiograftError
from biograft.linking import Linker
from biograft.models import Seq2SeqModel


@pytest.fixture
def call():
    def run(*arguments):
        result = CliRunner().invoke(app, ["checkpoint", *map(str, arguments)])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_import_and_export(call, tmp_path):
    folder = published_folder(tmp_path / "published")
    done = call("import", folder, "-o", tmp_path / "ours", "--json")
    report = json.loads(done.stdout)
    assert report["layout"] == "kebiolm"
    assert (report["n_layers"], report["knowledge_after"], report["left_out"]) == (3, 2, [])
    done = call("export", tmp_path / "ours", "--as", "bert", "-o", tmp_path / "plain", "--json")
    assert json.loads(done.stdout)["token_head"] is True
    done = call("export", tmp_path / "ours", "-o", tmp_path / "plain", "--overwrite")
    assert done.stdout == f"bert: 3 layers, with token head: {tmp_path / 'plain'}\n"


def test_a_published_bart_becomes_a_generative_linker(call, tmp_path):
    tiny_seq2seq(["heart attack"]).save_pretrained(tmp_path / "published")
    done = call("import", tmp_path / "published", "-o", tmp_path / "ours")
    assert done.stdout.startswith("genbioel: ")
    assert done.stderr == ""
    kb = store_in(tmp_path, [{"id": "D4", "name": "heart attack"}])
    linker = Linker.open(kb, model=tmp_path / "ours")
    assert linker("A heart attack.").mentions[0].concept == "D4"


def test_a_published_bart_without_a_tokenizer_is_given_one(call, tmp_path):
    folder, other = tmp_path / "published", tmp_path / "bart"
    tiny_seq2seq(["heart attack"]).save_pretrained(folder)
    other.mkdir()
    for file in sorted(folder.iterdir()):
        if file.name not in ("config.json", "generation_config.json", "model.safetensors"):
            file.rename(other / file.name)
    with pytest.raises(BiograftError, match="--tokenizer"):
        call("import", folder, "-o", tmp_path / "ours")
    call("import", folder, "-o", tmp_path / "ours", "--tokenizer", other)
    assert Seq2SeqModel.from_pretrained(tmp_path / "ours").tokens(["heart attack"])
    with pytest.raises(BiograftError, match="no such folder"):
        call("import", folder, "-o", tmp_path / "more", "--tokenizer", tmp_path / "nowhere")
