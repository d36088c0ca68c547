"""Linear algebra on matrices of points (rows), jitted, and the alignment of words; no models."""
