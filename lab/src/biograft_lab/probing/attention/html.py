"""Attention pages as HTML: curves as inline SVG, heat maps and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from biograft.linking.outputs.page import escaped_line, make_page
from biograft_lab.probing.attention.curves import (
    OTHERS,
    VARIANTS,
    AttentionSummary,
    Curves,
    EncoderSummary,
    InsideEntity,
    ReplacedSentence,
)

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
    elements = [
        f'<svg width="{width}" height="{_TOP + _HEIGHT + _BELOW}" role="img" '
        f'aria-label="{escaped_line(label)}">',
        *_scale(top, width),
        *_tokens(curves),
        *(_curve(curves, name, top) for name in VARIANTS),
        "</svg>",
    ]
    return "".join(elements)


def _scale(top: float, width: int) -> Iterator[str]:
    for value in np.linspace(0, top, _N_TICKS + 1).tolist():
        y = _y(value, top)
        yield f'<path class="axis" d="M{_LEFT} {y}H{width - 10}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.3g}</text>'


def _tokens(curves: Curves) -> Iterator[str]:
    gap = _x(curves.position) - _STEP / 2
    yield f'<path class="axis gap" d="M{gap} {_TOP}V{_TOP + _HEIGHT}"/>'
    for position, token in enumerate(curves.tokens):
        x, y = _x(position) + 4, _TOP + _HEIGHT + 14
        yield (
            f'<text x="{x}" y="{y}" text-anchor="end" transform="rotate(-60 {x} {y})">'
            f"{escaped_line(token)}</text>"
        )


def _curve(curves: Curves, name: str, top: float) -> str:
    points = [(_x(k), _y(v, top)) for k, v in enumerate(curves.values[name].tolist())]
    line = " ".join(f"{x},{y}" for x, y in points)
    marks = "".join(_MARKS[name].format(x=x, y=y) for x, y in points)
    return f'<g class="curve {name}"><polyline points="{line}"/>{marks}</g>'


def _x(position: int) -> float:
    return _LEFT + _STEP * (position + 0.5)


def _y(value: float, top: float) -> float:
    return round(_TOP + _HEIGHT * (1 - value / top), 2)


_STYLE = (
    """
:root{color-scheme:light dark;--line:#8886}
body{font:16px/1.6 system-ui,sans-serif;max-width:90rem;margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}
.text{overflow-wrap:anywhere}.wide{overflow-x:auto}
.side{display:flex;flex-wrap:wrap;gap:2rem}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.15rem .5rem;text-align:end;border:1px solid var(--line);font-weight:normal}
thead th{vertical-align:bottom}td.w{print-color-adjust:exact;-webkit-print-color-adjust:exact}
td.w{background:rgb(31 90 133/var(--a))}td.w.dark{color:#fff}
tr.here td{text-align:center;font-style:italic}td.t{text-align:start}
.key span{margin-inline-end:1.2rem}
"""
    + STYLE
)
_LABELS = {"entity": "entity", "synonym": "synonym", "random": "random entity"}
_SYMBOLS = {"entity": "●", "synonym": "■", "random": "▲"}


def curves_page(curves: Sequence[Curves], sentence: ReplacedSentence, measure: str) -> str:
    """Return a page with the curves of a sentence for each encoder, and their values."""
    key = "".join(
        f'<span class="{name}"><i>{_SYMBOLS[name]}</i> {_LABELS[name]}: '
        f"<bdi>{escaped_line(sentence.name(name))}</bdi></span>"
        for name in VARIANTS
    )
    before, behind = sentence.text[: sentence.start], sentence.text[sentence.end :]
    body = [
        f'<p class="text" dir="auto">{escaped_line(before)}'
        f"<mark>{escaped_line(sentence.entity)}</mark>"
        f'{escaped_line(behind)}</p>\n<p class="key">{key}</p>'
    ]
    for each in curves:
        differences = ", ".join(
            f"{_LABELS[n]} {value:.4f}" for n, value in each.differences.items()
        )
        body += [
            f"<h2>{_head(each)}</h2>\n<p>{escaped_line(measure)}; "
            f"mean absolute difference to the entity: {differences}</p>",
            f'<div class="wide">{curves_svg(each, measure)}</div>',
            *_curve_table(each),
        ]
    return _page("Attention around an entity", body)


def insides_page(insides: Sequence[InsideEntity], entity: str, measure: str) -> str:
    """Return a page with the heat maps of an entity, encoders side by side on one scale."""
    top = max(float(each.weights.max()) for each in insides) or 1.0
    body = [
        f'<p class="text" dir="auto"><mark>{escaped_line(entity)}</mark></p>',
        f"<p>{escaped_line(measure)}; a row's token attends to a column's</p>",
        '<div class="side">',
        *(part for each in insides for part in _heat(each, top)),
        "</div>",
    ]
    return _page("Attention inside an entity", body)


def summary_page(summary: AttentionSummary, measure: str) -> str:
    """Return a page with the summary of many sentences, and the values of each."""
    n_all = len(summary.sentences)
    body = [
        f"<p>{n_all:,} sentences; {escaped_line(measure)}; "
        "mean absolute difference to the entity</p>"
    ]
    body += [
        f"<p>left out: {n:,}, {escaped_line(why)}</p>" for why, n in summary.left_out.most_common()
    ]
    rows = []
    for each in summary.encoders:
        values = each.to_json()
        cells = "".join(
            f"<td>{values[name]['mean']:.4f} ± {values[name]['deviation'] or 0:.4f}</td>"
            for name in OTHERS
        )
        nearer = f"<td>{values['n_synonym_nearer']:,} of {n_all:,}</td>"
        rows.append(f'<tr><td class="t">{_head(each)}</td>{cells}{nearer}</tr>')
    columns = ("encoder", "synonym", "random entity", "synonym nearer")
    body += [_table(columns, rows), "<h2>Sentences</h2>", _sentences(summary)]
    return _page("Attention around entities", body)


def _sentences(summary: AttentionSummary) -> str:
    top = max(float(v.max()) for e in summary.encoders for v in e.differences.values()) or 1.0
    rows = []
    for k, sentence in enumerate(summary.sentences):
        names = (sentence.id, sentence.entity, sentence.synonym, sentence.random)
        cells = "".join(f'<td class="t"><bdi>{escaped_line(name)}</bdi></td>' for name in names)
        cells += "".join(
            _cell(float(each.differences[name][k]), top)
            for each in summary.encoders
            for name in OTHERS
        )
        rows.append(f"<tr>{cells}</tr>")
    headers = (
        f"{name}, {escaped_line(each.encoder)}" for each in summary.encoders for name in OTHERS
    )
    return _table(("text", "entity", "synonym", "random entity", *headers), rows)


def _curve_table(curves: Curves) -> Iterator[str]:
    """Yield a table with a token a row, and a row that marks the entity."""
    top = max(float(values.max()) for values in curves.values.values()) or 1.0
    rows = [
        f"<tr><th scope='row'><bdi>{escaped_line(token)}</bdi></th>"
        + "".join(_cell(float(curves.values[name][k]), top) for name in VARIANTS)
        + "</tr>"
        for k, token in enumerate(curves.tokens)
    ]
    rows.insert(curves.position, '<tr class="here"><td colspan="4">the entity is here</td></tr>')
    yield _table(("token", *_LABELS.values()), rows)


def _heat(inside: InsideEntity, top: float) -> Iterator[str]:
    rows = [
        f"<tr><th scope='row'><bdi>{escaped_line(token)}</bdi></th>"
        + "".join(_cell(value, top) for value in inside.weights[k].tolist())
        + "</tr>"
        for k, token in enumerate(inside.tokens)
    ]
    yield f"<div>\n<h2>{_head(inside)}</h2>"
    yield f"<p>a token to the entity's other tokens, in the mean: {inside.to_others:.4f}</p>"
    yield _table(("", *map(escaped_line, inside.tokens)), rows)
    yield "</div>"


def _cell(value: float, top: float) -> str:
    depth = value / top
    dark = " dark" if depth > 0.55 else ""
    return f'<td class="w{dark}" style="--a:{depth:.3f}">{value:.4f}</td>'


def _table(columns: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table; columns and rows are HTML."""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{chr(10).join(rows)}</tbody></table></div>"
    )


def _head(result: Curves | InsideEntity | EncoderSummary) -> str:
    return f"{escaped_line(result.encoder)}, layer {result.layer}"


def _page(title: str, body: Sequence[str]) -> str:
    return make_page(title, title, _STYLE, body)
