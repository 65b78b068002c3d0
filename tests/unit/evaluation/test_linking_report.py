"""The report: complete, escaped, with embedded figures."""

from __future__ import annotations

import re
from base64 import b64decode

import pytest

from biograft.errors import OutputError
from biograft.evaluation import (
    REPORT,
    EvaluationConfig,
    LinkingReport,
    LinkQuery,
    evaluate_linking,
    find_mistakes,
    similarity_buckets,
    sub_populations,
    to_html,
    to_markdown,
    write_report,
)

PNG = b"\x89PNG\r\n"
EVIL = "<script>alert(1)</script> | `x`\nnew # line"


@pytest.fixture
def report(base, ranker):
    pytest.importorskip("matplotlib")
    from biograft.evaluation import draw_figures

    table = {EVIL: [("D2", 1.0)], "flu": [("D1", 1.0)]}
    queries = [LinkQuery(EVIL, frozenset({"D1"})), LinkQuery("flu", frozenset({"D1"}))]
    result = evaluate_linking(
        ranker(table, probability=0.5), base, queries, "lenient", EvaluationConfig(n_resamples=20)
    )
    buckets = similarity_buckets(result, base)
    return LinkingReport(
        result=result,
        populations=sub_populations(result, base, queries),
        buckets=buckets,
        mistakes=find_mistakes(result, base),
        figures=draw_figures(result, buckets),
        provenance={"gold": EVIL},
    )


def test_figures_are_drawn_where_there_is_data_and_equal_twice(report):
    from biograft.evaluation import draw_figures
    from biograft.evaluation.figures import _png

    empty = _png(lambda axes: None)
    assert empty not in report.figures.values()
    assert set(report.figures) == {"recall", "similarity", "reliability"}
    assert all(image.startswith(PNG) for image in report.figures.values())
    assert draw_figures(report.result, report.buckets) == report.figures


def test_the_page_is_escaped_and_needs_nothing_else(report):
    page = to_html(report)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r'(src|href)="(?!data:)', page)
    images = re.findall(r"data:image/png;base64,([^\"]+)", page)
    assert [b64decode(image)[:6] for image in images] == [PNG] * 3
    assert "Sub-populations" in page
    assert "50.00" in page


def test_markdown_tables_stay_whole(report):
    text = to_markdown(report)
    assert "<script" not in text.replace("\\<script", "")
    tables = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    assert len(tables) == 6
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1


def test_the_folder_holds_all_and_is_not_overwritten_unasked(report, tmp_path):
    folder = tmp_path / "report"
    write_report(report, folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "report.md",
        "report.html",
        "result.json",
        "recall.png",
        "similarity.png",
        "reliability.png",
        "answers.json",
    }
    values = REPORT.read(folder)
    assert (values["format"], values["version"]) == ("biograft-linking-report", 1)
    assert values["result"]["acc@1"] == 50
    assert values["mistakes"] == {"gold concept not found": 1}
    assert {cause for cause, n in values["causes"].items() if n} == {"no name in the store"}
    for file in ("report.md", "report.html"):
        assert "no name in the store" in (folder / file).read_text(encoding="utf-8")
    with pytest.raises(OutputError, match="exists already"):
        write_report(report, folder)
    write_report(report, folder, overwrite=True)
