"""The tests of the service with the lowest FastAPI and uvicorn that ``pyproject.toml`` allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
ROOT = Path(__file__).parents[2]
FILES = ("test_service.py", "test_robustness.py", "test_review_routes.py", "test_export_route.py")
pytestmark = pytest.mark.long


def test_the_service_works_with_the_lowest_versions(tmp_path: Path):
    """Their defaults differ: FastAPI 0.115 reads a body without a content type as JSON."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = extras["optional-dependencies"]["serve"]
    lowest = [
        re.sub(r">=([\d.]+)", lambda found: f"=={found[1]}.0", each)
        for each in listed
        if each.startswith(("fastapi>=", "uvicorn>="))
    ]
    assert len(lowest) == 2, listed
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tmp_path)]
    done = subprocess.run(
        [*install, *lowest], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        pytest.skip(f"{' and '.join(lowest)} cannot be installed: no package registry?")
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    code = "import fastapi, uvicorn; print(fastapi.__version__, uvicorn.__version__)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [each.partition("==")[2] for each in lowest]
    # what old packages warn of is not ours
    quiet = ["-W", "default::DeprecationWarning", "-W", "default::PendingDeprecationWarning"]
    tests = [f"tests/unit/serve/{name}" for name in FILES]
    run = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    tried = subprocess.run(
        [*run, *quiet, *tests],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode == 0, tried.stdout[-4000:]
