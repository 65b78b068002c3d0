"""``biograft corpus exclude``."""

from __future__ import annotations

import json


def test_the_command_writes_what_is_left(run_main, tmp_path):
    train, test, out = (tmp_path / name for name in ("train.txt", "test.txt", "out.txt"))
    train.write_text("What are the symptoms of diabetes\nA cold lasts a week\n", "utf-8")
    test.write_text("what ARE the symptoms of diabetes?\n", "utf-8")
    done = run_main("corpus", "exclude", train, "--similar-to", test, "-o", out, "--json")
    counts = json.loads(done.out)
    assert (counts["test_texts"], counts["kept"], counts["removed"]) == (1, 1, 1)
    assert out.read_text("utf-8") == "A cold lasts a week\n"
