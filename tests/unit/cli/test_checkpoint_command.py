"""``biograft checkpoint``: what it prints, for people and for scripts."""

import json

import pytest
from kebiolm_files import published_folder
from tiny_namers import tiny_namer
from typer.testing import CliRunner

from biograft.cli.checkpoint import app
from biograft.errors import BiograftError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.linking import Linker
from biograft.sources import SourceConfig


@pytest.fixture
def call():
    def run(*arguments):
        result = CliRunner().invoke(app, [str(part) for part in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_in_and_out(call, tmp_path):
    folder = published_folder(tmp_path / "published")
    done = call("import", folder, "-o", tmp_path / "ours", "--json")
    told = json.loads(done.stdout)
    assert told["layout"] == "kebiolm"
    assert (told["n_layers"], told["knowledge_after"], told["left_out"]) == (3, 2, [])
    done = call("export", tmp_path / "ours", "--as", "bert", "-o", tmp_path / "plain", "--json")
    assert json.loads(done.stdout)["token_head"] is True
    done = call("export", tmp_path / "ours", "-o", tmp_path / "plain", "--overwrite")
    assert done.stdout == f"bert: 3 layers, with token head: {tmp_path / 'plain'}\n"


def test_what_is_left_out_is_said(call, tmp_path):
    folder = published_folder(tmp_path / "published", head=False)
    (folder / "entity.jsonl").unlink()
    done = call("import", folder, "-o", tmp_path / "ours")
    assert done.stdout == (
        f"kebiolm: 3 layers, knowledge after layer 2, 9 entities of 6: {tmp_path / 'ours'}\n"
    )
    assert done.stderr.splitlines() == [
        "no entity.jsonl there: the rows of the table have no names",
        "no token head there: a fine-tuned checkpoint, taken as an encoder",
        "left out: classifier.bias, classifier.weight",
    ]


def test_mistakes_are_ours_to_say(call, tmp_path):
    with pytest.raises(BiograftError, match="no such checkpoint"):
        call("import", tmp_path / "nothing", "-o", tmp_path / "ours")


def test_a_published_bart_becomes_a_linker(call, tmp_path):
    tiny_namer(["heart attack"]).save(tmp_path / "published")
    done = call("import", tmp_path / "published", "-o", tmp_path / "ours")
    assert done.stdout.startswith("genbioel: 1 layers that read, 1 that write, 16 wide, ")
    assert done.stderr == ""
    source = tmp_path / "kb.jsonl"
    source.write_text('{"id": "D4", "name": "heart attack"}\n')
    kb = KnowledgeBase.open(build_store_of(source, tmp_path / "kb"))
    linker = Linker.open(kb, model=tmp_path / "ours")
    assert linker("A heart attack.").mentions[0].concept == "D4"


def build_store_of(source, folder):
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder)
    return folder
