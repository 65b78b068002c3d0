"""``biograft recipe``: the recipes there are, and what one of them says."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from biograft.cli.fields import CommandGroup
from biograft.cli.options import Changes, Json, print_json
from biograft.progress import align

app = CommandGroup("List and show training recipes.")


@app.command("list")
def list_recipes(
    kind: Annotated[str, "KIND"] = "",
    as_json: Json = False,
) -> None:
    """List the recipes that come with biograft: name, kind, base and description.

    Args:
        kind: Only recipes of a kind: pretrain, linker, task, graph.
    """
    from biograft.config import check_choice, load_toml
    from biograft.recipe import RECIPE_KINDS, read_recipe, shipped_recipes

    if kind:
        check_choice("--kind", kind, RECIPE_KINDS)
    rows = []
    for name, path in shipped_recipes(kind or None).items():
        values = read_recipe(path)
        base = load_toml(path).get("base")
        about = " ".join(values.get("about", "").split())
        rows.append({"name": name, "kind": values["kind"], "about": about, "base": base})
    if as_json:
        for row in rows:
            print_json(row)
        return
    table = [(row["name"], row["kind"], row["base"] or "-", row["about"]) for row in rows]
    typer.echo("\n".join(align(table)))


@app.command()
def show(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE")],
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Print a recipe as TOML, merged with its base and checked.

    Args:
        recipe: A recipe of biograft, or a .toml file.
    """
    from biograft.config import to_toml
    from biograft.recipe import Recipe

    name, values = Recipe.resolve(recipe, changes or ())
    Recipe.from_values(name, values)
    typer.echo(json.dumps(values, ensure_ascii=False, default=str) if as_json else to_toml(values))
