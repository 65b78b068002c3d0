"""What ``biograft probe attention`` prints for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import typer

_VARIANTS = ("entity", "synonym", "random")
_COLUMN = 10


def print_curves(told: Mapping[str, Any]) -> None:
    """Print the three curves of each encoder, a token a line."""
    for variant in _VARIANTS:
        typer.echo(f"{variant:8} {told[variant]}")
    for model in told["models"]:
        typer.echo(f"{_described(model, told)}, {told['direction']} the entity")
        width = max(map(_width, model["tokens"]))
        typer.echo(f"  {'':{width}}" + "".join(f"{name:>{_COLUMN}}" for name in _VARIANTS))
        for place, token in enumerate(model["tokens"]):
            if place == model["entity_place"]:
                typer.echo("  ...")
            values = [model["curves"][name][place] for name in _VARIANTS]
            typer.echo(f"  {_padded(token, width)}{_columns(values)}")
        far = model["differences"]
        typer.echo(
            "  mean absolute difference to the entity: "
            f"synonym {far['synonym']:.4f}, random {far['random']:.4f}"
        )


def print_insides(told: Mapping[str, Any]) -> None:
    """Print the attention among the tokens of an entity, a row a token that attends."""
    typer.echo(f"entity {told['entity']}")
    for model in told["models"]:
        typer.echo(_described(model, told))
        width = max(map(_width, model["tokens"]))
        heads = "".join(_padded(token, _COLUMN, right=True) for token in model["tokens"])
        typer.echo(f"  {'':{width}}{heads}")
        for token, row in zip(model["tokens"], model["weights"], strict=True):
            typer.echo(f"  {_padded(token, width)}{_columns(row)}")
        typer.echo(f"  a token to the others, in the mean: {model['to_others']:.4f}")


def print_summary(told: Mapping[str, Any]) -> None:
    """Print how far the curves of synonyms and of other entities lie from those of entities."""
    typer.echo(f"{told['n_sentences']:,} sentences, attention {told['direction']} the entity")
    for reason, n in told["left_out"].items():
        typer.echo(f"  left out {n:,}: {reason}")
    for model in told["models"]:
        typer.echo(_described(model, told))
        for name in ("synonym", "random"):
            mean, deviation = model[name]["mean"], model[name]["deviation"]
            spread = "" if deviation is None else f"  deviation {deviation:.4f}"
            typer.echo(f"  {name:8} mean absolute difference {mean:.4f}{spread}")
        typer.echo(
            f"  the synonym is nearer in {model['n_synonym_nearer']:,} of {told['n_sentences']:,}"
        )


def _described(model: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    heads = f"all {model['n_heads']} heads" if told["head"] == "all" else f"head {told['head']}"
    return f"{model['encoder']}  layer {model['layer']} of {model['n_layers']}, {heads}"


def _columns(values: Sequence[float]) -> str:
    return "".join(f"{value:>{_COLUMN}.4f}" for value in values)


def _padded(text: str, width: int, *, right: bool = False) -> str:
    """Fill up with blanks; Chinese signs are two columns wide."""
    blanks = " " * max(width - _width(text), 1 if right else 0)
    return f"{blanks}{text}" if right else f"{text}{blanks}"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
