"""Relations: entity marks and indicators become spans; pairs of drugs in XML."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from biograft.errors import ConfigError, FormatError, InputError, UnrecognisedError
from biograft.text import TaskConfig, read_task, sniff_task
from biograft.text.documents import Mention

SENTENCE = "Aspirin and old or new statins interact."
DOCUMENT = f"""<?xml version="1.0" encoding="UTF-8"?>
<document id="DDI-X.d1">
  <sentence id="DDI-X.d1.s0" text="{SENTENCE}&#xd;&#xa;">
    <entity id="DDI-X.d1.s0.e0" charOffset="0-6" type="brand" text="Aspirin"/>
    <entity id="DDI-X.d1.s0.e1" charOffset="12-14;23-29" type="group" text="old statins"/>
    <entity id="DDI-X.d1.s0.e2" charOffset="19-29" type="group" text="new statins"/>
    <pair id="DDI-X.d1.s0.p0" e1="DDI-X.d1.s0.e0" e2="DDI-X.d1.s0.e1" ddi="true" type="effect"/>
    <pair id="DDI-X.d1.s0.p1" e1="DDI-X.d1.s0.e0" e2="DDI-X.d1.s0.e2" ddi="true"/>
    <pair id="DDI-X.d1.s0.p2" e1="DDI-X.d1.s0.e1" e2="DDI-X.d1.s0.e2" ddi="false"/>
  </sentence>
</document>
"""


def read(path, form="", **options):
    return read_task(TaskConfig(path=path, format=form, **options))


def reasons(log):
    return {r: [(e.path.split("/")[-1], e.line) for e in log.examples[r]] for r in log.counts}


@pytest.fixture
def corpus(write, tmp_path):
    """A corpus of the published layout: two training documents, one test document."""
    write("ddi/Train/MedLine/1.xml", DOCUMENT)
    write("ddi/Train/MedLine/2.xml", DOCUMENT.replace("X.d1", "X.d2"))
    write("ddi/Test/Test for DDI Extraction task/MedLine/3.xml", DOCUMENT.replace("X.d1", "X.d3"))
    return tmp_path / "ddi"


def test_drugs_with_gaps_and_types(corpus):
    result = read(corpus / "Train" / "MedLine" / "1.xml")
    first, _untyped, false = result.examples
    assert (first.text, first.document, first.id) == (
        f"{SENTENCE}\r\n",
        "DDI-X.d1",
        "DDI-X.d1.s0.p0",
    )
    assert first.first == Mention(0, 7, "Aspirin", type="brand", id="DDI-X.d1.s0.e0")
    gap = Mention(
        12, 30, "old statins", type="group", fragments=((12, 15), (23, 30)), id="DDI-X.d1.s0.e1"
    )
    assert (first.second, false.first) == (gap, gap)
    assert [example.label for example in result.examples] == ["effect", "int", "false"]
    assert reasons(result.log.doubtful) == {
        "an interaction without a type, read as int": [("1.xml", 8)]
    }


def test_splits_and_the_dev_list(corpus, write):
    dev_list = write("dev.tsv", "DDI-X.d2.s0.p0\t@DRUG$ and @DRUG$\tDDI-effect\n")

    def documents(**options):
        return {example.document for example in read(corpus, **options).examples}

    assert documents(split="train") == {"DDI-X.d1", "DDI-X.d2"}
    assert documents(split="train", dev_list=dev_list) == {"DDI-X.d1"}
    assert documents(split="dev", dev_list=dev_list) == {"DDI-X.d2"}
    assert documents(split="test", dev_list=dev_list) == {"DDI-X.d3"}
    with pytest.raises(ConfigError, match="needs a dev_list"):
        read(corpus, split="dev")
    with pytest.raises(ConfigError, match="dev_list: "):
        read(corpus, dev_list=dev_list)
    with pytest.raises(FormatError, match="holds no XML file of DDI's test"):
        read(corpus / "Train", split="test")


def test_the_zip_reads_like_the_folder(corpus, tmp_path, write):
    with zipfile.ZipFile(tmp_path / "ddi.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(corpus.rglob("*.xml")):
            archive.write(file, file.relative_to(corpus))
    assert read(tmp_path / "ddi.zip").examples == read(corpus).examples
    whole = (tmp_path / "ddi.zip").read_bytes()
    cut = bytearray(whole)
    cut[60:90] = bytes(30)
    with pytest.raises(InputError, match="zip data is damaged"):
        read(write("cut.zip", bytes(cut)))
    assert zipfile.is_zipfile(io.BytesIO(whole))


def test_malformed_files_and_pairs_are_rejected(write, tmp_path):
    write("a/1.xml", DOCUMENT[:400])
    write("a/2.xml", "<collection/>")
    write("a/3.xml", DOCUMENT.replace('0-6"', '0:6"').replace('ddi="false"', 'ddi="perhaps"'))
    write("a/4.xml", '<!DOCTYPE d [<!ENTITY e "x">]>' + DOCUMENT.partition("?>")[2].lstrip())
    moved = DOCUMENT.replace('"0-6"', '"1-7"')
    write("a/5.xml", moved)
    result = read(tmp_path / "a")
    assert [example.first.text for example in result.examples] == [
        "Aspirin",
        "Aspirin",
        "old statins",
    ]
    assert reasons(result.log.rejected) == {
        "the XML is damaged": [("1.xml", 6)],
        "the root element is not document": [("2.xml", 1)],
        "offsets not of the form 0-4": [("3.xml", 4)],
        "a pair of mentions that are not in the sentence": [("3.xml", 7), ("3.xml", 8)],
        "ddi is neither true nor false": [("3.xml", 9)],
        "the XML declares entities, which are not read": [("4.xml", 1)],
    }
    assert reasons(result.log.doubtful)["offsets were corrected"] == [("5.xml", 4)]


MARKED = (
    '{"text": "We saw << A >> and B > [[ C d ]] >> E.", "label": "AGONIST", "metadata": []}\n'
    '{"text": "[[ in << it ]] >>", "label": "SUBSTRATE"}\n'
)


def test_marks_become_spans(write):
    result = read(write("a.jsonl", MARKED))
    assert result.format == "chemprot"
    first, crossing = result.examples
    assert (first.text, first.label) == ("We saw A and B > C d >> E.", "AGONIST")
    assert (first.first, first.second) == (Mention(7, 8, "A"), Mention(17, 20, "C d"))
    assert (crossing.text, crossing.first.text, crossing.second.text) == ("in it", "it", "in it")
    assert result.log.notes == [
        "holds related pairs only: no example of an unrelated pair (BLURB's class false)"
    ]


def test_grouped_labels(write):
    result = read(write("a.jsonl", MARKED + MARKED.replace("AGONIST", "ODD")), grouped=True)
    assert [example.label for example in result.examples] == ["CPR:5", "CPR:9", "CPR:9"]
    assert reasons(result.log.rejected) == {"a relation of no group": [("a.jsonl", 3)]}


@pytest.mark.parametrize("text", ["<< a >> << b >> [[ c ]]", "<< a [[ b ]]", "<<  >> [[ a ]]"])
def test_wrong_marks_are_rejected(write, text):
    result = read(
        write("a.jsonl", MARKED + f'{{"text": "{text}", "label": "AGONIST"}}\n'), "chemprot"
    )
    assert list(result.log.rejected.counts) == ["not exactly one << >> and one [[ ]]"]
    assert len(result.examples) == 2


def test_placeholders_become_spans(write):
    lines = (
        "index\tsentence\tlabel\n"
        "0\tIn @DISEASE$ we saw @GENE$.\t1\n"
        "1\tThe @DRUG-DRUG$s.\tDDI-false\n"
        "2\tOnly @GENE$.\t1\n"
        "3\t@GENE$ @GENE$ @GENE$\t1\n"
        "4\t@GENE$ @GENE$\t\n"
    )
    result = read(write("a.tsv", lines))
    assert (result.format, result.log.n_read) == ("gad", 5)
    first, both = result.examples
    assert first.first == Mention(3, 12, "@DISEASE$", type="DISEASE")
    assert first.second == Mention(20, 26, "@GENE$", type="GENE")
    assert (first.label, first.id) == ("1", "0")
    assert both.first == both.second == Mention(4, 15, "@DRUG-DRUG$", type="DRUG")
    assert reasons(result.log.rejected) == {
        "1 indicators such as @GENE$, expected 2": [("a.tsv", 4)],
        "3 indicators such as @GENE$, expected 2": [("a.tsv", 5)],
        "label is empty": [("a.tsv", 6)],
    }


def test_ddi_is_recognised_by_content(corpus, write, tmp_path):
    """Any folder, and any file called .xml or .zip, was recognised as DDI."""
    files = sorted(corpus.rglob("*.xml"))
    assert sniff_task(corpus) == sniff_task(write("a", files[0].read_bytes())) == "ddi"
    assert sniff_task(write("a.gz", gzip.compress(files[0].read_bytes()))) == "ddi"
    for path in (write("a.xml", "<collection/>"), write("f/a.txt", "x").parent):
        with pytest.raises(UnrecognisedError, match=r"fits no format, or several.*; name the"):
            sniff_task(path)
