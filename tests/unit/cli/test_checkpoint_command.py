"""``biograft checkpoint``: what it prints, for people and for scripts."""

import json

import pytest
from kebiolm_files import published_folder
from typer.testing import CliRunner

from biograft.cli.checkpoint import app
from biograft.errors import BiograftError


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
