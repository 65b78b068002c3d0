"""Published checkpoints with random weights."""

import pytest
from kebiolm_files import published_folder


@pytest.fixture
def published(tmp_path):
    """Write one: ``published(head=False)``."""

    def write(**options):
        return published_folder(tmp_path / "published", **options)

    return write
