"""Finding phenotypes of HPO in 2,000 abstracts: processor time, against FastHPOCR and spaCy.

Each run is a process of its own; the tools alternate, and the medians count. "process" is the
processor time of the whole process, imports and opening included, "search" that of the texts alone.
Indexes are made before: ours by ``biograft index``, that of FastHPOCR (half an hour) by its own
``IndexHPO``. The abstracts are those of GSC+, repeated with a number behind each, and, as a set
without repetitions, groups of eight sentences of BC5CDR and NCBI disease.

default  the defaults of `biograft link` with --index
both     --overlaps all --reworded
bare     names as written alone: no misspelt ones, abbreviations, statuses, short forms

    python benchmarks/phenotype_speed.py --fasthpocr OTHER/bin/python --index hp.index \
        --spacy OTHER/bin/python --json
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import add_data, run_with, start_parser

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import IndexConfig, build_index

N_TEXTS, N_QUICK, N_SENTENCES = 2000, 50, 8
ONTOLOGY = Path("ontologies") / "obo" / "hp_2025-01-16.obo.gz"
GSC = Path("phenotypes") / "gsc_plus"
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "both": {"overlaps": "all", "reworded": True},
    "bare": {
        **dict.fromkeys(("misspelt", "assertions", "short_forms", "coordinations"), False),
        **dict.fromkeys(("abbreviations", "composites", "appositions"), False),
    },
}


def read_texts(data: Path) -> dict[str, list[str]]:
    """Read the two sets of abstracts."""
    files = (data / GSC / f"GSCplus_{part}_gold.tsv" for part in ("dev", "test"))
    blocks = chain.from_iterable(file.read_text("utf-8").strip().split("\n\n") for file in files)
    abstracts = [block.strip("\n").split("\n")[1] for block in blocks]
    repeated = [f"{text} {n}" for n, text in enumerate(islice(cycle(abstracts), N_TEXTS))]
    sets = ("BC5CDR-disease", "NCBI-disease")
    files = (file for name in sets for file in sorted((data / "ner_en" / name).iterdir()))
    sentences = list(chain.from_iterable(map(_sentences, files)))
    starts = range(0, len(sentences), N_SENTENCES)
    groups = [" ".join(sentences[start : start + N_SENTENCES]) for start in starts]
    distinct = [*abstracts, *groups]
    return {"GSC+, repeated": repeated, "distinct": distinct[:N_TEXTS]}


def _sentences(path: Path) -> Iterator[str]:
    read = gzip.open if path.suffix == ".gz" else open
    with read(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    for block in blocks:
        yield " ".join(line.split("\t")[0] for line in block.splitlines())


def measure(options: argparse.Namespace) -> None:
    """Run every tool on both sets, and print the result."""
    texts = read_texts(options.data)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sources = (SourceConfig(path=options.data / ONTOLOGY),)
        build_store(BuildConfig(sources=sources), work / "kb")
        kb = KnowledgeBase.open(work / "kb")
        build_index(kb, work / "index", None, IndexConfig())
        (work / "names.json").write_text(json.dumps(list(kb.texts("names", "text"))))
        tools = {
            f"biograft, {name}": [sys.executable, "biograft", str(work), json.dumps(settings)]
            for name, settings in SETTINGS.items()
        }
        if options.fasthpocr:
            tools["FastHPOCR"] = [options.fasthpocr, "fasthpocr", options.index, "{}"]
        if options.spacy:
            tools["spaCy PhraseMatcher"] = [options.spacy, "spacy", str(work / "names.json"), "{}"]
        found = {
            name: _compare(tools, of[: N_QUICK if options.quick else None], work, options)
            for name, of in texts.items()
        }
    result = {
        "sets": found,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("phenotype_speed.py", sys.argv[1:]),
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=1))


def _compare(
    tools: dict[str, list[str]], texts: list[str], work: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the median times of each tool, which take turns, after a round of ours to compile."""
    file, runs = work / "texts.json", 1 if options.quick else 3
    file.write_text(json.dumps(texts))
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(work / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
    times: dict[str, list[dict[str, float]]] = {name: [] for name in tools}
    for turn in range(runs + 1):
        for name, (python, *arguments) in tools.items():
            if not turn and python != sys.executable:
                continue
            script = str(Path(__file__).with_name("phenotype_peer.py"))
            command = [python, script, *arguments, str(file)]
            own = environment if python == sys.executable else os.environ
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
            if done.returncode:
                raise SystemExit(f"{name} failed:\n{done.stderr}")
            if turn:
                times[name].append(json.loads(done.stdout.splitlines()[-1]))
    return {
        "n_texts": len(texts),
        "characters": sum(map(len, texts)),
        **{
            name: {key: round(statistics.median(run[key] for run in of), 2) for key in of[0]}
            for name, of in times.items()
        },
    }


def main() -> None:
    """Parse the command line, run, print."""
    parser = start_parser(__doc__)
    parser.add_argument("--fasthpocr", default="", help="a Python that has FastHPOCR")
    parser.add_argument("--index", default="", help="index of FastHPOCR")
    parser.add_argument("--spacy", default="", help="a Python that has spaCy")
    parser.add_argument("--quick", action="store_true", help="few texts, one run")
    parser.add_argument("--json", action="store_true", help="one line")
    add_data(parser)
    run_with(measure, parser.parse_args())


if __name__ == "__main__":
    main()
