"""Task files as the examples of a part, for all kinds that learn from labelled records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from biograft.corpus.tasks import TaskConfig, read_task
from biograft.corpus.tasks.records import ClassExample, Example, RankingExample, labels_of
from biograft.errors import InputError
from biograft.tasks.config import DataConfig
from biograft.tasks.kinds import TaskExamples


def reader_of(record: str) -> Callable[[Sequence[str], str, DataConfig], TaskExamples]:
    """Make what reads examples of a record (pair, class, ranking, relation) in any format."""

    def read(paths: Sequence[str], part: str, data: DataConfig) -> TaskExamples:
        """Read files; of one that has parts (DDI's zip) only the part asked for."""
        examples: list[Example] = []
        rejected: Counter[str] = Counter()
        for path in paths:
            config = TaskConfig(
                path=Path(path),
                format=data.format,
                part=part if data.has_parts or data.dev_list else "",
                dev_list=Path(data.dev_list) if data.dev_list and part != "test" else None,
                grouped=data.grouped,
            )
            found = read_task(config)
            if found.kind != record:
                raise InputError(
                    f"holds examples of the kind {found.kind}, not {record}", path=path
                )
            _refuse_unlabelled(found.examples, path)
            examples += found.examples
            rejected += found.log.rejected.counts
        return TaskExamples(examples, rejected)

    return read


def _refuse_unlabelled(examples: Sequence[Example], path: str) -> None:
    rankings = [example for example in examples if isinstance(example, RankingExample)]
    if rankings and not any(example.n_relevant for example in rankings):
        raise InputError("holds no question with a right answer", path=path)
    if not all(_is_labelled(example) for example in examples):
        raise InputError("holds examples without a label", path=path)


def _is_labelled(example: Example) -> bool:
    """Whether an example says what is right; of several classes none may hold."""
    if isinstance(example, ClassExample) and example.multi:
        return True
    return bool(labels_of(example))
