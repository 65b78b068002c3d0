"""``index --update`` and a new build after a process was killed at any step."""

from __future__ import annotations

import itertools
import os
import sys

import pytest

from biograft.linking import build_index, open_index, update_index

STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "shutil.copyfile", "open"}
MAX_STEPS = 200


def kill_at(n, part, work):
    """Do some work in a process of its own, which ends without cleaning up at step n.

    A step is a change of a file with ``part`` in its path. Returns whether the work was done.
    """
    child = os.fork()
    if child == 0:
        left = n

        def count(event, arguments):
            nonlocal left
            reads = event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
            if event in STEPS and part in str(arguments[0]) and not reads:
                left -= 1
                if left < 0:
                    os._exit(9)

        sys.addaudithook(count)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(("again", "stride"), [("update", 1), ("build", 7)])
def test_a_killed_update_can_be_given_again(kb, store_of, random_encoder, tmp_path, again, stride):
    """The vectors beside an index were refused: it was killed while they were being copied."""
    encoder, folder = random_encoder(), tmp_path / "I"
    changed = store_of([{"id": "D4", "name": "heart attack"}, {"id": "N", "name": "new"}], "new")
    build_index(kb, folder, encoder)
    stores = itertools.cycle([changed, kb])
    for step in range(0, MAX_STEPS, stride):
        store = next(stores)
        if kill_at(step, "I.dense", lambda store=store: update_index(store, folder, encoder)):
            break
        if again == "update":
            update_index(store, folder, encoder)
        else:
            build_index(store, folder, encoder, overwrite=True)
        assert sorted(path.name for path in tmp_path.glob("I*")) == ["I"], step
        assert open_index(store, folder).search.search(["heart attack"], 1).scores[0, 0] > 0.99
    assert 10 < step < MAX_STEPS
