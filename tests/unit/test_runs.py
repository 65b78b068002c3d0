"""Whole results or none, whatever happens while they are made."""

import ctypes
import errno
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from one_writer import held_elsewhere
from safetensors import SafetensorError
from safetensors.numpy import save_file

from biograft.artifacts import new_file, new_folder, remove_abandoned, sole_writer
from biograft.errors import OutputError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def make_folder(target, text="new", **options):
    with new_folder(target, **options) as work:
        (work / "a").write_text(text)


def make_file(target, text="new", **options):
    with new_file(target, **options) as file:
        file.write(text.encode())


def content(target):
    return (target / "a" if target.is_dir() else target).read_text()


@pytest.fixture(params=[make_folder, make_file], ids=["folder", "file"])
def make(request):
    return request.param


@pytest.fixture(params=[new_folder, new_file], ids=["folder", "file"])
def new(request):
    return request.param


class TestWhole:
    def test_nothing_but_the_target_is_left(self, tmp_path, make):
        make(tmp_path / "deep" / "er" / "x")
        assert content(tmp_path / "deep" / "er" / "x") == "new"
        assert names_in(tmp_path / "deep" / "er") == ["x"]

    def test_nothing_is_seen_under_the_name_before_the_end(self, tmp_path):
        with new_folder(tmp_path / "x"):
            assert not (tmp_path / "x").exists()
        with new_file(tmp_path / "y"):
            assert not (tmp_path / "y").exists()

    def test_a_working_folder_is_filled_as_it_is(self, tmp_path):
        """What a killed process left of a folder within one was never found again."""
        with new_folder(tmp_path / "x") as outer, new_folder(outer) as inner:
            (inner / "a").write_text("new")
            assert inner == outer
            assert sum("building" in name for name in names_in(tmp_path)) == 1
        assert content(tmp_path / "x") == "new"

    def test_a_pipe_or_a_device_is_not_replaced(self, tmp_path, new):
        """``/dev/full`` became a file, for all processes."""
        os.mkfifo(tmp_path / "x")
        with pytest.raises(OutputError, match="is a pipe or a device"):
            new(tmp_path / "x", overwrite=True).__enter__()
        assert (tmp_path / "x").is_fifo()

    def test_a_link_to_a_file_stays_a_link(self, tmp_path):
        (tmp_path / "own").write_text("old")
        (tmp_path / "link").symlink_to(tmp_path / "own")
        make_file(tmp_path / "link", overwrite=True)
        assert ((tmp_path / "own").read_text(), (tmp_path / "link").is_symlink()) == ("new", True)

    def test_what_exists_is_kept_unless_it_may_be_overwritten(self, tmp_path, make):
        make(tmp_path / "x", "old")
        with pytest.raises(OutputError, match="exists already"):
            make(tmp_path / "x")
        assert content(tmp_path / "x") == "old"
        make(tmp_path / "x", overwrite=True)
        assert content(tmp_path / "x") == "new"
        assert names_in(tmp_path) == ["x"]

    def test_a_folder_is_replaced_where_the_system_cannot_exchange_names(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.delattr(ctypes, "CDLL")
        make_folder(tmp_path / "x", "old")
        make_folder(tmp_path / "x", overwrite=True)
        assert content(tmp_path / "x") == "new"
        assert names_in(tmp_path) == ["x"]

    def test_an_old_folder_comes_back_if_the_new_one_cannot_take_its_place(
        self, tmp_path, monkeypatch
    ):
        """The old folder would have kept its working name, which the next run removes."""
        make_folder(tmp_path / "x", "old")
        rename = Path.rename

        def refuse(path, target):
            if path.name.endswith(".building"):
                raise OSError(errno.EIO, "refused")
            return rename(path, target)

        monkeypatch.delattr(ctypes, "CDLL")
        monkeypatch.setattr(Path, "rename", refuse)
        with pytest.raises(OutputError, match="was not finished"):
            make_folder(tmp_path / "x", overwrite=True)
        assert content(tmp_path / "x") == "old"
        assert names_in(tmp_path) == ["x"]

    def test_a_file_is_not_replaced_by_a_folder(self, tmp_path):
        make_file(tmp_path / "x", "old")
        with pytest.raises(OutputError, match="is a file"):
            make_folder(tmp_path / "x", overwrite=True)
        assert content(tmp_path / "x") == "old"

    def test_a_link_as_target_stays_a_link(self, tmp_path):
        """The link was replaced by a folder, and a link with a hidden name stayed behind."""
        (tmp_path / "disk").mkdir()
        make_folder(tmp_path / "disk" / "kb", "old")
        link = tmp_path / "link"
        link.symlink_to(tmp_path / "disk" / "kb")
        make_folder(link, overwrite=True)
        assert link.is_symlink()
        assert content(tmp_path / "disk" / "kb") == "new"
        assert (names_in(tmp_path), names_in(tmp_path / "disk")) == (["disk", "link"], ["kb"])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
class TestBrokenOff:
    def test_leaves_nothing(self, tmp_path, new, error):
        def break_off(work):
            if isinstance(work, Path):
                (work / "sub").mkdir()
                (work / "sub" / "a").write_text("half")
            raise error

        with pytest.raises(error), new(tmp_path / "x") as work:
            break_off(work)
        assert names_in(tmp_path) == []

    def test_keeps_the_old_one(self, tmp_path, make, error):
        make(tmp_path / "x", "old")
        new = new_folder if make is make_folder else new_file
        with pytest.raises(error), new(tmp_path / "x", overwrite=True):
            raise error
        assert content(tmp_path / "x") == "old"
        assert names_in(tmp_path) == ["x"]


class TestAbandoned:
    @pytest.fixture
    def dead(self):
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        return process.pid

    def leave(self, folder, pid, state="building", host=None, name="kb"):
        work = folder / f".{name}.{host or socket.gethostname()}.{pid}.{state}"
        work.mkdir()
        (work / "half").write_text("x")
        return work

    @pytest.mark.parametrize("state", ["building", "replaced"])
    def test_folders_of_dead_processes_are_removed(self, tmp_path, dead, state):
        """What was set aside when a process was killed stayed for ever."""
        work = self.leave(tmp_path, dead, state)
        assert remove_abandoned(tmp_path / "kb") == [work]
        assert names_in(tmp_path) == []

    def test_a_new_build_removes_them(self, tmp_path, dead):
        self.leave(tmp_path, dead)
        make_folder(tmp_path / "kb")
        assert names_in(tmp_path) == ["kb"]

    @pytest.mark.parametrize("pid", [os.getppid(), 1])
    def test_folders_of_living_processes_are_not(self, tmp_path, pid):
        self.leave(tmp_path, pid)
        self.leave(tmp_path, pid, "replaced")
        assert remove_abandoned(tmp_path / "kb") == []
        assert len(names_in(tmp_path)) == 2

    def test_folders_of_other_hosts_targets_and_purposes_are_not(self, tmp_path, dead):
        self.leave(tmp_path, dead, host="elsewhere")
        self.leave(tmp_path, dead, name="other")
        self.leave(tmp_path, dead, state="precious")
        self.leave(tmp_path, "notes")
        assert remove_abandoned(tmp_path / "kb") == []
        assert len(names_in(tmp_path)) == 4

    def test_a_name_that_looks_like_a_pattern_means_itself(self, tmp_path, dead):
        self.leave(tmp_path, dead, name="kb")
        work = self.leave(tmp_path, dead, name="k[ab]*?")
        assert remove_abandoned(tmp_path / "k[ab]*?") == [work]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "the disk is full; nothing was kept"),
        (errno.EDQUOT, "the disk is full; nothing was kept"),
        (errno.EFBIG, "the disk is full; nothing was kept"),
        (errno.EACCES, "cannot be written (Permission denied)"),
        (errno.EROFS, "cannot be written (Read-only file system)"),
    ],
)
def test_what_the_system_says_becomes_one_line(tmp_path, new, number, message):
    with pytest.raises(OutputError) as error, new(tmp_path / "x"):
        raise OSError(number, os.strerror(number))
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "x"))
    assert names_in(tmp_path) == []


def save_by_numpy(folder):
    np.save(folder / "a.npy", np.zeros(100_000))


def save_by_safetensors(folder):
    save_file({"a": np.zeros(100_000)}, folder / "a.safetensors")


@pytest.mark.parametrize("save", [save_by_numpy, save_by_safetensors])
@pytest.mark.parametrize("new", [new_folder, sole_writer])
def test_errors_of_libraries_on_a_full_disk_become_one_line(tmp_path, save, new):
    """Guards: "100000 requested and 992 written" and SafetensorError reached the user."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with (
            pytest.raises(OutputError, match=r"/x: the disk is full; ") as error,
            new(tmp_path / "x"),
        ):
            save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(error.value)


def test_a_file_within_a_new_folder_is_shown_where_it_will_be(tmp_path):
    """Guards: messages named the hidden working folder, which was gone."""
    with (
        pytest.raises(OutputError, match=rf"^{tmp_path}/x/y: the disk is full"),
        new_folder(tmp_path / "x") as work,
        new_folder(work / "y"),
    ):
        raise OSError(errno.ENOSPC, "")


def test_a_file_where_nothing_can_be_written_is_one_line(tmp_path, monkeypatch):
    """Guards: the removal of the working file failed in its turn, with a traceback."""

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(OutputError, match="Read-only file system"), new_file(tmp_path / "x"):
        refuse()


# ---- real builds in processes of their own

N_SMALL = 1000
COMMAND = [sys.executable, "-c", "from biograft.cli import main; main()", "kb"]


def make_source(path, n, word="name"):
    with path.open("w") as file:
        for k in range(n):
            concept = {
                "id": f"C{k}",
                "names": [f"{word} {k}", f"other {word} of {k}"],
                "definition": f"The {word} numbered {k}." * 10,
                "relations": {"is-a": [f"C{k // 2}"]},
            }
            file.write(json.dumps(concept) + "\n")
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A source whose build takes a second or so, and whose store over 4 MiB."""
    return make_source(tmp_path_factory.mktemp("large") / "large.jsonl", 20_000)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make_source(tmp_path_factory.mktemp("small") / "small.jsonl", N_SMALL)


def start_build(source, out, *options, **limits):
    return subprocess.Popen(
        [*COMMAND, "build", str(source), "-o", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **limits,
    )


def build(source, out, **options):
    return build_store(BuildConfig(sources=(SourceConfig(path=source),)), out, **options)


def stopped_build(source, out, pattern, number):
    """Build until the working folder has come so far, then send a signal; give what was said.

    On a busy machine a build may end before the signal comes; then it is done again.
    """
    for _ in range(25):
        process = start_build(source, out, "--overwrite")
        while process.poll() is None and not any(out.parent.glob(pattern)):
            time.sleep(0.001)
        process.send_signal(number)
        message = process.communicate()
        if process.returncode != 0:
            return process.returncode, *message
        shutil.rmtree(out)
    raise TimeoutError(f"the build always ended before signal {number}")


def test_a_second_build_of_the_same_folder_is_refused_in_one_line(tmp_path, small):
    """Of two commands that wrote to one place the later one went on, and replaced or mixed."""
    with held_elsewhere(tmp_path / "kb"):
        process = start_build(small, tmp_path / "kb")
        out, err = process.communicate()
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"biograft: {tmp_path}/kb: written by process {os.getpid()} since ")
    assert names_in(tmp_path) == []


READING, WRITING = ".kb.*.building", ".kb.*.building/names.arrow"


@pytest.mark.slow
class TestStopped:
    @pytest.mark.parametrize(
        ("pattern", "old"), [(READING, True), (WRITING, False)], ids=["reading", "writing"]
    )
    def test_a_killed_build_leaves_no_new_store_and_the_next_cleans_up(
        self, tmp_path, large, small, pattern, old
    ):
        if old:
            build(small, tmp_path / "kb")
        code, *_ = stopped_build(large, tmp_path / "kb", pattern, signal.SIGKILL)
        assert code == -signal.SIGKILL
        assert len(list(tmp_path.glob(READING))) == 1
        assert (tmp_path / "kb").exists() == old
        if old:
            assert len(KnowledgeBase.open(tmp_path / "kb")) == N_SMALL
        build(small, tmp_path / "kb", overwrite=True)
        KnowledgeBase.open(tmp_path / "kb").verify()
        assert names_in(tmp_path) == ["kb"]

    @pytest.mark.parametrize(
        ("pattern", "number"),
        [(READING, signal.SIGTERM), (WRITING, signal.SIGINT)],
        ids=["terminated reading", "interrupted writing"],
    )
    def test_an_interrupted_build_says_one_line_and_leaves_nothing(
        self, tmp_path, large, pattern, number
    ):
        """The command line framework swallowed the interrupt, and nothing was said."""
        code, out, err = stopped_build(large, tmp_path / "kb", pattern, number)
        assert (code, out) == (130, "")
        assert err == "biograft: interrupted; only what --resume continues was kept\n"
        assert names_in(tmp_path) == []


NO_TMPFS = 77
FULL = "the disk is full; nothing was kept; free space or choose another place"


IO_ERRORS = {
    "of a file": (OSError(errno.EIO, "Input/output error", "corpus.txt"), "corpus.txt"),
    "of the system": (OSError(errno.EIO, "Input/output error"), "a file"),
    "of safetensors": (SafetensorError("serializing: Input/output error (os error 5)"), "a file"),
}


@pytest.mark.parametrize(("error", "what"), IO_ERRORS.values(), ids=IO_ERRORS)
def test_a_failing_disk_is_one_line_that_names_what_was_written(tmp_path, new, error, what):
    said = re.escape(f"{tmp_path / 'x'}: was not finished, since {what} cannot be read or written")
    with pytest.raises(OutputError, match=said), new(tmp_path / "x"):
        raise error
    assert names_in(tmp_path) == []


@pytest.mark.slow
class TestFullDisk:
    @pytest.mark.parametrize("limit", [500, 40_000])
    def test_a_limit_on_file_sizes_is_one_line(self, tmp_path, small, limit):
        process = start_build(
            small,
            tmp_path / "kb",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
        out, err = process.communicate()
        assert process.returncode == 2, err
        assert out == ""
        assert err == f"biograft: {tmp_path}/kb: {FULL}\n"
        assert names_in(tmp_path) == []

    @pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root to mount a tmpfs"
    )
    def test_a_full_disk_is_one_line_and_keeps_the_old_store(self, tmp_path, large, small):
        script = f"""if True:
            import subprocess, sys
            from pathlib import Path
            from biograft.errors import OutputError
            from biograft.kb import BuildConfig, KnowledgeBase, build_store
            from biograft.kb.sources import SourceConfig
            disk, *sources = map(Path, sys.argv[1:])
            if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk]):
                sys.exit({NO_TMPFS})
            for source in sources:
                try:
                    config = BuildConfig(sources=(SourceConfig(path=source),))
                    build_store(config, disk / "kb", overwrite=True)
                except OutputError as error:
                    print(error)
            KnowledgeBase.open(disk / "kb").verify()
            print(*disk.iterdir(), len(KnowledgeBase.open(disk / "kb")))"""
        inside = [sys.executable, "-c", script, str(tmp_path), str(small), str(large)]
        done = subprocess.run(
            ["unshare", "--mount", *inside], capture_output=True, text=True, check=False
        )
        if done.returncode == NO_TMPFS or done.stderr.startswith("unshare"):
            pytest.skip("a tmpfs cannot be mounted here")
        assert done.stderr == ""
        assert done.stdout == f"{tmp_path}/kb: {FULL}\n{tmp_path}/kb {N_SMALL}\n"


READER = """
import sys, time
from pathlib import Path
from biograft.kb import KnowledgeBase
folder, stop = sys.argv[1], Path(sys.argv[2])
held = KnowledgeBase.open(folder)
first = held["C5"].name
print(first, flush=True)
n = 0
ended = False
while not ended:
    ended = stop.exists()
    assert held["C5"].name == first and held.find(f"other {first[:-2]} of 999")[0].concept == "C999"
    base = KnowledgeBase.open(folder)
    word = base["C5"].name[:-2]
    names = {name.text for name in base["C999"].names}
    assert names == {f"{word} 999", f"other {word} of 999"}, names
    assert base.find(f"{word} 999")[0].concept == "C999"
    assert base.ancestors("C4") == ["C2", "C1", "C0"]
    n += 1
print(n, word, flush=True)
"""


@pytest.mark.slow
def test_two_processes_read_while_stores_are_built_and_replaced(tmp_path, small):
    """A store that was opened while it was replaced showed tables of both."""
    # words of one length, so that the sizes of all tables agree and tell nothing
    others = [make_source(tmp_path / f"{word}.jsonl", N_SMALL, word) for word in ("nome", "mane")]
    folder, stop = tmp_path / "kb", tmp_path / "stop"
    build(small, folder)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(folder), str(stop)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        assert [reader.stdout.readline() for reader in readers] == ["name 5\n"] * 2
        build(small, tmp_path / "elsewhere")
        for k in range(8):
            build(others[k % 2], folder, overwrite=True)
        time.sleep(0.2)
    finally:
        stop.touch()
        results = [reader.communicate() for reader in readers]
    for out, err in results:
        assert err == ""
        n, word = out.split()
        assert int(n) >= 2
        assert word == "mane"


def test_a_folder_that_is_no_store_is_never_overwritten(tmp_path, small):
    """``--overwrite -o FOLDER`` deleted whatever the folder held, the sources too."""
    shutil.copy(small, tmp_path)
    with pytest.raises(OutputError, match="holds no knowledge base, so it is not overwritten"):
        build(tmp_path / small.name, tmp_path, overwrite=True)
    assert names_in(tmp_path) == [small.name]
    (tmp_path / "empty").mkdir()
    build(tmp_path / small.name, tmp_path / "empty", overwrite=True)
