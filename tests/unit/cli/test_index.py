"""``biograft index``."""

from __future__ import annotations

import io
import json
import sys

import pytest
from generative_store import store_in
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import ConfigError, NotFoundError
from biograft.kb import BuildConfig, KnowledgeBase, build_store, store_fingerprint
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, fit_calibration
from biograft.mapping import Decision, learn

LINES = [
    {"id": "D1", "names": {"en": ["Influenza", "flu"], "zh": ["流感"]}},
    {"id": "D2", "name": "Fever"},
]


@pytest.fixture
def store(tmp_path):
    return store_in(tmp_path, LINES, "KB").folder


def run(*arguments):
    return CliRunner().invoke(app, ["index", *map(str, arguments)])


def test_dense_index_and_update(store, tiny_encoder, tmp_path):
    folder = tiny_encoder(["influenza", "flu", "fever"])
    options = ("--encoder", folder, "--pooling", "cls", "--max-length", 9, "--storage", "int8")
    done = run(store, "-o", tmp_path / "I", *options, "--json")
    assert json.loads(done.stdout)["parts"] == ["lexical", "dense"]
    settings = tmp_path / "I" / "dense" / "encoder" / "biograft_encoder.json"
    saved = json.loads(settings.read_text())
    assert (saved["pooling"], saved["max_length"]) == ("cls", 9)
    done = run(store, "-o", tmp_path / "I", "--update", "--json")
    assert json.loads(done.stdout)["parts"] == ["lexical", "dense"]
    dense = json.loads((tmp_path / "I" / "dense" / "manifest.json").read_text())
    assert dense["config"]["storage"] == "int8"


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("calibration.json", "biograft evaluate link --fit-calibration"),
        ("reviewed/calibration.json", "biograft learn"),
    ],
)
def test_an_update_removes_calibrations_of_the_earlier_knowledge_base(
    store, write, tmp_path, file, command
):
    """They were copied, as if the scores of other names meant the same."""
    assert run(store, "-o", tmp_path / "I", "--encoder", "none").exit_code == 0
    path = tmp_path / "I" / file
    base = KnowledgeBase.open(store)
    learn(base, tmp_path / "I", [Decision(term="grippe", concept="D1", verdict="approved")])
    fitted = fit_calibration([0.1, 0.9], [0, 1], store=store_fingerprint(base))
    fitted.save(path)
    assert run(store, "-o", tmp_path / "I", "--update").exit_code == 0
    assert path.exists()
    source = write("a.jsonl", "".join(json.dumps(line) + "\n" for line in LINES[:1]))
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), store, overwrite=True)
    done = run(store, "-o", tmp_path / "I", "--update", "--json")
    assert not path.exists()
    assert json.loads(done.stdout)["removed"] == [file]
    assert f"{path}: removed, it was fitted before the knowledge base changed" in done.stderr
    assert f"`{command}`" in done.stderr
    assert Linker.open(store, tmp_path / "I").calibration is None


def test_pooling_is_never_guessed_silently(store, tiny_encoder, tmp_path, run_main, capsys):
    """Guards: SapBERT was indexed with mean pooling and all its tokens, without a word."""
    plain = tiny_encoder(["influenza", "flu", "fever"])
    capsys.readouterr()
    done = run_main("index", store, "-o", tmp_path / "I", "--encoder", plain, "--quiet")
    assert done.code == 0, done.err
    [line] = done.err.splitlines()
    assert line.startswith(f"biograft: warning: {plain}: nothing beside the weights says")
    assert "--pooling" in line
    assert f"encoder {plain}: mean pooling (default), at most 64 tokens" in done.out

    sapbert = plain.rename(plain.parent / "SapBERT-from-PubMedBERT-fulltext")
    options = ("--encoder", sapbert, "--json", "--quiet", "--overwrite")
    done = run_main("index", store, "-o", tmp_path / "I", *options)
    assert done.err == ""
    described = done.json[0]["encoder"]
    assert described["settings"] == {"pooling": "cls", "max_length": 25, "lower": True}
    assert described["origins"]["pooling"] == "known of SapBERT"

    updated = run_main("index", store, "-o", tmp_path / "I", "--update", "--json", "--quiet")
    assert updated.json[0]["encoder"] == described


def test_similarity_is_kept_with_the_index(store, tiny_encoder, tmp_path, run_main):
    folder = tiny_encoder(["influenza", "flu", "fever"])
    options = ("--encoder", folder, "--pooling", "cls", "--similarity", "dot", "--json")
    done = run_main("index", store, "-o", tmp_path / "I", *options)
    assert done.json[0]["encoder"]["similarity"] == "dot"
    link = ("link", "influenca", "--kb", store, "--index", tmp_path / "I", "--json", "--terms")
    for options, generator in (((), "dense-dot"), (("--similarity", "cosine"), "dense")):
        [document] = run_main(*link, *options).json
        evidence = document["mentions"][0]["candidates"][0]["evidence"]
        assert {each["generator"] for each in evidence} <= {"lexical", generator}
        assert generator in {
            e["generator"] for c in document["mentions"][0]["candidates"] for e in c["evidence"]
        }
    [document] = run_main(*link, "--search", "dense").json
    candidates = document["mentions"][0]["candidates"]
    assert {e["generator"] for c in candidates for e in c["evidence"]} == {"dense-dot"}
    evaluate = ("--kb", store, "--index", tmp_path / "I", "--gold", "starter", "--format", "sample")
    for command, options in (("link", ()), ("text", ("--limit", 2))):
        for choice in (("--search", "dense"), ("--lexical-weight", "0.2")):
            done = run_main("evaluate", command, *evaluate, *options, *choice, "--json", "-q")
            assert done.code == 0, done.err
            if command == "link":
                scores = {"dense": "dense-dot*1", "0.2": "dense-dot*0.8+lexical*0.2"}
                assert done.json[0]["search"] == scores[choice[1]]
    done = run_main(*link[:4], "--index", tmp_path / "I", "--similarity", "l2")
    assert done.code == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (["--pooling", "mean"], ConfigError, "--pooling: applies to a transformers model"),
        (["--storage", "int8", "--lang", "zh"], ConfigError, "--storage: applies to dense search"),
        (["--steps", "nope"], ConfigError, "no step is called 'nope'"),
        (["--encoder", "./none"], NotFoundError, "no such folder"),
        (["--update", "--lang", "en"], ConfigError, "--lang: an update keeps"),
    ],
)
def test_refused_in_one_line(store, tmp_path, options, error, message):
    done = run(store, "-o", tmp_path / "I", *options)
    assert isinstance(done.exception, error)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (tmp_path / "I").exists()


@pytest.mark.parametrize("model_type", ["bert", "mischief"])
def test_code_in_an_encoder_folder_is_never_run(
    store, tiny_encoder, tmp_path, run_main, monkeypatch, model_type
):
    """Guards: ``printf 'y\\n' | biograft index KB --encoder DIR`` ran a module of DIR."""
    folder, witness = tiny_encoder(["flu"]), tmp_path / "it-ran"
    (folder / "mischief.py").write_text(f"open({str(witness)!r}, 'w').close()\n")
    config = json.loads((folder / "config.json").read_text())
    auto_map = dict.fromkeys(("AutoConfig", "AutoModel"), "mischief.Anything")
    changed = {**config, "model_type": model_type, "auto_map": auto_map}
    (folder / "config.json").write_text(json.dumps(changed))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))
    run_main("--version")  # what the fixtures print is not of the command
    done = run_main("index", store, "--encoder", folder, "-o", tmp_path / "I")
    assert done.code == 2
    assert not witness.exists()
    assert done.out == ""
    assert done.err.startswith(f"biograft: {folder}")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "I").exists()
