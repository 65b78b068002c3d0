import random
import re

import pytest
from hypothesis import given, strategies as st

from biograft.corpus import DictionaryConfig, DictionaryMatch, DictionaryMatcher
from biograft.corpus.dictionary import read_stop_words
from biograft.errors import ConfigError, InputError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.sources import SourceConfig


def matches(names, text, **options):
    matches = DictionaryMatcher(names, DictionaryConfig(**options)).find(text)
    assert all(text[m.start : m.end] == m.text != "" for m in matches)
    return [(m.text, *m.name_rows) for m in matches]


class TestFinding:
    @pytest.mark.parametrize(
        ("name", "text", "expected"),
        [
            ("lung cancer", "A Lung-Cancer, lung\n cancers", ["Lung-Cancer", "lung\n cancers"]),
            ("Crohn's ileus", "Crohn’s ileus, crohns ileus", ["Crohn’s ileus", "crohns ileus"]),
            ("cancer", "cancerous precancer cancer's cancer", ["cancer's", "cancer"]),
            ("tumors", "tumor tumors", ["tumors"]),
            ("bones cancer", "bone cancer", []),
            ("lung cancer", "lung. cancer lung, cancer", []),
            ("diabetes, type 2", "Diabetes, type-2", ["Diabetes, type-2"]),
            ("Sjögren syndrome", "SJO\u0308GREN syndrome", ["SJO\u0308GREN syndrome"]),
            ("strasse", "Straße", ["Straße"]),
            ("fix", "ﬁx", ["ﬁx"]),
            ("糖尿病", "2型糖尿病人", ["糖尿病"]),
            ("2型糖尿病", "12型糖尿病 ２型糖尿病", ["２型糖尿病"]),
            ("か", "か\u3099 かか", []),
            ("HIV感染", "有HIV感染者", ["HIV感染"]),
            ("pain", "😀pain😀", ["pain"]),
            ("pain", "", []),
            ("pain", "\ud800 \0 \u200b", []),
        ],
    )  # fmt: skip
    def test_names_are_found_as_written_in_the_text(self, name, text, expected):
        assert [text for text, _ in matches([name], text)] == expected

    def test_matches_have_offsets_and_name_rows(self):
        matcher = DictionaryMatcher(["skin", "Lung Cancer", "lung-cancer"], rows=[7, 40, 9])
        assert matcher.find("  lung cancers") == [DictionaryMatch(2, 14, "lung cancers", (9, 40))]
        assert matcher.patterns.n_names == 3

    def test_the_leftmost_then_longest_match_is_taken(self):
        names = ["lung cancer", "cancer", "lung", "cancer cell line", "cancer cel"]
        text = "lung cancer cell line, cancer cells"
        assert matches(names, text) == [("lung cancer", 0), ("cancer", 1)]

    def test_overlap_all_returns_all_matches(self):
        names = ["lung cancer", "cancer", "lung", "cancer cell"]
        assert matches(names, "lung cancer cells", overlap="all") == [
            ("lung cancer", 0),
            ("lung", 2),
            ("cancer cells", 3),
            ("cancer", 1),
        ]

    def test_an_exact_match_comes_before_a_plural(self):
        for overlap in ("longest", "all"):
            assert matches(["tumor", "tumors"], "tumors tumor", overlap=overlap) == [
                ("tumors", 1),
                ("tumor", 0),
            ]

    def test_plurals_can_be_disabled(self):
        assert matches(["tumor"], "tumors tumor", plurals=False) == [("tumor", 0)]


class TestCase:
    @pytest.mark.parametrize(
        ("name", "text", "expected"),
        [
            ("AIDS", "aids Aids AIDS", ["AIDS"]),
            ("DM", "dm DM DMs DMS", ["DM", "DMs"]),
            ("IL-2", "IL-2 il-2 IL 2", ["IL-2", "IL 2"]),
            ("HNPCC", "hnpcc HNPCC", ["hnpcc", "HNPCC"]),
            ("cAMP", "camp cAMP", ["cAMP"]),
            ("GRACE", "grace GRACE", ["grace", "GRACE"]),
            ("Skin", "skin SKIN", ["skin", "SKIN"]),
            ("skin", "Skin", ["Skin"]),
        ],
    )
    def test_acronyms_and_common_words_keep_their_case(self, name, text, expected):
        assert [text for text, _ in matches([name], text)] == expected

    def test_a_name_in_the_wrong_case_does_not_hide_a_shorter_one(self):
        assert matches(["a ALS", "ALS", "pain AB"], "als") == []
        assert matches(["DM 1", "DM-1", "fever"], "dm 1 fever") == [("dm 1", 0), ("fever", 2)]
        assert matches(["IL-2", "2 pains"], "il-2 pains") == [("2 pains", 1)]

    def test_the_length_of_acronyms_is_an_option(self):
        assert matches(["HNPCC"], "hnpcc", acronym_length=5) == []
        assert matches(["DM"], "dm", acronym_length=0) == [("dm", 0)]


class TestNames:
    def test_skipped_names_are_counted(self):
        matcher = DictionaryMatcher(["the", "No", "x", "12", "1-2", "--", "", "pain", "α β"])
        assert matcher.patterns.skipped == {"stop word": 2, "short": 3, "number": 2}
        assert [m.text for m in matcher.find("the no x 12 1-2 -- pain α-β")] == ["pain", "α-β"]

    def test_an_empty_dictionary_matches_nothing(self):
        assert matches([], "some text") == []
        assert matches(["the"], "the text") == []

    def test_stop_words_do_not_match(self, write):
        path = write("stop.txt", "Fever\n\n lung-cancer \n")
        names = ["fever", "lung cancer", "pain", "cough"]
        words = ("Pain", *read_stop_words(path))
        assert matches(names, "fever lung cancer pain cough", stop_words=words) == [("cough", 3)]
        with pytest.raises(InputError, match="does not exist"):
            read_stop_words(path.with_name("none"))

    def test_min_length(self):
        assert matches(["癌", "y"], "癌 y", min_length=1) == [("癌", 0), ("y", 1)]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"overlap": "shortest"}, "overlap: expected one of longest, all, found 'shortest'"),
            ({"min_length": 0}, "min_length: expected 1 or more, found 0"),
            ({"acronym_length": -1}, "acronym_length: expected 0 or more, found -1"),
        ],
    )
    def test_invalid_options_are_refused(self, options, message):
        with pytest.raises(ConfigError, match=re.escape(message)):
            DictionaryConfig(**options)


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
        matches = DictionaryMatcher.from_store(base).find("Fever, Fieber and 发热")
        named = [[(base.name(row).text) for row in match.name_rows] for match in matches]
        assert named == [["Fever", "Fever"], ["Fieber"], ["发热"]]

    def test_only_names_of_the_languages_match(self, base):
        matcher = DictionaryMatcher.from_store(base, DictionaryConfig(languages=("zh-CN", "deu")))
        matches = matcher.find("Fever, Fieber and 发热")
        assert [match.text for match in matches] == ["Fieber", "发热"]
        assert base.name(matches[0].name_rows[0]).text == "Fieber"
        nothing = DictionaryMatcher.from_store(base, DictionaryConfig(languages=("fr",)))
        assert nothing.find("Fever") == []


WORDS = ["ab", "abs", "cd", "cds", "ef", "fg", "病", "炎", ",", "ab ab"]


def brute_force(names, text):
    """Every span of tokens that reads like a name, by plain loops."""
    spans = [m.span() for m in re.finditer(r"[a-z]+|[病炎,]", text)]
    every = []
    for i in range(len(spans)):
        for j in range(i, len(spans)):
            words = [text[a:b] for a, b in spans[i : j + 1]]
            exact = [k for k, n in enumerate(names) if re.findall("[a-z]+|[病炎,]", n) == words]
            words[-1] = words[-1].removesuffix("s") if len(words[-1]) > 2 else words[-1]
            plural = [k for k, n in enumerate(names) if re.findall("[a-z]+|[病炎,]", n) == words]
            if exact or plural:
                every.append((spans[i][0], spans[j][1], tuple(exact or plural)))
    return sorted(every, key=lambda match: (match[0], -match[1]))


@pytest.mark.parametrize("seed", range(40))
def test_matches_equal_those_of_plain_loops(seed):
    rng = random.Random(seed)
    names = [" ".join(rng.choices(WORDS[:8], k=rng.randint(1, 3))) for _ in range(8)]
    text = "".join(rng.choice(WORDS) + rng.choice([" ", "-", "  "]) for _ in range(40))
    config = {"min_length": 1}
    every = brute_force(names, text)
    matches = DictionaryMatcher(names, DictionaryConfig(overlap="all", **config)).find(text)
    assert [(m.start, m.end, m.name_rows) for m in matches] == every
    longest, end = [], 0
    for match in every:
        if match[0] >= end:
            longest.append(match)
            end = match[1]
    matches = DictionaryMatcher(names, DictionaryConfig(**config)).find(text)
    assert [(m.start, m.end, m.name_rows) for m in matches] == longest


ODD = st.text(st.sampled_from("abs1 '’-,.\0肺癌ﬁßİ㎎é\u0301\u200b\ufe0f❤😀\ud800"), max_size=12)


@given(names=st.lists(ODD, max_size=5), parts=st.lists(ODD, max_size=5), by=st.data())
def test_offsets_refer_to_the_original_text(names, parts, by):
    config = DictionaryConfig(min_length=1, overlap=by.draw(st.sampled_from(["longest", "all"])))
    matcher = DictionaryMatcher(names, config)
    text = " ".join(by.draw(st.permutations(parts + names)))
    for match in matcher.find(text):
        assert text[match.start : match.end] == match.text
        assert matcher.find(match.text), "a match matches again on its own"
        assert list(match.name_rows) == sorted(set(match.name_rows))


@given(ODD)
def test_a_name_matches_itself(name):
    matcher = DictionaryMatcher([name], DictionaryConfig(min_length=1))
    if matcher.patterns.n_names:
        assert [match.name_rows for match in matcher.find(name)] == [(0,)]
