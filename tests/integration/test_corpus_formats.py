"""Every real corpus file of documents: counts, exact offsets, round trips."""

from itertools import islice

import pytest

from biograft.kb.sources import ReadLog
from biograft.text import DOCUMENT_FORMATS, FormatAdapter, read_documents, sniff, write_documents

CDR = "entity_linking/bc5cdr/pubtator/CDR_{}Set.PubTator.txt.gz"
BIOC = "entity_linking/bc5cdr/bioc/CDR_{}Set.BioC.xml.gz"
NCBI = "entity_linking/ncbi_disease/original/NCBI{}set_corpus.txt"
CORRECTED, OTHER_CASE = "offsets were corrected", "the text is written otherwise"

N_WRITTEN, N_CONVERTED = 300, 100
"""Documents of a file that are written again, and that are written in another format."""

# path, format, documents, mentions, relations, what the log finds doubtful
FILES = [
    (CDR.format("Training"), "pubtator", 500, 5_203 + 4_182, 1_038, {}),
    (CDR.format("Development"), "pubtator", 500, 5_347 + 4_244, 1_012, {}),
    (CDR.format("Test"), "pubtator", 500, 5_385 + 4_424, 1_066, {}),
    (NCBI.format("train") + ".gz", "pubtator", 593, 5_145, 0, {CORRECTED: 1}),
    (NCBI.format("develop"), "pubtator", 100, 787, 0, {}),
    (NCBI.format("test"), "pubtator", 100, 960, 0, {}),
    ("entity_linking/scispacy_fixtures/med_mentions.txt", "pubtator", 3, 115, 0, {}),
    (BIOC.format("Training"), "bioc-xml", 500, 9_570, 1_038, {CORRECTED: 3}),
    (BIOC.format("Development"), "bioc-xml", 500, 9_773, 1_012, {CORRECTED: 1}),
    (BIOC.format("Test"), "bioc-xml", 500, 9_928, 1_066, {}),
    ("ner_en/BC5CDR-chem/train.tsv", "conll", 4_560, 5_203, 0, {}),
    ("ner_en/BC5CDR-chem/devel.tsv", "conll", 4_581, 5_347, 0, {}),
    ("ner_en/BC5CDR-chem/test.tsv.gz", "conll", 4_797, 5_385, 0, {}),
    ("ner_en/BC5CDR-disease/train.tsv", "conll", 4_560, 4_182, 0, {}),
    ("ner_en/BC5CDR-disease/devel.tsv", "conll", 4_581, 4_246, 0, {}),
    ("ner_en/BC5CDR-disease/test.tsv.gz", "conll", 4_797, 4_424, 0, {}),
    ("ner_en/NCBI-disease/train.tsv.gz", "conll", 5_424, 5_134, 0, {}),
    ("ner_en/NCBI-disease/devel.tsv", "conll", 923, 787, 0, {}),
    ("ner_en/NCBI-disease/test.tsv", "conll", 940, 960, 0, {}),
    ("ner_en/BC2GM/train.tsv.gz", "conll", 12_574, 15_197, 0, {}),
    ("ner_en/BC2GM/devel.tsv", "conll", 2_519, 3_061, 0, {}),
    ("ner_en/BC2GM/test.tsv.gz", "conll", 5_038, 6_325, 0, {}),
    ("ner_en/JNLPBA_untyped/train.tsv.gz", "conll", 1_800, 46_750, 0, {}),
    ("ner_en/JNLPBA_untyped/devel.tsv", "conll", 200, 4_551, 0, {}),
    ("ner_en/JNLPBA_untyped/test.tsv", "conll", 404, 8_662, 0, {}),
    ("ner_en/JNLPBA_typed/devel.tsv", "conll", 200, 4_551, 0, {}),
    ("ner_en/JNLPBA_typed/test.tsv", "conll", 404, 8_662, 0, {}),
    (
        "zh/chineseblue/cMedQANER/train.json.gz",
        "cmedqaner",
        1_673,
        12_625,
        0,
        {OTHER_CASE: 67, CORRECTED: 15},
    ),
    ("zh/chineseblue/cMedQANER/dev.json", "cmedqaner", 175, 1_035, 0, {OTHER_CASE: 4}),
    ("zh/chineseblue/cMedQANER/test.json", "cmedqaner", 215, 1_350, 0, {OTHER_CASE: 4}),
    ("zh/chineseblue/cEHRNER/train.json.gz", "cehrner", 914, 16_136, 0, {}),
    ("zh/chineseblue/cEHRNER/dev.json", "cehrner", 44, 749, 0, {}),
    ("zh/chineseblue/cEHRNER/test.json", "cehrner", 41, 632, 0, {}),
    ("zh/chineseblue/cMedQANER/train.txt.gz", "char-tags", 1_673, None, 0, {}),
    ("zh/chineseblue/cMedQANER/dev.txt", "char-tags", 175, None, 0, {}),
    ("zh/chineseblue/cMedQANER/test.txt", "char-tags", 215, None, 0, {}),
    ("zh/chineseblue/cEHRNER/train.txt.gz", "char-tags", 914, 16_136, 0, {}),
    ("zh/chineseblue/cEHRNER/dev.txt", "char-tags", 44, 749, 0, {}),
    ("zh/chineseblue/cEHRNER/test.txt", "char-tags", 41, 632, 0, {}),
    ("zh/cmdd/train.jsonl.gz", "cmdd", 1_241, None, 0, None),
    ("zh/cmdd/dev.jsonl.gz", "cmdd", 413, None, 0, None),
    ("zh/cmdd/test.jsonl.gz", "cmdd", 413, None, 0, None),
    ("zh/cmeee_v2/CMeEE-V2_dev.json.gz", "cmeee", 5_000, 26_081, 0, {}),
    ("zh/cmeee_v2/CMeEE-V2_test_unlabelled.json", "cmeee", 3_000, 0, 0, {}),
    ("re_en/ddi2013/DDICorpus-2013.zip", "ddi", 1_017, 18_491, 5_000, {CORRECTED: 1}),
]


def check_offsets(documents):
    for document in documents:
        for mention in document.mentions:
            assert " ".join(document.text[a:b] for a, b in mention.spans) == mention.text
            assert (mention.start, mention.end) == (mention.spans[0][0], mention.spans[-1][1])


@pytest.mark.parametrize("row", FILES, ids=[name for name, *_ in FILES])
def test_a_real_file_reads_back_after_writing(shared_data, tmp_path, row):
    name, form, n_documents, n_mentions, n_relations, doubtful = row
    path = shared_data(name)
    assert sniff(path) == form
    log = ReadLog(path)
    documents = list(read_documents(path, form, log))
    check_offsets(documents)
    assert not log.rejected.counts
    assert doubtful is None or log.doubtful.counts == doubtful
    assert (len(documents), sum(len(d.relations) for d in documents)) == (n_documents, n_relations)
    n_found = sum(len(d.mentions) for d in documents)
    assert n_found > 0 if n_mentions is None else n_found == n_mentions
    for to in dict.fromkeys([form, "jsonl", "bioc-json"]):
        if DOCUMENT_FORMATS.load(to).write is None:
            continue
        documents = documents[: N_WRITTEN if to == form else N_CONVERTED]
        losses = write_documents(documents, tmp_path / to, to)
        back = list(read_documents(tmp_path / to, to))
        if form == "ddi" == to:
            back, documents = (sorted(each, key=lambda d: d.id) for each in (back, documents))
        assert back == documents
        assert not losses


@pytest.mark.parametrize("name", [BIOC.format("Development"), NCBI.format("test")])
def test_conversion_reads_back_as_adapted(shared_data, tmp_path, name):
    documents = list(islice(read_documents(shared_data(name)), 100))
    for to in ("brat", "conll", "pubtator", "ddi", "cmeee", "bioc-xml"):
        adapter = FormatAdapter(DOCUMENT_FORMATS.load(to))
        adapted = [adapter.adapt(document) for document in documents]
        assert write_documents(documents, tmp_path / to, to) == adapter.losses
        back = list(read_documents(tmp_path / to))
        assert sorted(back, key=str) == sorted(adapted, key=str)
        check_offsets(back)


def test_pubtator_and_bioc_of_one_corpus_agree(shared_data):
    """BioC gives the single mentions of composites too; all others are the same in both."""
    tables = []
    for name in (CDR.format("Test"), BIOC.format("Test")):
        documents = read_documents(shared_data(name))
        tables.append(
            {d.id: {(m.start, m.end, m.type, m.concepts) for m in d.mentions} for d in documents}
        )
    pubtator, bioc = tables
    assert pubtator.keys() == bioc.keys()
    missing = [each for key in pubtator for each in pubtator[key] - bioc[key]]
    assert missing == []
