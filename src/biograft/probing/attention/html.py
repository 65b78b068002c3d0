"""Attention as one HTML page: curves, heat maps and tables, whole in themselves.

No script, no network: the page shows the text of whoever made it, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biograft.pages import escaped_line, make_page
from biograft.probing.attention.curves import OTHERS, VARIANTS, Curves, ReplacedSentence
from biograft.probing.attention.inside import InsideEntity
from biograft.probing.attention.summary import AttentionSummary, EncoderSummary
from biograft.probing.attention.svg import STYLE, curves_svg

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
_CALLED = {"entity": "entity", "synonym": "synonym", "random": "random entity"}
_SIGNS = {"entity": "●", "synonym": "■", "random": "▲"}


def curves_page(curves: Sequence[Curves], sentence: ReplacedSentence, measure: str) -> str:
    """Show the three curves of a sentence for each encoder, with their numbers."""
    key = "".join(
        f'<span class="{name}"><i>{_SIGNS[name]}</i> {_CALLED[name]}: '
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
        far = ", ".join(f"{_CALLED[n]} {value:.4f}" for n, value in each.differences.items())
        body += [
            f"<h2>{_head(each)}</h2>\n<p>{escaped_line(measure)}; "
            f"mean absolute difference to the entity: {far}</p>",
            f'<div class="wide">{curves_svg(each, measure)}</div>',
            *_curve_table(each),
        ]
    return _page("Attention around an entity", body)


def insides_page(insides: Sequence[InsideEntity], entity: str, measure: str) -> str:
    """Show the heat maps of an entity, encoders side by side on one scale."""
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
    """Show the figures of many sentences, and those of each."""
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
        told = each.to_json()
        cells = "".join(
            f"<td>{told[name]['mean']:.4f} ± {told[name]['deviation'] or 0:.4f}</td>"
            for name in OTHERS
        )
        nearer = f"<td>{told['n_synonym_nearer']:,} of {n_all:,}</td>"
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
    figures = (
        f"{name}, {escaped_line(each.encoder)}" for each in summary.encoders for name in OTHERS
    )
    return _table(("text", "entity", "synonym", "random entity", *figures), rows)


def _curve_table(curves: Curves) -> Iterator[str]:
    """Give the numbers, a token a row, with a row where the entity stands."""
    top = max(float(values.max()) for values in curves.values.values()) or 1.0
    rows = [
        f"<tr><th scope='row'><bdi>{escaped_line(token)}</bdi></th>"
        + "".join(_cell(float(curves.values[name][k]), top) for name in VARIANTS)
        + "</tr>"
        for k, token in enumerate(curves.tokens)
    ]
    rows.insert(curves.place, '<tr class="here"><td colspan="4">the entity stands here</td></tr>')
    yield _table(("token", *_CALLED.values()), rows)


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
    """Lay rows out; columns are HTML already."""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{chr(10).join(rows)}</tbody></table></div>"
    )


def _head(found: Curves | InsideEntity | EncoderSummary) -> str:
    return f"{escaped_line(found.encoder)}, layer {found.layer}"


def _page(title: str, body: Sequence[str]) -> str:
    return make_page(title, title, _STYLE, body)
