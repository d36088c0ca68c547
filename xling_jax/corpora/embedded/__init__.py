"""The embedded languages: text with real structure, made here, so that nothing is downloaded.

A sentence is drawn as a derivation (`grammar`), a dependency tree of concepts without words or
order, and then put into words (`linearization`) with a lexicon and a word order. Concepts, not
words, decide what combines with what (`concepts`, `preferences`).

A second language shares the concepts and derivations of the first, and has words, order and
frequencies of its own; `config.EMBEDDED` lists the languages by name. Other packages use
`language.generate` (text of one language), `language.pair_of` (translations, texts and a dictionary
of two), `Language.conllu` and `Language.tagged` (gold trees and names) and `inference.pairs` (pairs
of sentences, and whether the second follows from the first).
"""
