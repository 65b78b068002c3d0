"""The laboratory of biograft: what re-tests the papers, probes models, and tries to break it."""
