"""``biograft doctor``, and the completion of a command by the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys


def test_what_was_asked_for_and_is_broken_gives_status_1(run_main, starter, tmp_path):
    names = (starter / "names.arrow").read_bytes()
    damaged = tmp_path / "kb"
    shutil.copytree(starter, damaged)
    half = len(names) // 2
    (damaged / "names.arrow").write_bytes(names[:half] + b"#" + names[half + 1 :])
    (tmp_path / "index").mkdir()
    for kb, index, said in (
        (damaged, None, "names.arrow: damaged"),
        (tmp_path / "none", None, "no such knowledge base"),
        (starter, tmp_path / "index", "it is no index"),
    ):
        done = run_main("doctor", "--kb", kb, *(["--index", index] if index else []))
        assert done.code == 1
        assert said in done.err
        assert done.err.startswith("problem: ")


def complete(line):
    words = line.split()
    place = len(words) if line.endswith(" ") else len(words) - 1
    asked = {"_BIOGRAFT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(place)}
    command = [sys.executable, "-m", "biograft"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **asked}
    )
    return set(done.stdout.split())


def test_the_shell_completes_commands_and_options():
    assert complete("biograft k") == {"kb", "key"}
    assert {"build", "info", "diff"} <= complete("biograft kb ")
    assert complete("biograft doctor --k") == {"--kb"}
