import numpy as np
import pytest
from array_damage import DAMAGES, damage, put
from hypothesis import given, settings, strategies as st
from naive_names import naive_find, naive_matches

from biograft.artifacts import MANIFEST
from biograft.compute import BUDGET, MAX_UNCOMPILED
from biograft.errors import StoreError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.text import NameMatch, NamesIndex, NamesIndexConfig
from biograft.text.names_index import NameArrays


def matches(names, text, **options):
    matches = NamesIndex.build(names, NamesIndexConfig(**options)).find(text)
    assert all(text[m.start : m.end] == m.text != "" for m in matches)
    return [(m.text, *m.name_rows) for m in matches]


class TestFinding:
    @pytest.mark.parametrize(
        ("name", "text", "expected"),
        [
            ("lung cancer", "A Lung-Cancer, lung\n cancers", ["Lung-Cancer", "lung\n cancers"]),
            ("Crohn's ileus", "Crohn’s ileus, crohns ileus", ["Crohn’s ileus", "crohns ileus"]),
            ("cancer", "cancerous precancer cancer's cancer", ["cancer's", "cancer"]),
            ("Hip Fractures", "Left hip fracture", ["hip fracture"]),
            ("Parkinson Disease", "Parkinson's disease", ["Parkinson's disease"]),
            ("hemorrhage", "haemorrhages Hæmorrhage", ["haemorrhages", "Hæmorrhage"]),
            ("oesophageal biopsies", "esophageal biopsy", ["esophageal biopsy"]),
            ("hi", "his", []),
            ("TNF-alpha", "TNFα TNF-α", ["TNFα", "TNF-α"]),
            ("β thalassemia", "Beta-thalassaemia", ["Beta-thalassaemia"]),
            ("mu", "5 μg, μ", ["μ"]),
            ("tumor", "oedemaµ tumours", ["tumours"]),
            ("oedemaµ", "tumor oedemaµ", ["oedemaµ"]),
            ("type 2 diabetes", "Type II diabetes", ["Type II diabetes"]),
            ("type I error", "type 1 errors, type V errors", ["type 1 errors"]),
            ("2型病", "二型病 Ⅱ型病 II 型病 十二型病", ["二型病", "Ⅱ型病", "II 型病"]),
            ("lung cancer", "lung. cancer lung, cancer", []),
            ("Sjögren syndrome", "SJO\u0308GREN syndrome", ["SJO\u0308GREN syndrome"]),
            ("fix", "ﬁx", ["ﬁx"]),
            ("2型糖尿病", "12型糖尿病 ２型糖尿病", ["２型糖尿病"]),
            ("か", "か\u3099 かか", []),
            ("pain", "😀pain😀", ["pain"]),
            ("pain", "\ud800 \0 \u200b", []),
        ],
    )
    def test_names_are_found_as_written_in_the_text(self, name, text, expected):
        assert [text for text, _ in matches([name], text)] == expected

    def test_matches_have_offsets_and_name_rows(self):
        matcher = NamesIndex.build(["skin", "Lung Cancer", "lung-cancer"], rows=[7, 40, 9])
        assert matcher.find("  lung cancers") == [NameMatch(2, 14, "lung cancers", (9, 40))]
        assert matcher.n_names == 3

    def test_words_of_texts_are_normalised_when_first_seen(self, monkeypatch):
        """The table of such words is begun anew when it is full."""
        monkeypatch.setattr("biograft.text.vocabulary._MAX_KNOWN", 3)
        index = NamesIndex.build(["kidney stones", "tumor"])
        texts = ["a kidney stone", "several kidneys stone", "one tumour", "no tumours here"]
        for _ in range(3):
            found = [[m.text for m in of] for text in texts for of in [index.find(text)]]
            assert found == [["kidney stone"], ["kidneys stone"], ["tumour"], ["tumours"]]


class TestCase:
    @pytest.mark.parametrize(
        ("name", "text", "expected"),
        [
            ("AIDS", "aids Aids AIDS", ["AIDS"]),
            ("DM", "dm DM DMs DMS", ["DM", "DMs"]),
            ("IL-2", "IL-2 il-2 IL 2", ["IL-2", "IL 2"]),
            ("cAMP", "camp cAMP", ["cAMP"]),
            ("Skin", "skin SKIN", ["skin", "SKIN"]),
        ],
    )
    def test_acronyms_and_common_words_keep_their_case(self, name, text, expected):
        assert [text for text, _ in matches([name], text)] == expected


class TestStore:
    @pytest.fixture
    def base(self, write, tmp_path):
        path = write(
            "a.jsonl",
            '{"id": "A", "name": "Fever", "names": [{"text": "Fieber", "language": "de"}]}\n'
            '{"id": "B", "name": "cough", "names": ["Fever", "fevers"]}\n'
            '{"id": "C", "name": "fire", "names": [{"text": "发热", "language": "zh"}]}\n',
        )
        source = SourceConfig(path=path, format="jsonl")
        build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
        return KnowledgeBase.open(tmp_path / "kb")

    def test_rows_are_those_of_the_store(self, base):
        matches = NamesIndex.from_store(base).find("Fever, Fieber and 发热")
        named = [[(base.name(row).text) for row in match.name_rows] for match in matches]
        assert named == [["Fever", "Fever"], ["Fieber"], ["发热"]]

    def test_only_names_of_the_languages_match(self, base):
        matcher = NamesIndex.from_store(base, NamesIndexConfig(languages=("zh-CN", "deu")))
        matches = matcher.find("Fever, Fieber and 发热")
        assert [match.text for match in matches] == ["Fieber", "发热"]
        assert base.name(matches[0].name_rows[0]).text == "Fieber"
        nothing = NamesIndex.from_store(base, NamesIndexConfig(languages=("fr",)))
        assert nothing.find("Fever") == []

    def test_excluded_rows_do_not_match(self, base):
        """Stop words name rows of the store, whatever else has the same tokens."""
        index = NamesIndex.from_store(base)
        fewer = index.without(base.name_rows("Fever!"))
        assert base.name_rows("Fever!") == [0, 3]
        assert [m.text for m in fewer.find("Fever, fevers, cough")] == ["fevers", "cough"]
        assert [m.text for m in index.find("Fever, fevers")] == ["Fever", "fevers"]


PARTS = st.sampled_from(
    "ab abs cd cds EF eF Skin skin SKIN cat CAT cAMP the No 病 炎 , - ' IL-2 ½ 1 12 DM aids AIDS s "
    "tumors tumor tumour type types ii I x Type 二 型 十 α Α β μ mu alpha his 3 ＣＡＴ Ａｂ ﬁ ß é "
    "e\u0301 か\u3099 か \u0301 \u200b \0 \ud800 ⅲ ㎎ ´".split(" ")
)
TEXT = st.lists(st.tuples(PARTS, st.sampled_from(["", " ", "-", "  "])), max_size=8).map(
    lambda pairs: "".join(part + space for part, space in pairs)
)


@settings(max_examples=100, deadline=None)
@given(names=st.lists(TEXT, max_size=6), text=TEXT, by=st.data())
def test_matches_equal_those_of_plain_loops(names, text, by):
    config = NamesIndexConfig(
        min_length=by.draw(st.integers(1, 3)), acronym_length=by.draw(st.integers(0, 5))
    )
    text = " ".join(by.draw(st.permutations([*names, text])))
    index = NamesIndex.build(names, config)
    assert [(m.start, m.end, m.name_rows) for m in index.find(text)] == naive_find(
        names, text, config
    )
    found = index.search(["x", text])
    columns = (column.tolist() for column in found)
    every = [
        (start, end, rows)
        for _, start, end, pattern in zip(*columns, strict=True)
        if (rows := index.rows_of(pattern, text[start:end]))
    ]
    assert every == naive_matches(names, text, config)


ODD = st.text(st.sampled_from("abs1 '’-,.\0肺癌ﬁßİ㎎é\u0301\u200b\ufe0f❤😀\ud800"), max_size=12)


@given(names=st.lists(ODD, max_size=5), parts=st.lists(ODD, max_size=5), by=st.data())
def test_offsets_refer_to_the_original_text(names, parts, by):
    index = NamesIndex.build(names, NamesIndexConfig(min_length=1))
    text = " ".join(by.draw(st.permutations(parts + names)))
    for match in index.find(text):
        assert text[match.start : match.end] == match.text
        assert index.find(match.text), "a match matches again on its own"
        assert list(match.name_rows) == sorted(set(match.name_rows))


def test_a_function_word_with_an_invisible_character_is_no_name():
    index = NamesIndex.build(["a\ufe0f", "is\u200b", "a\ufe0fb"], NamesIndexConfig(min_length=1))
    assert (index.n_names, index.find("a is a\ufe0f")) == (1, [])


def test_many_names_are_built_in_blocks(monkeypatch):
    monkeypatch.setattr("biograft.text.names_index._BLOCK", 3)
    names = [f"name {k} of {k % 7}" for k in range(50)] + ["AB", "病" * 70]
    index = NamesIndex.build(names)
    assert index.find_many(names) == [[NameMatch(0, len(n), n, (k,))] for k, n in enumerate(names)]
    text = "病" * 300  # more matches than tokens
    assert len(NamesIndex.build(["病" * k for k in range(2, 9)]).search([text]).start) == 2072


class TestFiles:
    NAMES = ("lung cancer", "cAMP", "cancer cell", "肺癌", "DM", "lungs")
    TEXT = "lung cancer cells, cAMP camp 肺癌 DM dm lung"

    @pytest.fixture
    def folder(self, tmp_path):
        NamesIndex.build(self.NAMES).save(tmp_path / "names", "these", len(self.NAMES))
        return tmp_path / "names"

    def test_an_opened_index_finds_the_same(self, folder):
        opened, built = NamesIndex.open(folder, "these"), NamesIndex.build(self.NAMES)
        assert opened.find(self.TEXT) == built.find(self.TEXT)
        assert [m.text for m in opened.find(self.TEXT)] == [
            "lung cancer",
            "cAMP",
            "肺癌",
            "DM",
            "lung",
        ]
        assert (opened.config, opened.n_names) == (built.config, 6)
        assert not any(array.flags.writeable for array in opened.arrays)
        assert all(isinstance(array.base, np.memmap) for array in opened.arrays)

    @pytest.mark.parametrize("steps", [0, MAX_UNCOMPILED], ids=["compiled", "uncompiled"])
    @pytest.mark.parametrize("how", DAMAGES)
    @pytest.mark.parametrize("name", NameArrays._fields)
    def test_damaged_arrays_are_refused_or_do_no_harm(self, folder, monkeypatch, name, how, steps):
        """Compiled loops read whatever a wrong number leads to."""
        monkeypatch.setattr(BUDGET, "left", steps)
        damage(folder, name, how)
        try:
            found = NamesIndex.open(folder, "these").find(self.TEXT)
        except StoreError:
            return
        for match in found:
            assert all(row < len(self.NAMES) for row in match.name_rows)

    def test_other_names_are_refused(self, folder):
        with pytest.raises(StoreError, match="built from other names; run `biograft index` again"):
            NamesIndex.open(folder, "those")

    def test_a_full_table_of_tokens_is_refused(self, folder):
        """A look-up in it would never end."""
        slots = np.load(folder / "slots.npy")
        put(folder, "slots", np.where(slots == 0, np.uint64(1 << 40), slots))
        index = NamesIndex.open(folder, "these")
        with pytest.raises(StoreError, match=r"damaged \(slots"):
            index.find("nameless")

    def test_a_file_cut_short_is_refused(self, folder):
        path = folder / "tokens.npy"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(StoreError, match=r"tokens.npy: damaged .*run `biograft index` again"):
            NamesIndex.open(folder, "these")
        assert (folder / MANIFEST).exists()
