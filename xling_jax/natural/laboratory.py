"""Pretrains the rows of D&S Table 3, fine-tunes them on one language, tests them on all."""

from pathlib import Path

import ml_collections

from xling_jax import experiment
from xling_jax.bilingual.export import file_name
from xling_jax.fake_english import laboratory as pretraining
from xling_jax.fake_english.replicas import cells
from xling_jax.natural.data import NaturalTexts
from xling_jax.reports import natural
from xling_jax.training.metrics import say
from xling_jax.zero_shot import laboratory as fine_tuning
from xling_jax.zero_shot.texts import LabelledReader


class Laboratory:
    """Runs one experiment, and stores what comes out."""

    def __init__(self, config: ml_collections.ConfigDict, workdir: Path):
        """Reads the texts to pretrain on and looks at those to fine-tune on.

        Raises:
          ValueError, FileNotFoundError: the config or a text cannot be used, or the workdir holds
            another experiment.
        """
        self._workdir, self._languages = workdir, tuple(config.corpora.languages)
        wanted = cells(config)
        if large := [cell.row for cell in wanted if "overparam" in cell.modifications]:
            raise ValueError(f"row {large[0]}: overparam means nothing here; set models.* instead")
        self._transfer = ml_collections.ConfigDict(config.transfer.to_dict())
        rows = [file_name(cell.row).removeprefix("row") for cell in wanted]  # as in `models/`
        self._transfer.rows = {row: row for row in rows}
        self._transfer.row = "+".join(dict.fromkeys(rows))
        self._transfer.seeds = tuple(config.seeds)
        self._transfer.runs = {"-".join(self._languages): str(workdir)}
        if self._transfer.tasks:
            with experiment.named("transfer"):
                LabelledReader(self._transfer).manifest(self._transfer.tasks[0], self._languages)
        self._pretraining = pretraining.Laboratory(config, workdir, NaturalTexts, natural.write)

    def run(self) -> str:
        """Does what is missing, writes the report, returns the table.

        Raises:
          Diverged: no replica has a result.
          Interrupted: the run was asked to end.
        """
        table = self._pretraining.run()
        if not self._transfer.tasks:
            return table
        say("fine-tuning what was pretrained")
        fine_tuning.Laboratory(self._transfer, self._workdir / natural.TRANSFER).run()
        return natural.write(self._workdir)
