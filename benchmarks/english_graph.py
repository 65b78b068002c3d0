"""The English graph of the pre-training benchmarks: HPO, the Disease Ontology, MEDIC and MeSH.

MeSH's tables have a row for each place in the tree and chemical names apart; they are made one
table with parents and types. Beside it a build file for `biograft kb build` is written.

    python benchmarks/english_graph.py --out GRAPH
    biograft kb build GRAPH/build.toml -o KB
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from command_line import add_data, run_with, start_parser

_OBO = ("hp.obo.gz", "HumanDO_2015.obo.gz")
_COLUMNS = ("id", "name", "synonyms", "parents", "type")
Row = dict[str, str]


def run(options: argparse.Namespace) -> None:
    """Write MeSH's table and the build file."""
    out, linking = options.out, options.data / "entity_linking"
    out.mkdir(parents=True, exist_ok=True)
    mesh = linking / "mesh"
    with (out / "mesh.tsv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, _COLUMNS, delimiter="\t")
        table.writeheader()
        table.writerows(
            mesh_rows(
                _read(mesh / "mesh_tree_numbers_2015.tsv.gz"),
                _read(mesh / "mesh_chemical_names_derived.tsv.gz"),
            )
        )
    sources = [options.data / "ontologies" / "obo" / name for name in _OBO]
    sources.append(linking / "medic" / "medic_06Jul2012.txt.gz")
    named = [f"[[sources]]\npath = {json.dumps(str(path.resolve()))}\n" for path in sources]
    columns = ", ".join(f'{name} = "{name}"' for name in _COLUMNS)
    named.append(f'[[sources]]\npath = "mesh.tsv"\ncolumns = {{ {columns} }}\n')
    text = "\n".join(['merge = "xrefs"\n', *named])
    (out / "build.toml").write_text(text, encoding="utf-8")
    print(out / "build.toml")


def mesh_rows(places: list[Row], chemicals: list[Row]) -> Iterator[Row]:
    """Give a row for each concept; parents are those one place up, types the upper places."""
    at = {place["mesh_tree_number"]: place["mesh_id"] for place in places}
    names = {place["mesh_id"]: place["mesh_name"] for place in places}
    parents, types, others = defaultdict(set), defaultdict(set), defaultdict(set)
    for place in places:
        number, concept = place["mesh_tree_number"], place["mesh_id"]
        types[concept].add(number[:3])
        above = number.rpartition(".")[0]
        if above in at:
            parents[concept].add(at[above])
    for row in chemicals:
        names.setdefault(row["mesh_id"], row["name"])
        if "|" not in row["name"]:
            others[row["mesh_id"]].add(row["name"])
    for concept, name in sorted(names.items()):
        parts = (others[concept] - {name}, parents[concept], types[concept])
        joined = ("|".join(sorted(part)) for part in parts)
        yield dict(zip(_COLUMNS, (concept, name, *joined), strict=True))


def _read(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder of both files")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
