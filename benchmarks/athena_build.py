"""How long a bundle of OMOP vocabularies of full size takes to build, and a cold link with it.

Makes a synthetic bundle in the layout of Athena (CONCEPT, CONCEPT_SYNONYM, CONCEPT_RELATIONSHIP,
CONCEPT_ANCESTOR), builds it in a process of its own, and links one sentence in another.

    python benchmarks/athena_build.py --json >benchmarks/results/athena_build.json    8M concepts
    python benchmarks/athena_build.py --concepts 200000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from machine import describe_command, describe_commit

from biograft.compute import describe_machine

RELATIONS_PER_CONCEPT, ANCESTORS_PER_CONCEPT, CHUNK = 5, 4, 2_000_000
DATES = "19700101\t20991231\t"


def write(path: Path, header: str, parts: Any) -> None:
    """Write a table, part after part."""
    with path.open("wb") as file:
        file.write(header.encode() + b"\n")
        for part in parts:
            part.select(line=pl.concat_str(pl.all(), separator="\t")).write_csv(
                file, include_header=False, quote_style="never"
            )


def make_bundle(folder: Path, n: int, seed: int = 13) -> None:
    """Write a bundle of ``n`` concepts, a tenth of them not valid any more."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(ord("a"), ord("z") + 1, (40_000, 9), dtype=np.uint8)
    words = np.array([row[: 3 + k % 7].tobytes().decode() for k, row in enumerate(letters)])

    def chunks(total: int) -> Any:
        for start in range(0, total, CHUNK):
            yield np.arange(start, min(start + CHUNK, total))

    def names(ids: Any) -> Any:
        three = [pl.Series(words[rng.integers(0, len(words), len(ids))]) for _ in range(3)]
        return pl.DataFrame({str(k): each for k, each in enumerate(three)}).select(
            pl.concat_str(pl.all(), separator=" ")
        )["0"]

    write(
        folder / "CONCEPT.csv",
        "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\tstandard_concept\t"
        "concept_code\tvalid_start_date\tvalid_end_date\tinvalid_reason",
        (
            pl.DataFrame({"i": ids, "n": names(ids)}).select(
                "i",
                "n",
                domain=pl.lit("Condition"),
                vocabulary=pl.when(pl.col("i") % 3 == 0)
                .then(pl.lit("SNOMED"))
                .otherwise(pl.lit("ICD10CM")),
                kind=pl.lit("Disorder"),
                standard=pl.when(pl.col("i") % 3 == 0).then(pl.lit("S")).otherwise(pl.lit("")),
                code=pl.col("i") * 7,
                dates=pl.lit(DATES.rstrip("\t")),
                reason=pl.when(pl.col("i") % 10 == 9).then(pl.lit("D")).otherwise(pl.lit("")),
            )
            for ids in chunks(n)
        ),
    )
    write(
        folder / "CONCEPT_SYNONYM.csv",
        "concept_id\tconcept_synonym_name\tlanguage_concept_id",
        (
            pl.DataFrame({"i": ids, "n": names(ids), "l": np.full(len(ids), 4180186)})
            for ids in chunks(n // 2)
        ),
    )
    kinds = np.array(["Is a", "Subsumes", "Maps to", "Mapped from", "Has finding site"])
    write(
        folder / "CONCEPT_RELATIONSHIP.csv",
        "concept_id_1\tconcept_id_2\trelationship_id\tvalid_start_date\tvalid_end_date\t"
        "invalid_reason",
        (
            pl.DataFrame(
                {
                    "a": rows // RELATIONS_PER_CONCEPT,
                    "b": rng.integers(0, n, len(rows)),
                    "r": kinds[rows % len(kinds)],
                    "d": np.full(len(rows), DATES),
                }
            )
            for rows in chunks(n * RELATIONS_PER_CONCEPT)
        ),
    )
    write(
        folder / "CONCEPT_ANCESTOR.csv",
        "ancestor_concept_id\tdescendant_concept_id\tmin_levels_of_separation\t"
        "max_levels_of_separation",
        (
            pl.DataFrame(
                {
                    "a": rng.integers(0, n, len(rows)),
                    "b": rows // ANCESTORS_PER_CONCEPT,
                    "m": 1 + rows % ANCESTORS_PER_CONCEPT,
                    "n": 1 + rows % ANCESTORS_PER_CONCEPT,
                }
            )
            for rows in chunks(n * ANCESTORS_PER_CONCEPT)
        ),
    )


def run(*arguments: str) -> dict[str, Any]:
    """Run a command; return its seconds and its peak memory."""
    code = (
        "import sys;from biograft.__main__ import main\n"
        "try: main()\n"
        "finally:\n"
        "  for line in open('/proc/self/status'):\n"
        "    if line.startswith('VmHWM:'): print('peak', line.split()[1], file=sys.stderr)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stderr)
    peak = next(line for line in done.stderr.splitlines() if line.startswith("peak "))
    return {"seconds": seconds, "peak_gib": int(peak.split()[1]) / 2**20}


def main() -> None:
    """Make the bundle, build it, link a sentence."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--concepts", type=int, default=8_000_000)
    parser.add_argument("--folder", help="where to put the files while it runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder, store = Path(name) / "bundle", str(Path(name) / "KB")
        folder.mkdir()
        make_bundle(folder, options.concepts)
        found: dict[str, Any] = {
            "n_concepts": options.concepts,
            "n_relations": options.concepts * RELATIONS_PER_CONCEPT,
            "n_ancestors": options.concepts * ANCESTORS_PER_CONCEPT,
            "bundle_gib": sum(each.stat().st_size for each in folder.iterdir()) / 2**30,
            "build": run("kb", "build", str(folder), "-o", store, "--quiet"),
            "show": run("kb", "show", store, "OMOP:300"),
        }
        text = Path(name) / "ids.tsv"
        text.write_text("id\tlabel\nOMOP:300\tx\n", "utf-8")
        found["verify"] = run("verify", str(text), "--kb", store)
    about = {
        "command": describe_command("athena_build.py", sys.argv[1:]),
        "commit": describe_commit(),
        "machine": describe_machine(),
    }
    print(json.dumps({**about, **found}) if options.json else found)


if __name__ == "__main__":
    main()
