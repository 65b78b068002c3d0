import os
import signal
import threading
import time
import warnings
from pathlib import Path

import pytest

from biograft.annotation import annotate_corpus
from biograft.annotation.runner import Running
from biograft.errors import MissingExtraError

CHUNK = 4000


@pytest.fixture
def ray(monkeypatch):
    """Ray with two workers' room on this machine; it warns of itself while it is imported."""
    monkeypatch.setenv("RAY_worker_niceness", "0")  # else a busy machine leaves them waiting
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = pytest.importorskip(
            "ray", reason="ray is not installed (pip install 'biograft[ray]')"
        )
        pytest.importorskip("ray.data", reason="ray[data] is not installed")
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield ray
        ray.shutdown()


def parts(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def workers_of_this_process():
    """Ray's actors that work for this very process, by their place in the tree of processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            above = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if command.startswith(b"ray::MapWorker") and os.getpid() in (parent, above):
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for Ray's workers in /proc")
def test_two_actors_give_the_bytes_of_one_process_even_if_one_is_killed(
    ray, kb_folder, corpus, tmp_path
):
    corpus.write_bytes(corpus.read_bytes() * 4)
    second = tmp_path / "second.txt"
    second.write_bytes(b"heart attack\n" * 500)
    texts = [corpus, second]
    local = Running(workers=1, chunk_bytes=CHUNK)
    expected = annotate_corpus(kb_folder, texts, tmp_path / "local", None, local)
    running = Running(engine="ray", workers=2, chunk_bytes=CHUNK)
    made = annotate_corpus(kb_folder, texts, tmp_path / "ray", None, running)
    assert parts(tmp_path / "ray") == parts(tmp_path / "local")
    assert made["report"] == expected["report"]

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
    annotate_corpus(kb_folder, texts, out, None, running)
    assert killed
    assert parts(out) == parts(tmp_path / "local")


def test_without_ray_the_message_names_the_extra(kb_folder, corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    running = Running(engine="ray", workers=2)
    with pytest.raises(MissingExtraError, match=r"biograft\[ray\]"):
        annotate_corpus(kb_folder, [corpus], tmp_path / "out", None, running)
