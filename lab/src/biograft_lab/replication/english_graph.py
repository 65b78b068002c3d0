"""The English graph of the pre-training experiments: HPO, the Disease Ontology, MEDIC and MeSH.

MeSH's tables have a row for each position in the tree, and chemical names apart; they become one
table with parents and types. A build file for ``biograft kb build`` is written beside it.

    python -m biograft_lab.replication.english_graph graph
    biograft kb build graph/build.toml -o kb
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import CommandGroup
from biograft_lab.places import data_folder, run_commands
from biograft_lab.replication.runner import missing_data

_OBO = ("hp.obo.gz", "HumanDO_2015.obo.gz")
_COLUMNS = ("id", "name", "synonyms", "parents", "type")
TableRow = dict[str, str]


def write_english_graph(data: Path, out: Path) -> Path:
    """Write MeSH's table and the build file; return the build file."""
    out.mkdir(parents=True, exist_ok=True)
    linking = data / "entity_linking"
    mesh = linking / "mesh"
    rows = mesh_rows(
        _read(mesh / "mesh_tree_numbers_2015.tsv.gz"),
        _read(mesh / "mesh_chemical_names_derived.tsv.gz"),
    )
    with (out / "mesh.tsv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, _COLUMNS, delimiter="\t")
        table.writeheader()
        table.writerows(rows)
    sources = [data / "ontologies" / "obo" / name for name in _OBO]
    sources.append(linking / "medic" / "medic_06Jul2012.txt.gz")
    tables = [f"[[sources]]\npath = {json.dumps(str(path.resolve()))}\n" for path in sources]
    columns = ", ".join(f'{name} = "{name}"' for name in _COLUMNS)
    tables.append(f'[[sources]]\npath = "mesh.tsv"\ncolumns = {{ {columns} }}\n')
    build = out / "build.toml"
    build.write_text("\n".join(['merge = "xrefs"\n', *tables]), encoding="utf-8")
    return build


def mesh_rows(positions: list[TableRow], chemicals: list[TableRow]) -> Iterator[TableRow]:
    """Return a row for each concept; parents are one position up, types the top positions."""
    at = {row["mesh_tree_number"]: row["mesh_id"] for row in positions}
    names = {row["mesh_id"]: row["mesh_name"] for row in positions}
    parents, types, synonyms = defaultdict(set), defaultdict(set), defaultdict(set)
    for row in positions:
        number, concept = row["mesh_tree_number"], row["mesh_id"]
        types[concept].add(number[:3])
        above = number.rpartition(".")[0]
        if above in at:
            parents[concept].add(at[above])
    for row in chemicals:
        names.setdefault(row["mesh_id"], row["name"])
        if "|" not in row["name"]:
            synonyms[row["mesh_id"]].add(row["name"])
    for concept, name in sorted(names.items()):
        parts = (synonyms[concept] - {name}, parents[concept], types[concept])
        joined = ("|".join(sorted(part)) for part in parts)
        yield dict(zip(_COLUMNS, (concept, name, *joined), strict=True))


def _read(path: Path) -> list[TableRow]:
    if not path.exists():
        raise missing_data(path)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


app = CommandGroup("Write the English graph.")


@app.command()
def write(
    out: Annotated[Path, typer.Argument()], data: Annotated[Path | None, "DIR"] = None
) -> None:
    """Write the graph into a folder.

    Args:
        out: Folder of both files.
        data: Folder of real data; default: BIOGRAFT_DATA.
    """
    write_english_graph(data or data_folder(), out)


if __name__ == "__main__":
    run_commands(app)
