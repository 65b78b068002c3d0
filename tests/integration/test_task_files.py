"""The task files as published: counts of the data and of the papers, spans exact, leakage."""

from __future__ import annotations

import pytest

from biograft.text import TaskConfig, anonymise, overlap, read_task, summarise, write_examples

DDI = "re_en/ddi2013/DDICorpus-2013.zip"
ZH = "zh/chineseblue"
FILES = {
    "other_en/hoc/train.tsv.gz": ("", 12_119),
    "other_en/hoc/dev.tsv": ("", 1_798),
    "other_en/hoc/test.tsv": ("", 3_547),
    "other_en/bioasq_yesno/train.tsv.gz": ("", 670),
    "other_en/bioasq_yesno/dev.tsv": ("", 75),
    "other_en/bioasq_yesno/test.tsv": ("", 140),
    "re_en/gad/train.tsv": ("", 4_261),
    "re_en/gad/dev.tsv": ("", 535),
    "re_en/gad/test.tsv": ("", 534),
    "re_en/chemprot/train.jsonl.gz": ("", 4_169),
    "re_en/chemprot/dev.jsonl": ("", 2_427),
    "re_en/chemprot/test.jsonl": ("", 3_469),
    f"{ZH}/cMedQQ/train.txt.gz": ("cmedqq", 16_071),
    f"{ZH}/cMedQQ/dev.txt": ("cmedqq", 1_793),
    f"{ZH}/cMedQQ/test.txt": ("cmedqq", 1_935),
    f"{ZH}/cMedTC/train.txt.gz": ("cmedtc", 14_610),
    f"{ZH}/cMedTC/dev.txt": ("cmedtc", 1_550),
    f"{ZH}/cMedTC/test.txt": ("cmedtc", 1_800),
    f"{ZH}/cMedIC/train.txt": ("cmedtc", 1_683),
    f"{ZH}/cMedIC/dev.txt": ("cmedtc", 123),
    f"{ZH}/cMedIC/test.txt": ("cmedtc", 84),
    f"{ZH}/cMedIR/dev.json.gz": ("", 10_000),
    f"{ZH}/cMedIR/test.json.gz": ("", 10_000),
}


@pytest.fixture
def read(shared_data):
    """Read a real file; its spans are checked on the way."""

    def read_and_check(name, form="", **options):
        if "dev_list" in options:
            options["dev_list"] = shared_data(options["dev_list"])
        result = read_task(TaskConfig(path=shared_data(name), format=form, **options))
        if result.kind == "relation":
            for example in result.examples:
                for mention in (example.first, example.second):
                    pieces = (example.text[start:end] for start, end in mention.spans)
                    assert " ".join(pieces) == mention.text
        return result

    return read_and_check


@pytest.mark.parametrize("name", FILES)
def test_every_row_is_an_example(read, name):
    form, n = FILES[name]
    result = read(name, form)
    assert (len(result.examples), result.log.n_read) == (n, n)
    assert not result.log.rejected.counts
    assert not result.log.doubtful.counts


LABELS = ("false", "effect", "mechanism", "advise", "int")


@pytest.mark.parametrize(
    ("split", "counts", "n_documents", "n_doubtful"),
    [
        ("train", (21_744, 1_486, 1_163, 725, 178), 545, 2),
        ("dev", (2_027, 201, 156, 101, 11), 79, 0),
        ("test", (4_737, 360, 302, 221, 96), 191, 0),
    ],
)
def test_ddi_splits_have_the_sizes_of_the_paper(read, split, counts, n_documents, n_doubtful):
    result = read(DDI, split=split, dev_list="re_en/ddi2013/blurb_dev.tsv")
    summary = summarise(result.examples)
    assert summary.n_examples == {"train": 25_296, "dev": 2_496, "test": 5_716}[split]
    assert tuple(summary.labels[label] for label in LABELS) == counts
    assert len({example.id for example in result.examples}) == summary.n_examples == sum(counts)
    assert summary.extra["n_documents"] == n_documents
    assert result.log.doubtful.counts.total() == n_doubtful


def test_anonymised_drugs_equal_those_of_blurb(read):
    """All but the pairs of two sentences, whose line ends moved BLURB's offsets."""
    published = {x.id: x for x in read("re_en/ddi2013/blurb_dev.tsv").examples}
    ours = read(DDI, split="dev", dev_list="re_en/ddi2013/blurb_dev.tsv").examples
    assert {f"DDI-{x.label}" == published[x.id].label for x in ours} == {True}
    spaces = str.maketrans("\r\n", "  ")
    differing = [x for x in ours if anonymise(x).text.translate(spaces) != published[x.id].text]
    assert (len(ours), len(differing)) == (2_496, 21)
    assert len({x.text for x in differing}) == 2


@pytest.mark.parametrize(
    ("name", "n_rows", "n_questions", "n_with_one", "n_decidable"),
    [("dev", 5_475, 895, 106, 218), ("test", 6_149, 897, 112, 225)],
)
def test_answers_by_question(read, name, n_rows, n_questions, n_with_one, n_decidable):
    result = read(f"{ZH}/cMedQA/{name}.txt.gz", "cmedqa")
    assert (result.log.n_read, dict(result.log.rejected.counts)) == (n_rows, {})
    extra = summarise(result.examples).extra
    assert (len(result.examples), extra["n_candidates"]) == (n_questions, n_rows)
    assert (extra["n_with_one_answer"], extra["n_decidable"]) == (n_with_one, n_decidable)
    answers = [answer.text for example in result.examples for answer in example.candidates]
    assert not any('医""乳癖""范' in answer for answer in answers)
    assert any('医"乳癖"范' in answer for answer in answers)


def test_tables_of_other_forms(read):
    columns = {"text": "title", "label": "department", "context": "ask"}
    result = read("zh/toyhom_qa/internal_medicine_sample.csv.gz", columns=columns)
    assert (len(result.examples), dict(result.log.rejected.counts)) == (7_644, {})
    assert len(summarise(result.examples).labels) == 11
    terms = {"first": "原始词", "second": "标准词"}
    for name, n in (("train", 4_000), ("dev", 1_000), ("test", 2_000)):
        path = f"zh/term_normalisation/procedures_{name}.tsv"
        assert len(read(path, columns=terms).examples) == n


def test_overlap_of_splits(read):
    train, test = (
        read(f"{ZH}/cMedQQ/{name}", "cmedqq").examples for name in ("train.txt.gz", "test.txt")
    )
    result = overlap(train, test)
    assert (result.n_seen, result.n_texts, result.n_texts_seen) == (0, 3_453, 1_970)
    dev, test = (read(f"{ZH}/cMedQA/{name}.txt.gz", "cmedqa").examples for name in ("dev", "test"))
    answers = overlap(dev, test)
    assert (answers.n_seen, answers.n_texts_seen, answers.n_judgements_seen) == (0, 1_201, 0)


@pytest.mark.parametrize(
    ("name", "form", "split"),
    [
        (DDI, "", "test"),
        ("re_en/chemprot/dev.jsonl", "", ""),
        (f"{ZH}/cMedQA/dev.txt.gz", "cmedqa", ""),
        ("other_en/hoc/test.tsv", "", ""),
        (f"{ZH}/cMedQQ/dev.txt", "cmedqq", ""),
    ],
)
def test_real_files_round_trip_as_json_lines(read, tmp_path, name, form, split):
    examples = read(name, form, split=split).examples
    write_examples(examples, tmp_path / "a.jsonl")
    assert read_task(TaskConfig(path=tmp_path / "a.jsonl")).examples == examples
