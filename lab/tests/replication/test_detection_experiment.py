"""A trained detector in raw text: what it is trained on, shared sets, rows and tests."""

from __future__ import annotations

import gzip

import pytest
from tiny_models import tiny_encoder_folder

from biograft.errors import ConfigError
from biograft_lab.replication.toy_files import write_biosyn

TEXTS = {
    "train": ("A breast cancer, and aspirin.", "No common cold here."),
    "dev": ("The common cold again.",),
    "test": ("A common cold, and breast cancer.",),
}
NAMES = {"breast cancer": ("Disease", "D1"), "common cold": ("Disease", "D3")}
NAMES |= {"aspirin": ("Chemical", "C1")}
FILES = {
    "bc5cdr/pubtator/CDR_{}Set.PubTator.txt.gz": ("Training", "Development", "Test"),
    "ncbi_disease/original/NCBI{}set_corpus.txt": ("train", "develop", "test"),
}
DETECTION = """about = "A."
kind = "detection"
sets = ["bc5cdr-disease", "ncbi-disease"]
[inputs]
encoder = "a folder"
[settings]
changes = [
    "config.training.epochs=1", "config.training.precision=fp32", "config.overlap=4",
    "encoder.max_length=32",
]
[set_settings.ncbi-disease]
start = "bc5cdr-disease"
refit = false
[variants.model]
[variants.both]
detection = "both"
splits = ["dev"]
"""


def pubtator(split):
    lines = []
    for number, text in enumerate(TEXTS[split]):
        lines += [f"{number}|t|{text}", f"{number}|a|"]
        for name, (kind, concept) in NAMES.items():
            if (start := text.find(name)) >= 0:
                lines.append(f"{number}\t{start}\t{start + len(name)}\t{name}\t{kind}\t{concept}")
        lines.append("")
    return "\n".join(lines)


@pytest.fixture
def run(tmp_path, measure):
    """Run the experiment on two toy sets; return its rows and the folder of its work."""
    linking = tmp_path / "data/entity_linking"
    for folder in ("ncbi_disease/biosyn", "bc5cdr/biosyn_disease"):
        write_biosyn(linking / folder)
    for pattern, names in FILES.items():
        for split, name in zip(TEXTS, names, strict=True):
            path = linking / pattern.format(name)
            if name == "train":
                path = path.with_name(f"{path.name}.gz")
            path.parent.mkdir(parents=True, exist_ok=True)
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(path, "wt", encoding="utf-8") as file:
                file.write(pubtator(split))
    texts = [text for split in TEXTS.values() for text in split]
    encoder = tiny_encoder_folder(tmp_path / "tiny", texts, hidden=16, layers=1)

    def measured(text=DETECTION):
        return measure(text, encoder)

    measured.said = measure.said
    return measured


def test_detectors_are_trained_and_measured(run):
    rows, work = run()
    found = {(r["set"], r["split"], r["config"]): r for r in rows}
    assert len(found) == len(rows) == 2 * 3
    for (name, split, config), row in found.items():
        assert row["detection"] == config
        assert {"f1", "spans_f1", "documents_f1"} <= row["against_lexical"].keys()
        trained_on = row["detector"]
        refitted = split == "test" and name == "bc5cdr-disease"
        assert trained_on["splits"] == (["train", "dev"] if refitted else ["train"])
        assert trained_on["types"] == (["Chemical", "Disease"] if "bc5cdr" in name else [""])
        assert trained_on["start"] == ("encoder" if "bc5cdr" in name else "bc5cdr-disease")
    detectors = sorted(path.name for path in (work / "detectors").iterdir() if path.name[0] != ".")
    assert detectors == [
        "bc5cdr-for-dev",
        "bc5cdr-for-test",
        "ncbi_disease-for-dev",
    ]
    assert run()[0] == rows
    assert len(run.said) == len(rows)  # nothing was measured again


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"ncbi-disease"]', '"zh-procedures"]', "sets: no 'zh-procedures'"),
        ('start = "bc5cdr-disease"', 'start = "ncbi-disease"', "set_settings.ncbi-disease.start"),
        ('detection = "both"', 'detection = "names"', "detection: expected"),
        ('splits = ["dev"]', 'splits = ["train"]', "splits"),
    ],
)
def test_unknown_settings_are_refused(run, old, new, message):
    text = DETECTION.replace(old, new)
    if "zh-procedures" in new:
        text = text[: text.index("[set_settings")] + text[text.index("[variants.model]") :]
    with pytest.raises(ConfigError, match=message):
        run(text)
