"""CBLUE, the Chinese Biomedical Language Understanding Evaluation: submissions and metrics.

``cblue.toml`` declares the tasks. Each has one of ten layouts, which says what the answers of a
record are and how predictions are written into it; what belongs to a layout stands in one row of
``_LAYOUTS``. A file with gold answers and a submission are read in the same way and compared by the
metric of the task:

>>> CBLUE["CHIP-CDN"].file, CBLUE["CHIP-CDN"].metric
('CHIP-CDN_test.json', 'f1')
>>> score_submission("CHIP-CDN", "CHIP-CDN_dev.json", "CHIP-CDN_test.json")  # doctest: +SKIP
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from biograft.artifacts import new_file
from biograft.config import Config, from_mapping
from biograft.errors import ConfigError, FormatError, nearest
from biograft.kb.names import one_line, term_key
from biograft.kb.sources.json_files import JsonRow, read_objects
from biograft.kb.sources.log import ReadLog
from biograft.linking import Linker
from biograft.mapping import map_terms
from biograft.metrics.precision_recall import Counts, label_report
from biograft.metrics.rouge import rouge_scores
from biograft.text.documents import Document
from biograft.text.formats import DOCUMENT_FORMATS, read_documents
from biograft.text.formats.cblue import (
    ATTRIBUTES,
    BAR,
    CORE,
    REPORT,
    VALUE,
    read_dialogues,
    tag_spans,
)
from biograft.text.formats.conll import Scheme, encode
from biograft.text.formats.format import MalformedError
from biograft.text.tasks import TaskConfig, read_examples
from biograft.text.tasks.cblue import findings_of

JOINED = "##"
GLOBAL = "global"
"""Key of the symptoms of a whole dialogue."""
NOTHING = "暂无"
"""Written where a report has nothing for a section."""
Answers = Iterable[tuple[Any, Any]]
"""A key and its answer: a label, a set of tuples, or the sections of reports."""


@dataclass(frozen=True, kw_only=True)
class CblueTask(Config):
    """A task of CBLUE; ``cblue.toml`` says what the fields mean."""

    name: str
    about: str
    layout: str
    format: str
    recipe: str
    metric: str
    labels: tuple[str, ...] = ()
    json_lines: bool = False

    @property
    def file(self) -> str:
        """The name that a submission must have."""
        return f"{self.name}_test.json{'l' * self.json_lines}"


CBLUE = {
    name: from_mapping(CblueTask, {"name": name, **values}, f"{name}.")
    for name, values in tomllib.loads(
        Path(__file__).with_name("cblue.toml").read_text("utf-8")
    ).items()
}
"""The tasks by name."""


def find_task(name: str) -> CblueTask:
    """Return a task by its name."""
    if name not in CBLUE:
        raise ConfigError(f"no task of CBLUE is called {name!r}; {nearest(name, CBLUE)}")
    return CBLUE[name]


class _Layout(NamedTuple):
    """The answers of a record, the place of a label in one, and the writing of predictions."""

    answers: Callable[[str, Any], Answers]
    label: int | None
    fill: Callable[[dict[str, Any], Iterator[Any]], Any]
    gold: str = ""
    """Key of the gold answer of a turn (dialogues only)."""


def _entities(document: Document) -> list[dict[str, Any]]:
    return [
        {"start_idx": m.start, "end_idx": m.end - 1, "type": m.type, "entity": m.text}
        for m in document.mentions
    ]


def _triples(document: Document) -> list[dict[str, Any]]:
    by_id = {mention.id: mention for mention in document.mentions}
    triples = []
    for relation in document.relations:
        subject, other = (by_id[name] for _, name in relation.arguments)
        about = {"subject": subject.text, "subject_type": subject.type}
        of_object = {"object": {VALUE: other.text}, "object_type": {VALUE: other.type}}
        triples.append({"predicate": relation.type, **about, **of_object})
    return triples


def _events(document: Document) -> list[dict[str, Any]]:
    events: dict[str, dict[str, Any]] = {}
    for mention in document.mentions:
        kind, _, tendency = mention.type.partition(BAR)
        if kind == CORE:
            events[mention.id] = {CORE: mention.text, "tendency": tendency}
            events[mention.id] |= {key: [] for key in ATTRIBUTES}
    names = {mention.id: mention.text for mention in document.mentions}
    for relation in document.relations:
        (_, core), (_, value) = relation.arguments
        if core in events and relation.type in ATTRIBUTES:
            events[core][relation.type].append(names[value])
    return list(events.values())


def _fill_findings(record: dict[str, Any], predictions: Iterator[Any]) -> dict[str, Any]:
    for _, finding in findings_of(record):
        finding["attr"] = next(predictions).label
    return record


def _tags(document: Document) -> str:
    spans = [(m.start, m.end, m.type) for m in document.mentions]
    return " ".join(encode(len(document.text), spans, Scheme.IOB2))


def _strongest(labels: Iterable[str]) -> dict[str, str]:
    """Return the status of each symptom: present (1) counts before absent (0), this before 2."""
    found: dict[str, str] = {}
    order = "".join(CBLUE["IMCS-V2-SR"].labels)
    for symptom, _, status in (label.rpartition(BAR) for label in labels):
        found[symptom] = min(found.get(symptom, status), status, key=order.find)
    return found


def _fill_symptoms(record: dict[str, Any], predictions: Iterator[Any]) -> dict[str, Any]:
    labels = {turn["sentence_id"]: next(predictions).labels for turn in record["dialogue"]}
    together = _strongest(label for each in labels.values() for label in each)
    return {**{name: _strongest(each) for name, each in labels.items()}, GLOBAL: together}


def _fill_sections(record: dict[str, Any], predictions: Iterator[Any]) -> dict[str, str]:
    turns = [record.get(REPORT, record.get("self_report", ""))]
    turns += [turn["sentence"] for turn in record["dialogue"]]
    chosen = [(text, next(predictions).labels) for text in turns]
    sections = CBLUE["IMCS-V2-MRG"].labels
    return {s: "，".join(t for t, labels in chosen if s in labels) or NOTHING for s in sections}


def _in_turns(
    of_prediction: Callable[[Any], Any],
) -> Callable[[dict[str, Any], Iterator[Any]], Any]:
    return lambda record, predictions: {
        turn["sentence_id"]: of_prediction(next(predictions)) for turn in record["dialogue"]
    }


def _under(key: str, of_prediction: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda record, predictions: {**record, key: of_prediction(next(predictions))}


def _each_turn(answer: Callable[[Any], Any]) -> Callable[[str, Any], Answers]:
    return lambda name, record: [((name, turn), answer(said)) for turn, said in record.items()]


_LAYOUTS = {
    "labels": _Layout(
        lambda _, r: [(r["id"], r["label"])], None, _under("label", lambda p: p.label)
    ),
    "entities": _Layout(
        lambda _, r: [
            (r["text"], {(e["start_idx"], e["end_idx"], e["type"]) for e in r["entities"]})
        ],
        2,
        _under("entities", _entities),
    ),
    "triples": _Layout(
        lambda _, r: [
            (r["text"], {(s["subject"], s["predicate"], s["object"][VALUE]) for s in r["spo_list"]})
        ],
        1,
        _under("spo_list", _triples),
    ),
    "events": _Layout(
        lambda _, r: [
            (
                r["id"],
                {
                    (e[CORE], e["tendency"], *(tuple(sorted(e[key])) for key in ATTRIBUTES))
                    for e in r["event"]
                },
            )
        ],
        1,
        _under("event", _events),
    ),
    "terms": _Layout(
        lambda _, r: [(r["text"], {(name,) for name in r["normalized_result"].split(JOINED)})],
        None,
        _under("normalized_result", JOINED.join),
    ),
    "findings": _Layout(
        lambda _, r: [
            ((r["dialog_id"], number, *finding["range"]), finding["attr"])
            for number, finding in findings_of(r)
        ],
        None,
        _fill_findings,
    ),
    "acts": _Layout(_each_turn(str), None, _in_turns(lambda p: p.label), "dialogue_act"),
    "tags": _Layout(
        _each_turn(lambda tags: {*tag_spans(tags.split())}), 2, _in_turns(_tags), "BIO_label"
    ),
    "symptoms": _Layout(
        _each_turn(lambda found: {*found.items()}), 1, _fill_symptoms, "local_implicit_info"
    ),
    "sections": _Layout(lambda name, r: [(name, r)], None, _fill_sections, "report"),
}


def _refuse_rejected(log: ReadLog) -> None:
    """Refuse a file of which a record cannot be read: a submission needs an answer for each."""
    for reason, (example, *_) in log.rejected.examples.items():
        raise FormatError(reason, path=log.path, line=example.line, text=example.text)


def _read(task: CblueTask, path: Path) -> list[JsonRow]:
    """Read the records of a file, all or none."""
    log = ReadLog(path)
    read = read_dialogues if _LAYOUTS[task.layout].gold else read_objects
    rows = list(read(path, log))
    _refuse_rejected(log)
    return rows


def read_answers(task: CblueTask, path: Path, *, check: bool = True) -> dict[Any, Any]:
    """Read the answers of a submission, or of a file with gold answers, by their keys.

    Args:
        task: The task.
        path: The file.
        check: Refuse labels that the official check refuses.
    """
    return _answers(task, _read(task, path), path, check=check)


def _answers(
    task: CblueTask, rows: Sequence[JsonRow], path: Path, *, check: bool
) -> dict[Any, Any]:
    """Return the answers of records by key; the number tells records with one key apart."""
    layout, times = _LAYOUTS[task.layout], Counter[Any]()
    found: dict[Any, Any] = {}
    for row in rows:
        try:
            for key, answer in layout.answers(row.text, _submitted(layout, row.value)):
                times[key] += 1
                found[key, times[key]] = answer
                for label in _labels(layout, answer) if check and task.labels else ():
                    if label not in task.labels:
                        raise ValueError(f"unknown label {label!r}; {nearest(label, task.labels)}")
        except (KeyError, TypeError, AttributeError, ValueError, MalformedError) as error:
            missing = isinstance(error, KeyError)
            raise FormatError(
                f"{task.name}: {f'the key {error} is missing' if missing else error}",
                path=path,
                line=row.line,
                text=row.text,
                remedy=f"expected the layout of {task.file} (docs/cblue.md)",
            ) from error
    return found


def _labels(layout: _Layout, answer: Any) -> Iterable[str]:
    """Return the labels of an answer; of a report the names of its sections."""
    if layout.label is not None:
        return [str(each[layout.label]) for each in answer]
    return [answer] if isinstance(answer, str) else answer


def _submitted(layout: _Layout, record: Any) -> Any:
    """Return the gold answers of a dialogue as a submission has them; else the record itself."""
    if not (layout.gold and "dialogue" in record):
        return record
    if layout.gold == "report":
        return record["report"]
    answers = {turn["sentence_id"]: turn[layout.gold] for turn in record["dialogue"]}
    more = {GLOBAL: record["implicit_info"]["Symptom"]} if "implicit_info" in record else {}
    return {**answers, **more} if layout.gold == "local_implicit_info" else answers


def score_submission(task: str, gold: str | Path, submission: str | Path) -> dict[str, Any]:
    """Score a submission by the official metric of its task; ``score`` is the one that ranks.

    Args:
        task: Name of the task.
        gold: File with the right answers, such as that of dev.
        submission: File of predictions in the official layout, for the same records.
    """
    chosen = find_task(task)
    right = read_answers(chosen, Path(gold), check=False)
    given = read_answers(chosen, Path(submission))
    if missing := [*(right.keys() - given.keys()), *(given.keys() - right.keys())]:
        key, _ = min(missing, key=str)
        raise FormatError(
            f"{chosen.name}: {len(missing):,} records are only in one of both files, such as "
            f"{key!r}",
            path=Path(submission),
            remedy=f"name the predictions for {gold}",
        )
    values = _METRICS[chosen.metric]([(right[key], given[key]) for key in right], [*right])
    about = {"task": chosen.name, "n": len(right), "metric": chosen.metric}
    return {**about, "score": values[chosen.metric], **values}


_Pairs = Sequence[tuple[Any, Any]]
"""The right answer and that of the submission, for each key."""


def _of_labels(pairs: _Pairs, keys: Sequence[Any]) -> dict[str, Any]:
    right, given = ([str(pair[side]) for pair in pairs] for side in (0, 1))
    report = label_report(right, given, {*right, *given})
    return {"accuracy": report.micro.precision, "macro_f1": report.macro_f1}


def _of_sets(pairs: _Pairs, keys: Sequence[Any]) -> dict[str, Any]:
    """Compute micro F1; of symptoms the mean of that of turns and that of dialogues."""
    groups: dict[str, Counts] = defaultdict(Counts)
    for pair, (key, _) in zip(pairs, keys, strict=True):
        name = "dialogues" if isinstance(key, tuple) and key[-1] == GLOBAL else "turns"
        groups[name] += Counts.from_answers(*pair)
    values = {name: counts.to_json(in_percent=False) for name, counts in groups.items()}
    if len(values) == 1:
        return values["turns"]
    return {"f1": sum(counts.f1 for counts in groups.values()) / len(groups), **values}


def _of_reports(pairs: _Pairs, keys: Sequence[Any]) -> dict[str, Any]:
    def text(sections: dict[str, str]) -> str:
        return "".join(f"{name}：{written}" for name, written in sections.items())

    each = [rouge_scores(text(given), [text(one) for one in right]) for right, given in pairs]
    values = {name: sum(scores[name] for scores in each) / len(each) for name in each[0]}
    return {"rouge": sum(values.values()) / len(values), **values}


_METRICS = {"accuracy": _of_labels, "macro_f1": _of_labels, "f1": _of_sets, "rouge": _of_reports}


def write_submission(
    task: str,
    records: str | Path,
    out: str | Path,
    *,
    model: str | Path | None = None,
    linker: Linker | None = None,
    overwrite: bool = False,
) -> int:
    """Predict the answers of a file, write them in the official layout, and return their number.

    Args:
        task: Name of the task.
        records: File of the benchmark, with or without answers.
        out: File to write.
        model: Folder of a model that the recipe of the task has trained.
        linker: For CHIP-CDN: a linker with the standard names.
        overwrite: Replace a file that exists.
    """
    chosen, path = find_task(task), Path(records)
    rows = _read(chosen, path)
    if chosen.layout == "terms":
        if linker is None:
            raise ConfigError(f"{chosen.name}: needs a knowledge base of the standard names (--kb)")
        texts = [str(row.value.get("text", "")) for row in rows]
        predictions: Iterator[Any] = iter(_standard_names(linker, texts))
    elif model is None:
        raise ConfigError(f"{chosen.name}: needs a model (--model); train {chosen.recipe}")
    else:
        predictions = iter(_predict(chosen, path, Path(model)))
    fill = _LAYOUTS[chosen.layout].fill
    filled = [replace(row, value=fill(row.value, predictions)) for row in rows]
    n = len(_answers(chosen, filled, path, check=True))
    with new_file(Path(out), overwrite=overwrite) as file:
        if chosen.json_lines:
            for row in filled:
                file.write(f"{json.dumps(row.value, ensure_ascii=False)}\n".encode())
            return n
        values = [row.value for row in filled]
        named = {row.text: row.value for row in filled}
        whole = named if _LAYOUTS[chosen.layout].gold else values
        file.write(f"{json.dumps(whole, ensure_ascii=False, indent=2)}\n".encode())
    return n


def _predict(task: CblueTask, path: Path, folder: Path) -> list[Any]:
    """Return the prediction of a model for each example of a file, in its order."""
    from biograft.models.tasks import open_task

    model, log = open_task(folder), ReadLog(path)
    if (model.kind == "ner") != (task.format in DOCUMENT_FORMATS):
        raise ConfigError(
            f"{task.name}: {folder} is a model of {model.kind}; train one by {task.recipe}"
        )
    if model.kind == "ner":
        examples: list[Any] = list(read_documents(path, task.format, log))
    else:
        examples = list(read_examples(TaskConfig(path=path, format=task.format), log))
    _refuse_rejected(log)
    return model.predict(examples)


def _standard_names(linker: Linker, texts: Sequence[str]) -> Iterator[dict[str, None]]:
    """Yield the names of the concepts of each term; without one the best candidate, or the term."""
    found: dict[str, list[str]] = defaultdict(list)
    for mapping in map_terms(linker, texts):
        best = [each.name for each in mapping.others[:1]]
        found[term_key(mapping.term.text)] += [mapping.name] if mapping.name else best
    for text in texts:
        yield dict.fromkeys(found[term_key(one_line(text))] or [text])


def pack_submissions(files: Sequence[str | Path], out: str | Path, *, overwrite: bool) -> list[str]:
    """Check submissions, and write them to a zip archive; return the names of their tasks.

    Args:
        files: Submissions with their official names.
        out: The archive.
        overwrite: Replace a file that exists.
    """
    by_file = {task.file: task for task in CBLUE.values()}
    for path in map(Path, files):
        if path.name not in by_file:
            raise ConfigError(f"{path}: no submission has this name; {nearest(path.name, by_file)}")
        read_answers(by_file[path.name], path)
    with (
        new_file(Path(out), overwrite=overwrite) as file,
        ZipFile(file, "w", ZIP_DEFLATED) as archive,
    ):
        for path in map(Path, files):
            archive.write(path, path.name)
    return [by_file[Path(path).name].name for path in files]
