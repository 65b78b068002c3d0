from biograft.corpus.dictionary import DictionaryMatcher
from biograft.documents import Document, Mention
from biograft.linking.mentions import DictionaryDetector, GivenMentions, MentionDetector

GIVEN = (Mention(0, 6, "Fevers", ("D005334",), "Disease"),)
DOCUMENT = Document("1", "Fevers and breast-cancer.", GIVEN)


def test_given_mentions_are_given_back():
    detector: MentionDetector = GivenMentions()
    assert detector.detect(DOCUMENT) == list(GIVEN)
    assert detector.detect(Document("2", "no mention")) == []


def test_a_dictionary_finds_its_names_and_leaves_the_concepts_open():
    detector: MentionDetector = DictionaryDetector(DictionaryMatcher(["breast cancer", "fever"]))
    assert detector.detect(DOCUMENT) == [
        Mention(0, 6, "Fevers"),
        Mention(11, 24, "breast-cancer"),
    ]
    assert detector.detect(Document("2", "")) == []
