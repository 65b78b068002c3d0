"""``biograft evaluate assertion``: the assertion status of marked mentions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import Json, print_json

if TYPE_CHECKING:
    from biograft.evaluation import AssertionMistake, AssertionResult


def assertion(
    gold: Annotated[Path, "FILE"],
    rules: Annotated[Path | None, "FILE"] = None,
    mistakes: Annotated[bool, "--mistakes"] = False,
    as_json: Json = False,
) -> None:
    """Evaluate assertion status: negated, uncertain, historical, hypothetical, other people.

    Precision, recall and F1 of each flag in percent. A mention is right if it has exactly the
    flags of the gold standard.

    Args:
        gold: Gold standard: texts as JSON lines.
        rules: Assertion rules, TOML; default: those of biograft.
        mistakes: List the mentions with a wrong flag, too.
    """
    from dataclasses import asdict

    from biograft.clinical import RuleAssertions
    from biograft.evaluation import evaluate_assertions, read_assertions

    model = None if rules is None else RuleAssertions(rules=rules)
    result = evaluate_assertions(read_assertions(gold), model)
    if as_json:
        listed = {"mistakes": [asdict(each) for each in result.mistakes]} if mistakes else {}
        print_json({"gold": str(gold), **result.to_json(), **listed})
        return
    _print(result)
    if mistakes:
        for each in result.mistakes:
            typer.echo(_line(each))


def _print(result: AssertionResult) -> None:
    n_right = result.n_mentions - len(result.mistakes)
    typer.echo(
        f"{result.n_documents:,} documents, {result.n_mentions:,} mentions, "
        f"{n_right:,} right ({100 * result.accuracy:.2f} %)"
    )
    names = ("precision", "recall", "F1", "right", "wrong", "missed")
    typer.echo(f"  {'':14}{''.join(f'{name:>11}' for name in names)}")
    for flag, counts in result.flags.items():
        metrics = (counts.precision, counts.recall, counts.f1)
        cells = "".join(f"{100 * value:>11.2f}" for value in metrics)
        cells += "".join(f"{n:>11,}" for n in (counts.right, counts.wrong, counts.missed))
        typer.echo(f"  {flag:14}{cells}")


def _line(mistake: AssertionMistake) -> str:
    expected, found = (", ".join(flags) or "present" for flags in (mistake.expected, mistake.found))
    because = f" (by {', '.join(map(repr, mistake.triggers))})" if mistake.triggers else ""
    where = f"{mistake.document}, {mistake.start}-{mistake.end}"
    return f"{where}: {mistake.text}: expected {expected}, found {found}{because}"
