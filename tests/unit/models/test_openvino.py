"""Encoding by OpenVINO gives the vectors of torch, within the tolerance that is stated."""

from __future__ import annotations

import sys

import pytest
from tiny_models import tiny_encoder_folder

from biograft.errors import MissingExtraError
from biograft.models import TextEncoder

MIN_COSINE = {"fp32": 0.999999, "bf16": 0.999}  # as its documentation states
TEXTS = [
    "heart attack",
    "flu",
    "",
    "a very long name of some disorder of the heart",
    "flu",
    "心脏病",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder_folder(tmp_path_factory.mktemp("tiny") / "tiny", TEXTS)


@pytest.fixture(scope="module")
def by_openvino(folder):
    pytest.importorskip("openvino")
    return TextEncoder.from_pretrained(folder, pooling="mean", engine="openvino")


@pytest.mark.parametrize("precision", ["bf16", "fp32"])  # the first converts
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], TEXTS[3:] * 40, []])
def test_vectors_are_those_of_torch(folder, by_openvino, texts, precision):
    """Whatever the number and length of the texts: shapes must not be fixed by the first batch."""
    torch_encoder = TextEncoder.from_pretrained(folder, pooling="mean")
    expected = torch_encoder.encode(texts, precision="fp32", batch_size=2)
    found = by_openvino.encode(texts, precision=precision, batch_size=2)
    assert found.shape == expected.shape
    assert all((found * expected).sum(axis=1) >= MIN_COSINE[precision])


def test_the_fingerprint_does_not_depend_on_the_engine(folder, by_openvino):
    assert by_openvino.fingerprint() == TextEncoder.from_pretrained(folder).fingerprint()


def test_a_missing_package_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'biograft\[openvino\]'"):
        TextEncoder.from_pretrained(folder, engine="openvino")
