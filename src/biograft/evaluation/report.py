"""Report of a linking evaluation: Markdown with figures, a self-contained HTML file, and JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from biograft.artifacts import ArtifactKind, new_folder
from biograft.display import escaped
from biograft.evaluation.analysis import CAUSES, Mistake, Population, count_causes, count_kinds
from biograft.evaluation.comparison import ANSWERS_FILE, save_answers
from biograft.evaluation.linking import LinkingResult
from biograft.metrics.significance import Interval

REPORT = ArtifactKind(
    format="biograft-linking-report",
    version=1,
    called="linking report",
    remedy="evaluate again",
    file="result.json",
)
MAX_MISTAKES = 50
_MAX_EXAMPLES = 4
"""Distinct mentions that illustrate a cause of error."""
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "th,td{border-bottom:1px solid #ddd;padding:.25rem .7rem;text-align:left}"
    "img{max-width:100%}.wide{overflow-x:auto}"
)
_MISTAKE_HEAD = (
    "mention",
    "gold",
    "predicted",
    "by the name",
    "rank of gold",
    "kind",
    "cause",
    "document",
)
_CAUSE_HEAD = ("cause", "errors", "meaning", "such as")
_CAPTIONS = {
    "recall": "Recall and accuracy by number of answers",
    "similarity": "Accuracy by similarity of the mention to a gold name",
    "reliability": "Reliability of the probabilities",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingReport:
    """The content of a report."""

    result: LinkingResult
    """The evaluation to report."""
    populations: Sequence[Population] = ()
    """Metrics of subsets, such as mentions seen in training."""
    buckets: Sequence[Population] = ()
    """Metrics by properties of the mention, such as its length."""
    mistakes: Sequence[Mistake] = ()
    """Wrong answers to show."""
    figures: Mapping[str, bytes] = field(default_factory=dict)
    """Name -> PNG."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Store, gold, index and model of the evaluation."""


class _ReportTable(NamedTuple):
    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def write_report(report: LinkingReport, folder: Path, *, overwrite: bool = False) -> None:
    """Write ``report.md`` with its figures, ``report.html``, ``result.json`` and the answers.

    Args:
        report: The content.
        folder: The folder to write.
        overwrite: Replace an earlier report.

    Raises:
        OutputError: The folder exists.
    """
    content = {
        "provenance": dict(report.provenance),
        "result": report.result.to_json(),
        "populations": [population.to_json() for population in report.populations],
        "similarity": [bucket.to_json() for bucket in report.buckets],
        "mistakes": {str(kind): n for kind, n in count_kinds(report.mistakes).items()},
        "causes": {str(cause): n for cause, n in count_causes(report.mistakes).items()},
    }
    with new_folder(folder, overwrite=overwrite) as work:
        for name, image in report.figures.items():
            (work / f"{name}.png").write_bytes(image)
        (work / "report.md").write_text(to_markdown(report), encoding="utf-8")
        (work / "report.html").write_text(to_html(report), encoding="utf-8")
        save_answers(report.result, work / ANSWERS_FILE)
        REPORT.write(work, content)


def to_markdown(report: LinkingReport) -> str:
    """Return the report as Markdown; figures are separate files.

    Args:
        report: The content.
    """
    lines = [f"# {_title(report)}", ""]
    lines += [f"- {_cell(key)}: `{_cell(value)}`" for key, value in report.provenance.items()]
    for table in _tables(report):
        lines += ["", f"## {table.title}", "", _row(table.head), _row(["---"] * len(table.head))]
        lines += [_row([_cell(cell) for cell in row]) for row in table.rows]
    for name in report.figures:
        lines += ["", f"![{_CAPTIONS.get(name, name)}]({name}.png)"]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    """Escape a text for a Markdown table cell."""
    text = " ".join(str(value).split())
    for character in "\\|`*_<>[]":
        text = text.replace(character, f"\\{character}")
    return text


def to_html(report: LinkingReport) -> str:
    """Return the report as one self-contained HTML file.

    Args:
        report: The content.
    """
    title = escaped(_title(report))
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<style>{_STYLE}</style><h1>{title}</h1><ul>",
        *(
            f"<li>{escaped(str(key))}: <code>{escaped(str(value))}</code></li>"
            for key, value in report.provenance.items()
        ),
        "</ul>",
    ]
    for table in _tables(report):
        parts += [
            f'<h2>{escaped(table.title)}</h2><div class="wide"><table>',
            _html_row(table.head, "th"),
            *(_html_row(row, "td") for row in table.rows),
            "</table></div>",
        ]
    for name, image in report.figures.items():
        source = b64encode(image).decode("ascii")
        caption = escaped(_CAPTIONS.get(name, name))
        parts.append(f'<p><img alt="{caption}" src="data:image/png;base64,{source}"></p>')
    return "\n".join([*parts, "</html>"]) + "\n"


def _html_row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escaped(cell)}</{tag}>" for cell in cells) + "</tr>"


# ---- tables of both formats


def _title(report: LinkingReport) -> str:
    return f"Linking evaluation: {report.result.n:,} queries, {report.result.scorer} scorer"


def _tables(report: LinkingReport) -> Iterator[_ReportTable]:
    result = report.result
    rows = [
        (name, f"{100 * value:.2f}", _interval(result.intervals.get(name)))
        for name, value in result.metrics.items()
    ]
    yield _ReportTable("Metrics", ("metric", "percent", "95 % interval"), rows)
    for title, populations in (
        ("Sub-populations", report.populations),
        ("By similarity to the most similar gold name", report.buckets),
    ):
        if populations:
            head = ("population", "size", "acc@1", "interval", "acc@5")
            yield _ReportTable(title, head, [_population(p) for p in populations])
    if report.mistakes:
        counts = [(str(kind), f"{n:,}") for kind, n in count_kinds(report.mistakes).items()]
        yield _ReportTable("Kinds of error", ("kind", "errors"), counts)
        yield _ReportTable("Causes of error", _CAUSE_HEAD, _causes(report.mistakes))
        listed = [_mistake(mistake) for mistake in report.mistakes[:MAX_MISTAKES]]
        title = f"Errors ({len(listed):,} of {len(report.mistakes):,})"
        yield _ReportTable(title, _MISTAKE_HEAD, listed)


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"


def _population(population: Population) -> tuple[str, ...]:
    if not population.n:
        return population.name, "0", "", "", ""
    first, fifth = (f"{100 * value:.2f}" for value in (population.acc1, population.acc5))
    return population.name, f"{population.n:,}", first, _interval(population.interval), fifth


def _mistake(mistake: Mistake) -> tuple[str, ...]:
    return (
        mistake.mention,
        f"{mistake.gold} {mistake.gold_name}".strip(),
        f"{mistake.predicted} {mistake.predicted_name}".strip(),
        mistake.matched,
        str(mistake.rank or ""),
        str(mistake.kind),
        str(mistake.cause),
        mistake.document,
    )


def _causes(mistakes: Sequence[Mistake]) -> list[tuple[str, ...]]:
    """Return the causes that occur, with what they mean and the first mentions of each."""
    rows: list[tuple[str, ...]] = []
    for cause, n in count_causes(mistakes).items():
        found = [f"{m.mention} ({m.gold_name or m.gold})" for m in mistakes if m.cause == cause]
        examples = "; ".join(list(dict.fromkeys(found))[:_MAX_EXAMPLES])
        if n:
            rows.append((str(cause), f"{n:,}", CAUSES[cause], examples))
    return rows
