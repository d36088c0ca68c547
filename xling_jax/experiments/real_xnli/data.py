"""The texts of natural languages, each with a vocabulary of its own, as ids."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections
import numpy as np
from jax.sharding import Mesh

from xling_jax import errors
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import sources, splitting
from xling_jax.corpora import text as corpora
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.evaluators.perplexity import HeldOutPerplexity
from xling_jax.experiments.bilingual import rows
from xling_jax.experiments.bilingual.texts import Reader
from xling_jax.experiments.real_xnli import export
from xling_jax.models.bert import BertConfig
from xling_jax.training.loop import Replica
from xling_jax.vocabulary import pieces as vocabulary
from xling_jax.vocabulary.languages import ApartVocabulary
from xling_jax.vocabulary.pieces import Pieces


class NaturalTexts:
    """The texts of an experiment; see `fake_english.texts.Source`."""

    def __init__(self, config: ml_collections.ConfigDict):
        """Checks what is given; errors as `Reader`'s."""
        self._config, self._reader = config, Reader(config)

    def manifest(self) -> list[dict[str, Any]]:
        """See `Source`."""
        return self._reader.manifest([rows.parse("all", "default", self._reader.languages)])

    def prepare(self, cache: Path) -> "Data":
        """See `Source`."""
        section = self._config.corpora
        normalization = Normalization(section.punctuation, section.tokenize)
        every: list[Pieces] = []
        ids: dict[str, list[list[np.ndarray]]] = {"train": [], "dev": []}
        for name in self._reader.languages:
            normalize = Normalizer(name, normalization)
            texts = self._reader.read(name, is_other_domain=False)
            written = {}
            for field, given in (("train", texts.train), ("dev", texts.dev)):
                with errors.in_field(f"corpora.{name}.{field}"):
                    written[field] = self._sentences(name, given, field, normalize)
            own = self._pieces(name, written["train"], cache)
            for field, sentences in written.items():
                ids[field].append(own.encode(sentences))
            every.append(own)
        languages = ApartVocabulary(every, self._reader.languages)
        most = self._config.batches.max_length

        def stored(field: str) -> TokenStore:
            """Special tokens in the text stay the first language's; the setting shifts them."""
            shifted = [
                languages.shifted(own, name)
                for name, own in zip(languages.languages, ids[field], strict=True)
            ]
            return TokenStore.from_languages(shifted, most)

        return Data(languages, stored("train"), stored("dev"), normalization)

    def _sentences(
        self, name: str, given: Sequence[sources.Source], field: str, normalize: Normalizer
    ) -> list[str]:
        """The first sentences of a text, as many as the config says, normalised."""
        section = self._config.corpora
        lines = corpora.stream(given, splitting.of_config(section, name))
        limit = 0 if self._reader.is_synthetic else section[f"{field}_sentences"]
        found = (written for line in lines if (written := normalize(line)))
        sentences = list(itertools.islice(found, limit or None))
        if not sentences:
            raise ValueError("the text is empty")
        return sentences

    def _pieces(self, name: str, sentences: list[str], cache: Path) -> Pieces:
        section = self._config.vocabulary
        drawn = vocabulary.sample(sentences, section.sentences)
        with errors.in_field(f"vocabulary.size, corpora.{name}"):
            return vocabulary.train(drawn, section.size, cache, section.model_type)


@dataclasses.dataclass(frozen=True)
class Data:
    """See `fake_english.texts.Data`; dev: held-out text. normalization: how texts are written."""

    vocabulary: ApartVocabulary
    train: TokenStore
    dev: TokenStore
    normalization: Normalization

    is_parallel = False

    @property
    def piece_range(self) -> PieceRange:
        """See `texts.Data`."""
        return PieceRange(len(self.vocabulary.languages), self.vocabulary.shift)

    def evaluator(
        self,
        model: BertConfig,
        mesh: Mesh,
        names: Sequence[str],
        layers: Sequence[int],
        batches: ml_collections.ConfigDict,
    ) -> HeldOutPerplexity:
        """See `texts.Data`; perplexity alone is measured."""
        return HeldOutPerplexity(
            model,
            self.dev,
            self.vocabulary.languages,
            self.piece_range,
            mesh,
            sentences=batches.sentences,
            row_lengths=batches.row_lengths,
            attend_padding=batches.attend_padding,
        )

    def described(self) -> list[str]:
        """See `texts.Data`."""
        lines = []
        for number, name in enumerate(self.vocabulary.languages):
            places = self.train.lengths[self.train.languages == number]
            held_out = int((self.dev.languages == number).sum())
            lines.append(
                f"{name}: {len(places):,} sentences of {places.mean():.1f} places to train on, "
                f"{held_out:,} held out"
            )
        cut = self.train.truncated, self.dev.truncated
        return [*lines, f"cut to batches.max_length: {cut[0]:,} of them and {cut[1]:,} held out"]

    def keep(
        self,
        workdir: Path,
        replica: Replica,
        model: BertConfig,
        params: Mapping[str, Any],
        vectors: np.ndarray,
    ) -> None:
        """Writes each language's model."""
        export.export(workdir, replica, model, params, self.vocabulary, self.normalization)
