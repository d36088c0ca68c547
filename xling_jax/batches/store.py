"""The token ids of a corpus."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import numpy as np

from xling_jax.batches.token_files import TokenFiles

MOST_TOKENS = 2**31 - 1
SPECIAL_PLACES = 2  # [CLS] before and [SEP] after every sentence


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TokenStore:
    """Sentences of several languages in one flat array, from which a step gathers.

    Languages follow each other, each in the order of its text: in parallel texts of n sentences,
    sentence i of language k has index k * n + i.

    Attributes:
      tokens: int32 [total], the pieces of all sentences, without [CLS] and [SEP].
      offsets: int32 [S + 1], where each sentence begins; the last entry is the total.
      languages: int32 [S], the index of each sentence's language.
      truncated: how many sentences were cut to the greatest length.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    languages: np.ndarray
    truncated: int = dataclasses.field(default=0, metadata={"static": True})

    @classmethod
    def from_languages(cls, ids: Sequence[Sequence[np.ndarray]], max_length: int) -> "TokenStore":
        """The store of ids[language][sentence], int arrays of ids of the joint vocabulary; see
        `_of`."""
        lengths = [np.array([len(sentence) for sentence in own], np.int64) for own in ids]
        empty = np.zeros(0, np.int32)
        return cls._of(lengths, lambda k: np.concatenate([empty, *ids[k]]), max_length)

    @classmethod
    def from_files(cls, files: Sequence[TokenFiles], max_length: int) -> "TokenStore":
        """The store of each language's token files; see `_of`."""
        ends = [np.append(own.sentence_starts[1:], own.total) - 1 for own in files]  # of [SEP]
        lengths = [np.diff(own, prepend=-1) - 1 for own in ends]
        return cls._of(lengths, lambda k: np.delete(files[k].as_array(), ends[k]), max_length)

    @classmethod
    def _of(
        cls, lengths: Sequence[np.ndarray], read: Callable[[int], np.ndarray], max_length: int
    ) -> "TokenStore":
        """The store of sentences of these lengths, int [sentences], in each language; `read` reads
        all of a language's, one after the other, int [tokens].

        Sentences are cut to `max_length` places, [CLS] and [SEP] included (D&S Table 9: 128).

        ValueError: there is no sentence or no piece, there are more pieces than MOST_TOKENS, or
        `max_length` is below 3.
        """
        keep = max_length - SPECIAL_PLACES
        if keep < 1:
            raise ValueError(f"batches.max_length={max_length}: [CLS], [SEP] and a piece need 3")
        sizes = [len(own) for own in lengths]
        if not sum(sizes):
            raise ValueError("a token store needs at least one sentence: the text is empty")
        whole = np.concatenate(lengths)
        offsets = np.append(0, np.cumsum(np.minimum(whole, keep)))
        if not offsets[-1]:
            raise ValueError(
                "no sentence has a piece: the vocabulary writes nothing of this text; give text in "
                "the language that it was learned from"
            )
        if offsets[-1] > MOST_TOKENS:
            raise ValueError(
                f"the text has {offsets[-1]:,} tokens, but {MOST_TOKENS:,} is the most: take "
                "fewer sentences with corpora.train_sentences"
            )
        tokens, done = np.empty(offsets[-1], np.int32), 0
        for number, own in enumerate(lengths):  # so that there is no second copy of all tokens
            part = _cut(read(number), own, keep)
            tokens[done : done + len(part)] = part
            done += len(part)
        return cls(
            tokens=tokens,
            offsets=offsets.astype(np.int32),
            languages=np.repeat(np.arange(len(sizes)), sizes).astype(np.int32),
            truncated=int((whole > keep).sum()),
        )

    def __len__(self) -> int:
        return len(self.languages)

    def sentence(self, number: int) -> np.ndarray:
        """The pieces of a sentence: int32 [pieces]."""
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Places each sentence takes, [CLS] and [SEP] included: int32 [S]."""
        return np.diff(self.offsets) + SPECIAL_PLACES


def _cut(tokens: np.ndarray, lengths: np.ndarray, keep: int) -> np.ndarray:
    """Sentences of these lengths, one after the other, each cut to `keep` tokens."""
    if (lengths <= keep).all():
        return tokens
    is_kept = np.tile([True, False], len(lengths))
    kept = np.minimum(lengths, keep)
    return tokens[np.repeat(is_kept, np.column_stack([kept, lengths - kept]).ravel())]
