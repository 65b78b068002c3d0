import os
import signal
import threading
import time
from pathlib import Path

import pytest

from biograft.errors import MissingExtraError
from biograft.linking.annotation import ExecutionConfig, annotate

CHUNK = 4000


def shards(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def workers_of_this_process():
    """Ray's actors that work for this very process, by their position in the process tree."""
    workers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            above = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if command.startswith(b"ray::_JobActor") and os.getpid() in (parent, above):
            workers.append(int(folder.name))
    return workers


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for Ray's workers in /proc")
def test_two_actors_write_the_bytes_of_one_process_even_if_one_is_killed(
    ray, kb_folder, corpus, tmp_path
):
    corpus.write_bytes(corpus.read_bytes() * 4)
    second = tmp_path / "second.txt"
    second.write_bytes(b"heart attack\n" * 500)
    texts = [corpus, second]
    local = ExecutionConfig(workers=1, chunk_bytes=CHUNK)
    expected = annotate(kb_folder, texts, tmp_path / "local", None, local)
    execution = ExecutionConfig(engine="ray", workers=2, chunk_bytes=CHUNK)
    manifest = annotate(kb_folder, texts, tmp_path / "ray", None, execution)
    assert shards(tmp_path / "ray") == shards(tmp_path / "local")
    assert manifest["report"] == expected["report"]

    killed: list[int] = []
    out = tmp_path / "hurt"

    def kill_one():
        while not killed:
            time.sleep(0.01)
            if list(out.glob("part-*")):
                for process in workers_of_this_process()[:1]:
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)

    thread = threading.Thread(target=kill_one, daemon=True)
    thread.start()
    annotate(kb_folder, texts, out, None, execution)
    assert killed
    assert shards(out) == shards(tmp_path / "local")


def test_a_missing_ray_names_the_extra(kb_folder, corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    execution = ExecutionConfig(engine="ray", workers=2)
    with pytest.raises(MissingExtraError, match=r"biograft\[ray\]"):
        annotate(kb_folder, [corpus], tmp_path / "out", None, execution)
