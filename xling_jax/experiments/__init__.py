"""The papers' experiments, a folder each."""
