"""Moses' rules for punctuation and words, by sacremoses, without those that cannot apply.

sacremoses applies about a hundred rules to every sentence, most of which find nothing. Here a rule
is skipped if the text lacks characters that the rule needs; the result is the same.
"""

import functools
import re
import unicodedata
from collections.abc import Callable

# sacremoses is imported where it is used: most runs normalise nothing.

# An element of a rule: a set, class, group or anchor, or a plain character; and its quantifier.
_ELEMENT = re.compile(
    r"(?:\[[^]]*\]|\\[a-zA-Z]|[()^$.|]|\\?(?P<plain>.))(?P<times>[*+?]?)", re.DOTALL
)
_MOST_PAIRS = 2**15  # pairs of a word before a full stop and the next letter that are remembered
_ODD_COMMA = re.compile(r",(?:(?<![a-zA-Z ],)|[^a-zA-Z ])")
_TIGHT_COMMA = re.compile(r",(?:(?<! ,)|[^ ])")
_FULL_STOP = re.compile(r"(?<=[^ ])\.(?= |$)")


def punctuation(language: str) -> Callable[[str], str]:
    """A function that does what `MosesPunctNormalizer` does with `pre_replace_unicode_punct` and
    `post_remove_control_chars`."""
    import sacremoses

    moses = sacremoses.MosesPunctNormalizer(lang=language)
    rules = [
        (needed(pattern) if (pattern, new) != (" +", " ") else "  ", re.compile(pattern).sub, new)
        for pattern, new in [*moses.REPLACE_UNICODE_PUNCTUATION, *moses.substitutions]
    ]

    def normalize(text: str) -> str:
        for what, replace, new in rules:
            if what in text:
                text = replace(new, text)
        # What can be printed is not of Unicode's category C.
        return (text if text.isprintable() else moses.remove_control_chars(text)).strip()

    return normalize


def tokenizer(language: str, marks_apart: bool) -> Callable[[str], str]:
    """A function that does what `MosesTokenizer` does, without escapes: it separates words and
    punctuation by blanks. Moses also puts most combining marks apart (tones of Thai, stress in
    Russian); without `marks_apart` they stay with their letters."""
    import sacremoses

    moses = sacremoses.MosesTokenizer(lang=language)
    apart = _Spaced(moses.PAD_NOT_ISALNUM[0], marks_apart)
    moses.PAD_NOT_ISALNUM = _PatternLike(lambda _, text: text.translate(apart)), ""
    # sacremoses strips the text after both uses of this rule.
    moses.DEDUPLICATE_SPACE = _PatternLike(lambda _, text: " ".join(text.split())), " "
    # Commas stay in numbers. If all stand between letters, they are simply put apart.
    odd, tight, quote = _ODD_COMMA.search, _TIGHT_COMMA.search, re.compile("'").search
    pattern, new = moses.COMMA_SEPARATE_1
    moses.COMMA_SEPARATE_1 = _where(odd, pattern, new, lambda text: text.replace(",", " , "))
    for name in ("COMMA_SEPARATE_2", "COMMA_SEPARATE_3"):
        setattr(moses, name, _where(tight, *getattr(moses, name)))
    for name in ("ENGLISH_SPECIFIC_APOSTROPHE", "FR_IT_SPECIFIC_APOSTROPHE"):
        setattr(moses, name, [_where(quote, *rule) for rule in getattr(moses, name)])
    for name in ("NON_SPECIFIC_APOSTROPHE", "TRAILING_DOT_APOSTROPHE"):
        setattr(moses, name, _where(quote, *getattr(moses, name)))
    dots, marks = moses.replace_multidots, moses.restore_multidots
    moses.replace_multidots = lambda text: dots(text) if ".." in text else text
    moses.restore_multidots = lambda text: marks(text) if "DOTMULTI" in text else text
    # sacremoses' own make a set of thousands of characters at every full stop, to look up a word.
    letters, small = frozenset(moses.IsAlpha), frozenset(moses.IsLower)
    moses.isanyalpha = lambda word: not letters.isdisjoint(word)
    moses.islower = small.issuperset
    of_pair = functools.lru_cache(_MOST_PAIRS)(moses.handles_nonbreaking_prefixes)

    def full_stops(text: str) -> str:
        """Separates a full stop from its word or not, depending on the word and on the beginning
        of the next one."""
        text, done = " ".join(text.split()), 0
        parts: list[str] = []
        for match in _FULL_STOP.finditer(text):
            stop = match.start()
            start = text.rfind(" ", 0, stop) + 1
            of_two = of_pair(text[start : stop + 3])
            if of_two.startswith(" ", stop - start):
                parts += text[done:stop], " "
                done = stop
        return "".join([*parts, text[done:]])

    moses.handles_nonbreaking_prefixes = full_stops
    return functools.partial(moses.tokenize, return_str=True, escape=False)


class _Spaced(dict[int, str]):
    """Each character that a pattern matches, with blanks around it; combining marks without, unless
    `marks` is True."""

    def __init__(self, pattern: re.Pattern[str], marks: bool):
        self._pattern, self._marks = pattern, marks

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_whole = not self._marks and unicodedata.category(character)[0] == "M"
        is_apart = self._pattern.match(character) and not is_whole
        self[code] = found = f" {character} " if is_apart else character
        return found


class _PatternLike:
    """Takes the place of a compiled pattern in sacremoses' tables."""

    def __init__(self, sub: Callable[[str, str], str]):
        self.sub = sub


def _where(
    applies: Callable[[str], object],
    pattern: re.Pattern[str],
    new: str,
    otherwise: Callable[[str], str] = lambda text: text,
) -> tuple[_PatternLike, str]:
    """A rule that is applied only to text where `applies` finds something; for other text,
    `otherwise` is."""
    return _PatternLike(
        lambda x, text: pattern.sub(x, text) if applies(text) else otherwise(text)
    ), new


def needed(pattern: str) -> str:
    """A string that every text matched by `pattern` contains: its longest run of plain characters.
    It is "" for patterns with alternatives, optional groups or syntax that is not read here."""
    if re.search(r"\||\)[*?{]|\(\?|[{}]|\\[xuUN]", pattern):
        return ""
    runs = [""]
    for element in _ELEMENT.finditer(pattern):
        plain, times = element["plain"], element["times"]
        if plain and times not in ("*", "?"):
            runs[-1] += plain
        if not plain or times:
            runs.append("")
    return max(reversed(runs), key=len)
