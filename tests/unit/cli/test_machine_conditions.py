"""What a machine may refuse: one line that says what it is and what to do, in both languages."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from biograft.kb import build_starter
from biograft.mapping import ReviewStore, review_store

CHINESE = re.compile("[\u4e00-\u9fff]")
ENGLISH = re.compile(r"(?<![\w.-])[A-Za-z]{2,} [a-z]{2,}(?![\w.=-])")
LITERAL = re.compile(r"`[^`]*`|'[^']*'|pip install|\S*/\S*")
WITHOUT = "import sys; sys.modules[{!r}] = None; from biograft.cli import main; main()"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conditions") / "KB"
    build_starter(folder)
    return folder


@pytest.fixture(params=["zh", "en"])
def says(request, monkeypatch):
    """Check what the last line on stderr says in a language."""
    monkeypatch.setenv("BIOGRAFT_LANG", request.param)

    def check(err, chinese, english):
        line = err.strip().splitlines()[-1]
        assert line.startswith("biograft: "), err
        assert "Traceback" not in err
        if request.param == "en":
            assert re.search(english, line), line
        else:
            assert re.search(chinese, line), line
            assert ENGLISH.search(LITERAL.sub(" ", line.removeprefix("biograft: "))) is None, line

    return check


def test_a_database_that_another_program_holds(run_main, tmp_path, monkeypatch, says):
    monkeypatch.setattr(review_store, "_BUSY_SECONDS", 0)
    place = tmp_path / "审核.db"
    ReviewStore.open(place, create=True).close()
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    done = run_main("review", "approve", "1", "--review", place, "--reviewer", "王敏")
    other.close()
    assert done.code == 2
    says(done.err, "正被占用；.*请在其他程序不再占用时重试", "is locked; .*try again")


def test_a_port_in_use(run_main, kb, says):
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = run_main("serve", "--kb", kb, "--port", str(other.getsockname()[1]), "-q")
    assert done.code == 2
    says(done.err, "无法监听（端口已被占用）；请换一个", "in use.*choose another")


@pytest.mark.parametrize(
    "command",
    [
        ("finetune", "ner-cpu", "--train", "x", "--dev", "x", "--format", "cmeee", "-o", "RUN"),
        ("pretrain", "sapbert-cpu", "--kb", "KB", "-o", "RUN"),
        ("index", "KB", "-o", "INDEX", "--encoder", "bert-base-chinese"),
    ],
)
def test_no_torch(kb, tmp_path, command, says):
    """``finetune`` of a task ended in a traceback."""
    (tmp_path / "KB").symlink_to(kb)
    call = [sys.executable, "-c", WITHOUT.format("torch"), *command]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    says(done.stderr, r"需要可选的软件包；请运行：pip install 'biograft\[models\]'", "needs an opt")


def test_permission_denied(run_main, kb, tmp_path, says):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.geteuid() == 0:  # who may write everywhere, but not here
        folder = Path("/sys/kernel")
    reason = "(权限不足|只读文件系统|不允许此操作)"
    done = run_main("link", "心梗", "--kb", kb, "--to", "csv", "-o", folder / "x.csv")
    assert done.code == 2
    says(
        done.err, f"无法写入（{reason}）；请换一个位置", r"cannot be written \(.+\); choose another"
    )
    done = run_main("kb", "build", "starter", "-o", folder / "KB")
    assert done.code == 2
    says(
        done.err, f"无法写入（{reason}）；请换一个位置", r"cannot be written \(.+\); choose another"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(kb, tmp_path, says, run_main, monkeypatch):
    call = [sys.executable, "-m", "biograft", "link", "心梗", "--kb", str(kb)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2, done.stderr
    says(done.stderr, "无法写出结果（磁盘已满）", "No space left")

    def fail(*args):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(os, "link", fail)
    done = run_main("link", "心梗", "--kb", kb, "--to", "csv", "-o", tmp_path / "x.csv")
    assert done.code == 2
    says(done.err, "磁盘已满；.*请", "the disk is full; .*choose another place")
