"""The token ids of a corpus."""

import dataclasses
from collections.abc import Sequence

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
        `from_streams`."""
        lengths = [np.array([len(sentence) for sentence in own], np.int64) for own in ids]
        flat = [np.concatenate([np.zeros(0, np.int32), *own]) for own in ids]
        return cls.from_streams(list(zip(flat, lengths, strict=True)), max_length)

    @classmethod
    def from_files(cls, files: Sequence[TokenFiles], max_length: int) -> "TokenStore":
        """The store of each language's token files; see `from_streams`."""

        def stream(own: TokenFiles) -> tuple[np.ndarray, np.ndarray]:
            ends = np.append(own.sentence_starts[1:], own.total) - 1  # of [SEP]
            return np.delete(own.as_array(), ends), np.diff(ends, prepend=-1) - 1

        return cls.from_streams(list(map(stream, files)), max_length)

    @classmethod
    def from_streams(
        cls, streams: Sequence[tuple[np.ndarray, np.ndarray]], max_length: int
    ) -> "TokenStore":
        """The store of each language's sentences, one after the other, int [tokens], and how many
        tokens each has, int [sentences].

        Sentences are cut to `max_length` places, [CLS] and [SEP] included (D&S Table 9: 128).

        ValueError: there is no sentence or no piece, there are more pieces than MOST_TOKENS, or
        `max_length` is below 3.
        """
        keep = max_length - SPECIAL_PLACES
        if keep < 1:
            raise ValueError(f"batches.max_length={max_length}: [CLS], [SEP] and a piece need 3")
        whole = np.concatenate([own for _, own in streams])
        if not len(whole):
            raise ValueError("a token store needs at least one sentence: the text is empty")
        lengths = np.minimum(whole, keep)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
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
        parts = (_cut(tokens, own, keep) for tokens, own in streams)
        return cls(
            tokens=np.concatenate([part.astype(np.int32, copy=False) for part in parts]),
            offsets=offsets.astype(np.int32),
            languages=np.repeat(np.arange(len(streams)), [len(own) for _, own in streams]).astype(
                np.int32
            ),
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
