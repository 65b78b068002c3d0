import pytest

from biograft.text import Cleaner, CleaningConfig
from biograft.text.cleaning import cut_at_punctuation
from biograft.text.documents import Document, Mention


def cleaned(text, **options):
    cleaner = Cleaner(CleaningConfig(**options))
    return cleaner.clean_text(text), dict(cleaner.report.counts)


class TestSteps:
    @pytest.mark.parametrize(
        ("text", "expected", "steps"),
        [
            ("CO<sub>2</sub> <p>rose</p>", "CO2 rose", {"tags": 4, "whitespace": 1}),
            ("a<!-- x > y -->b<script>var x = '<p>';</script>c", "a b c", {"tags": 2}),
            ("p < 0.05 and x > 3, A<b>C", "p < 0.05 and x > 3, AC", {"tags": 1}),
            ("p &lt; 0.05 &amp; AT&T &alpha;", "p < 0.05 & AT&T α", {"entities": 3}),
            ("see https://a.org/b?c=d. Then", "see . Then", {"urls": 1, "whitespace": 1}),
            ("www.a.com 和 WWW.B.CN", "和", {"urls": 2, "whitespace": 2}),
            ("to a.b-c@d-e.co.uk, or @x", "to , or @x", {"emails": 1, "whitespace": 1}),
            ("发热\u200b😀★ 37 °C ± 0.5 ℃", "发热 37 °C ± 0.5 ℃", {"symbols": 1}),
            ("a\t b\u3000c\nd", "a b c\nd", {"whitespace": 2}),
        ],
    )
    def test_each_step_is_counted(self, text, expected, steps):
        text, counts = cleaned(text)
        assert text == expected
        assert counts == steps

    @pytest.mark.parametrize("text", ["a" * 300_000, "<" * 50_000, "a@" * 50_000, "&a" * 50_000])
    def test_pathological_text_is_cleaned_in_linear_time(self, text):
        assert cleaned(text)[0] == text


class TestDocuments:
    def test_short_and_empty_documents_are_dropped_and_counted(self):
        cleaner = Cleaner(CleaningConfig(min_length=5))
        documents = [Document("1", "<br>"), Document("2", "abcd"), Document("3", "abcde")]
        assert [d.id for each in documents for d in cleaner.clean(each)] == ["3"]
        assert dict(cleaner.report.counts) == {"tags": 1, "empty": 1, "short": 1}

    def test_long_documents_are_split_into_segments(self):
        cleaner = Cleaner(CleaningConfig(max_length=8))
        document = Document("7", "咳嗽三天。发热，头痛。无皮疹", (Mention(0, 2, "咳嗽"),), "zh")
        cleaned_documents = list(cleaner.clean(document))
        assert cleaned_documents == [
            Document("7#1", "咳嗽三天。", (), "zh"),
            Document("7#2", "发热，头痛。", (), "zh"),
            Document("7#3", "无皮疹", (), "zh"),
        ]
        assert cleaner.report.counts["cut"] == 1


class TestCutting:
    def test_text_without_punctuation_is_split_at_the_limit(self):
        assert cut_at_punctuation("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]

    def test_segments_are_full_and_lose_nothing(self):
        text = "One two. Three 3.5 mg, four; five six seven eight nine. Ten! 十一，十二。" * 20
        for longest in (11, 30, 64, 512):
            segments = cut_at_punctuation(text, longest)
            assert max(map(len, segments)) <= longest
            assert "".join("".join(segments).split()) == "".join(text.split())
        assert all(s.endswith((".", "!", "。")) for s in cut_at_punctuation(text, 512))
