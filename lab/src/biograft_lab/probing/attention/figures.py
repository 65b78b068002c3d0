"""Attention figures as PNG: curves, heat maps and scatter plots, with fonts for Chinese text."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font

from biograft_lab.probing.attention.curves import (
    VARIANTS,
    AttentionSummary,
    Curves,
    EncoderSummary,
    InsideEntity,
    ReplacedSentence,
)

OWN = "DejaVu Sans"
"""Comes with matplotlib."""
UNKNOWN = "\ufffd"
"""Replaces characters that cannot be drawn."""
_PREFERRED_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC"),
    *("Hiragino Sans GB", "Droid Sans Fallback", "Arial Unicode MS"),
)
_HOLLOW = "Last Resort"
"""Has only placeholder glyphs."""


def choose_fonts(texts: Iterable[str]) -> list[str] | None:
    """Return fonts that cover all characters of the texts, or None if no installed font does."""
    missing = {
        character for text in texts for character in text if not character.isspace()
    } - _characters(OWN)
    if not missing:
        return [OWN]
    with quiet_fonts():
        return next(([OWN, name] for name in _installed() if missing <= _characters(name)), None)


def drawable(text: str) -> str:
    """Replace the characters that matplotlib's default font lacks."""
    return "".join(
        character if character.isspace() or character in _characters(OWN) else UNKNOWN
        for character in text
    )


@contextmanager
def quiet_fonts() -> Iterator[None]:
    """Silence matplotlib's warnings about font weights."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _installed() -> list[str]:
    """Return the names of installed fonts, well-known Chinese fonts first."""
    names = {font.name for font in font_manager.fontManager.ttflist if font.style == "normal"}
    known = [name for name in _PREFERRED_FONTS if name in names]
    return known + sorted(name for name in names.difference(known) if not name.startswith(_HOLLOW))


@cache
def _characters(name: str) -> frozenset[str]:
    """Return the characters of a font."""
    try:
        file = font_manager.findfont(font_manager.FontProperties(family=name))
        return frozenset(map(chr, FT2Font(file).get_charmap()))
    except (OSError, RuntimeError, ValueError):  # a font that FreeType cannot draw
        return frozenset()


_STYLES = {
    "entity": {"color": "#222222", "marker": "o"},
    "synonym": {"color": "#1f5a85", "marker": "s"},
    "random": {"color": "#c0561f", "marker": "^", "linestyle": "--"},
}
_LABELS = {"entity": "entity", "synonym": "synonym", "random": "random entity"}
_WIDEST = 60.0
"""Maximum width in inches."""
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG, and whether it shows texts or, without a font, numbers."""

    png: bytes
    has_texts: bool


def draw_curves(curves: Sequence[Curves], sentence: ReplacedSentence, measure: str) -> Picture:
    """Draw the three curves of a sentence, one encoder below the other."""
    names = {each: _line(sentence.name(each)) for each in VARIANTS}
    fonts = choose_fonts([*names.values(), *_texts(curves)])

    def draw(figure: Any) -> None:
        for axes, each in zip(_axes(figure, len(curves), 1), curves, strict=True):
            positions = np.arange(len(each.tokens))
            for name in VARIANTS:
                label = f"{_LABELS[name]}: {names[name]}" if fonts else _LABELS[name]
                style = {"markersize": 3, "linewidth": 1.2, **_STYLES[name]}
                axes.plot(positions, each.values[name], label=label, **style)
            axes.axvline(each.position - 0.5, color="grey", linestyle=":", linewidth=1)
            axes.set_xticks(positions, _labels(each.tokens, fonts), rotation=60, ha="right")
            axes.set(ylabel=measure, ylim=(0, None), xlim=(-0.7, len(positions) - 0.3))
            differences = ", ".join(
                f"{_LABELS[n]} {value:.4f}" for n, value in each.differences.items()
            )
            axes.set_title(f"{_title(each)}\nmean difference to the entity: {differences}")
            axes.legend(frameon=False)

    width = min(_WIDEST, 3.0 + 0.26 * max(len(each.tokens) for each in curves))
    return _picture(draw, (max(width, 6.5), 3.6 * len(curves)), fonts)


def draw_insides(insides: Sequence[InsideEntity]) -> Picture:
    """Draw the heat maps of an entity, encoders side by side on one scale."""
    fonts = choose_fonts(_texts(insides))
    top = max(float(each.weights.max()) for each in insides)
    n_tokens = max(len(each.tokens) for each in insides)

    def draw(figure: Any) -> None:
        panels, image = _axes(figure, 1, len(insides)), None
        for k, (axes, each) in enumerate(zip(panels, insides, strict=True)):
            image = axes.imshow(each.weights, cmap="Blues", vmin=0, vmax=top)
            positions, labels = range(len(each.tokens)), _labels(each.tokens, fonts)
            axes.set_xticks(positions, labels, rotation=60, ha="right")
            axes.set_yticks(positions, labels)
            axes.set(xlabel="attended to", ylabel="attends" if k == 0 else "")
            axes.set_title(_title(each))
        figure.colorbar(image, ax=panels, shrink=0.8)

    side = min(_WIDEST / len(insides), max(3.4, 1.6 + 0.3 * n_tokens))
    return _picture(draw, (side * len(insides) + 1, side), fonts)


def draw_summary(summary: AttentionSummary) -> Picture:
    """Draw a scatter plot of the synonym's and the random entity's difference by sentence."""
    results = [each.differences for each in summary.encoders]
    top = (
        1.05 * max((float(v.max()) for each in results for v in each.values()), default=0.0) or 1.0
    )

    def draw(figure: Any) -> None:
        panels = _axes(figure, 1, len(results))
        for axes, each in zip(panels, summary.encoders, strict=True):
            synonym, other = each.differences["synonym"], each.differences["random"]
            axes.plot([0, top], [0, top], ":", color="grey")
            axes.scatter(synonym, other, s=10, alpha=0.6, color=_STYLES["synonym"]["color"])
            axes.plot(synonym.mean(), other.mean(), "+", color=_STYLES["random"]["color"], ms=14)
            axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
            axes.set(xlabel="difference of the synonym", ylabel="difference of the random entity")
            means = f"means {synonym.mean():.4f}, {other.mean():.4f}"
            axes.set_title(f"{_title(each)}\n{means}, n={len(synonym):,}")

    return _picture(draw, (4.4 * len(results), 4.4), [OWN])


def _texts(results: Sequence[Curves | InsideEntity]) -> list[str]:
    return [_line(token) for each in results for token in each.tokens]


def _axes(figure: Any, rows: int, columns: int) -> list[Any]:
    return list(figure.subplots(rows, columns, squeeze=False).flat)


def _labels(tokens: Sequence[str], fonts: list[str] | None) -> list[str]:
    return [_line(token) if fonts else str(n) for n, token in enumerate(tokens, 1)]


def _title(results: Curves | InsideEntity | EncoderSummary) -> str:
    name = drawable(_line(results.encoder))
    shown = name if len(name) <= _LONGEST_NAME else f"...{name[3 - _LONGEST_NAME :]}"
    return f"{shown}, layer {results.layer}"


def _line(text: str) -> str:
    """Write a text on one line, without control characters."""
    return "".join(
        character if character.isprintable() else UNKNOWN for character in " ".join(text.split())
    )


def _picture(draw: Any, size: tuple[float, float], fonts: list[str] | None) -> Picture:
    settings: dict[Any, Any] = {
        "font.family": fonts or [OWN],
        "font.size": 8,
        "axes.titlesize": 8,
        "text.parse_math": False,  # dollar signs are no formula
    }
    with quiet_fonts(), mpl.rc_context(settings):
        figure = Figure(figsize=size, dpi=120, layout="constrained")
        draw(figure)
        buffer = io.BytesIO()
        # no date and no version, so that equal results give equal files
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return Picture(buffer.getvalue(), has_texts=fonts is not None)
