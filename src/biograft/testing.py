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
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from biograft.clinical import RuleAssertions
from biograft.errors import BiograftError
from biograft.kb import KnowledgeBase
from biograft.kb.sources import Block, Format, ReadLog, SourceConfig
from biograft.kb.verify import FileVerifier, VerifyConfig, files_of
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
from biograft.text.formats import DocumentFormat, FormatAdapter
from biograft.text.tasks import TaskConfig, TaskFormat

_TEXTS = (
    "No fever.  Patient has type 2 diabetes (T2D), asthma\nand heart attack.",
    "",
    'Fever \x00 e\u0301 \'tis | a,"b"\t;',
    "患者否认发热，2型糖尿病10年。",
    "fever fever fever",
)
"""Texts with what parts stumble over: blanks, nothing, control characters, Chinese, repetition."""


def check_ids(files: Sequence[str | Path], kb: str | Path, **settings: Any) -> None:
    """Check the ids in files, and their labels, as ``biograft verify`` does.

    Args:
        files: Files, or folders with some.
        kb: The knowledge base.
        settings: Fields of :class:`biograft.kb.verify.VerifyConfig`, such as ``vocabularies``.

    Raises:
        AssertionError: An id or a label is wrong; the message has a line for each.
    """
    verifier = FileVerifier(KnowledgeBase.open(kb), VerifyConfig(**settings))
    found = [
        str(finding)
        for path in files_of(list(map(Path, files)))
        for finding in verifier.verify(path)
        if finding.level == "error"
    ]
    assert not found, "\n".join(found)


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

    def read(path: Path) -> list[Any]:
        found = source.read(SourceConfig(path=path), ReadLog(path))
        return [each.frame.rows() if isinstance(each, Block) else each for each in found]

    _check_reading(read, Path(file), Path(folder))


def _check_reading(read: Callable[[Path], list[Any]], file: Path, folder: Path) -> None:
    """Check that variants of a file give the same, and that a file cut short is no traceback."""
    data = file.read_bytes()

    def read_variant(content: bytes, variant: str) -> list[Any]:
        path = folder / variant / f"{file.name}{'.gz' if variant == 'packed' else ''}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return read(path)

    records = read_variant(data, "plain")
    assert records, f"{file}: gives no record"
    variants = {
        "plain": data,
        "packed": gzip.compress(data),
        "mark": b"\xef\xbb\xbf" + data,
        "lines": data.replace(b"\n", b"\r\n"),
    }
    for name, content in variants.items():
        assert read_variant(content, name) == records, f"other records from the variant {name!r}"
    for end in range(0, len(data), max(1, len(data) // 20)):
        with contextlib.suppress(BiograftError):
            read_variant(data[:end], "cut")


def check_task_format(form: TaskFormat, file: str | Path, folder: str | Path) -> None:
    """Check a format of task files on a small valid file, as ``check_source`` does a source.

    Args:
        form: The format.
        file: A file of text that gives at least one example.
        folder: Folder for variants of the file, such as pytest's ``tmp_path``.
    """

    def read(path: Path) -> list[Any]:
        return list(form.read(TaskConfig(path=path), ReadLog(path)))

    _check_reading(read, Path(file), Path(folder))


def check_document_format(form: DocumentFormat, folder: str | Path) -> None:
    """Check a document format that writes: what is written reads back as it says it can hold.

    Args:
        form: The format.
        folder: Folder to write to.
    """
    assert form.write is not None, "the format writes nothing"
    folder = Path(folder)
    documents = [
        Document(f"d{number}", text, tuple(_mentions(text))) for number, text in enumerate(_TEXTS)
    ]
    adapter = FormatAdapter(form)
    adapted = [adapter.adapt(document) for document in documents]
    form.write(iter(adapted), folder / "written", False)
    again = list(form.read(folder / "written", ReadLog(folder / "written")))
    assert sorted(again, key=str) == sorted(adapted, key=str), "other documents are read back"
    for document in again:
        for each in document.mentions:
            found = " ".join(document.text[start:end] for start, end in each.spans)
            assert found == each.text, "an offset is wrong"
    try:
        form.write(iter(adapted), folder / "written", False)
    except BiograftError:
        pass
    else:
        raise AssertionError("an existing file is replaced without overwrite")


def _mentions(text: str) -> Iterator[Mention]:
    """Yield the words of a text as mentions."""
    for word in re.finditer(r"[A-Za-z\u4e00-\u9fff]{2,}", text):
        yield Mention(*word.span(), word[0], ("C1",), "Disease")


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


def check_objective(config: Any) -> None:
    """Check an objective of running text on a batch of a toy model.

    Its loss is finite, as are the gradients; it is proportional to the weight, and the same for a
    batch that holds each example twice, if it samples nothing. An example is prepared alike each
    time.

    Args:
        config: The configuration of the objective.
    """
    import torch  # the other suites run without it

    from biograft.training.objectives import (
        EntityVisibility,
        TensorBatch,
        TextStates,
        collate,
    )

    setting = _toy_setting()
    steps = [config.build(setting), EntityVisibility("mixed", setting.graph.neighbours)]
    steps.sort(key=lambda step: step.order)

    def prepare() -> list[Any]:
        examples = _toy_examples()
        for step in steps:
            examples = [step.prepare(each, np.random.default_rng(0)) for each in examples]
        return examples

    prepared, again = prepare(), prepare()
    first, batch = collate(prepared, 0), TensorBatch.of(collate(again, 0))
    assert np.array_equal(first.tokens, batch.tokens.numpy()), "an example is prepared otherwise"
    assert [len(each.mentions) for each in prepared] == [2, 2], "a mention is gone"

    def loss_of(config: Any, times: int, seed: int = 0) -> tuple[float, Any]:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return compute(config, times)

    def compute(config: Any, times: int) -> tuple[float, Any]:
        made, tables = config.build(setting), torch.Generator().manual_seed(0)
        repeated = TensorBatch.of(collate(prepared * times, 0))
        state = torch.randn(*batch.tokens.shape, 8, generator=tables)
        queries = torch.randn(len(batch.mentions), 4, generator=tables).repeat(times, 1)
        final = state.repeat(times, 1, 1).requires_grad_()
        words, entities = torch.randn(50, 8, generator=tables), torch.randn(20, 4, generator=tables)
        states = TextStates(
            final,
            lambda some: some @ words.T,
            embeddings=words,
            detection=final[..., :3],
            queries=queries.requires_grad_(),
            table=entities,
            read_mentions=lambda read, mentions: read[mentions[:, 0], mentions[:, 1], :4],
            encode=lambda tokens, mask: words[tokens],
        )
        total = torch.stack([term.loss(states, repeated)[0] for term in made.terms.values()]).sum()
        torch.autograd.backward([total + 0 * final.sum()])
        return total.item(), final.grad

    loss, gradient = loss_of(config, 1)
    assert math.isfinite(loss), "the loss is not finite"
    assert bool(gradient.isfinite().all()), "a gradient is not finite"
    weighted = loss_of(replace(config, weight=2 * config.weight), 1)[0]
    assert math.isclose(weighted, 2 * loss, rel_tol=1e-4), "the loss is not weighted"
    if loss_of(config, 1, seed=1)[0] == loss:  # it samples nothing
        assert math.isclose(loss_of(config, 2)[0], loss, rel_tol=1e-4), "the loss is no mean"


def _toy_setting() -> Any:
    import torch

    from biograft.training.objectives import EntityGraph, Setting

    rng, rows = np.random.default_rng(0), np.arange(20)
    graph = EntityGraph(
        neighbours=np.stack([(rows + 1) % 20, (rows + 2) % 20], axis=1),
        relations=np.zeros((20, 2), np.int64),
        signs=np.ones((20, 2), np.int64),
        types=rows % 3,
        counts=np.ones(20, np.int64),
        relation_vectors=rng.normal(size=(1, 4)).astype(np.float32),
        projections=rng.normal(size=(1, 4, 4)).astype(np.float32),
    )
    return Setting(
        mask=4,
        n_tokens=50,
        special=(0, 1, 2, 3, 4),
        width=8,
        graph=graph,
        entity_counts=np.ones(20, np.int64),
        embeddings=torch.from_numpy(rng.normal(size=(50, 8)).astype(np.float32)),
        first=2,
        separator=3,
    )


def _toy_examples() -> list[Any]:
    """Two sequences with a short and a long mention, and all labels that streams give."""
    from biograft.training.objectives import (
        CONSISTENT,
        FOLLOWS,
        HEAD_OFFSET,
        IGNORED,
        SEGMENT_ENDS,
        TextExample,
    )

    made = []
    for row in range(2):
        ends = np.full(12, IGNORED)
        ends[4:9] = [0, 1, 0, 0, 1]
        labels = np.full(12, IGNORED)
        labels[1] = 7
        made.append(
            TextExample(
                tokens=np.array([2, *range(10 + row, 20 + row), 3]),
                segments=(np.arange(12) > 6).astype(np.int64),
                words=np.array([-1, *range(10), -1]),
                mentions=np.array([(1, 2, 5), (4, 8, 9)]),
                token_labels={"masked_tokens": labels, SEGMENT_ENDS: ends},
                mention_labels={
                    HEAD_OFFSET: np.array([IGNORED, 2]),
                    CONSISTENT: np.array([IGNORED, row]),
                },
                labels={FOLLOWS: row},
            )
        )
    return made
