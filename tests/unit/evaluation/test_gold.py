"""Readers of gold standards: snippets, what is left out and counted, what is refused."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from biograft.errors import ConfigError, FormatError, InputError
from biograft.evaluation import (
    GOLD_FORMATS,
    GoldConfig,
    LinkQuery,
    TextIndex,
    read_gold,
    read_gold_texts,
)
from biograft.text import write_documents
from biograft.text.documents import Document, Mention

CONCEPT_FILE = """\
100||0|6||SpecificDisease||Breast cancer|ovarian cancer||D1|D2
100||10|13||Modifier||flu||D3

100||20|23||DiseaseClass||thing||CUI-less
100||30|33||DiseaseClass||FLU||D3
broken line
100||40|44||DiseaseClass||x+y||D4+D5
"""


@pytest.fixture
def concepts(write):
    return write("test/100.concept", CONCEPT_FILE)


def shown(gold):
    return [(query.mention, sorted(query.gold), query.parts) for query in gold.queries]


def test_biosyn_by_hand(concepts):
    gold = read_gold(concepts.parent, "biosyn")
    assert shown(gold) == [
        ("Breast cancer|ovarian cancer", ["D1", "D2"], ("Breast cancer", "ovarian cancer")),
        ("flu", ["D3"], ("flu",)),
        ("FLU", ["D3"], ("FLU",)),
        ("x+y", ["D4", "D5"], ("x", "y")),
    ]
    first = gold.queries[0]
    assert (first.document, first.start, first.end, first.type) == ("100", 0, 6, "SpecificDisease")
    assert first.needed == (frozenset({"D1"}), frozenset({"D2"}))
    assert gold.log.filtered == {"without gold concept (NIL)": 1}
    assert gold.log.rejected.counts == {"not of the form doc||start|end||type||mention||id": 1}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "files.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for folder in ("./processed_test", "./processed_dev"):
            for name in ("2", "1"):
                data = f"{name}||0|1||T||m{folder[-1]}{name}||D1\n".encode()
                member = tarfile.TarInfo(f"{folder}/{name}.concept")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path


def test_a_folder_that_is_not_in_the_tar_is_refused(archive):
    with pytest.raises(InputError, match="its folders: processed_dev, processed_test"):
        read_gold(f"{archive}::test", "biosyn")


def test_a_damaged_tar_is_refused(write, archive):
    cut = write("cut.tar.gz", archive.read_bytes()[:100])
    with pytest.raises(InputError, match="no tar archive, or damaged"):
        read_gold(f"{cut}::processed_test", "biosyn")
    with pytest.raises(InputError, match="does not exist"):
        read_gold("nowhere.tar.gz::a", "biosyn")


def test_pubtator_with_types_and_nil(tmp_path):
    text = (
        "1|t|Flu and NAD+.\n1|a|None.\n"
        "1\t0\t3\tFlu\tDisease\tMESH:D1|D2\n1\t8\t12\tNAD+\tChemical\t-1\n\n"
    )
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    (query,) = read_gold(path, "pubtator").queries
    assert (query.mention, query.gold, query.type) == ("Flu", {"MESH:D1", "D2"}, "Disease")
    assert query.context[query.start : query.end] == "Flu"
    everything = read_gold(path, "pubtator", GoldConfig(keep_nil=True)).queries
    assert (everything[1].parts, everything[1].is_nil) == (("NAD+",), True)
    with pytest.raises(FormatError, match="2 of another type"):
        read_gold(path, "pubtator", GoldConfig(types=("Gene",)))


def test_aap_is_windows_1252_where_not_utf8(write):
    path = write("a.txt", b"bad\n123\tFever\tso hot\n9\tSj\xf6gren's\tdry\x92s eyes\n")
    gold = read_gold(path, "aap")
    assert shown(gold) == [("so hot", ["123"], ("so hot",)), ("dry’s eyes", ["9"], ("dry’s eyes",))]
    assert gold.log.rejected.counts.total() == 1
    path = write("b.txt", "1\tx\té\n")
    assert read_gold(path, "aap").queries[0].mention == "é"


def test_xlbel_ids_are_equally_good(write):
    path = write(
        "x.txt", "C1|C2||眼睛||於 <tgt>眼睛</tgt> 位置||後 <tgt>\nC3||plain||no marks\nnone\n"
    )
    gold = read_gold(path, "xlbel")
    first, second = gold.queries
    assert first.needed == (frozenset({"C1", "C2"}),)
    assert first.context == "於 眼睛 位置||後 <tgt>"  # of several marks the first
    assert first.context[first.start : first.end] == "眼睛"
    assert (second.start, second.context) == (None, "no marks")
    assert gold.log.rejected.counts.total() == 1


def test_translated_names_are_mentions_of_their_concepts(write):
    header = "subject_id\tpredicate_id\ttranslation_language\ttranslation_value\n"
    rows = "HP:1\trdfs:label\tes\tFiebre\nHP:2\tIAO:0000115\tes\tAlgo.\n"
    gold = read_gold(write("es.tsv", header + rows), "babelon")
    assert shown(gold) == [("Fiebre", ["HP:1"], ("Fiebre",))]
    assert gold.log.filtered == {"no name": 1}


def test_procedures_give_names(write):
    path = write("p.tsv", "原始词\t标准词\nbad\n\n脾切除。\t切除术##其他\n")
    (query,) = read_gold(path, "procedures").queries
    assert query == LinkQuery("脾切除。", gold_names=("切除术", "其他"))
    assert query.is_composite
    assert not query.is_nil


@pytest.mark.parametrize("form", list(GOLD_FORMATS))
def test_a_missing_or_empty_file_is_refused(form, tmp_path, write):
    with pytest.raises(InputError, match="does not exist"):
        read_gold(tmp_path / "nowhere.txt", form)
    with pytest.raises(InputError, match=r"empty|no query"):
        read_gold(write("empty.txt", ""), form)


PUBTATOR = """\
1|t|Flu and fever.
1|a|No more.
1\t0\t3\tFlu\tDisease\tD1
1\t8\t13\tfever\tFinding\tD2
1\t4\t13\tnot here at all\tDisease\tD3

2|t|Nothing.
2|a|

3|t|A cold.
3|a|
3\t2\t6\tcold\tDisease\t-1
"""


@pytest.fixture
def path(write):
    return write("a.pubtator", PUBTATOR)


def mentions_of(gold):
    return [(d.id, [(m.text, m.concepts) for m in d.mentions]) for d in gold.documents]


def test_texts_of_any_document_format_are_gold(write, path):
    other = path.parent / "b.json"
    write_documents(read_gold_texts(path).documents, other, "bioc-json")
    assert mentions_of(read_gold_texts(other)) == mentions_of(read_gold_texts(path))
    queries = read_gold(other, "documents").queries
    assert [query.mention for query in queries] == ["Flu", "fever"]
    with pytest.raises(FormatError, match="no reader of documents knows this content"):
        read_gold_texts(write("c.txt", "plain text"))
    with pytest.raises(InputError, match="is recognised as bioc-json, not as pubtator"):
        read_gold_texts(other, "pubtator")


def test_types_and_limit(path):
    gold = read_gold_texts(path, "pubtator", types=("Finding",))
    assert mentions_of(gold) == [("1", [("fever", ("D2",))]), ("2", []), ("3", [])]
    assert gold.log.filtered == {"of another type": 2}
    assert len(read_gold_texts(path, "pubtator", limit=2).documents) == 2


def test_rejected_mentions_are_counted_for_queries_too(path):
    """Rejections of the PubTator reader were not counted."""
    gold = read_gold(path, "pubtator")
    assert gold.log.rejected.counts == {"offsets do not fit the text": 1}


@pytest.mark.parametrize("form", ["biosyn", "aap", "documents", "text"])
def test_a_format_without_texts_is_refused(form):
    with pytest.raises(ConfigError, match=r"has no texts .*pubtator, sample"):
        read_gold_texts("a", form)


REWRITTEN_FROM = """\
100|t|Breast, ovarian cancer.
100|a|Flu again.
100\t0\t22\tBreast, ovarian cancer\tDisease\tD1|D2
100\t24\t27\tFlu\tDisease\tD3

"""
REWRITTEN = """\
100||0|22||CompositeMention||breast cancer|ovarian cancer||D1|D2
100||24|27||Disease||influenza||D3
100||3|5||Disease||elsewhere||D3
7||0|3||Disease||other document||D3
"""


def test_texts_are_joined_by_document_and_offsets(write):
    gold, text = write("a.concept", REWRITTEN), write("text.txt", REWRITTEN_FROM)
    joined = read_gold(gold, "biosyn", texts=TextIndex.read([text]))
    composite, rewritten, *others = joined.queries
    assert composite.parts == ("breast cancer", "ovarian cancer")
    assert composite.context[composite.start : composite.end] == "Breast, ovarian cancer"
    assert rewritten.context[rewritten.start : rewritten.end] == "Flu"
    assert [query.context for query in others] == ["", ""]
    assert joined.n_without_text == 2
    assert read_gold(gold, "biosyn").n_without_text == 4


def test_a_document_given_twice_is_joined_by_its_mentions():
    query = LinkQuery("flu", frozenset({"D3"}), document="1", start=2, end=5)
    mention = Mention(2, 5, "flu")
    documents = [Document("1", "no mention"), Document("1", "a flu", (mention,))]
    # without annotations, offsets within the text are enough
    for used, text in ((documents, "no mention"), (documents[1:], "a flu")):
        assert TextIndex(used).join([query], "biosyn")[0].context == text
    past = Document("1", "a fl")
    assert TextIndex([past, documents[1]]).join([query], "biosyn")[0].context == "a flu"


def test_texts_that_do_not_belong_to_the_gold_are_refused(write):
    text = write("text.txt", REWRITTEN_FROM)
    texts = TextIndex.read([text])
    with pytest.raises(ConfigError, match="text: holds none of the 1 mentions, such as that from"):
        read_gold(write("a.concept", "9||0|3||T||x||D1\n"), "biosyn", texts=texts)
    with pytest.raises(ConfigError, match="'pubtator' has texts of its own"):
        read_gold(text, "pubtator", texts=texts)
    assert TextIndex.read([]) is None


COMETA = """\
\tID\tTerm\tGeneral SNOMED ID\tSpecific SNOMED ID\tExample
0\t7\tback pain\t161891005\t278860009\tMy BACK PAIN is worse.
1\t8\tmi\t22298006\t\tmy mit, then an MI
2\t9\tgone\t1\t2\t"not ""in"" it,
on two lines"
3\t10\t\t1\t2\tno term
4\ttoo\tshort
"""


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("cometa", "Term\tExample\nflu\ta flu\n", "column 'General SNOMED ID' is missing"),
        (
            "sample",
            '{"id": 1, "text": "a", "mentions": [{"start": 0, "end": 1, "text": "b",'
            ' "concepts": []}]}',
            "text from 0 to 1 is not the mention",
        ),
        ("sample", "[]", "a:1: no document with mentions"),
    ],
)
def test_damaged_gold_is_refused(write, form, text, message):
    with pytest.raises(FormatError, match=message):
        read_gold(write("a", text), form)


def test_cometa_terms_are_found_in_their_examples(write):
    gold = read_gold(write("c.csv", COMETA), "cometa")
    pain, mi, gone = gold.queries
    assert (pain.gold, pain.context[pain.start : pain.end]) == ({"161891005"}, "BACK PAIN")
    assert (mi.start, mi.end) == (16, 18)
    assert (gone.start, gone.context) == (None, 'not "in" it,\non two lines')
    assert gold.log.doubtful.counts.total() == 1
    assert gold.log.rejected.counts == {
        "without a term": 1,
        "not as many columns as the header": 1,
    }
    specific = read_gold(write("c.csv", COMETA), "cometa-specific")
    assert [sorted(query.gold) for query in specific.queries] == [["278860009"], ["2"]]
    assert specific.log.filtered == {"without gold concept (NIL)": 1}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("cometa", 'Term\tExample\tGeneral SNOMED ID\n"' + "x\n" * (5 << 20)),
        ("sample", "[" * 100_000),
        ("sample", '{"a":' * 100_000),
    ],
    ids=["an open quote", "arrays", "objects"],
)
def test_values_without_an_end_are_an_error_of_one_line(write, form, text):
    """Guards: tracebacks of csv.Error and RecursionError."""
    path = write("gold", text)
    with pytest.raises(FormatError) as caught:
        read_gold(str(path), form)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)
