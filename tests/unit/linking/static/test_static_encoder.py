from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from manifests import reseal

from biograft.artifacts import MANIFEST
from biograft.errors import ConfigError, StoreError
from biograft.linking import StaticEncoder, load_encoder, quantise
from biograft.linking.static import TOKENS

NAMES = [
    "heart attack",
    "Heart  ATTACK",
    "attack heart",
    "心脏病",
    "type 2 diabetes",
    "?!",
    "",
    "a" * 99,
]


def by_loops(encoder: StaticEncoder, text: str) -> np.ndarray:
    """Encode a text with plain loops in 64 bits."""
    weights = encoder.weights
    parts = encoder.prepare(text).split()
    rows = [row for part in parts for row in encoder.tokenizer.rows_of_part(part)]
    rows = rows[: encoder.settings.max_length]
    if not rows:
        return np.zeros(encoder.dim)
    table = weights.table.astype(np.float64) * weights.scales[:, None]
    factors = [np.exp(float(weights.importance[row])) for row in rows]
    pooled = sum(f * table[row] for f, row in zip(factors, rows, strict=True)) / sum(factors)
    vector = pooled @ weights.projection
    hidden = np.maximum(vector @ weights.expand + weights.bias, 0)
    vector = vector + hidden @ weights.contract
    return vector / np.linalg.norm(vector)


def test_vectors_are_those_of_plain_loops(random_encoder):
    encoder = random_encoder()
    vectors = encoder.encode(NAMES)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(NAMES), 12))
    for name, vector in zip(NAMES, vectors, strict=True):
        np.testing.assert_allclose(vector, by_loops(encoder, name), atol=1e-5)
    assert not vectors[NAMES.index("")].any()
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)  # the order does not count


def test_many_names_are_encoded_as_each_alone(random_encoder):
    encoder, rng = random_encoder(), np.random.default_rng(0)
    names = ["".join(rng.choice(list("abc de")) for _ in range(12)) for _ in range(2500)]
    vectors = encoder.encode(names)
    for row in range(0, 2500, 100):
        np.testing.assert_allclose(vectors[row], encoder.encode([names[row]])[0], atol=1e-6)


def test_a_table_is_rounded_to_eight_bits_with_a_scale_a_row():
    table = np.random.default_rng(0).normal(size=(20, 7)).astype(np.float32)
    table[3] = 0
    rounded, scales = quantise(table)
    assert (rounded.dtype, np.abs(rounded).max()) == (np.int8, 127)
    error = np.abs(rounded * scales[:, None] - table)
    assert (error <= np.abs(table).max(axis=1, keepdims=True) / 254 * 1.0001).all()


def test_an_encoder_comes_back_from_its_folder(random_encoder, tmp_path):
    encoder = random_encoder()
    encoder.save_pretrained(tmp_path / "E")
    loaded = load_encoder(tmp_path / "E")
    assert isinstance(loaded, StaticEncoder)
    np.testing.assert_array_equal(loaded.encode(NAMES), encoder.encode(NAMES))
    assert loaded.fingerprint() == encoder.fingerprint()
    assert (loaded.folder, loaded.settings) == (tmp_path / "E", encoder.settings)
    loaded.save_pretrained(tmp_path / "E", overwrite=True)  # over the files that it maps
    assert load_encoder(tmp_path / "E").fingerprint() == encoder.fingerprint()


def test_the_fingerprint_depends_on_all_that_decides_the_vectors(random_encoder):
    encoder = random_encoder()
    others = [random_encoder(seed=1), random_encoder(), random_encoder(), random_encoder()]
    others[1].settings = replace(encoder.settings, max_length=15)
    others[2].tokenizer.settings = replace(encoder.tokenizer.settings, lowercase=False)
    others[3].weights.bias[0] += 1
    prints = {other.fingerprint() for other in (encoder, *others)}
    assert len(prints) == 5
    assert random_encoder().fingerprint() == encoder.fingerprint()


@pytest.mark.parametrize("setting", ["pooling", "max_length", "lower"])
def test_settings_of_a_static_encoder_are_fixed(random_encoder, tmp_path, setting):
    random_encoder().save_pretrained(tmp_path / "E")
    value = {"pooling": "cls", "max_length": 3, "lower": False}[setting]
    with pytest.raises(ConfigError, match=f"{setting}: .*E is a static encoder"):
        load_encoder(tmp_path / "E", **{setting: value})


def damage_weights(folder, name, change):
    array = np.load(folder / f"{name}.npy")
    np.save(folder / f"{name}.npy", change(array))


def damage_json(folder, name, change):
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))


def nan(array):
    array[0] = np.nan
    return array


DAMAGES = {
    "cut": lambda f: (f / "table.npy").write_bytes((f / "table.npy").read_bytes()[:-3]),
    "missing": lambda f: (f / "bias.npy").unlink(),
    "nan": lambda f: damage_weights(f, "projection", nan),
    "infinite importance": lambda f: damage_weights(f, "importance", lambda a: a + np.inf),
    "negative scale": lambda f: damage_weights(f, "scales", np.negative),
    "fewer rows": lambda f: damage_weights(f, "table", lambda a: a[:-1]),
    "another type": lambda f: damage_weights(f, "table", lambda a: a.astype(np.int16)),
    "another width": lambda f: damage_weights(f, "contract", lambda a: a[:, :-1]),
    "token twice": lambda f: damage_json(f, TOKENS, lambda c: c[0].__setitem__(1, c[0][2])),
    "no unknown token": lambda f: damage_json(f, TOKENS, lambda c: c[0].__setitem__(0, "x0")),
    "fewer tokens": lambda f: damage_json(f, TOKENS, lambda c: c[0].pop()),
    "a token that is no text": lambda f: damage_json(f, TOKENS, lambda c: c[0].__setitem__(1, 5)),
    "tokens that are no list": lambda f: (f / TOKENS).write_text("[3, 4]"),
    "another pooling": lambda f: damage_json(
        f, MANIFEST, lambda c: c["settings"].update(pooling="mean")
    ),
    "no length": lambda f: damage_json(f, MANIFEST, lambda c: c["settings"].update(max_length=0)),
    "unknown setting": lambda f: damage_json(f, MANIFEST, lambda c: c["tokenizer"].update(a=1)),
    "another version": lambda f: damage_json(f, MANIFEST, lambda c: c.update(version=3)),
    "a key is missing": lambda f: damage_json(f, MANIFEST, lambda c: c.pop("tokenizer")),
}


def files_of(folder):
    return json.loads((folder / MANIFEST).read_text())["files"]


def record_files(folder):
    reseal(folder / MANIFEST)


def test_a_changed_byte_is_found_by_its_hash(random_encoder, tmp_path):
    random_encoder().save_pretrained(tmp_path / "E")
    damage_weights(tmp_path / "E", "table", np.negative)
    with pytest.raises(StoreError, match=r"table\.npy: damaged \(its content"):
        StaticEncoder.from_pretrained(tmp_path / "E")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_folder_is_refused_in_one_line(random_encoder, tmp_path, damage):
    folder = tmp_path / "E"
    random_encoder().save_pretrained(folder)
    damage(folder)
    if all((folder / name).exists() for name in files_of(folder)):
        record_files(folder)  # so that sizes and hashes do not reveal it
    with pytest.raises(StoreError) as caught:
        StaticEncoder.from_pretrained(folder)
    assert "train it again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_manifest_is_no_static_encoder(random_encoder, tmp_path):
    random_encoder().save_pretrained(tmp_path / "E")
    shutil.copytree(tmp_path / "E", tmp_path / "F")
    (tmp_path / "F" / MANIFEST).unlink()
    with pytest.raises(StoreError, match="linker-static"):
        StaticEncoder.from_pretrained(tmp_path / "F")


def test_a_text_of_a_script_that_was_not_learned_has_no_vector(random_encoder, tmp_path):
    encoder = random_encoder()
    encoder.scripts = ("LATIN",)
    encoder.save_pretrained(tmp_path / "E")
    loaded = load_encoder(tmp_path / "E")
    texts = ["heart attack", "心脏病", "2型 attack", "Ⅱ型DM", "β attack", "?", "инфаркт"]
    assert [bool(loaded.prepare(text)) for text in texts] == [
        True,
        False,
        True,
        False,
        True,
        True,
        False,
    ]
    assert [bool(vector.any()) for vector in loaded.encode(texts)] == [
        bool(loaded.prepare(text)) for text in texts
    ]
    assert random_encoder().encode(["心脏病"]).any()  # no scripts: all are read
    assert loaded.fingerprint() != random_encoder().fingerprint()
