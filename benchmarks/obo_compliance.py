"""Whether OBO, OBO Graphs JSON and OWL of one ontology give the same knowledge base.

The cases are the folder ``tests/input/obo-compliance`` of INCATools/ontology-access-kit, of which
nothing is kept here: each has an OBO file and its conversions. Of every case three knowledge bases
are built, and their concepts, names with scopes, definitions, types, ids and relations compared.

The JSON of six cases cannot agree. It has no node, edge or axiom for the term of ``comment``,
``disjoint_from`` and ``union_of``, and no prefix for the namespace that ``prefixes`` declares.

    python benchmarks/obo_compliance.py FOLDER
    python benchmarks/obo_compliance.py FOLDER --json >benchmarks/results/obo_compliance.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import run_with, start_parser

from biograft.errors import BiograftError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig

FORMS = ("obo", "expected.json", "expected.owl")
Facts = set[tuple[str, ...]]


def facts_of(path: Path, folder: Path) -> Facts:
    """Build a knowledge base of one file, and return what it holds; nothing if it is refused."""
    try:
        build_store(BuildConfig(sources=(SourceConfig(path=path),)), folder)
    except BiograftError as error:
        return {("refused", str(error).replace(str(path), path.name))}
    kb = KnowledgeBase.open(folder)
    facts: Facts = set()
    for row, concept in enumerate(kb):
        facts.add(("concept", concept.id))
        facts |= {("name", concept.id, each.kind, each.text) for each in concept.names}
        facts |= {("definition", concept.id, each.text) for each in concept.definitions}
        facts |= {("type", concept.id, each.code) for each in concept.types}
        facts |= {("id", concept.id, each.kind, each.id) for each in concept.ids}
        facts |= {("relation", concept.id, name, tail) for name, tail, _ in kb.outgoing(row)}
    return facts


def compare(case: Path) -> dict[str, Any]:
    """Compare the conversions of a case with its OBO file."""
    with tempfile.TemporaryDirectory() as name:
        paths = {form: case / f"{case.name}.{form}" for form in FORMS}
        facts = {
            form: facts_of(path, Path(name) / form) for form, path in paths.items() if path.exists()
        }
    obo = facts.pop("obo")
    if any(fact[0] == "refused" for fact in obo):
        return {"refused": [fact[1] for fact in obo]}
    return {
        form.rpartition(".")[2]: {"missing": sorted(obo - each), "more": sorted(each - obo)}
        for form, each in facts.items()
    }


def run(options: Namespace) -> None:
    """Compare all cases, print what differs, or one JSON object."""
    cases = {case.name: compare(case) for case in sorted(options.cases.iterdir()) if case.is_dir()}
    held = {name: case for name, case in cases.items() if case and "refused" not in case}
    agree = {
        form: [name for name, case in held.items() if not any(case[form].values())]
        for form in ("json", "owl")
    }
    differ = {
        form: {name: case[form] for name, case in held.items() if name not in agree[form]}
        for form in agree
    }
    result = {
        "cases": len(cases),
        "compared": len(held),
        **{f"{form}_agrees": len(names) for form, names in agree.items()},
        "differ": differ,
        "not_compared": {name: case for name, case in cases.items() if name not in held},
    }
    if options.json:
        about = {
            "command": describe_command("obo_compliance.py", sys.argv[1:]),
            "commit": describe_commit(),
        }
        print(json.dumps({**about, **result}, ensure_ascii=False))
        return
    for form, names in differ.items():
        for name, difference in names.items():
            print(form, name, *(f"\n   {how} {x}" for how, y in difference.items() for x in y))
    print({key: value for key, value in result.items() if key != "differ"})


def main() -> None:
    """Parse the options and run."""
    parser = start_parser(__doc__)
    parser.add_argument("cases", type=Path, help="the folder tests/input/obo-compliance of OAK")
    parser.add_argument("--json", action="store_true")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
