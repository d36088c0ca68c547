"""Encoders, their heads, and the shape of the parameter tree."""
