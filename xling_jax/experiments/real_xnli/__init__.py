"""Dufter & Schütze 2020, §5: the ablations of Fake-English on natural languages."""
