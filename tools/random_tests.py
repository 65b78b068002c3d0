"""Run some tests in a random order and surroundings: whatever is random follows from one seed.

Random are the files, their order and that of the tests within each, the locale, the time zone, the
seed of hashes, the numbers of threads, and what hypothesis tries; the temporary folder has blanks
and Chinese characters in its name, and nothing can be written to the home folder.

    python tools/random_tests.py                  ten files; the seed is printed first
    python tools/random_tests.py --seed 7 -n 3    the same again, of another number of files
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_SEED = "BIOGRAFT_TEST_SEED"
_ZONES = ("UTC", "Asia/Shanghai", "America/St_Johns", "Pacific/Chatham", "Asia/Kathmandu")
_LOCALES = ("C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", "zh_CN.UTF-8")
_THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the files, and the tests within each: fixtures of a file are still made once."""
    rng = random.Random(int(os.environ[_SEED]))
    files = sorted({item.path for item in items})
    rng.shuffle(files)
    place = {path: number for number, path in enumerate(files)}
    rng.shuffle(items)
    items.sort(key=lambda item: place[item.path])


def surroundings(rng: random.Random, folder: Path) -> dict[str, str]:
    """Return environment variables at random, with folders below the given one."""
    temporary = folder / "temporary files 临时文件"
    temporary.mkdir()
    home = folder / "home"
    home.write_text("a file: nothing can be written below it, not even by root")
    threads = {name: str(rng.randint(1, 3)) for name in _THREADS}
    return {
        "PYTHONHASHSEED": str(rng.randrange(2**32)),
        "TZ": rng.choice(_ZONES),
        "LC_ALL": rng.choice(_LOCALES),
        "TMPDIR": str(temporary),
        "HOME": str(home),
        **threads,
    }


def choose_files(rng: random.Random, n: int) -> list[str]:
    """Return the paths of some files of tests."""
    found = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("lab/tests/**/test_*.py")]
    known = sorted(path.relative_to(ROOT).as_posix() for path in found)
    chosen = [path for path in known if "/browser/" not in path]
    return rng.sample(chosen, min(n, len(chosen)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the seed and run the tests; the exit status is that of pytest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=None, help="of everything; default: a new one")
    parser.add_argument("-n", "--files", type=int, default=10, help="how many files; 0: all")
    parser.add_argument("paths", nargs="*", help="files to run instead of some at random")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="biograft-tests-") as folder:
        changed = surroundings(rng, Path(folder))
        files = options.paths or choose_files(rng, options.files or sys.maxsize)
        print(f"seed {seed}: {' '.join(f'{k}={v}' for k, v in changed.items())}", flush=True)
        environment = {**os.environ, **changed, _SEED: str(seed)}
        paths = [str(Path(__file__).parent), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "random_tests", "-m", "not long", "--hypothesis-profile", "random"]
        command += [f"--hypothesis-seed={seed}", *files]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
