"""The graph of a store: its relations as arrays, embeddings of its entities, their neighbours."""

from __future__ import annotations
