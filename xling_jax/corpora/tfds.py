"""Text from TensorFlow Datasets, read from ArrayRecord files without TensorFlow."""

import dataclasses
import functools
import importlib.util
import operator
import os
import re
from typing import Any

PREFIX = "tfds:"
FORM = "tfds:NAME[/CONFIG][:SPLIT][#FIELD]"

# A version after the name (NAME/CONFIG:1.0.0) is TFDS's own notation, and is passed on as it is.
_SOURCE = re.compile(r"tfds:(?P<name>[^:#]+(:\d+\.\d+\.\d+)?)(:(?P<split>[^#]+))?(#(?P<field>.+))?")
# Wiki40B (Guo et al. 2020) writes its structure into the text.
_MARKUP = {"wiki40b": re.compile(r"_(?:START_ARTICLE|START_SECTION|START_PARAGRAPH|NEWLINE)_")}


def wiki40b(language: str) -> tuple[str, str]:
    """The names of Wiki40B's training and validation text in a language, such as `fr`."""
    config = {"zh": "zh-cn"}.get(language, language)
    return f"{PREFIX}wiki40b/{config}:train#text", f"{PREFIX}wiki40b/{config}:validation#text"


@dataclasses.dataclass(frozen=True)
class Examples:
    """One text feature of every example of a split, read by number.

    Attributes:
      records: the examples, serialized.
      parser: parses only this feature; others may be images.
      keys: the feature's name, level by level.
      identity: the dataset with its version, split, feature, number of examples and size.
      markup: what stands for a line end in the text; None if nothing does.
    """

    records: Any
    parser: Any
    keys: list[str]
    identity: str
    markup: re.Pattern[str] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def read(self, numbers: range) -> list[str]:
        """The texts of these examples; markup is replaced by line ends."""
        texts = [
            _at(self.keys, self.parser.deserialize_example_np(record)).decode("utf-8")
            for record in self.records.__getitems__(numbers)
        ]
        return [self.markup.sub("\n", text) for text in texts] if self.markup else texts


def examples(source: str) -> Examples:
    """Opens one text feature of a dataset, its examples in the order of the files.

    The dataset is looked for in the folder TFDS_DATA_DIR (default ~/tensorflow_datasets), and
    prepared there if it is missing.

    In "tfds:NAME[/CONFIG][:SPLIT][#FIELD]" SPLIT may be a slice such as train[:1000] (default:
    train). FIELD names a text feature, a nested one with "/" (default: the only text feature, or
    "text"). Two fields of one dataset are parallel texts.

    ValueError: the source is not of this form, the dataset is unknown or cannot be prepared here,
    or it has no such split or field.
    """
    match = _SOURCE.fullmatch(source)
    if not match:
        raise ValueError(f"{source} is not of the form {FORM}")
    name, split, field = match["name"], match["split"] or "train", match["field"]
    builder = _prepare(source, name)
    features = builder.info.features
    texts = _text_features(features)
    if field is None:
        field = texts[0] if len(texts) == 1 else "text"
    if field not in texts:
        raise ValueError(
            f"{source}: name a text feature after #; it has {', '.join(texts) or 'none'} "
            f"(all features: {', '.join(features)})"
        )

    # Imported late, here and below: most runs read no TFDS, and the import is slow.
    import tensorflow_datasets as tfds

    try:
        records = builder.as_data_source(
            split=split, deserialize_method=tfds.decode.DeserializeMethod.RAW_BYTES
        )
    except ValueError as error:
        raise ValueError(
            f"{source}: no split {split!r}; {name} has {', '.join(builder.info.splits)}"
        ) from error
    keys = field.split("/")
    feature = _at(keys, features)
    for key in reversed(keys):
        feature = {key: feature}
    return Examples(
        records=records,
        parser=tfds.features.FeaturesDict(feature),
        keys=keys,
        identity=f"{builder.info.full_name}:{split}#{field}, {len(records)} examples of "
        f"{builder.info.dataset_size} bytes",
        markup=_MARKUP.get(name.split("/")[0]),
    )


def _prepare(source: str, name: str) -> Any:
    """A TFDS builder whose ArrayRecord files are on disk."""
    import tensorflow_datasets as tfds

    folder = os.environ.get("TFDS_DATA_DIR")
    place = folder or "~/tensorflow_datasets"
    open_builder = functools.partial(
        tfds.builder, name, data_dir=folder, file_format="array_record"
    )
    try:
        builder = open_builder()
        try:
            builder.download_and_prepare()
        except Exception:
            builder = open_builder()
            if not builder.data_path.exists():  # another process may have prepared it meanwhile
                raise
    except tfds.core.DatasetNotFoundError as error:
        more = ""
        if importlib.util.find_spec("tensorflow") is None:
            more = '; or pip install "xling_jax[tfds-tensorflow]", since it may need TensorFlow'
        raise ValueError(
            f"{source}: TFDS knows no dataset {name!r}, and none is prepared in {place}: name a "
            f"file, another dataset, or by TFDS_DATA_DIR the folder that holds it{more}"
        ) from error
    # Whatever fails in there (network, checksums, a missing TensorFlow, a dataset prepared in
    # another file format), the way out is the same.
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"{source}: {name} is not prepared as ArrayRecord in {place}, and preparing it failed "
            f'({reason}). On a machine with a network, pip install "xling_jax[tfds-tensorflow]" '
            f"and tfds build {name} --file_format=array_record, then set TFDS_DATA_DIR to the "
            "folder that holds it"
        ) from error
    return builder


def _text_features(features: Any, prefix: str = "") -> list[str]:
    """Names of the scalar strings, nested ones with "/" between the levels."""
    names = []
    for name, feature in features.items():
        if hasattr(feature, "items"):
            names += _text_features(feature, f"{prefix}{name}/")
        elif feature.shape == () and feature.np_dtype in (object, str):
            names.append(prefix + name)
    return names


def _at(keys: list[str], tree: Any) -> Any:
    return functools.reduce(operator.getitem, keys, tree)
