"""Linear algebra on matrices of points (rows), jitted; no models."""
