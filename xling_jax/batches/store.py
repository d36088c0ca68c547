"""The token ids of a corpus."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

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
        """The store of ids[language][sentence], int arrays of ids of the joint vocabulary.

        Sentences are cut to `max_length` places, [CLS] and [SEP] included (D&S Table 9: 128).

        ValueError: there is no sentence or no piece, there are more pieces than MOST_TOKENS, or
        `max_length` is below 3.
        """
        sentences = [sentence for language in ids for sentence in language]
        if not sentences:
            raise ValueError("a token store needs at least one sentence: the text is empty")
        keep = max_length - SPECIAL_PLACES
        if keep < 1:
            raise ValueError(f"batches.max_length={max_length}: [CLS], [SEP] and a piece need 3")
        cut = [np.asarray(sentence[:keep], np.int32) for sentence in sentences]
        offsets = np.cumsum([0] + [len(sentence) for sentence in cut], dtype=np.int64)
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
        return cls(
            tokens=np.concatenate(cut),
            offsets=offsets.astype(np.int32),
            languages=np.repeat(np.arange(len(ids)), [len(x) for x in ids]).astype(np.int32),
            truncated=sum(len(sentence) > keep for sentence in sentences),
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
