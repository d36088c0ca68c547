"""Functions of parameters and held-out text that return named numbers."""
