"""Curves as SVG that stands inside a page and takes its colours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biograft.pages import escaped_line
from biograft.probing.attention.curves import VARIANTS, Curves

_STEP, _HEIGHT, _LEFT, _TOP, _BELOW = 24, 220, 52, 10, 96
"""Pixels: between two tokens, of the axis, and around it."""
_N_TICKS = 4
_MARKS = {
    "entity": '<circle cx="{x}" cy="{y}" r="3"/>',
    "synonym": '<rect x="{x}" y="{y}" width="6" height="6" transform="translate(-3 -3)"/>',
    "random": '<path d="M{x} {y}m0 -4l4 7h-8z"/>',
}
STYLE = """
:root{--entity:#222;--synonym:#1f5a85;--random:#c0561f}
@media (prefers-color-scheme:dark){:root{--entity:#eee;--synonym:#7db8e0;--random:#f0a070}}
.entity{--c:var(--entity)}.synonym{--c:var(--synonym)}.random{--c:var(--random)}
svg{max-width:none}svg text{fill:currentColor;font-size:12px}
.axis{stroke:currentColor;opacity:.35;fill:none}.gap{stroke-dasharray:2 3}
svg .curve{fill:var(--c)}svg .curve polyline{fill:none;stroke:var(--c);stroke-width:1.6}
.random polyline{stroke-dasharray:6 3}.key i{color:var(--c);font-style:normal}
"""


def curves_svg(curves: Curves, label: str) -> str:
    """Draw the three curves of a sentence over the tokens of its context."""
    n_tokens = len(curves.tokens)
    top = max(float(values.max()) for values in curves.values.values()) or 1.0
    width = _LEFT + _STEP * max(n_tokens, 6) + 20
    parts = [
        f'<svg width="{width}" height="{_TOP + _HEIGHT + _BELOW}" role="img" '
        f'aria-label="{escaped_line(label)}">',
        *_scale(top, width),
        *_tokens(curves),
        *(_curve(curves, name, top) for name in VARIANTS),
        "</svg>",
    ]
    return "".join(parts)


def _scale(top: float, width: int) -> Iterator[str]:
    for value in np.linspace(0, top, _N_TICKS + 1).tolist():
        y = _y(value, top)
        yield f'<path class="axis" d="M{_LEFT} {y}H{width - 10}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.3g}</text>'


def _tokens(curves: Curves) -> Iterator[str]:
    gap = _x(curves.place) - _STEP / 2
    yield f'<path class="axis gap" d="M{gap} {_TOP}V{_TOP + _HEIGHT}"/>'
    for place, token in enumerate(curves.tokens):
        x, y = _x(place) + 4, _TOP + _HEIGHT + 14
        yield (
            f'<text x="{x}" y="{y}" text-anchor="end" transform="rotate(-60 {x} {y})">'
            f"{escaped_line(token)}</text>"
        )


def _curve(curves: Curves, name: str, top: float) -> str:
    points = [(_x(k), _y(v, top)) for k, v in enumerate(curves.values[name].tolist())]
    line = " ".join(f"{x},{y}" for x, y in points)
    marks = "".join(_MARKS[name].format(x=x, y=y) for x, y in points)
    return f'<g class="curve {name}"><polyline points="{line}"/>{marks}</g>'


def _x(place: int) -> float:
    return _LEFT + _STEP * (place + 0.5)


def _y(value: float, top: float) -> float:
    return round(_TOP + _HEIGHT * (1 - value / top), 2)
