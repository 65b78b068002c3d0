"""Pre-training on two processes, as ``torchrun`` starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from biograft.kb import KnowledgeBase
from biograft.recipes import Recipe

SCRIPT = """
import json, sys, torch
from biograft.kb import KnowledgeBase
from biograft.recipes import Recipe, pretrain

values, kb, out = sys.argv[1:]
recipe = Recipe.from_values("tiny", json.loads(values))
pretrain(recipe, KnowledgeBase.open(kb) if kb else None, out)
torch.distributed.destroy_process_group()
"""


def pretrain_on_two(recipe: Recipe, kb: KnowledgeBase | None, out: Path) -> None:
    """Run a recipe on two processes that share its updates out."""
    script = out.with_suffix(".py")
    script.write_text(SCRIPT, encoding="utf-8")
    values = as_values(recipe)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node=2", str(script)),
            *(json.dumps(values), str(kb.folder) if kb else "", str(out)),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr


def as_values(recipe: Recipe) -> dict[str, Any]:
    """Give what a file of the recipe would hold."""
    values = without_none(recipe.to_json())
    values.pop("recipe")
    if "new" in values:
        del values["encoder"]
    return values


def without_none(values: Any) -> Any:
    """Leave out what is not said."""
    if not isinstance(values, dict):
        return values
    return {key: without_none(value) for key, value in values.items() if value is not None}
