"""Output of linked documents: an aligned table for the terminal, and an HTML page."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from biograft.artifacts import new_file
from biograft.html import escaped, make_page
from biograft.kb import Concept, KnowledgeBase
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention

HEAD = ("position", "mention", "concept", "name", "score", "found by")
_MAX_WIDTH = {"mention": 40, "name": 44, "found by": 60}


def width(text: str) -> int:
    """Count the terminal columns of a text: two for wide characters, none for combining marks.

    >>> width("flu"), width("流感")
    (3, 4)
    """
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, max_width: int) -> str:
    """Truncate a text to a number of columns, ending in three dots."""
    if width(text) <= max_width:
        return text
    characters, left = [], max_width - 3
    for char in text:
        left -= _char_width(char)
        if left < 0:
            break
        characters.append(char)
    return "".join(characters) + "..."


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows in columns; the last column is not padded."""
    if not rows:
        return []
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def table(linked: LinkedDocument) -> list[str]:
    """Return the lines of a document: one mention per line, with its span and answer."""
    rows = [
        row
        for mention in linked.mentions
        for row in _rows(mention, f"{mention.start}-{mention.end}", 1)
    ]
    return align([HEAD, *rows]) if rows else ["no mention"]


def candidates_table(documents: Iterable[LinkedDocument], n_candidates: int) -> list[str]:
    """Return the lines of documents of one mention each, with several candidates."""
    rows = [
        row
        for linked in documents
        for mention in linked.mentions
        for row in _rows(mention, linked.document.id, n_candidates)
    ]
    return align([HEAD, *rows]) if rows else ["no mention"]


def _rows(mention: LinkedMention, label: str, n_candidates: int) -> Iterable[tuple[str, ...]]:
    text = _one_line(mention.text)
    if mention.form != mention.text:
        text += f" ({_one_line(mention.form)})"
    status = f" [{mention.status}]" if mention.status not in (None, "present") else ""
    text = cut(text, _MAX_WIDTH["mention"]) + status
    if mention.concept is None:
        best = mention.candidates[0].concept_name if mention.candidates else ""
        name = f"nearest: {_one_line(best)}" if best else "nothing found"
        score = _score(mention.candidates[0]) if best else ""
        yield label, text, "NIL", cut(name, _MAX_WIDTH["name"]), score, ""
        return
    for index, candidate in enumerate(mention.candidates[:n_candidates]):
        yield (
            "" if index else label,
            "" if index else text,
            candidate.concept,
            cut(_one_line(candidate.concept_name), _MAX_WIDTH["name"]),
            _score(candidate),
            cut(_evidence(candidate), _MAX_WIDTH["found by"]),
        )


def _score(candidate: Candidate) -> str:
    if candidate.probability is None:
        return f"{candidate.score:.3f}"
    return f"{candidate.score:.3f} (p {candidate.probability:.2f})"


def _evidence(candidate: Candidate) -> str:
    ranks = ", ".join(f"{item.generator} #{item.rank}" for item in candidate.evidence)
    name = _one_line(candidate.name)
    found = ranks if name == candidate.concept_name else f"{ranks}: {name}" if ranks else name
    return (
        f"{found}; as well {', '.join(map(_one_line, candidate.tied))}" if candidate.tied else found
    )


def _one_line(text: str) -> str:
    """Replace line breaks and control characters by spaces."""
    return "".join(" " if unicodedata.category(char) in ("Cc", "Cs") else char for char in text)


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
.wide{overflow-x:auto}
@media print{body{max-width:none;font-size:11pt}a.back{display:none}}
"""
_LABELS = {
    "historical": "history",
    "hypothetical": "if",
    "family": "family",
    "other_person": "other person",
}
_COLUMNS = ("concept", "name", "score", "found by")
_GOLDEN_ANGLE = 137.508
"""Degrees between the hues of consecutive types: far apart, however many there are."""


class _Page:
    """Cached concepts, and the colour of each semantic type."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.hues: dict[str, int] = {}
        self._concepts: dict[str, Concept | None] = {}

    def concept(self, identifier: str) -> Concept | None:
        """Look up a concept once."""
        if identifier not in self._concepts:
            row = self.kb.find_row(identifier)
            self._concepts[identifier] = None if row is None else self.kb.concept_at(row)
        return self._concepts[identifier]

    def hue(self, identifier: str) -> int:
        """Return the hue of a concept's type; types get hues in order of appearance."""
        concept = self.concept(identifier)
        kind = concept.types[0] if concept is not None and concept.types else None
        label = (kind.label or kind.code) if kind else "untyped"
        return self.hues.setdefault(label, round(len(self.hues) * _GOLDEN_ANGLE + 200) % 360)


def write_html(
    documents: Iterable[LinkedDocument],
    kb: KnowledgeBase,
    path: str | Path,
    *,
    overwrite: bool = False,
) -> None:
    """Write linked documents as one HTML page."""
    with new_file(Path(path), overwrite=overwrite) as file:
        file.write(to_html(documents, kb).encode())


def to_html(documents: Iterable[LinkedDocument], kb: KnowledgeBase) -> str:
    """Render linked documents as one HTML page."""
    page = _Page(kb)
    body = [part for n, linked in enumerate(documents, 1) for part in _document(linked, n, page)]
    legend = "".join(
        f'<span><a class="m" style="--hue:{hue}">{escaped(label)}</a></span>'
        for label, hue in page.hues.items()
    )
    key = f'<p class="legend">{legend}<span><a class="m nil">NIL</a></span></p>'
    return make_page("linked text", "Linked text", _STYLE, [key, *body])


def _document(linked: LinkedDocument, number: int, page: _Page) -> Iterator[str]:
    """Yield the text with its highlighted mentions, then the candidates of each."""
    text, done = linked.document.text, 0
    sections: dict[tuple[tuple[str, str, str | None, str], ...], str] = {}
    details: list[str] = []
    marked: list[str] = []
    for n, (start, end, mentions) in enumerate(_stretches(linked.mentions), 1):
        key = tuple(
            (mention.text, mention.form, mention.concept, _said(mention)) for mention in mentions
        )
        if key not in sections:
            sections[key] = f"d{number}f{len(sections) + 1}"
            details.append(_section(mentions, sections[key], f"d{number}m{n}", page))
        marked.append(escaped(text[done:start]))
        marked.append(
            f'<a {_look(mentions, page)} id="d{number}m{n}" href="#{sections[key]}" '
            f'title="{escaped(_title(mentions))}">{escaped(text[start:end])}</a>{_label(mentions)}'
        )
        done = end
    marked.append(escaped(text[done:]))
    yield f"<h2>{escaped(linked.document.id or f'Text {number}')}</h2>"
    yield f'<div class="text" dir="auto">{"".join(marked)}</div>'
    yield from details


def _stretches(
    mentions: Sequence[LinkedMention],
) -> Iterator[tuple[int, int, list[LinkedMention]]]:
    """Group overlapping mentions, and the parts of a composite, into one stretch of text."""
    stretch: list[LinkedMention] = []
    for mention in sorted(mentions, key=lambda m: (m.start, -m.end)):
        if stretch and mention.start >= max(m.end for m in stretch):
            yield stretch[0].start, max(m.end for m in stretch), stretch
            stretch = []
        stretch.append(mention)
    if stretch:
        yield stretch[0].start, max(m.end for m in stretch), stretch


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
    words = [_LABELS[flag] for flag in (assertion.flags if assertion else ()) if flag in _LABELS]
    return f"<sup>{', '.join(words)}</sup>" if words else ""


def _title(mentions: Sequence[LinkedMention]) -> str:
    links = (
        f"{mention.concept} {mention.candidates[0].concept_name}" if mention.concept else "NIL"
        for mention in mentions
    )
    return "; ".join([*links, *filter(None, [_said(mentions[0])])])


def _said(mention: LinkedMention) -> str:
    """Describe what the text says about a mention, and by which words."""
    if mention.assertion is None or not mention.assertion.flags:
        return ""
    flags = " and ".join(flag.replace("_", " ") for flag in mention.assertion.flags)
    words = ", ".join(dict.fromkeys(_one_line(t.text) for t in mention.assertion.triggers))
    section = f"section {mention.section}" if mention.section and not words else ""
    return f"{flags} ({words or section})"


def _section(mentions: Sequence[LinkedMention], anchor: str, back: str, page: _Page) -> str:
    """List the candidates of each mention of a stretch."""
    parts = [f'<section class="f" id="{anchor}">']
    for mention in mentions:
        form = f" → <bdi>{escaped(mention.form)}</bdi>" if mention.form != mention.text else ""
        answer = escaped(mention.concept or "NIL")
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
        f'<tr><td class="n">{escaped(candidate.concept)}</td>'
        f'<td><bdi>{escaped(candidate.concept_name)}</bdi><div class="d" dir="auto">'
        f'{escaped(definition)}</div></td><td class="n">{score}</td>'
        f'<td class="e">{evidence}</td></tr>'
    )
