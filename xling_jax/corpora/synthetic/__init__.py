"""The embedded languages: text with real structure, made here, so that nothing is downloaded.

A sentence is drawn as a derivation (`grammar`), a dependency tree of concepts that names no word
and no order, and is then put into words (`linearization`) with a lexicon and a word order. What
combines with what (`ontology`, `concepts`, `preferences`) belongs to the concepts.
"""
