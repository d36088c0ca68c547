"""Normalises sentences with Moses' rules: uniform punctuation, words apart, Chinese segmented."""

import dataclasses
import functools
import re
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any, Literal

from xling_jax.corpora import moses, text

CHINESE = "zh"
_RULES = 2  # of this module; count up when they change
_WORD_BREAK = "\u200b"  # without width: it separates the words of Khmer, Lao and Burmese
_FULL_WIDTH_DIGITS = {0xFF10 + digit: str(digit) for digit in range(10)}
_FULL_WIDTH_POINT = re.compile(r"(?<=[0-9])．(?=[0-9])")


@dataclasses.dataclass(frozen=True)
class Normalization:
    """How the sentences of a text are normalised.

    punctuation: whether quotes, dashes, full-width marks and digits get one form, and invisible
    characters (Unicode category C) are removed. tokenize: "moses" puts blanks between words and
    punctuation, and between Chinese words; "none" leaves them as they are.
    """

    punctuation: bool = True
    tokenize: Literal["moses", "none"] = "moses"

    def __post_init__(self) -> None:
        if self.tokenize not in ("moses", "none"):
            raise ValueError(f"tokenize={self.tokenize!r}: choose 'moses' or 'none'")

    @property
    def in_words(self) -> str:
        """What is done to a text, in words."""
        done = {
            "punctuation of one form": self.punctuation,
            "blanks between words and punctuation, as Moses sets them": self.tokenize == "moses",
        }
        return ", ".join(what for what, is_done in done.items() if is_done) or "blanks alone"


class Normalizer:
    """Normalises the sentences of one language, by default with all steps.

    These are the steps of XLM's tools/tokenize.sh (Lample & Conneau 2019; W&C used Moses too), as
    sacremoses has them: Unicode punctuation is replaced, punctuation normalised, invisible
    characters removed, and the text tokenised without escapes. Chinese is segmented first, by jieba
    instead of W&C's Stanford segmenter. Japanese and Thai are not segmented.

    Unless `exact` is True, the rules of Moses have three exceptions: combining marks stay with
    their letters, U+200B leaves a blank, and Chinese numbers of full width stay whole if their
    digits are normalised too.

    identity: everything that decides the outcome: rules, choices and the versions of the libraries.
    """

    def __init__(
        self, language: str, normalization: Normalization | None = None, exact: bool = False
    ):
        normalization, rules = normalization or Normalization(), rules_for(language)
        tokenize = normalization.tokenize == "moses"
        self._steps: list[Callable[[str], str]] = []
        libraries = []
        if (normalization.punctuation or tokenize) and not exact:
            self._steps.append(lambda line: line.replace(_WORD_BREAK, " "))
        if tokenize and rules == CHINESE:
            if normalization.punctuation and not exact:  # jieba would take such numbers apart
                self._steps.append(_numbers)
            self._steps.append(lambda line: " ".join(segment_chinese(line)))
            libraries.append("jieba")
        if normalization.punctuation:
            self._steps.append(moses.punctuation(rules))
        if tokenize:
            self._steps.append(moses.tokenizer(rules, marks_apart=exact))
        if self._steps:
            libraries.append("sacremoses")
        versions = [f"{name} {metadata.version(name)}" for name in libraries]
        own = "exact" if exact else f"rules {_RULES}"
        self.identity = ", ".join([rules, repr(normalization), own, *versions])

    def __call__(self, sentence: str) -> str:
        """Returns the sentence cleaned (`text.clean`) and normalised; "" if nothing is left."""
        sentence = text.clean(sentence)
        for step in self._steps:
            sentence = step(sentence)
        return " ".join(sentence.split())


def rules_for(language: str) -> str:
    """The code of the language whose rules apply to a name such as "fr", "zh-CN" or "fake".

    This is the code of two letters that the name begins with, else "en". Moses treats a code that
    it does not know like English, except for the apostrophe.
    """
    return code_of(language) or "en"


def code_of(language: str) -> str:
    """The code of two letters that a name begins with, as in "zh-CN"; "" if there is none."""
    code = re.split("[-_]", language.lower())[0]
    return code if re.fullmatch("[a-z]{2}", code) else ""


def _numbers(line: str) -> str:
    """A line with numbers of the usual width."""
    return _FULL_WIDTH_POINT.sub(".", line.translate(_FULL_WIDTH_DIGITS))


def segment_chinese(line: str) -> list[str]:
    """The words of a Chinese line by jieba, blanks left out; the same every time."""
    return [word for word in _chinese_words().lcut(line) if not word.isspace()]


@functools.cache
def _chinese_words() -> Any:
    # Imported late: most runs normalise nothing.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba

    # Left to itself, jieba reports on stderr, and reads its dictionary from a file in the common
    # temporary folder, which anybody may have put there.
    words = jieba.Tokenizer()
    words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
    words.initialized = True
    return words
