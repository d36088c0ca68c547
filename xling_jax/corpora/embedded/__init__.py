"""The embedded languages: text with real structure, made here, so that nothing is downloaded.

A sentence is drawn as a derivation (`grammar`), a dependency tree of concepts that names no word
and no order, and is then put into words (`linearization`) with a lexicon and a word order. What
combines with what (`concepts`, `preferences`) belongs to the concepts.

A second language shares the concepts and derivations of the first, and has words, order and
frequencies of its own; `config.EMBEDDED` names them. From outside come `language.generate` (text
of one language), `language.pair_of` (translations, texts and a dictionary of two),
`Language.conllu` and `Language.tagged` (gold trees and names) and `inference.pairs` (sentences that
follow from each other or do not).
"""
