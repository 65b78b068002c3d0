"""Attention figures as PNG: curves of a sentence, and heat maps of an entity."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.figure import Figure

from biograft_lab.probing.attention.curves import VARIANTS, Curves, InsideEntity, ReplacedSentence

_CHINESE = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC"),
    *("Hiragino Sans GB", "Droid Sans Fallback", "Arial Unicode MS"),
)
"""Fonts for what matplotlib's own lacks; without one, it draws boxes and says so."""
_STYLES = {
    "entity": {"color": "#222222", "marker": "o"},
    "synonym": {"color": "#1f5a85", "marker": "s"},
    "random": {"color": "#c0561f", "marker": "^", "linestyle": "--"},
}
_WIDEST = 30.0
"""Inches."""


def draw_curves(curves: Sequence[Curves], sentence: ReplacedSentence, measure: str) -> bytes:
    """Draw the three curves of a sentence, one encoder below the other; return the picture.

    Args:
        curves: The curves of each encoder.
        sentence: The sentence with its names.
        measure: Label of the values.
    """

    def draw(figure: Any) -> None:
        panels = figure.subplots(len(curves), 1, squeeze=False).flat
        for axes, each in zip(panels, curves, strict=True):
            positions = np.arange(len(each.tokens))
            for name in VARIANTS:
                label = f"{name}: {sentence.name(name)}"
                axes.plot(positions, each.values[name], label=label, ms=3, **_STYLES[name])
            axes.axvline(each.position - 0.5, color="grey", linestyle=":")
            axes.set_xticks(positions, each.tokens, rotation=60, ha="right")
            axes.set(ylabel=measure, ylim=(0, None))
            axes.set_title(f"{each.encoder}, layer {each.layer}")
            axes.legend(frameon=False)

    width = 3.0 + 0.26 * max(len(each.tokens) for each in curves)
    return _picture(draw, (min(_WIDEST, max(width, 6.5)), 3.6 * len(curves)))


def draw_insides(insides: Sequence[InsideEntity]) -> bytes:
    """Draw the heat maps of an entity, encoders side by side on one scale; return the picture."""
    top = max(float(each.weights.max()) for each in insides)
    n_tokens = max(len(each.tokens) for each in insides)

    def draw(figure: Any) -> None:
        panels = list(figure.subplots(1, len(insides), squeeze=False).flat)
        for axes, each in zip(panels, insides, strict=True):
            image = axes.imshow(each.weights, cmap="Blues", vmin=0, vmax=top)
            axes.set_xticks(range(len(each.tokens)), each.tokens, rotation=60, ha="right")
            axes.set_yticks(range(len(each.tokens)), each.tokens)
            axes.set(xlabel="attended to", ylabel="attends")
            axes.set_title(f"{each.encoder}, layer {each.layer}")
        figure.colorbar(image, ax=panels, shrink=0.8)

    side = min(_WIDEST / len(insides), max(3.4, 1.6 + 0.3 * n_tokens))
    return _picture(draw, (side * len(insides) + 1, side))


def _picture(draw: Callable[[Any], None], size: tuple[float, float]) -> bytes:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = ["DejaVu Sans", *(name for name in _CHINESE if name in installed)]
    # dollar signs are no formula
    settings: dict[Any, Any] = {"font.family": fonts, "font.size": 8, "text.parse_math": False}
    with mpl.rc_context(settings):
        figure = Figure(figsize=size, dpi=120, layout="constrained")
        draw(figure)
        buffer = io.BytesIO()
        # no date and no version, so that equal results give equal files
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
