"""corpora.normalize: what Moses and jieba make of sentences, quietly and always the same."""

import os
import subprocess
import sys

import numpy as np
import pytest
import sacremoses

from xling_jax.corpora import moses
from xling_jax.corpora.normalize import Normalization, Normalizer, rules_for, segment_chinese


@pytest.mark.parametrize(
    ("language", "sentence", "normalized"),
    [
        ("en", "“Don’t go,” said Mr. Smith…", '" Don \'t go , " said Mr. Smith ...'),
        ("en", "3.5 % (of 1,000);  e.g. in the U.S.", "3.5 % ( of 1,000 ) ; e.g. in the U.S."),
        ("fr", "L’été, « c’est » aujourd’hui !", "L' été , \" c' est \" aujourd' hui !"),
        ("ru", "«Слово» — было у Бога, и т. д.", '" Слово " - было у Бога , и т. д.'),
        ("de", "„Größe“ ist 1.000 m lang.", '" Größe " ist 1.000 m lang .'),
        ("fake", "He didn't.", "He didn 't ."),
    ],
)
def test_moses_puts_words_apart(language, sentence, normalized):
    assert Normalizer(language)(sentence) == normalized


def test_chinese_is_segmented():
    words = segment_chinese("起初，神创造天地。 他在北京大学 (PKU) 学习了 3.5 年！")
    assert "".join(words) == "起初，神创造天地。他在北京大学(PKU)学习了3.5年！"
    assert {"起初", "创造", "天地", "北京大学", "PKU", "3.5"} <= set(words)
    assert not any(word.isspace() for word in words)
    normalized = Normalizer("zh-CN")("起初，神创造天地。（他在北京大学学习！）")
    assert normalized == "起初 , 神 创造 天地 . ( 他 在 北京大学 学习 ! )"


def test_chinese_segmentation_is_silent_and_leaves_no_file(tmp_path):
    program = (
        "from xling_jax.corpora.normalize import Normalizer;"
        "print(ascii(Normalizer('zh')('\\u8d77\\u521d\\u795e\\u521b\\u9020\\u5929\\u5730')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.strip() == ascii(Normalizer("zh")("起初神创造天地"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("language", ["en", "fr", "de", "cs", "ru", "hi", "tr", "zh"])
def test_what_comes_out_is_that_of_sacremoses_itself(language):
    """Rules are skipped where they find nothing; in sentences, and in marks at random."""
    whole = sacremoses.MosesPunctNormalizer(
        lang=language, pre_replace_unicode_punct=True, post_remove_control_chars=True
    )
    words = sacremoses.MosesTokenizer(lang=language)
    letters, small = frozenset(words.IsAlpha), frozenset(words.IsLower)
    words.isanyalpha = lambda word: not letters.isdisjoint(word)  # the same, in less time
    words.islower = small.issuperset
    punctuation, tokenize = moses.punctuation(language), moses.tokenizer(language, True)
    sentences = [
        "Mr. Smith, of St. Louis, paid $1,000.50 (e.g. in the U.S.); the dogs' food isn't...",
        "No. 5 is a number. No. Nos. vs. al. are not.",
        "L'homme d'aujourd'hui (l'un) « dit » : «\u00a0non\u00a0» ; p. ex. Rien...",
        "5\u00a0% à 3\u00a0000,5 nº\u00a07.",
        "वह घर है। 1.5 कि.मी. दूर.",
        'Der 3. Mai, z. B. um 7 Uhr; d.h. „bald“. Er sagte: "Nein," und ging.',
        "Он сказал: «да», и т. д. — в 1990 г.",
        "他说：“好。”（《圣经》）１，０００％，3.5。",
    ]
    random = np.random.default_rng(0)
    alphabet = list(" " * 40 + "aBé1९ß" * 8 + ".,'\"" * 5 + ";:()?!%-–—«»‘’“”„…`´、。，（）％１")
    alphabet += list("\u00a0\u2028\t\u200b|<>&@/º{}[]\u0300\u0e48")
    sentences += ["".join(random.choice(alphabet, 30)) for _ in range(1500)]
    for sentence in sentences:
        expected = whole.normalize(sentence)
        assert punctuation(sentence) == expected
        assert tokenize(expected) == words.tokenize(expected, return_str=True, escape=False)


def test_the_exceptions_to_moses_can_be_left_out():
    assert Normalizer("ru", exact=True)("кни́га a\u200bb") == "кни \u0301 га ab"
    assert Normalizer("zh", exact=True)("２０２０年") == "2 0 2 0 年"
    assert Normalizer("ru", exact=True).identity != Normalizer("ru").identity


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [("\\) ([.!:?;,])", ") "), ("(\\d) %", " %"), ('(\\.+)"(\\s*[^<])', '"'), ("。\\s*", "。"),
     ("ab?c", "c"), ("nº\xa0", "nº\xa0"), ("a+bc", "bc"), (r"[ab]\s", ""),
     ("a|bc", ""), ("x(ab)?", ""), ("(?i)a", ""), ("a{0,2}b", "")],
)  # fmt: skip
def test_a_rule_needs_its_plain_characters(pattern, needed):
    assert moses.needed(pattern) == needed


@pytest.mark.parametrize(
    ("language", "sentence", "normalized"),
    [
        ("th", "นี่คือที่บ้าน", "นี่คือที่บ้าน"),
        ("yo", "Ọ̀rọ̀, ẹ̀kọ́!", "Ọ̀rọ̀ , ẹ̀kọ́ !"),
        ("ru", "Э́то кни́га.", "Э́то кни́га ."),
        ("km", "ភាសាខ្មែរ\u200bល្អ", "ភាសាខ្មែរ ល្អ"),
    ],
)
def test_combining_marks_stay_with_their_letters(language, sentence, normalized):
    assert Normalizer(language)(sentence) == normalized
    assert Normalizer(language, Normalization(punctuation=False))(sentence) == normalized


def test_chinese_numbers_of_full_width_stay_whole():
    assert Normalizer("zh")("２０２０年有１２３人，３．５元。") == "2020 年 有 123 人 , 3.5 元 ."
    kept = Normalizer("zh", Normalization(punctuation=False))("２０年有人。")
    assert kept == "２ ０ 年 有人 。"


def test_characters_are_composed_and_invisible_ones_removed():
    assert Normalizer("fr")("e\u0301te\u0301\x00 a\u2060b\u00adc") == "été abc"
    nothing = Normalizer("fr", Normalization(punctuation=False, tokenize="none"))
    assert nothing(" e\u0301te\u0301,\x07 c’est ") == "été, c’est"
    assert Normalizer("en")(" \u200b ") == ""


def test_choices_are_independent():
    sentence = "“Go”, he said."
    made = {
        (punctuation, tokenize): Normalizer("en", Normalization(punctuation, tokenize))(sentence)
        for punctuation in (True, False)
        for tokenize in ("moses", "none")
    }
    assert made == {
        (True, "moses"): '" Go , " he said .',
        (True, "none"): '"Go," he said.',
        (False, "moses"): "“ Go ” , he said .",
        (False, "none"): sentence,
    }
    with pytest.raises(ValueError, match="tokenize='spacy': choose 'moses' or 'none'"):
        Normalization(tokenize="spacy")


def test_a_code_has_its_own_rules_and_any_other_name_those_of_english():
    assert [rules_for(name) for name in ("fr", "zh_TW", "pt-BR", "FR")] == ["fr", "zh", "pt", "fr"]
    assert [rules_for(name) for name in ("fake", "English", "::en", "x1", "")] == ["en"] * 5


def test_the_identity_tells_apart_what_decides_the_outcome():
    none = Normalization(punctuation=False, tokenize="none")
    given = [("en", None), ("fr", None), ("zh", None), ("en", none), ("fr", none)]
    identities = [Normalizer(*choice).identity for choice in given]
    assert len(set(identities)) == len(given)
    assert "sacremoses" in identities[0] and "jieba" not in identities[0]
    assert "jieba" in identities[2] and "sacremoses" not in identities[3]
    assert Normalizer("fake").identity == identities[0]
