"""Page: the text with its findings marked, and the candidates of each; no script, no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from biograft.clinical.rules import IMPLIED
from biograft.display import escaped, marked, stretches
from biograft.errors import visible
from biograft.kb import Concept
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention
from biograft.linking.outputs.output import Documents, Output, OutputRun, without_dissimilar

_HEAD = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'\">\n"
)


def make_page(about: str, heading: str, style: str, body: Iterable[str]) -> str:
    """Build a page of parts that are HTML already; its title names biograft.

    Args:
        about: Title.
        heading: HTML of the heading.
        style: Style sheet.
        body: HTML of the body, by line.
    """
    return "\n".join([*page_parts(about, heading, style, body), ""])


def page_parts(about: str, heading: str, style: str, body: Iterable[str]) -> Iterator[str]:
    """Give the lines of a page one after the other, for one that is too long to be kept.

    Args:
        about: Title.
        heading: HTML of the heading.
        style: Style sheet.
        body: HTML of the body, by line.
    """
    yield f"{_HEAD}<title>biograft: {about}</title>\n<style>{style}</style>\n</head>"
    yield f"<body>\n<h1>{heading}</h1>"
    yield from body
    yield "</body>\n</html>"


def escaped_line(text: str) -> str:
    """Escape a text and write it on one line."""
    return escaped(" ".join(text.split()))


_STYLE = """
:root{color-scheme:light dark;--line:#8884;--mark:88%;--edge:38%}
@media (prefers-color-scheme:dark){:root{--mark:26%;--edge:70%}}
body{font:16px/1.65 system-ui,sans-serif;max-width:70rem;margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2.5rem}
.text{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext}
a.m{color:inherit;text-decoration:none;border-radius:.2em;padding:0 .12em;
background:hsl(var(--hue) 70% var(--mark));border-bottom:2px solid hsl(var(--hue) 60% var(--edge));
print-color-adjust:exact;-webkit-print-color-adjust:exact}
a.m.nil{background:none;border-bottom:2px dashed}
a.m.absent{text-decoration:line-through}a.m.possible{border-bottom-style:dotted}
a.m+sup{font-size:.7em;opacity:.8;margin-inline-start:.15em}
a:focus-visible{outline:3px solid Highlight}
section.f{border-top:1px solid var(--line);padding:.4rem 0;break-inside:avoid}
section.f:target{background:#fd03;outline:2px solid #fa08}
h3{font-size:1rem;margin:.3rem 0}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:start;vertical-align:top;padding:.15rem .6rem .15rem 0}
td.n{white-space:nowrap;font-variant-numeric:tabular-nums}
.d,.e{opacity:.8;font-size:.85rem}.legend span{margin-inline-end:1rem}
footer.legend{position:sticky;bottom:0;padding:.4rem 0;background:Canvas;
border-top:1px solid var(--line)}
.wide{overflow-x:auto}
@media print{body{max-width:none;font-size:11pt}a.back{display:none}}
"""
_LABELS = {
    "historical": "history",
    "hypothetical": "if",
    "family": "family",
    "other_person": "other person",
    "active": "active",
    "resolved": "resolved",
    "recurrent": "recurrent",
    "unlikely": "unlikely",
    "planned": "planned",
    "donor": "donor",
}
_COLUMNS = ("concept", "name", "score", "found by")
_GOLDEN_ANGLE = 137.508
"""Degrees between the hues of consecutive types: far apart, however many there are."""


class _Page:
    """Cached concepts, and the colour of each semantic type."""

    def __init__(self, run: OutputRun) -> None:
        self.run, self.kb = run, run.kb
        self.hues: dict[str, int] = run.state.setdefault("hues", {})
        self._concepts: dict[str, Concept | None] = {}

    def concept(self, identifier: str) -> Concept | None:
        """Look up a concept once."""
        if identifier not in self._concepts:
            row = self.kb.find_row(identifier)
            self._concepts[identifier] = None if row is None else self.kb.concept_at(row)
        return self._concepts[identifier]

    def ids(self, identifier: str) -> str:
        """Return the id of a concept that is reported, or all of them."""
        chosen = self.run.ids.chosen(identifier)
        others = self.run.ids.all(identifier) if self.run.config.all_ids else ()
        return ", ".join(dict.fromkeys((chosen, *others)))

    def hue(self, identifier: str) -> int:
        """Return the hue of a concept's type; types get hues in order of appearance."""
        concept = self.concept(identifier)
        kind = concept.types[0] if concept is not None and concept.types else None
        label = (kind.label or kind.code) if kind else "untyped"
        return self.hues.setdefault(label, round(len(self.hues) * _GOLDEN_ANGLE + 200) % 360)


def page_chunks(documents: Documents, run: OutputRun) -> Iterator[str]:
    """Give a page, document by document; the legend, which knows all types, comes last.

    Args:
        documents: Linked documents.
        run: Settings of the output.
    """
    for part in page_parts("linked text", "Linked text", _STYLE, _body(documents, run)):
        yield f"{part}\n"


def _body(documents: Documents, run: OutputRun) -> Iterator[str]:
    page = _Page(run)
    for number, linked in enumerate(documents, 1):
        yield from _document(linked, number, page)
    legend = "".join(
        f'<span><a class="m" style="--hue:{hue}">{escaped(label)}</a></span>'
        for label, hue in page.hues.items()
    )
    yield f'<footer class="legend">{legend}<span><a class="m nil">NIL</a></span></footer>'


def _document(linked: LinkedDocument, number: int, page: _Page) -> Iterator[str]:
    """Yield the text with its highlighted mentions, then the candidates of each."""
    sections: dict[tuple[tuple[str, str, str | None, str], ...], str] = {}
    details: list[str] = []
    marks: list[tuple[int, int, str, str]] = []
    shown = linked.mentions
    if not page.run.config.all_candidates:
        shown = tuple(map(without_dissimilar, shown))
    for n, (start, end, mentions) in enumerate(stretches(shown), 1):
        key = tuple(
            (mention.text, mention.form, mention.concept, _said(mention)) for mention in mentions
        )
        if key not in sections:
            sections[key] = f"d{number}f{len(sections) + 1}"
            details.append(_section(mentions, sections[key], f"d{number}m{n}", page))
        tag = (
            f'<a {_look(mentions, page)} id="d{number}m{n}" href="#{sections[key]}" '
            f'title="{escaped(_title(mentions, page))}">'
        )
        marks.append((start, end, tag, f"</a>{_label(mentions)}"))
    yield f"<h2>{escaped(linked.document.id or f'Text {number}')}</h2>"
    yield f'<div class="text" dir="auto">{marked(linked.document.text, marks)}</div>'
    yield from details


def _look(mentions: Sequence[LinkedMention], page: _Page) -> str:
    """Return the HTML attributes of a mention, coloured by the type of its first concept."""
    first = next((mention.concept for mention in mentions if mention.concept), None)
    classes = ["m", *(["nil"] if first is None else [])]
    classes += [
        f
        for f, is_set in (("absent", mentions[0].negated), ("possible", mentions[0].uncertain))
        if is_set
    ]
    colour = "" if first is None else f' style="--hue:{page.hue(first)}"'
    return f'class="{" ".join(classes)}"{colour}'


def _label(mentions: Sequence[LinkedMention]) -> str:
    """Return the status of a mention as a label, where its looks do not say it."""
    assertion = mentions[0].assertion
    flags = assertion.flags if assertion else ()
    said = set(flags) - {IMPLIED.get(flag) for flag in flags}
    words = [label for flag, label in _LABELS.items() if flag in said]
    return f"<sup>{', '.join(words)}</sup>" if words else ""


def _title(mentions: Sequence[LinkedMention], page: _Page) -> str:
    links = (
        f"{page.ids(mention.concept)} {mention.candidates[0].concept_name}"
        if mention.concept
        else "NIL"
        for mention in mentions
    )
    return "; ".join([*links, *filter(None, [_said(mentions[0])])])


def _said(mention: LinkedMention) -> str:
    """Describe what the text says about a mention, and by which words."""
    if mention.assertion is None or not mention.assertion.flags:
        return ""
    flags = " and ".join(flag.replace("_", " ") for flag in mention.assertion.flags)
    words = ", ".join(dict.fromkeys(visible(t.text) for t in mention.assertion.triggers))
    section = f"section {mention.section}" if mention.section and not words else ""
    return f"{flags} ({words or section})"


def _section(mentions: Sequence[LinkedMention], anchor: str, back: str, page: _Page) -> str:
    """List the candidates of each mention of a stretch."""
    parts = [f'<section class="f" id="{anchor}">']
    for mention in mentions:
        form = f" → <bdi>{escaped(mention.form)}</bdi>" if mention.form != mention.text else ""
        answer = escaped(page.ids(mention.concept) if mention.concept else "NIL")
        said = f', <span class="d">{escaped(_said(mention))}</span>' if _said(mention) else ""
        parts.append(
            f"<h3><bdi>{escaped(mention.text)}</bdi>{form}: {answer}{said} "
            f'<a class="back" href="#{back}" aria-label="back to the text">↑</a></h3>'
        )
        rows = "".join(_row(candidate, page) for candidate in mention.candidates)
        if rows:
            head = "".join(f'<th scope="col">{column}</th>' for column in _COLUMNS)
            parts.append(
                f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
                f"<tbody>{rows}</tbody></table></div>"
            )
    return "\n".join([*parts, "</section>"])


def _row(candidate: Candidate, page: _Page) -> str:
    concept = page.concept(candidate.concept)
    definition = concept.definitions[0].text if concept and concept.definitions else ""
    score = f"{candidate.score:.3f}"
    if candidate.probability is not None:
        score += f"<br>p {candidate.probability:.2f}"
    evidence = "<br>".join(
        f"{escaped(item.generator)} #{item.rank} ({item.score:.3f}) <bdi>{escaped(item.name)}</bdi>"
        for item in candidate.evidence
    )
    return (
        f'<tr><td class="n">{escaped(page.ids(candidate.concept))}</td>'
        f'<td><bdi>{escaped(candidate.concept_name)}</bdi><div class="d" dir="auto">'
        f'{escaped(definition)}</div></td><td class="n">{score}</td>'
        f'<td class="e">{evidence}</td></tr>'
    )


OUTPUT = Output(chunks=page_chunks, endings=(".html", ".htm"), resumable=True, holds_text=True)
