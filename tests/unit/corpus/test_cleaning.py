import pytest

from biograft.corpus.cleaning import Cleaner, CleaningConfig, cut_at_punctuation
from biograft.documents import Document, Mention
from biograft.errors import ConfigError


def cleaned(text, **options):
    cleaner = Cleaner(CleaningConfig(**options))
    return cleaner.clean_text(text), dict(cleaner.report.counts)


class TestSteps:
    @pytest.mark.parametrize(
        ("text", "expected", "steps"),
        [
            ("CO<sub>2</sub> <p>rose</p>", "CO2 rose", {"tags": 4, "blanks": 1}),
            ("a<!-- x > y -->b<script>var x = '<p>';</script>c", "a b c", {"tags": 2}),
            ("p < 0.05 and x > 3, A<b>C", "p < 0.05 and x > 3, AC", {"tags": 1}),
            ("5 < age > 3, <patient>", "5 < age > 3, <patient>", {}),
            ("p &lt; 0.05 &amp; AT&T &alpha;", "p < 0.05 & AT&T α", {"entities": 3}),
            ("see https://a.org/b?c=d. Then", "see . Then", {"urls": 1, "blanks": 1}),
            ("详见http://www.a.com/b,电话", "详见 ,电话", {"urls": 1}),
            ("www.a.com 和 WWW.B.CN", "和", {"urls": 2, "blanks": 2}),
            ("the www. of it", "the www. of it", {}),
            ("to a.b-c@d-e.co.uk, or @x", "to , or @x", {"emails": 1, "blanks": 1}),
            ("发热\u200b😀★ 37 °C ± 0.5 ℃", "发热 37 °C ± 0.5 ℃", {"signs": 1}),
            ("a\t b\u3000c\nd", "a b c\nd", {"blanks": 2}),
            ("Crohn's disease, α-synuclein", "Crohn's disease, α-synuclein", {}),
        ],
    )  # fmt: skip
    def test_each_takes_out_its_own_and_counts_it(self, text, expected, steps):
        text, counts = cleaned(text)
        assert text == expected
        assert counts == steps

    def test_steps_can_be_left_out(self):
        text = "<b>x</b> a@b.org www.a.com ★"
        assert cleaned(text, html=False, urls=False, emails=False, signs=False)[0] == text

    @pytest.mark.parametrize("text", ["a" * 300_000, "<" * 50_000, "a@" * 50_000, "&a" * 50_000])
    def test_odd_text_takes_no_odd_time(self, text):
        assert cleaned(text)[0] == text


class TestDocuments:
    def test_short_and_empty_ones_are_dropped_and_counted(self):
        cleaner = Cleaner(CleaningConfig(min_length=5))
        documents = [Document("1", "<br>"), Document("2", "abcd"), Document("3", "abcde")]
        assert [d.id for each in documents for d in cleaner.clean(each)] == ["3"]
        assert dict(cleaner.report.counts) == {"tags": 1, "empty": 1, "short": 1}

    def test_long_ones_are_cut_into_named_segments(self):
        cleaner = Cleaner(CleaningConfig(max_length=8))
        document = Document("7", "咳嗽三天。发热，头痛。无皮疹", (Mention(0, 2, "咳嗽"),), "zh")
        found = list(cleaner.clean(document))
        assert found == [
            Document("7#1", "咳嗽三天。", (), "zh"),
            Document("7#2", "发热，头痛。", (), "zh"),
            Document("7#3", "无皮疹", (), "zh"),
        ]
        assert cleaner.report.counts["cut"] == 1

    @pytest.mark.parametrize("options", [{"min_length": -1}, {"min_length": 9, "max_length": 8}])
    def test_impossible_lengths_are_refused(self, options):
        with pytest.raises(ConfigError, match=r"m.._length: expected"):
            CleaningConfig(**options)


class TestCutting:
    def test_cuts_are_as_late_as_they_can_be_and_lose_nothing(self):
        text = "One two. Three 3.5 mg, four; five six seven eight nine. Ten! 十一，十二。" * 20
        for longest in (11, 30, 64, 512):
            segments = cut_at_punctuation(text, longest)
            assert max(map(len, segments)) <= longest
            assert "".join("".join(segments).split()) == "".join(text.split())
        assert all(s.endswith((".", "!", "。")) for s in cut_at_punctuation(text, 512))

    def test_a_decimal_is_no_place_to_cut(self):
        assert cut_at_punctuation("aaaaaaa 3.5,6 bbbbbbb", 12) == ["aaaaaaa", "3.5,6", "bbbbbbb"]

    def test_without_punctuation_the_limit_decides(self):
        assert cut_at_punctuation("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]
