"""The embedded languages: text with real structure, made here, so that nothing is downloaded.

A sentence is drawn as a derivation (`grammar`), a dependency tree of concepts that names no word
and no order, and is then put into words (`linearization`) with a lexicon and a word order. What
combines with what (`ontology`, `concepts`, `preferences`) belongs to the concepts.

A second language (`second`) shares the concepts and derivations of the first, and has its own words
(`second_lexicon`, `morphology`), order (`word_order`) and frequencies (`domain`); `pair` gives the
texts of both. From the same derivations come gold trees (`trees`), names (`entities`) and sentences
that follow from each other or do not (`inference`).
"""
