"""Question pairs, classes and answers of the public files: read, learned from, measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing

from biograft.models import TextEncoder, make_character_encoder
from biograft.models.tasks import (
    TASKS,
    ClassificationConfig,
    ClassificationModel,
    ClassPrediction,
    RankingConfig,
    RankingModel,
    TaskDataConfig,
    TaskTraining,
    ranking_report,
)
from biograft.text import RankingExample
from biograft.training.tasks import fit

ZH = "zh/chineseblue"


@pytest.fixture
def read(shared_data):
    """Read a file as a kind of task does: ``read("matching", "cMedQQ/dev.txt", "cmedqq")``."""

    def of(kind, name, form):
        return TASKS.load(kind).read([str(shared_data(name))], "dev", TaskDataConfig(format=form))

    return of


def characters(texts, folder: Path) -> TextEncoder:
    """Make an untrained encoder of the characters of some texts that reads pairs too."""
    make_character_encoder(texts, folder, width=32, layers=1)
    encoder = TextEncoder.from_pretrained(folder)
    encoder.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return encoder


def training(**values) -> TaskTraining:
    return TaskTraining(**{"epochs": 1, "learning_rate": 3e-3, "precision": "fp32", **values})


def test_hallmarks_are_several_and_yes_or_no_has_a_context(read, tmp_path):
    hallmarks = read("classification", "other_en/hoc/dev.tsv", "hoc").examples
    encoder = characters([example.text for example in hallmarks[:100]], tmp_path / "encoder")
    model = ClassificationModel.from_examples(encoder, ClassificationConfig(), hallmarks)
    assert model.config.several
    assert model.labels == tuple("0123456789")
    none = sum(not example.labels for example in hallmarks)
    report = model.report(hallmarks, [ClassPrediction((), ())] * 1798)
    assert (report.n, report.chance["labels"]) == (1798, [])
    assert report.chance["accuracy"] == report.accuracy == pytest.approx(none / 1798)
    predictions = read("classification", "other_en/bioasq_yesno/dev.tsv", "bioasq").examples
    model = ClassificationModel.from_examples(encoder, ClassificationConfig(), predictions)
    items, _ = model.training_items(predictions)
    assert (len(items), model.labels) == (75, ("no", "yes"))
    assert all(any(item.segments) for item in items)


def _shared(example: RankingExample) -> tuple[float, ...]:
    """Score answers by the pairs of neighbouring characters that they share with the question."""

    def pairs(text: str) -> set[str]:
        return {text[k : k + 2] for k in range(len(text) - 1)}

    return tuple(len(pairs(example.query) & pairs(a.text)) for a in example.candidates)


def test_answers_of_questions(read, tmp_path):
    examples = read("ranking", f"{ZH}/cMedQA/dev.txt.gz", "cmedqa").examples
    scores = [_shared(example) for example in examples]
    answered = ranking_report(examples, scores, "answered").to_json()
    assert (len(examples), answered["n_questions"]) == (895, 218)
    assert answered["left_out"] == {"questions without a correct answer": 677}
    single = ranking_report(examples, scores, "single").to_json()
    assert (
        single["n_questions"] + single["left_out"].get("questions without a wrong answer", 0) == 106
    )
    assert single["acc@1"] > 2 * single["chance"]["acc@1"]
    some = [example for example in examples if example.decidable][:12]
    encoder = characters([a.text for e in some for a in e.candidates], tmp_path / "encoder")
    config = RankingConfig(training=training(batch_size=4))
    model = RankingModel.from_examples(encoder, config, examples)
    items, lost = model.training_items(examples)
    assert lost["questions without a correct answer"] == 677
    assert all(item.wrong for item in items)
    fitted = fit(model, some, some, tmp_path / "run", seed=1)
    assert fitted.report.to_json()["n_questions"] == 12
    assert 0 < fitted.report.chance["mrr"] < 1
