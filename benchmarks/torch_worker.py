"""The contestant of Hugging Face: BertForMaskedLM and PyTorch's AdamW, on all cores or a GPU.

Sentences are padded to the longest of a batch, and the softmax is taken at all places, as in the
library. A linear head is BERT's without its dense layer, GELU and layer norm. Needs torch,
transformers and NumPy, and of this project only `turns`.
"""

import os
import time
from collections.abc import Iterator

import numpy as np
import torch
import transformers
from turns import TOTAL, Referee

CLS, SEP, MASK = 2, 3, 4
SHARE, MASKED, KEPT = 0.15, 0.8, 0.1  # Devlin et al. 2019
NOT_PREDICTED = -100
WARMUP = 50  # steps
FIRST = 6  # steps before anything is measured, since some lengths are compiled anew


class Batches:
    """Shuffled sentences of both languages, padded and corrupted anew in each epoch."""

    def __init__(self, path: str, sentences: int, device: torch.device):
        """Reads the ids that `corpus.write` wrote."""
        text = np.load(path)
        self._tokens, self._offsets = text["tokens"], text["offsets"]
        self._shift, self._specials = int(text["shift"]), int(text["specials"])
        self._sentences, self._device = sentences, device

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, np.ndarray]]:
        """Input ids, labels and mask, all [N, T], and the lengths [N], endlessly.

        N is always the same; the rest of an epoch that fills no batch is dropped.
        """
        random = np.random.default_rng(0)
        while True:
            order = random.permutation(len(self._offsets) - 1)
            for first in range(0, len(order) - self._sentences + 1, self._sentences):
                yield self._batch(order[first : first + self._sentences])

    def _batch(self, chosen: np.ndarray):
        starts, ends = self._offsets[chosen], self._offsets[chosen + 1]
        lengths = ends - starts + 2
        tokens = np.zeros((len(chosen), lengths.max()), np.int64)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            tokens[row, 0], tokens[row, end - start + 1] = CLS, SEP
            tokens[row, 1 : end - start + 1] = self._tokens[start:end]
        on = {"device": self._device}
        ids = torch.from_numpy(tokens).to(**on)
        place = torch.arange(ids.shape[1], **on)
        length = torch.from_numpy(lengths).to(**on)[:, None]
        is_piece = (place > 0) & (place < length - 1)
        selected = is_piece & (torch.rand(ids.shape, **on) < SHARE)
        action = torch.rand(ids.shape, **on)
        ordinary = self._shift - self._specials
        drawn = torch.randint(2 * ordinary, ids.shape, **on)
        pieces = drawn // ordinary * self._shift + self._specials + drawn % ordinary
        changed = torch.where(action < MASKED, MASK, pieces)
        changed = torch.where((action >= MASKED) & (action < MASKED + KEPT), ids, changed)
        labels = torch.where(selected, ids, NOT_PREDICTED)
        return torch.where(selected, changed, ids), labels, place < length, lengths


class Trainer:
    """A model with its optimiser and schedule (D&S §2.1)."""

    def __init__(self, options: dict, device: torch.device):
        """Takes the options model, learning_rate and parts, and, for how it is computed,
        attention, mask, fused, compile and dynamic."""
        size = options["model"]
        config = transformers.BertConfig(
            vocab_size=size["vocabulary_size"],
            hidden_size=size["hidden"],
            num_hidden_layers=size["layers"],
            num_attention_heads=size["heads"],
            intermediate_size=size["intermediate"],
            max_position_embeddings=size["positions"],
            type_vocab_size=size["token_types"],
        )
        model = transformers.AutoModelForMaskedLM.from_config(
            config, attn_implementation=options["attention"]
        ).to(device)
        assert model.config._attn_implementation == options["attention"]
        if size["head"] == "linear":
            model.cls.predictions.transform = torch.nn.Identity()
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
            self._model = torch.compile(self._model, dynamic=options["dynamic"])
        self._passes_mask, self._parts = options["mask"], options["parts"]
        if size["dtype"] == "bfloat16_products":
            torch.set_float32_matmul_precision("medium")
        is_mixed = size["dtype"] == "bfloat16"
        self._mixed = torch.autocast(device.type, torch.bfloat16, enabled=is_mixed)

    def step(self, ids: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """One update, from parts that go through the model one by one; returns the mean loss."""
        parts = [x.chunk(self._parts) for x in (ids, labels, mask)]
        total = torch.zeros((), device=ids.device)
        for own_ids, own_labels, own_mask in zip(*parts, strict=True):
            given = {"attention_mask": own_mask.long()} if self._passes_mask else {}
            with self._mixed:
                loss = self._model(input_ids=own_ids, labels=own_labels, **given).loss
            (loss / self._parts).backward()
            total += loss.detach() / self._parts
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad()
        return total


def turn(trainer: Trainer, batches: Iterator, seconds: float, least: int) -> dict[str, float]:
    """Makes steps for `seconds` seconds, and at least `least` of them; returns what they read and
    how long they took."""
    began, losses, lengths = time.perf_counter(), [], []
    while len(losses) < least or time.perf_counter() - began < seconds:
        ids, labels, mask, own_lengths = next(batches)
        losses.append(trainer.step(ids, labels, mask))
        lengths.append(own_lengths.astype(int))
        # A GPU works on a step while the next one is prepared, but on no more.
        losses[-2:-1] = [loss.item() for loss in losses[-2:-1]]
    losses[-1] = losses[-1].item()
    took, every = time.perf_counter() - began, np.concatenate(lengths)
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return {
        "seconds": took,
        "steps": len(losses),
        "loss": float(np.mean(losses)),
        "tokens": int(every.sum()),
        "pieces": int((every - 2).sum()),
        "squares": int((every**2).sum()),
        "bytes_peak": peak,
    }


def main() -> None:
    """Trains turn by turn; the first turn is the warm-up, which does not count."""
    referee = Referee()
    options = referee.options
    torch.manual_seed(0)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    device = torch.device(options["device"])
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # as JAX does it
    batches = iter(Batches(options["text"], options["batch"], device))
    trainer = Trainer(options, device)
    result = turn(trainer, batches, 0.0, FIRST)
    while True:
        result = turn(trainer, batches, referee.report(result), 1)


if __name__ == "__main__":
    main()
