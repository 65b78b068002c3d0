"""``biograft demo``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import biograft


@pytest.mark.long
def test_demo(tmp_path):
    """A process of its own, since the demo sets the number of threads before torch is loaded."""
    command = [Path(sys.executable).with_name("biograft"), "demo", "-o", tmp_path / "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "D009203" in done.stdout
    assert "biograft serve --kb" in done.stdout.splitlines()[-1]  # no terminal: it ends
    page = (tmp_path / "demo" / "demo.html").read_text(encoding="utf-8")
    assert "Myocardial Infarction" in page
    assert biograft.KnowledgeBase.open(tmp_path / "demo" / "starter")["D009203"]
