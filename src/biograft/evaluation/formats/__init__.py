"""One reader per format of gold standards; the registry is in ``evaluation.gold``."""
