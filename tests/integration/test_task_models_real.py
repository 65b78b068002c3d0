"""The public NER and relation files as tasks read them: sizes as stated, little lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from biograft.models import TextEncoder
from biograft.models.tasks import (
    TASKS,
    NerConfig,
    NerModel,
    RelationConfig,
    RelationModel,
    TaskDataConfig,
)

NER = {
    "BC5CDR-chem": ("train.tsv", 4560, 5203),
    "BC5CDR-disease": ("train.tsv", 4560, 4182),
    "NCBI-disease": ("train.tsv.gz", 5424, 5134),
    "BC2GM": ("test.tsv.gz", 5038, 6325),
    "JNLPBA_untyped": ("devel.tsv", 1739, 4551),
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> TextEncoder:
    from biograft.models import make_character_encoder

    folder = tmp_path_factory.mktemp("encoder")
    make_character_encoder(["abcdefghijklmnopqrstuvwxyz0123456789-()@$,.;:"], folder, width=16)
    return TextEncoder.from_pretrained(folder)


@pytest.mark.parametrize("name", list(NER))
def test_every_entity_of_a_public_set_is_learned_whole(name, encoder, shared_data):
    file, n_sentences, n_entities = NER[name]
    path = shared_data(f"ner_en/{name}/{file}")
    found = TASKS.load("ner").read([str(path)], "train", TaskDataConfig())
    documents = found.examples
    assert sum(len(document.passages) for document in documents) == n_sentences
    assert not found.rejected
    model = NerModel.from_examples(encoder, NerConfig(overlap=16), documents)
    whole = model.report(documents, documents)
    assert (whole.micro.right, list(whole.classes)) == (n_entities, list(model.labels))
    windows, lost = model.training_items(documents[:500])
    assert not lost
    begun = sum(
        1
        for w in windows
        for word, tag in enumerate(w.tags)
        if tag == 1 and w.own[0] <= w.first + word < w.own[1]
    )
    assert begun == sum(len(document.mentions) for document in documents[:500])


def ddi(shared_data, part) -> tuple[Path, TaskDataConfig]:
    listed = shared_data("re_en/ddi2013/blurb_dev.tsv")
    path = shared_data("re_en/ddi2013/DDICorpus-2013.zip")
    return path, TaskDataConfig(format="ddi", dev_list=str(listed))


def test_ddi_has_its_labels_and_indicators(encoder, shared_data):
    path, data = ddi(shared_data, "dev")
    examples = TASKS.load("relation").read([str(path)], "dev", data).examples
    model = RelationModel.from_examples(encoder, RelationConfig(), examples)
    assert model.labels == ("false", "advise", "effect", "int", "mechanism")
    assert model.positive == model.labels[1:]
    pairs, lost = model.training_items(examples[:200])
    drug = encoder.tokenizer.convert_tokens_to_ids("@DRUG$")
    assert all(pair.tokens[pair.positions[1]] == drug for pair in pairs)
    assert set(lost) <= {"texts cut around their mentions"}
