"""The command line in Chinese: what is translated, what stays, who chooses."""

from __future__ import annotations

import json
import re

import pytest
import typer

from biograft.catalogue import Catalogue
from biograft.cli import app
from biograft.progress import width

CATALOGUE = Catalogue.open("zh")
COMPLETE = ("index", "link", "kb build")
MAIN = (
    *("pretrain", "finetune", "kb diff", "kb info", "kb search", "kb show"),
    *("corpus annotate", "corpus convert", "corpus segment"),
    *("evaluate assertion", "evaluate link", "evaluate task", "evaluate text"),
)


def walk(command, path=()):
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


TREE = dict(walk(typer.main.get_command(app)))


def paragraphs(text):
    return [re.sub(r"\s+", " ", each).strip() for each in re.split(r"\n\s*\n", text or "")]


def english(texts):
    return [text for text in texts if CATALOGUE.help(text) == text]


@pytest.mark.parametrize("path", TREE)
def test_the_one_line_help_of_every_command_is_translated(path):
    assert english(paragraphs(TREE[path].help)[:1]) == []


@pytest.mark.parametrize("path", COMPLETE)
def test_all_options_are_translated(path):
    assert english(t for p in TREE[path].params for t in paragraphs(p.help)) == []


@pytest.mark.parametrize("path", [*COMPLETE, *MAIN])
def test_nearly_all_help_of_the_main_commands_is_translated(path):
    command = TREE[path]
    texts = [text for p in command.params for text in paragraphs(p.help)]
    texts += paragraphs(command.help)
    assert len(english(texts)) <= len(texts) / 5, english(texts)


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("BIOGRAFT_LANG", "zh")


def test_help(run_main, chinese):
    done = run_main("link", "--help")
    assert done.code == 0
    assert done.out.startswith("用法：biograft link [OPTIONS]")
    assert "知识库所在的文件夹；starter 表示自带的。" in done.out
    assert "[必填]" in done.out
    lines = done.out.splitlines()
    assert max(map(width, lines)) <= 80
    for parameter in TREE["link"].params:
        assert parameter.param_type_name == "argument" or parameter.opts[-1] in done.out
    assert "  build     用任意格式的本体文件建立知识库。" in run_main("kb").err


@pytest.mark.parametrize(
    ("variables", "is_chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "zh_TW.UTF-8", "LANG": "C"}, True),
        ({"BIOGRAFT_LANG": "en", "LANG": "zh_CN.UTF-8"}, False),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, False),
        ({"BIOGRAFT_LANG": "zh", "LANG": "de_DE.UTF-8"}, True),
        ({}, False),
    ],
)
def test_the_locale_chooses(run_main, monkeypatch, variables, is_chinese):
    for name in ("BIOGRAFT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run_main("kb", "--help").out.startswith("用法：" if is_chinese else "Usage: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("link", "flu"), "错误：缺少选项 '--kb'。"),
        (("link", "flu", "--nope"), "错误：没有选项 --nope"),
        (("kb", "search", "KB", "x", "-k", "y"), "'-k' / '--limit' 的值无效"),
        (("kb", "build", "none.csv", "-o", "KB"), "biograft: none.csv：不存在；请检查路径"),
    ],
)
def test_errors(run_main, chinese, arguments, message):
    done = run_main(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_json_is_never_translated(run_main, write, tmp_path, monkeypatch):
    source = write("a.csv", "id,name\nD1,flu\n")
    columns = "id=id,name=name"
    outputs = {}
    for language in ("en", "zh"):
        monkeypatch.setenv("BIOGRAFT_LANG", language)
        store = tmp_path / language
        built = run_main("kb", "build", source, "--columns", columns, "-o", store, "--json", "-q")
        linked = run_main("link", "the flu", "--kb", store, "--json", "-q")
        assert (built.code, linked.code) == (0, 0)
        outputs[language] = sorted(json.loads(built.out)), json.loads(linked.out)
    assert outputs["en"] == outputs["zh"]
