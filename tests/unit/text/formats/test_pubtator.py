import pytest
from hypothesis import strategies as st

from biograft.errors import FormatError, OutputError
from biograft.kb.sources import ReadLog
from biograft.text import read_pubtator, write_pubtator
from biograft.text.documents import Document, Mention, Passage
from biograft.text.formats.pubtator import split_title_abstract


@pytest.fixture
def read(write):
    def of(content, name="a.txt"):
        path = write(name, content)
        log = ReadLog(path)
        return list(read_pubtator(path, log)), log

    return of


class TestReading:
    def test_wrong_offsets_are_corrected(self, read):
        documents, log = read("1|t|no fever, no fever\n1\t15\t22\tfever  \tD\tX\n")
        assert documents[0].mentions == (Mention(13, 18, "fever", ("X",), "D"),)
        assert log.doubtful.counts == {"offsets were corrected": 1}
        example = log.doubtful.examples["offsets were corrected"][0]
        assert (example.line, example.text) == (2, "1\t15\t22\tfever  \tD\tX")

    @pytest.mark.parametrize(
        "row",
        ["0\t5\tcough", "5\t5\t", "90\t95\tfever", "0\t3\t "],
        ids=["absent", "empty", "far", "blank"],
    )
    def test_an_absent_mention_is_rejected_and_counted(self, read, row):
        documents, log = read(f"1|t|a fever\n1\t{row}\tD\tX\n")
        assert documents[0].mentions == ()
        assert log.rejected.counts == {"offsets do not fit the text": 1}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("1|a|abstract\n", r"a.txt:1: no title comes before this"),
            ("1|t|a\n1|a|b\n1|a|c\n", r"a.txt:3: an abstract out of place"),
            ("1|t|a\n2|a|b\n", r"a.txt:2: belongs to document '2', not to '1'"),
            ("1|t|a\n1\t0\tx\ta\tD\tX\n", r"a.txt:2: a mention in other .*found: .*; expected"),
        ],
    )
    def test_malformed_lines_raise_without_a_log(self, write, content, message):
        with pytest.raises(FormatError, match=message):
            list(read_pubtator(write("a.txt", content)))

    def test_malformed_lines_are_rejected_with_a_log(self, read):
        content = "1|t|a b\n2|a|c\n1\t0\t1\n1\t0\t1\ta\tD\tX\n1\n2|t|d\n"
        documents, log = read(content)
        assert [(d.id, len(d.mentions)) for d in documents] == [("1", 1), ("2", 0)]
        locations = [(e.line, e.text) for es in log.rejected.examples.values() for e in es]
        assert sorted(locations) == [(2, "2|a|c"), (3, "1\t0\t1"), (5, "1")]

    @pytest.mark.parametrize("start", ["-1", "+0", "0.0", "-1.5", ".5", "1,000"])
    def test_a_start_that_is_no_whole_number_is_no_relation(self, read, start):
        """Guards: a mention from -1 on became a relation of the type "-1", without a word."""
        documents, log = read(f"1|t|a fever\n1\t{start}\t5\tfever\tD\tX\n")
        assert (documents[0].mentions, documents[0].relations) == ((), ())
        assert log.rejected.counts == {"an offset that is no whole number from 0": 1}


TEXT = st.text(
    st.one_of(
        st.sampled_from("ab .?|-é😀\u0301\u2028\x85"),
        st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]),
    ),
    max_size=40,
)
WORD = st.text(st.sampled_from("aB1:-é"), min_size=1, max_size=6)


@st.composite
def documents(draw):
    text = draw(TEXT)
    mentions = []
    for _ in range(draw(st.integers(0, 3)) if text else 0):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        if "\t" not in text[start:end]:
            concepts = draw(st.lists(WORD.filter(lambda word: word != "-1"), max_size=3))
            mentions.append(Mention(start, end, text[start:end], tuple(concepts), draw(WORD)))
    return Document(draw(WORD), text, tuple(mentions))


class TestWriting:
    @pytest.mark.parametrize(
        ("document", "message"),
        [
            (Document("1", "a\nb"), "document 1: its text holds a line end"),
            (Document("1", "a\ud800"), "half a surrogate pair"),
            (Document("a|b", "a"), r"document id 'a\|b'"),
            (Document("1", "abc", (Mention(0, 2, "ac"),)), "the text has 'ab' there"),
            (Document("1", "a\tb", (Mention(0, 3, "a\tb"),)), "a tab"),
            (Document("1", "a", (Mention(0, 1, "a", ("A|B",)),)), r"concept 'A\|B'"),
        ],
    )
    def test_what_the_format_cannot_hold_is_refused(self, document, message, tmp_path):
        with pytest.raises(OutputError, match=message):
            write_pubtator([document], tmp_path / "a.txt")
        assert not list(tmp_path.iterdir())


def test_an_empty_abstract_takes_nothing_from_the_title(tmp_path):
    """The space before it was lost."""
    passages = (Passage(0, 2, "title"), Passage(2, 2, "abstract"))
    write_pubtator([Document("1", "a ", passages=passages)], tmp_path / "out")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert written == "1|t|a \n1|a|\n\n"
    assert (
        split_title_abstract(Document("1", "a ", passages=passages[1:]))[0].passages == passages[:1]
    )
