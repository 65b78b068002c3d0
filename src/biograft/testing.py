"""Conformance suites for parts of your own: what every part of a kind promises.

    def test_my_format(tmp_path):
        check_source(FORMAT, "genes.txt", tmp_path)

Each raises ``AssertionError`` with the promise that does not hold. The parts of biograft pass the
same suites.
"""

from __future__ import annotations

import contextlib
import gzip
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from biograft.clinical import RuleAssertions
from biograft.errors import BiograftError
from biograft.kb import KnowledgeBase
from biograft.kb.sources import Block, Format, ReadLog, SourceConfig
from biograft.linking import (
    Candidate,
    DocumentState,
    LinkedDocument,
    LinkedMention,
    Linker,
    MentionState,
    Output,
    Step,
)
from biograft.linking.outputs.output import new_run
from biograft.metrics import Judgements, Measure
from biograft.text.documents import Document, Mention

_TEXTS = (
    "No fever.  Patient has type 2 diabetes (T2D), asthma\nand heart attack.",
    "",
    'Fever \x00 e\u0301 \'tis | a,"b"\t;',
    "患者否认发热，2型糖尿病10年。",
    "fever fever fever",
)
"""Texts with what parts stumble over: blanks, nothing, control characters, Chinese, repetition."""


def check_source(source: Format, file: str | Path, folder: str | Path) -> None:
    """Check a source format on a small valid file.

    It gives the same records from the file compressed, with a byte-order mark and with Windows'
    line ends, and a second time; a file that ends in the middle is rejected or counted, never a
    traceback.

    Args:
        source: The format.
        file: A file of text that gives at least one record.
        folder: Folder for variants of the file, such as pytest's ``tmp_path``.
    """
    data, folder = Path(file).read_bytes(), Path(folder)

    def read(content: bytes, variant: str) -> list[Any]:
        packed = ".gz" if variant == "packed" else ""
        path = folder / variant / f"{Path(file).name}{packed}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        found = source.read(SourceConfig(path=path), ReadLog(path))
        return [each.frame.rows() if isinstance(each, Block) else each for each in found]

    records = read(data, "plain")
    assert records, f"{file}: gives no record"
    variants = {
        "plain": data,
        "packed": gzip.compress(data),
        "mark": b"\xef\xbb\xbf" + data,
        "lines": data.replace(b"\n", b"\r\n"),
    }
    for name, content in variants.items():
        assert read(content, name) == records, f"other records from the variant {name!r}"
    for end in range(0, len(data), max(1, len(data) // 20)):
        with contextlib.suppress(BiograftError):
            read(data[:end], "cut")


def check_output(output: Output, kb: KnowledgeBase, folder: str | Path) -> None:
    """Check an output on findings, NIL, documents without mentions and odd characters.

    Args:
        output: The output.
        kb: A knowledge base with at least one concept.
        folder: Folder to write to.
    """
    documents, folder = list(_linked(kb)), Path(folder)
    if output.chunks is not None:
        chunks = list(output.chunks(iter(documents), new_run(kb, {})))
        assert all(isinstance(chunk, str) for chunk in chunks), "a chunk is no text"
        again = "".join(output.chunks(iter(documents), new_run(kb, {})))
        assert "".join(chunks) == again, "the same documents are written otherwise"
        list(output.chunks(iter(()), new_run(kb, {})))
        return
    assert output.write is not None, "an output has chunks or write"
    assert output.needs in ("file", "folder"), "needs: expected file or folder"
    output.write(iter(documents), new_run(kb, {}), folder / "findings", False)
    assert (folder / "findings").exists(), "nothing is written"
    try:
        output.write(iter(documents), new_run(kb, {}), folder / "findings", False)
    except BiograftError:
        pass
    else:
        raise AssertionError("an existing output is replaced without overwrite")

    def failing() -> Iterator[LinkedDocument]:
        yield documents[0]
        raise OSError("the disk")

    try:
        output.write(failing(), new_run(kb, {}), folder / "failed", False)
    except OSError:
        assert not (folder / "failed").exists(), "a failure leaves a half-written output"


def _linked(kb: KnowledgeBase) -> Iterator[LinkedDocument]:
    """Yield documents with an answer, NIL, and without mentions."""
    candidate = Candidate(kb.id_at(0), kb.name_at(0), kb.name_at(0), 1.0)
    for number, text in enumerate(_TEXTS):
        spans = [(0, 2), (3, 8)] if len(text) > 8 else []
        said = RuleAssertions().assert_status(text, spans)
        mentions = [
            LinkedMention(start, end, text[start:end], text[start:end], assertion=status)
            for (start, end), status in zip(spans, said, strict=True)
        ]
        if mentions:
            first = replace(mentions[0], candidates=(candidate,), concept=candidate.concept)
            mentions[0] = first
        yield LinkedDocument(Document(f"d{number}", text), tuple(mentions))


def check_step(step: Step, kb: KnowledgeBase) -> None:
    """Check a step of a linker: it works on any batch, and on each document alone as in a batch.

    Offsets stay as they are, and what is taken from the mentions is dropped with a reason.

    Args:
        step: The step.
        kb: A knowledge base with at least one concept.
    """
    assert step.name, "a step has a name"
    candidate = Candidate(kb.id_at(0), kb.name_at(0), kb.name_at(0), 1.0)

    def states() -> list[DocumentState]:
        return [
            DocumentState(
                Document(str(n), text),
                mentions=[
                    MentionState(Mention(0, 2, text[:2]), "name", text[:2], candidates=(candidate,))
                    for _ in range(len(text) > 2)
                ],
            )
            for n, text in enumerate(_TEXTS)
        ]

    batch, alone = states(), states()
    before = [[each.mention for each in state.mentions] for state in batch]
    step(batch)
    step([])
    for state in alone:
        step([state])
    for state, single, mentions in zip(batch, alone, before, strict=True):
        assert state.result() == single.result(), "a document alone has other mentions"
        kept = [each.mention for each in state.mentions]
        gone = [mention for mention, reason in state.dropped if reason]
        assert all(m in [*kept, *gone] for m in mentions), "a mention is gone without a reason"


def check_linker(linker: Linker, texts: Sequence[str] = _TEXTS) -> None:
    """Check a linker: the same findings for any batch and order, in text order, as the text is.

    Args:
        linker: The linker.
        texts: Texts to link.
    """
    whole = [linked.to_json() for linked in linker.pipe(texts)]
    alone = [linked.to_json() for linked in linker.pipe(texts, batch_size=1)]
    assert alone == whole, "batches of other sizes give other findings"
    turned = [linked.to_json() for linked in linker.pipe(list(reversed(texts)))][::-1]
    assert turned == whole, "another order of the texts gives other findings"
    for text, linked in zip(texts, whole, strict=True):
        starts = [mention["start"] for mention in linked["mentions"]]
        assert starts == sorted(starts), "mentions are not in text order"
        for each in linked["mentions"]:
            assert text[each["start"] : each["end"]] == each["text"], "an offset is wrong"
    given = Document("", "fever", (Mention(0, 5, "fever"),))
    assert len(linker(given).mentions) == 1, "a given mention is lost, or is several"


def check_metric(measure: Measure, n: int = 40) -> None:
    """Check a metric of linking: a finite number that does not depend on the order of the queries.

    Args:
        measure: The metric.
        n: Number of random queries.
    """
    rng = np.random.default_rng(0)
    right = np.maximum.accumulate(rng.random((n, 5)) > 0.7, axis=1).astype(float)
    nil = rng.random(n) > 0.8
    judged = Judgements(right, right, nil, rng.random(n) > 0.8, rng.random(n), ("d",) * n)
    turned = judged.take(rng.permutation(n))
    assert measure.of_each or measure.of_all, "a metric has of_each or of_all"
    for k in (1, 5) if measure.has_cutoff else (0,):
        for compute in filter(None, (measure.of_each, measure.of_all)):
            first, second = (np.mean(np.asarray(compute(each, k))) for each in (judged, turned))
            assert math.isfinite(first), "the value is not finite"
            assert abs(first - second) < 1e-9, "the order of the queries matters"
