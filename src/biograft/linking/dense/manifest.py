"""The folder of a dense index: its files, and the manifest that is written last.

==================  =================================================================
``vectors.npy``     a vector a distinct text (with int8 also ``scales.npy``)
``texts.arrow``     the distinct texts, as the encoder saw them
``name_starts.npy`` where the names of each text begin in ``name_rows.npy``, and one end more
``name_rows.npy``   rows of the store's table of names, grouped by text
``encoder/``        the encoder itself, so that the index can be used without anything else
``graph.faiss``     the graph of neighbours, if the search is to be approximate
==================  =================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biograft.manifests import Kind, file_sizes
from biograft.runs import hash_file

DENSE_INDEX = Kind(
    format="biograft-dense-index",
    version=1,
    called="dense index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("config", "store", "encoder", "n_texts", "n_names", "dim", "largest_norm", "files"),
)


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Write the manifest of a finished folder, with the size and hash of every file."""
    (folder / DENSE_INDEX.file).unlink(missing_ok=True)  # of an attempt that was not put in place
    files = {
        name: {"bytes": size, "sha256": hash_file(folder / name)}
        for name, size in file_sizes(folder).items()
    }
    DENSE_INDEX.write(folder, {**content, "files": files})


def check_hashes(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse an index of which a file is not as it was written."""
    for name, entry in manifest["files"].items():
        if hash_file(folder / name) != entry["sha256"]:
            raise DENSE_INDEX.damaged(folder / name, "not as it was written")
