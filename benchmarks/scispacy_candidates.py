"""Time scispaCy 0.6.2's candidate generator; run by linking_speed.py with another interpreter.

python scispacy_candidates.py FOLDER K RUNS, where FOLDER holds kb.jsonl and mentions.json.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

MENTIONS_AT_ONCE = 1000


def main() -> None:
    """Index, search, print one JSON object."""
    folder, k, n_runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with contextlib.redirect_stdout(sys.stderr):  # scispaCy talks while it works
        result = measure(folder, k, n_runs)
    print(json.dumps(result))


def measure(folder: Path, k: int, n_runs: int) -> dict[str, Any]:
    """Make the index with the settings that scispaCy's authors chose, and search it."""
    generation: Any = importlib.import_module("scispacy.candidate_generation")
    linking = importlib.import_module("scispacy.linking_utils")
    # the check is about files in 16 bits, which are not written without a folder
    generation.scipy_supports_sparse_float16 = lambda: True
    base = linking.KnowledgeBase(str(folder / "kb.jsonl"))
    mentions = json.loads((folder / "mentions.json").read_text(encoding="utf-8"))
    start = time.perf_counter()
    aliases, vectorizer, index = generation.create_tfidf_ann_index(None, base)
    build_seconds = time.perf_counter() - start
    index.setQueryTimeParams({"efSearch": 200})  # as its linker does by default
    generator = generation.CandidateGenerator(index, vectorizer, aliases, base)
    times = []
    for _ in range(n_runs):
        start = time.perf_counter()
        for start_row in range(0, len(mentions), MENTIONS_AT_ONCE):
            generator(mentions[start_row : start_row + MENTIONS_AT_ONCE], k)
        times.append(time.perf_counter() - start)
    return {
        "n_names": len(aliases),
        "n_mentions": len(mentions),
        "k": k,
        "build_seconds": build_seconds,
        "mentions_per_second": len(mentions) / statistics.median(times),
    }


if __name__ == "__main__":
    main()
