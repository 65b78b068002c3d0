"""The part of ``biograft evaluate link`` that fits a calibration to what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from biograft.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from biograft.evaluation import LinkingResult


def check_fit(
    file: Path | None,
    aim: str,
    nil_below: float | None,
    calibration: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Refuse before the long work what could not be done after it."""
    if file is None:
        if aim:
            raise ConfigError("--aim: is about the threshold that --fit-calibration fits")
        return
    if nil_below is not None:
        raise ConfigError("--nil-below: a threshold is fitted by --fit-calibration; leave it out")
    if calibration is not None:
        raise ConfigError("--calibration: --fit-calibration fits another; leave one of them out")
    if file.exists() and not overwrite:
        raise OutputError(f"{file}: exists already; choose another place, or allow it to be "
                          "replaced (--overwrite)")  # fmt: skip


def fit(
    result: LinkingResult, search: str, aim: str | None, file: Path, *, overwrite: bool
) -> dict[str, Any]:
    """Fit a calibration to the answers, write it, and say what it gains."""
    from biograft.evaluation.calibrating import calibrate_result, calibration_gain

    calibration = calibrate_result(result, search, aim=aim)
    before, after = calibration_gain(result)
    calibration.save(file, overwrite=overwrite)
    figures = {
        "file": str(file), "n": calibration.n, "search": search,
        "threshold": calibration.threshold, "ece_before": before, "ece_after": after,
    }  # fmt: skip
    return {"calibration": figures}


def print_fit(fitted: dict[str, Any] | None) -> None:
    """Say what was fitted, if anything was."""
    if fitted is None:
        return
    threshold = fitted["threshold"]
    nil = f"NIL below {threshold:.4f}" if threshold is not None else "no threshold of NIL"
    typer.echo(
        f"calibration error {100 * fitted['ece_before']:.2f} before, "
        f"{100 * fitted['ece_after']:.2f} after (each answer by a fit to other documents); {nil}"
    )
    typer.echo(f"calibration: {fitted['file']}")
