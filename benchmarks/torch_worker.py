"""The contestant of Hugging Face: BertForMaskedLM and PyTorch's AdamW, on all cores.

Sentences are padded to the batch's longest, and the softmax is taken over all places, as the
library does. Needs torch, transformers and NumPy, and nothing of this project.
"""

import os
import time
from collections.abc import Iterator

import numpy as np
import torch
import transformers
from turns import Referee

CLS, SEP, MASK = 2, 3, 4
SHARE, MASKED, KEPT = 0.15, 0.8, 0.1  # Devlin et al. 2019
NOT_PREDICTED = -100
WARMUP, TOTAL = 50, 20_000  # steps


class Batches:
    """Shuffled sentences of both languages, padded and corrupted anew in each epoch."""

    def __init__(self, path: str, sentences: int):
        """Reads the ids that `corpus.write` wrote."""
        text = np.load(path)
        self._tokens, self._offsets = text["tokens"], text["offsets"]
        self._shift, self._specials = int(text["shift"]), int(text["specials"])
        self._sentences = sentences
        self.vocabulary_size = 2 * self._shift

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, np.ndarray]]:
        """Input ids, labels and mask, all [N, T], and the lengths [N], without end."""
        random = np.random.default_rng(0)
        while True:
            order = random.permutation(len(self._offsets) - 1)
            for first in range(0, len(order), self._sentences):
                yield self._batch(order[first : first + self._sentences])

    def _batch(self, chosen: np.ndarray):
        starts, ends = self._offsets[chosen], self._offsets[chosen + 1]
        lengths = ends - starts + 2
        tokens = np.zeros((len(chosen), lengths.max()), np.int64)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            tokens[row, 0], tokens[row, end - start + 1] = CLS, SEP
            tokens[row, 1 : end - start + 1] = self._tokens[start:end]
        ids = torch.from_numpy(tokens)
        place, length = torch.arange(ids.shape[1]), torch.from_numpy(lengths)[:, None]
        is_piece = (place > 0) & (place < length - 1)
        selected = is_piece & (torch.rand(ids.shape) < SHARE)
        action = torch.rand(ids.shape)
        ordinary = self._shift - self._specials
        drawn = torch.randint(2 * ordinary, ids.shape)
        pieces = drawn // ordinary * self._shift + self._specials + drawn % ordinary
        changed = torch.where(action < MASKED, MASK, pieces)
        changed = torch.where((action >= MASKED) & (action < MASKED + KEPT), ids, changed)
        labels = torch.where(selected, ids, NOT_PREDICTED)
        return torch.where(selected, changed, ids), labels, place < length, lengths


class Trainer:
    """A model with its optimiser and schedule (D&S §2.1)."""

    def __init__(self, options: dict, vocabulary_size: int):
        """`options`: layers, learning_rate, and attention, mask, fused, compile."""
        config = transformers.BertConfig(
            vocab_size=vocabulary_size,
            hidden_size=64,
            num_hidden_layers=options["layers"],
            num_attention_heads=1,
            intermediate_size=256,
        )
        model = transformers.AutoModelForMaskedLM.from_config(
            config, attn_implementation=options["attention"]
        )
        assert model.config._attn_implementation == options["attention"]
        decayed = [p for p in model.parameters() if p.ndim > 1]
        others = [p for p in model.parameters() if p.ndim <= 1]
        self._optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
            lr=options["learning_rate"],
            eps=1e-6,
            fused=options["fused"] or None,
        )
        self._schedule = transformers.get_linear_schedule_with_warmup(
            self._optimizer, WARMUP, TOTAL
        )
        self._parameters = list(model.parameters())
        self._model = model.train()
        if options["compile"]:
            self._model = torch.compile(self._model, dynamic=True)
        self._passes_mask = options["mask"]

    def step(self, ids: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> float:
        """One update; returns the loss."""
        given = {"attention_mask": mask.long()} if self._passes_mask else {}
        loss = self._model(input_ids=ids, labels=labels, **given).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad()
        return loss.item()


def main() -> None:
    """Trains, a turn at a time; the first step, in which nothing is measured, is the warm-up."""
    referee = Referee()
    options = referee.options
    torch.manual_seed(0)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    source = Batches(options["text"], options["sentences"])
    batches = iter(source)
    trainer = Trainer(options, source.vocabulary_size)
    seconds = 0.0
    while True:
        began, losses, lengths = time.perf_counter(), [], []
        while not losses or time.perf_counter() - began < seconds:
            ids, labels, mask, own_lengths = next(batches)
            losses.append(trainer.step(ids, labels, mask))
            lengths.append(own_lengths.astype(int))
        took, every = time.perf_counter() - began, np.concatenate(lengths)
        seconds = referee.report(
            {
                "seconds": took,
                "steps": len(losses),
                "loss": float(np.mean(losses)),
                "sentences": len(every),
                "tokens": int(every.sum()),
                "squares": int((every**2).sum()),
            }
        )


if __name__ == "__main__":
    main()
