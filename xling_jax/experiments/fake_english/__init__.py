"""Fake-English (Dufter & Schütze 2020): from a config to results."""
